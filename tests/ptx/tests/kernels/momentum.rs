//! `momentum.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const PTX: &str = include_str!("../../kernels/momentum.ptx");

#[test]
fn weights_follow_their_velocity_to_the_bit() {
    let (module, mut random) = (module(PTX), Random::new(5));
    for _ in 0..SHAPES {
        let count = random.below(2000) as usize;
        let (weights, velocity, gradient) = (random.units(count), random.units(count), random.units(count));
        let (rate, decay) = (random.unit(), random.unit());
        let device = Device::default();
        let (weights_at, velocity_at) = (device.put_f32(&weights), device.put_f32(&velocity));
        let arguments = Arguments::default()
            .pointer(weights_at)
            .pointer(velocity_at)
            .pointer(device.put_f32(&gradient))
            .f32(rate)
            .f32(decay)
            .u32(count as u32);
        let block = random.within(1, 128) as u32;
        run(&module, "momentum", line((count as u32).div_ceil(4 * block).max(1), block), &arguments, &device);
        let (got_weights, got_velocity) = (device.u32(weights_at), device.u32(velocity_at));
        for i in 0..count {
            // The compiler made one operation of a product and a sum, not of a product and a difference. `ptxas` may
            // do so later, because neither has a rounding; the interpreter never does.
            let new = decay.mul_add(velocity[i], gradient[i]);
            assert_eq!(got_velocity[i], new.to_bits(), "velocity {i} of {count}");
            assert_eq!(got_weights[i], (weights[i] - rate * new).to_bits(), "weight {i} of {count}");
        }
    }
}
