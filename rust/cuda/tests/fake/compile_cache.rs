//! Each compilation is done once, whoever asks for it, and what was never compiled is no result.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::time::Duration;
use std::{env, fs, ptr, thread};

use purlin::backend::LaunchDimensions;
use purlin::program::{
    ComputeCapability, FeatureExtension, KernelArgsPackingSpec, KernelOperand, LoadedKernel, OperandAccess,
};
use purlin::{Future, InlineExecutor, StatusCode, ThreadPool, ThreadPoolOptions};
use purlin_cuda::{CompileCache, Compiler, KernelSource, Ptx};
use purlin_fakecuda::{Nvrtc, Options, process};

use crate::compile::{TARGET, compiler, source};
use crate::launches::start;
use crate::support::{Session, forked, outcome, read};

/// Nothing here takes so long on any machine.
const LIMIT: Duration = Duration::from_secs(60);

fn pool() -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap()
}

fn address(future: &Future<Ptx>) -> *const Ptx {
    ptr::from_ref(future.wait_for(LIMIT).unwrap())
}

/// Compilations of that source do not end, until this is dropped: also if a test fails meanwhile.
struct Held<'a>(&'a Nvrtc, &'static str);

impl<'a> Held<'a> {
    fn new(nvrtc: &'a Nvrtc, name: &'static str) -> Self {
        nvrtc.hold(name);
        Self(nvrtc, name)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release(self.1);
    }
}

/// Until that many compilations of the source have begun.
fn until_begun(nvrtc: &Nvrtc, name: &str, count: u64) {
    let begin = std::time::Instant::now();
    while nvrtc.compilations(name) < count {
        assert!(begin.elapsed() < LIMIT, "{} compilations of {name}", nvrtc.compilations(name));
        thread::yield_now();
    }
}

