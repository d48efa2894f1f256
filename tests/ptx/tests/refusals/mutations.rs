//! Texts by a stranger: no change to one makes the interpreter panic, hang or take much memory.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use purlin_ptx::{Fault, Launch, Memory, Module};

use crate::support::Random;

const TEXTS: [&str; 5] = [
    include_str!("../../kernels/softmax.ptx"),
    include_str!("../../kernels/halves.80.ptx"),
    include_str!("../../kernels/reduce.80.ptx"),
    include_str!("../../kernels/matmul.ptx"),
    include_str!("../../kernels/various.ptx"),
];

/// A kernel of each text, short enough to be understood many thousand times a second.
fn seeds() -> Vec<String> {
    let mut seeds = Vec::new();
    for text in TEXTS {
        for kernel in text.split(".visible .entry").skip(1).filter(|kernel| kernel.len() < 7000) {
            let shared = ".extern .shared .align 16 .b8 partial[];\n.const .align 4 .b8 steps[32] = {3, 0, 255};\n.global .align 4 .b8 seen[16];\n";
            let functions = ".func (.param .b32 r) _Z9Ackermannjj (.param .b32 a, .param .b32 b) { ret; }\n";
            let text =
                format!(".version 8.2\n.target sm_80\n.address_size 64\n{shared}{functions}.visible .entry{kernel}");
            if Module::parse(&text).is_ok() {
                seeds.push(text);
            }
        }
    }
    assert!(seeds.len() >= 5, "{}", seeds.len());
    seeds
}

/// Words of all seeds, and what is harmful anywhere.
fn words(seeds: &[String]) -> Vec<String> {
    let mut words: Vec<String> = seeds.iter().flat_map(|seed| seed.split_whitespace()).map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    let harmful = "18446744073709551615 -9223372036854775808 0x7fffffff [ ] { } ( ) <4294967295> @ ! : ; , \" /* // .v4 .reg .param
        .local .shared .b8 .align %p1 %r0 %rd1 _ call bra ret exit trap bar.sync bar.red.popc.u32 shfl.sync.up.b32 brx.idx .branchtargets
        .u64 .f64 div.s32 rem.s64 bfe.s64 bfi.b64 shf.l.clamp.b32 cvt.sat.s8.f64 cvt.rzi.u64.f64 mad.hi.s64 madc.hi.cc.s64 atom.cas.b64 +-";
    words.extend(harmful.split_whitespace().map(str::to_owned));
    words
}

fn mutated(seed: &str, words: &[String], random: &mut Random) -> String {
    let mut bytes = seed.as_bytes().to_vec();
    for _ in 0..random.within(1, 4) {
        let at = random.below(bytes.len() as u64) as usize;
        let word = &words[random.below(words.len() as u64) as usize];
        match random.below(21) / 4 {
            0 => bytes[at] = random.any() as u8,
            1 => drop(bytes.drain(at..bytes.len().min(at + random.within(1, 30) as usize))),
            2 => drop(bytes.splice(at..at, word.bytes())),
            3 => {
                // One word for another.
                let begin = bytes[..at].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
                let end = bytes[at..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |space| at + space);
                drop(bytes.splice(begin..end, word.bytes()));
            }
            4 => {
                // A line once more, elsewhere.
                let begin = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                let end = bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
                let line = bytes[begin..end].to_vec();
                let to = random.below(bytes.len() as u64) as usize;
                let to = bytes[..to].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                drop(bytes.splice(to..to, line));
            }
            _ => bytes.truncate(at.max(1)),
        }
        if bytes.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_hundred_thousand_damaged_texts_are_judged() {
    let (seeds, mut random) = (seeds(), Random::new(80));
    let words = words(&seeds);
    let mut understood = 0;
    for round in 0..100_000 {
        let text = mutated(&seeds[round % seeds.len()], &words, &mut random);
        match Module::parse(&text) {
            Ok(_) => understood += 1,
            Err(refusal) => assert!(refusal.to_string().len() < 600, "{refusal}"),
        }
    }
    // Both happen.
    assert!((1000..99_000).contains(&understood), "{understood}");
}

/// Answers to any address, but not for ever.
struct Anywhere {
    left: AtomicU32,
    stop: AtomicBool,
}

impl Anywhere {
    fn count(&self) -> Result<(), Fault> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        if left < 100 {
            self.stop.store(true, Ordering::Relaxed);
        }
        if left < 2 { Err(Fault("enough".to_owned())) } else { Ok(()) }
    }
}

impl Memory for Anywhere {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        into.fill((address >> 3) as u8);
        self.count()
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Fault> {
        self.count()
    }

    fn update(&self, _: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault> {
        f(&mut vec![0xa5; len]);
        self.count()
    }
}

#[test]
fn damaged_kernels_that_are_understood_run_or_trap() {
    let (seeds, mut random) = (seeds(), Random::new(81));
    let words = words(&seeds);
    let stopper = AtomicBool::new(false);
    let (mut ended, mut trapped) = (0, 0);
    for round in 0..10_000 {
        let text = mutated(&seeds[round % seeds.len()], &words, &mut random);
        let Ok(module) = Module::parse(&text) else { continue };
        for kernel in module.kernels() {
            let memory = Anywhere { left: AtomicU32::new(3000), stop: AtomicBool::new(false) };
            let launch = Launch { grid: [2, 1, 1], block: [33, 1, 1], dynamic_shared_bytes: 256 };
            let parameters = random.bytes(kernel.parameter_bytes());
            // A loop that touches no memory would run on.
            let watched = Watched { memory: &memory, stop: &stopper };
            let ran = watched.run(kernel, &launch, &parameters);
            if ran { ended += 1 } else { trapped += 1 }
        }
    }
    assert!(ended > 50 && trapped > 200, "{ended} ended, {trapped} trapped");
}

/// Ends what does not end by itself.
struct Watched<'a> {
    memory: &'a Anywhere,
    stop: &'a AtomicBool,
}

impl Watched<'_> {
    fn run(&self, kernel: &purlin_ptx::Kernel, launch: &Launch, parameters: &[u8]) -> bool {
        let over = AtomicBool::new(false);
        self.stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let begun = std::time::Instant::now();
                while !over.load(Ordering::Relaxed) {
                    if begun.elapsed().as_millis() > 20 {
                        self.memory.stop.store(true, Ordering::Relaxed);
                    }
                    std::thread::park_timeout(std::time::Duration::from_millis(5));
                }
            });
            let ran = kernel.run(launch, parameters, &|_| Some(4096), self.memory, &self.memory.stop).is_ok();
            over.store(true, Ordering::Relaxed);
            waiter.thread().unpark();
            ran
        })
    }
}
