//! `halves.cu`: by bit tricks for sm_75, by instructions for sm_80.

use half::{bf16, f16};

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const TEXTS: [&str; 2] = [include_str!("../../kernels/halves.ptx"), include_str!("../../kernels/halves.80.ptx")];

/// What `half` makes of an f32, with the one not-a-number of GPUs.
fn f16_of(value: f32) -> u16 {
    if value.is_nan() { 0x7fff } else { f16::from_f32(value).to_bits() }
}

fn bf16_of(value: f32) -> u16 {
    if value.is_nan() { 0x7fff } else { bf16::from_f32(value).to_bits() }
}

/// Any bits, so that all kinds of numbers occur.
fn any(random: &mut Random, count: usize) -> Vec<u16> {
    (0..count).map(|_| random.any() as u16).collect()
}

#[test]
fn fused_products_are_rounded_twice() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(10));
        for round in 0..SHAPES {
            let count = random.within(1, 400) as usize;
            let [a, b, c] = [(); 3].map(|()| any(&mut random, count));
            let device = Device::default();
            let out = device.put(&vec![0; 2 * count]);
            let [a_at, b_at, c_at] = [&a, &b, &c].map(|values| device.put_u16(values));
            let arguments =
                Arguments::default().pointer(out).pointer(a_at).pointer(b_at).pointer(c_at).u32(count as u32);
            let launch = line((count as u32).div_ceil(96), 96);
            let is_f16 = round % 2 == 0;
            run(&module, if is_f16 { "fused_f16" } else { "fused_bf16" }, launch, &arguments, &device);
            for (i, got) in device.u16(out).into_iter().enumerate() {
                let expected = if is_f16 {
                    let value = |bits: &[u16]| f16::from_bits(bits[i]).to_f32();
                    f16_of(value(&a).mul_add(value(&b), value(&c)))
                } else {
                    let value = |bits: &[u16]| bf16::from_bits(bits[i]).to_f32();
                    bf16_of(value(&a).mul_add(value(&b), value(&c)))
                };
                assert_eq!(got, expected, "{:#x} * {:#x} + {:#x}, f16: {is_f16}", a[i], b[i], c[i]);
            }
        }
    }
}

#[test]
fn every_f16_becomes_the_nearest_bf16() {
    for text in TEXTS {
        let module = module(text);
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let device = Device::default();
        let (out, input) = (device.put(&vec![0; 2 * all.len()]), device.put_u16(&all));
        let arguments = Arguments::default().pointer(out).pointer(input).u32(all.len() as u32);
        run(&module, "f16_to_bf16", line(256, 256), &arguments, &device);
        for (bits, got) in all.iter().zip(device.u16(out)) {
            assert_eq!(got, bf16_of(f16::from_bits(*bits).to_f32()), "{bits:#x}");
        }
    }
}