#[test]
fn threads_that_ask_at_once_wait_for_one_compilation_and_block_nobody() {
    const THREADS: usize = 8;
    let (nvrtc, compiler, cache, pool) = (Nvrtc::open(), compiler(), CompileCache::new(), pool());
    let held = Held::new(&nvrtc, "once.cu");
    let (shared, start) = (source("once.cu", "// one"), Barrier::new(THREADS));
    let futures: Vec<Future<Ptx>> = thread::scope(|scope| {
        let ask = |_| {
            scope.spawn(|| {
                start.wait();
                (0..10).map(|_| cache.get_or_compile(&compiler, &shared, &pool)).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(ask).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    until_begun(&nvrtc, "once.cu", 1);
    assert_eq!((futures.iter().filter(|future| future.is_ready()).count(), cache.len()), (0, 1));
    // Of two threads one compiles, and nobody waits on the other.
    let other = cache.get_or_compile(&compiler, &source("beside.cu", "// other"), &pool);
    assert!(other.wait_for(LIMIT).unwrap().text().contains("// other"));
    drop(held);
    let one = address(&futures[0]);
    assert!(futures.iter().all(|future| address(future) == one));
    assert_eq!((nvrtc.compilations("once.cu"), nvrtc.compilations("beside.cu"), cache.len()), (1, 1, 2));
}

#[test]
fn everything_that_decides_is_in_the_key() {
    let (cache, fake) = (CompileCache::new(), compiler());
    // The same library in another file is another one.
    let copy = env::temp_dir().join(format!("purlin-other-nvrtc-{}.so", std::process::id()));
    fs::copy(Nvrtc::path(), &copy).unwrap();
    let other = Compiler::load(&copy).unwrap();
    fs::remove_file(&copy).unwrap();
    assert_ne!(fake, other);
    let of = |name, text, target| KernelSource::new(name, text, target).unwrap();
    let base = || source("key.cu", "// f g");
    let options = |options: &[&str]| options.iter().fold(base(), |made, option| made.with_option(option).unwrap());
    let names = |names: &[&str]| names.iter().fold(base(), |made, name| made.with_name_expression(name).unwrap());
    let sources = [
        base(),
        of("other.cu", "// f g", TARGET),
        of("key.cu", "// f g h", TARGET),
        of("key.cu", "// f g", ComputeCapability::new(8, 0)),
        of("key.cu", "// f g", ComputeCapability::new(7, 2)),
        of("key.cu", "// f g", ComputeCapability::new(9, 0)),
        of("key.cu", "// f g", ComputeCapability::new(9, 0).with(FeatureExtension::Accelerated)),
        options(&["-w"]),
        options(&["-w", "-DN"]),
        options(&["-DN", "-w"]),
        base().with_header("h", "1").unwrap(),
        base().with_header("h", "2").unwrap(),
        base().with_header("i", "1").unwrap(),
        names(&["f"]),
        names(&["f", "g"]),
    ];
    let mut addresses = BTreeSet::new();
    let mut kept = Vec::new();
    for compiler in [&fake, &other] {
        for source in &sources {
            let first = cache.get_or_compile(compiler, source, &InlineExecutor);
            let again = cache.get_or_compile(&compiler.clone(), &source.clone(), &InlineExecutor);
            assert_eq!(address(&first), address(&again), "{source:?}");
            assert!(addresses.insert(address(&first)), "{source:?} is known, of another key");
            kept.push(first);
        }
    }
    assert_eq!((cache.len(), kept.len()), (2 * sources.len(), 2 * sources.len()));
    assert_eq!(*kept[0].get().unwrap(), *kept[sources.len()].get().unwrap(), "as both compile alike");
}

#[test]
fn errors_are_kept_until_they_are_forgotten() {
    let (nvrtc, compiler, cache) = (Nvrtc::open(), compiler(), CompileCache::new());
    let (wrong, right) = (source("kept.cu", "#error no"), source("right.cu", "// yes"));
    let ask = |source| cache.get_or_compile(&compiler, source, &InlineExecutor);
    let error = ask(&wrong).error().unwrap();
    assert!(error.message().contains("#error directive: no"), "{error}");
    assert_eq!((ask(&wrong).error(), nvrtc.compilations("kept.cu")), (Some(error.clone()), 1));
    assert!(cache.forget(&compiler, &wrong) && !cache.forget(&compiler, &wrong));
    assert_eq!((ask(&wrong).error(), nvrtc.compilations("kept.cu")), (Some(error.clone()), 2));
    let known = address(&ask(&right));
    cache.forget_errors();
    assert_eq!((cache.len(), address(&ask(&right)) == known), (1, true));
    assert_eq!((ask(&wrong).error(), nvrtc.compilations("kept.cu")), (Some(error), 3));
    cache.clear();
    assert!(cache.is_empty());
    assert!(ask(&right).get().is_some());
    assert_eq!((nvrtc.compilations("right.cu"), nvrtc.programs()), (2, 0));
}

#[test]
fn a_compilation_goes_on_when_nobody_waits_for_it() {
    let (nvrtc, compiler, cache, pool) = (Nvrtc::open(), compiler(), CompileCache::new(), pool());
    let source = source("left.cu", "// left");
    let held = Held::new(&nvrtc, "left.cu");
    drop(cache.get_or_compile(&compiler, &source, &pool));
    until_begun(&nvrtc, "left.cu", 1);
    let later = cache.get_or_compile(&compiler, &source, &pool);
    assert!(!later.is_ready());
    drop(held);
    let kept = address(&later);
    drop(later);
    assert_eq!(address(&cache.get_or_compile(&compiler, &source, &pool)), kept);
    // A forgotten one is told to those that wait for it.
    let held = Held::new(&nvrtc, "left.cu");
    cache.clear();
    let (forgotten, _) = (cache.get_or_compile(&compiler, &source, &pool), cache.forget(&compiler, &source));
    let anew = cache.get_or_compile(&compiler, &source, &pool);
    until_begun(&nvrtc, "left.cu", 3);
    drop(held);
    assert_ne!(address(&forgotten), address(&anew));
    assert_eq!((nvrtc.compilations("left.cu"), cache.len()), (3, 1));
}

#[test]
fn what_a_pool_refuses_was_not_compiled() {
    let (nvrtc, compiler, cache, closed) = (Nvrtc::open(), compiler(), CompileCache::new(), pool());
    let source = source("refused.cu", "// refused");
    closed.shutdown().unwrap();
    for _ in 0..2 {
        let error = cache.get_or_compile(&compiler, &source, &closed).error().unwrap();
        assert_eq!(error.code(), StatusCode::Cancelled, "{error}");
        assert!(cache.is_empty());
    }
    let pool = pool();
    assert!(cache.get_or_compile(&compiler, &source, &pool).wait_for(LIMIT).is_ok());
    assert_eq!(nvrtc.compilations("refused.cu"), 1);
}

#[test]
fn a_child_of_fork_has_what_was_compiled_and_waits_for_nothing() {
    process::run(
        "compile_cache::a_child_of_fork_has_what_was_compiled_and_waits_for_nothing",
        &Options::default(),
        || {
            let (nvrtc, compiler, cache, pool) = (Nvrtc::open(), compiler(), CompileCache::new(), pool());
            let (known, pending) = (source("known.cu", "// known"), source("pending.cu", "// pending"));
            let there = cache.get_or_compile(&compiler, &known, &pool);
            there.wait_for(LIMIT).unwrap();
            let held = Held::new(&nvrtc, "pending.cu");
            let on_its_way = cache.get_or_compile(&compiler, &pending, &pool);
            until_begun(&nvrtc, "pending.cu", 1);
            forked("a child while a source is compiled", || {
                assert_eq!(address(&cache.get_or_compile(&compiler, &known, &InlineExecutor)), address(&there));
                let lost = on_its_way.wait_for(LIMIT).unwrap_err();
                assert!(lost.message().contains("fork"), "{lost}");
                // The parent's thread that compiles it is not here; nor may this process compile.
                let asked = cache.get_or_compile(&compiler, &pending, &InlineExecutor).error().unwrap();
                assert_eq!(asked.code(), StatusCode::FailedPrecondition);
            });
            drop(held);
            assert!(on_its_way.wait_for(LIMIT).unwrap().text().contains("// pending"));
        },
    );
}

#[test]
fn what_was_compiled_is_loaded_and_runs() {
    process::run("compile_cache::what_was_compiled_is_loaded_and_runs", &Options::default(), || {
        Session::with(1, |session| {
            let (cache, device) = (CompileCache::new(), &session.client.devices()[0]);
            let text = include_str!("../../../../tests/ptx/kernels/fill.cu");
            let compiled = cache.get_or_compile(&compiler(), &source("fill.cu", text), device.runner());
            let ptx = compiled.wait_for(LIMIT).unwrap();
            let mut packing = KernelArgsPackingSpec::default();
            packing.push_address(0).unwrap();
            packing.push_constant(&0x0102_0304_u32.to_le_bytes());
            packing.push_constant(&1000_u64.to_le_bytes());
            let spec = ptx.loader_spec("fill_32", 3).unwrap().with_packing(packing);
            let operand = KernelOperand { access: OperandAccess::Write, size_bytes: 4000 };
            let kernel = LoadedKernel::load(device, &spec).unwrap();
            let fill = kernel.bind(LaunchDimensions::linear(64, 32), &[operand]).unwrap();
            let block = session.block(0, "device", 4000);
            outcome(&start(&fill, &[&block], &Default::default()).unwrap()).unwrap();
            assert!(read(&block).unwrap() == [4, 3, 2, 1].repeat(1000));
        });
    });
}
