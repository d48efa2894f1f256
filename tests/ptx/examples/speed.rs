//! How many instructions a second the interpreter runs: `cargo run --release -p purlin-ptx --example speed`.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use purlin_ptx::{Fault, Launch, Memory, Module};

/// Takes every address.
struct Anywhere;

impl Memory for Anywhere {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        into.fill((address >> 3) as u8);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn update(&self, _: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault> {
        f(&mut [0; 16][..len]);
        Ok(())
    }
}

/// Each thread adds the instructions that it has run to a counter: `%clock64` counts them.
fn counted(text: &str) -> String {
    let counting = "{ .reg .b64 %spent, %at; mov.u64 %spent, %clock64; mov.u64 %at, counter; red.global.add.u64 [%at], %spent; }\nret;";
    text.replacen(".visible .entry", ".global .u64 counter;\n.visible .entry", 1).replace("ret;", counting)
}

/// The counter, at 8; everything else goes to `Anywhere`.
struct Counter(std::sync::atomic::AtomicU64);

impl Memory for Counter {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        Anywhere.read(address, into)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        Anywhere.write(address, bytes)
    }

    fn update(&self, address: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault> {
        if address != 8 {
            return Anywhere.update(address, len, f);
        }
        let mut bytes = self.0.load(std::sync::atomic::Ordering::Relaxed).to_le_bytes();
        f(&mut bytes);
        self.0.store(u64::from_le_bytes(bytes), std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

fn main() {
    let rows: [(&str, &str, Launch, Vec<u64>); 5] = [
        ("fill_32", include_str!("../kernels/fill.ptx"), line(64, 256, 0), vec![1 << 20, 7, 4_000_000]),
        (
            "matmul",
            include_str!("../kernels/matmul.ptx"),
            plane(8),
            vec![1 << 20, 2 << 20, 3 << 20, 128 << 32 | 128, 128],
        ),
        ("softmax_rows", include_str!("../kernels/softmax.ptx"), line(256, 128, 512), vec![1 << 20, 2 << 20, 1000]),
        ("sum", include_str!("../kernels/reduce.ptx"), line(64, 256, 0), vec![1 << 20, 2 << 20, 4_000_000]),
        (
            "momentum",
            include_str!("../kernels/momentum.ptx"),
            line(2000, 256, 0),
            vec![1 << 20, 2 << 20, 3 << 20, 0, 2_000_000],
        ),
    ];
    for (name, text, launch, words) in rows {
        let parameters: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let run = |module: &Module, memory: &dyn Memory| {
            let kernel = module.kernel(name).expect("the kernel is there");
            let stop = AtomicBool::new(false);
            kernel.run(&launch, &parameters, &|_| Some(8), memory, &stop).unwrap_or_else(|trap| panic!("{trap}"));
        };
        let counter = Counter(0.into());
        run(&Module::parse(&counted(text)).unwrap_or_else(|refusal| panic!("{refusal}")), &counter);
        let module = Module::parse(text).unwrap_or_else(|refusal| panic!("{refusal}"));
        let begun = Instant::now();
        run(&module, &Anywhere);
        let (instructions, seconds) = (counter.0.into_inner(), begun.elapsed().as_secs_f64());
        println!(
            "{name}: {:.1} million a second ({instructions} in {seconds:.3} s)",
            instructions as f64 / seconds / 1e6
        );
    }
}

fn line(grid: u32, block: u32, dynamic_shared_bytes: u32) -> Launch {
    Launch { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_shared_bytes }
}

fn plane(blocks: u32) -> Launch {
    Launch { grid: [blocks, blocks, 1], block: [16, 16, 1], dynamic_shared_bytes: 0 }
}
