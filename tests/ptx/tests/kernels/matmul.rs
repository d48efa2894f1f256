//! `matmul.cu`.

use purlin_ptx::Launch;

use crate::support::{Arguments, Device, Random, SHAPES, module, run};

const PTX: &str = include_str!("../../kernels/matmul.ptx");

#[test]
fn products_are_equal_to_the_bit() {
    let (module, mut random) = (module(PTX), Random::new(6));
    for _ in 0..SHAPES {
        let [m, n, k] = [(); 3].map(|()| random.within(1, 40) as usize);
        let (a, b) = (random.units(m * k), random.units(k * n));
        let device = Device::default();
        let out = device.put(&vec![0xee; m * n * 4]);
        let arguments = Arguments::default()
            .pointer(out)
            .pointer(device.put_f32(&a))
            .pointer(device.put_f32(&b))
            .u32(m as u32)
            .u32(n as u32)
            .u32(k as u32);
        let grid = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        run(&module, "matmul", Launch { grid, block: [16, 16, 1], dynamic_shared_bytes: 0 }, &arguments, &device);
        let got = device.u32(out);
        for row in 0..m {
            for column in 0..n {
                // In order, each product and sum as one operation; the tile's zeros change nothing but the sign of
                // zero.
                let sum = (0..k.next_multiple_of(16)).fold(0.0_f32, |sum, i| {
                    if i < k { a[row * k + i].mul_add(b[i * n + column], sum) } else { sum + 0.0 }
                });
                assert_eq!(got[row * n + column], sum.to_bits(), "({row}, {column}) of {m} x {n}, {k} terms");
            }
        }
    }
}

#[test]
fn a_block_has_two_tiles_in_shared_memory() {
    let module = module(PTX);
    assert_eq!(module.kernel("matmul").unwrap().static_shared_bytes(), 16 * 16 * 4 + 16 * 17 * 4);
}
