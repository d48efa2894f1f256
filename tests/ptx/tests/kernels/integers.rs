//! `various.cu`: whole numbers, calls, local, constant and global memory.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const TEXTS: [&str; 2] = [include_str!("../../kernels/various.ptx"), include_str!("../../kernels/various.90.ptx")];
const STEPS: [i64; 8] = [3, -1, 4, 1, -5, 9, 2, -6];

/// As the source says it.
fn case(kind: u32, a: i64, b: i64) -> i64 {
    let (low_a, low_b) = (a as u32, b as u32);
    match kind {
        0 => a.wrapping_add(b),
        1 => a.wrapping_sub(b),
        2 => a.wrapping_mul(b),
        3 => {
            if b == 0 {
                0
            } else {
                (a as u64 / b as u64) as i64
            }
        }
        4 => {
            if b == 0 {
                0
            } else {
                (a as i32).wrapping_rem(b as i32 | 1).into()
            }
        }
        5 => ((i128::from(a) * i128::from(b)) >> 64) as i64,
        6 => ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64,
        7 => a.reverse_bits() ^ i64::from(b.leading_zeros()),
        8 => i64::from(a.count_ones()) + if b == 0 { 0 } else { i64::from(b.trailing_zeros()) + 1 },
        9 => a >> (b & 63),
        10 => a << (b & 63),
        11 => {
            // Selector 0x6152, the lowest digit first.
            let bytes = [low_a.to_le_bytes(), low_b.to_le_bytes()].concat();
            u32::from_le_bytes([2, 5, 1, 6].map(|at| bytes[at])).into()
        }
        12 => (low_b << 11 | low_a >> 21).into(),
        13 => a.min(b) ^ (a as u64).max(b as u64) as i64,
        14 => i64::from(i32::from(a as i8) * i32::from(b as i16)),
        15 => i64::from((a as i32).abs_diff(b as i32).wrapping_add(7)),
        _ => !(a & b) | (a ^ b),
    }
}

#[test]
fn whole_numbers_of_all_widths_are_exact() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(11));
        let device = Device::of(&module);
        let mut seen = [0; 4];
        for _ in 0..SHAPES {
            let count = random.within(1, 200) as usize;
            let mut any = || {
                let value = (random.any() as i64) >> random.below(64);
                if random.below(20) == 0 { 0 } else { value }
            };
            let (a, b): (Vec<i64>, Vec<i64>) = (0..count).map(|_| (any(), any())).unzip();
            let kinds: Vec<u32> = (0..count).map(|_| random.below(18) as u32).collect();
            kinds.iter().for_each(|&kind| seen[kind as usize & 3] += 1);
            let bits = |values: &[i64]| values.iter().map(|&value| value as u64).collect::<Vec<_>>();
            let out = device.put(&vec![0; 8 * count]);
            let arguments = Arguments::default()
                .pointer(out)
                .pointer(device.put_u64(&bits(&a)))
                .pointer(device.put_u64(&bits(&b)))
                .pointer(device.put_u32(&kinds))
                .u32(count as u32);
            run(&module, "integers", line((count as u32).div_ceil(64), 64), &arguments, &device);
            for (i, got) in device.u64(out).into_iter().enumerate() {
                let expected = case(kinds[i], a[i], b[i]).wrapping_add(STEPS[kinds[i] as usize & 7]);
                assert_eq!(got as i64, expected, "kind {} of {} and {}", kinds[i], a[i], b[i]);
            }
        }
        let address = device.global("seen").unwrap();
        assert_eq!(device.u32(crate::support::Pointer(address)), seen);
    }
}

fn ackermann(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, _) => n + 1,
        (_, 0) => ackermann(m - 1, 1),
        _ => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

#[test]
fn functions_call_themselves() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(12));
        let pairs: Vec<(u32, u32)> =
            (0..SHAPES).map(|_| (random.below(3) as u32, random.below(6) as u32)).chain([(3, 4)]).collect();
        let device = Device::of(&module);
        let out = device.put(&vec![0; 4 * pairs.len()]);
        let input = device.put_u32(&pairs.iter().flat_map(|&(m, n)| [m, n]).collect::<Vec<_>>());
        let arguments = Arguments::default().pointer(out).pointer(input).u32(pairs.len() as u32);
        run(&module, "ackermann", line((pairs.len() as u32).div_ceil(32), 32), &arguments, &device);
        let expected: Vec<u32> = pairs.iter().map(|&(m, n)| ackermann(m, n)).collect();
        assert_eq!(device.u32(out), expected);
    }
}

#[test]
fn threads_sort_in_memory_of_their_own() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(13));
        for _ in 0..SHAPES {
            let (each, threads) = (random.within(1, 32) as usize, random.within(1, 70) as usize);
            let keys: Vec<u32> = (0..each * threads).map(|_| random.below(100) as u32).collect();
            let device = Device::of(&module);
            let memory = device.put_u32(&keys);
            let arguments = Arguments::default().pointer(memory).u32(each as u32).u32(threads as u32);
            run(&module, "sort_each", line((threads as u32).div_ceil(32), 32), &arguments, &device);
            let mut expected = keys;
            expected.chunks_mut(each).for_each(<[u32]>::sort_unstable);
            assert_eq!(device.u32(memory), expected);
        }
    }
}
