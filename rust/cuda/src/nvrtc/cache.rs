//! Each compilation once, on an executor, however many ask for it.

use std::fmt;

use purlin_async::{Executor, Future, OnceMap};
use purlin_base::StatusOr;

use super::{Compiler, KernelSource, Ptx};

/// What was compiled, kept by all that decides it: the source with its name, options, headers, name expressions and
/// target, and nvrtc's file and version. However many ask for one compilation, and on however many threads, it is done
/// once; nobody blocks.
///
/// Errors are kept, too, because the same source fails again; [`forget`](Self::forget) and
/// [`forget_errors`](Self::forget_errors) make it be tried again, such as after a file that it includes has changed.
/// Where the executor refuses or drops the task, nothing was compiled, and the next request compiles. Nothing is
/// forgotten unasked.
///
/// ```
/// use purlin_cuda::{CompileCache, Compiler, KernelSource};
/// use purlin::program::ComputeCapability;
/// use purlin::{ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?;
/// let (cache, text) = (CompileCache::new(), "extern \"C\" __global__ void nothing() {}");
/// let source = KernelSource::new("nothing.cu", text, ComputeCapability::new(7, 5))?;
/// if let Ok(compiler) = Compiler::find() {
///     let first = cache.get_or_compile(&compiler, &source, &pool);
///     let second = cache.get_or_compile(&compiler, &source, &pool);
///     assert!(std::ptr::eq(first.wait()?, second.wait()?), "it was compiled once");
/// }
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Default)]
pub struct CompileCache(OnceMap<Request, Ptx>);

/// Nothing else reaches the compiler, so nothing that decides is missing in the key.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Request {
    compiler: Compiler,
    source: KernelSource,
}

impl Request {
    fn new(compiler: &Compiler, source: &KernelSource) -> Self {
        Self { compiler: compiler.clone(), source: source.clone() }
    }

    fn compile(&self) -> StatusOr<Ptx> {
        self.compiler.compile(&self.source)
    }
}

impl CompileCache {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The PTX of that source, which is compiled on `executor` unless it is known or on its way. Never blocks, unless
    /// the executor runs tasks inside of `execute`, as [`InlineExecutor`](purlin_async::InlineExecutor) does for
    /// callers that wait anyway. The compilation goes on when nobody holds its future any more.
    ///
    /// The future fails with the error of [`Compiler::compile`], with what the executor answers if it refuses the task,
    /// and with `Cancelled` if it drops it.
    #[track_caller]
    pub fn get_or_compile<E: Executor + ?Sized>(
        &self,
        compiler: &Compiler,
        source: &KernelSource,
        executor: &E,
    ) -> Future<Ptx> {
        let request = Request::new(compiler, source);
        let task = request.clone();
        self.0.get_or_compute(request, executor, c"compile CUDA C", move || task.compile())
    }

    /// The next request for that source compiles it anew. Futures that were given out are as they were. False if
    /// nothing was known.
    pub fn forget(&self, compiler: &Compiler, source: &KernelSource) -> bool {
        self.0.forget(&Request::new(compiler, source))
    }

    /// The next requests for what has failed compile it anew.
    pub fn forget_errors(&self) {
        self.0.forget_errors();
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// How many compilations are known or on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for CompileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompileCache({} compilations)", self.len())
    }
}
