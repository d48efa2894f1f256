//! One compilation: from a source to PTX, or to an error that has the compiler's log.

#![allow(unsafe_code, reason = "nvrtc is called")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, ptr};

use purlin_base::sync::OnceLock;
use purlin_base::{Error, StatusCode, StatusOr};

use super::api::{self, Api, NO_BUILTINS};
use super::library::{Nvrtc, check_process};
use super::source::Fields;
use super::{KernelSource, Ptx};
use crate::api::ResultCode;

/// NVIDIA's compiler of CUDA C, nvrtc. Any thread may use it, several at once. Clones are the same compiler; so are two
/// of the same file and version, and these are equal.
///
/// ```
/// use purlin::StatusCode;
/// use purlin_cuda::{Compiler, KernelSource};
/// use purlin::program::ComputeCapability;
///
/// let text = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }";
/// let source = KernelSource::new("twice.cu", text, ComputeCapability::new(7, 5))?;
/// match Compiler::find().and_then(|compiler| compiler.compile(&source)) {
///     Ok(ptx) => assert!(ptx.text().contains(".entry twice")),
///     Err(error) => assert_eq!(error.code(), StatusCode::Unimplemented, "this machine has no nvrtc: {error}"),
/// }
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct Compiler(Arc<Nvrtc>);

impl Compiler {
    /// The nvrtc of this machine, which is looked for once: the library whose path the variable `PURLIN_NVRTC` has, or
    /// else the first that the loader finds by the names `libnvrtc.so.13`, `.12`, `.11.2` and `libnvrtc.so`. It stays
    /// loaded.
    ///
    /// # Errors
    /// `Unimplemented`: there is none, and the message has every name that was looked for with what the loader says;
    /// what was found is not nvrtc 11.2 or newer; the program is linked statically. `FailedPrecondition`: this is a
    /// child, made by `fork`, of a process that has loaded nvrtc.
    pub fn find() -> StatusOr<Self> {
        static FOUND: OnceLock<StatusOr<Compiler>> = OnceLock::new();
        check_process()?;
        FOUND.get_or_init(|| Nvrtc::find().map(|nvrtc| Self(Arc::new(nvrtc)))).clone()
    }

    /// The nvrtc in that file, which stays loaded. Its builtins are expected in the same folder.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn load(path: &Path) -> StatusOr<Self> {
        Nvrtc::load(&[path.into()], "as the caller names it").map(|nvrtc| Self(Arc::new(nvrtc)))
    }

    /// The version of CUDA that it is of, such as (12, 2). Its PTX needs a driver of that version or newer.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.0.version
    }

    /// The file that it was loaded from, as the loader has it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Compiles on this thread, which takes from tens of milliseconds to seconds.
    ///
    /// # Errors
    /// `InvalidArgument`: the source, an option or a name expression is wrong; the message has file name and log.
    /// `Unimplemented`: this nvrtc is too old or too new for the target. `ResourceExhausted`: it is out of memory.
    /// `FailedPrecondition`: this is a child, made by `fork`, of a process that has loaded nvrtc. `Internal`: nvrtc
    /// fails in another way, such as without its builtins.
    pub fn compile(&self, source: &KernelSource) -> StatusOr<Ptx> {
        check_process()?;
        let compilation = Compilation { nvrtc: &self.0, source: &source.0 };
        compilation.check_target()?;
        let mut program = Program::new(&compilation)?;
        for expression in &source.0.name_expressions {
            // SAFETY: the program is nvrtc's, and the text ends in a null.
            let code = unsafe { (self.0.api.base.add_name_expression)(program.handle, expression.as_ptr()) };
            compilation.check(code, &format!("the name expression {}", expression.to_string_lossy()))?;
        }
        program.compile()?;
        program.result()
    }
}

impl PartialEq for Compiler {
    fn eq(&self, other: &Self) -> bool {
        (&self.0.path, self.0.version) == (&other.0.path, other.0.version)
    }
}

impl Eq for Compiler {}

impl Hash for Compiler {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.path, self.0.version).hash(state);
    }
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.0.version;
        write!(f, "Compiler(nvrtc {major}.{minor}, {})", self.0.path.display())
    }
}

/// The compiler and the source of a compilation, which errors name.
struct Compilation<'a> {
    nvrtc: &'a Nvrtc,
    source: &'a Fields,
}

impl Compilation<'_> {
    /// `compiling a.cu for 7.5 by nvrtc 12.2: `
    fn error(&self, code: StatusCode, why: &str) -> Error {
        let (name, target, (major, minor)) =
            (self.source.name.to_string_lossy(), self.source.target, self.nvrtc.version);
        Error::new(code, format!("compiling {name} for {target} by nvrtc {major}.{minor}: {why}"))
    }

    fn check(&self, code: ResultCode, what: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        Err(self.error(api::status(code), &format!("{what}: {}", self.nvrtc.api.describe(code))))
    }

    /// # Errors
    /// `Unimplemented`: this nvrtc does not know the target.
    fn check_target(&self) -> Result<(), Error> {
        let (target, known) = (self.source.target, &self.nvrtc.targets);
        if known.is_empty() || known.contains(&(u32::from(target.major) * 10 + u32::from(target.minor))) {
            return Ok(());
        }
        let known: Vec<_> = known.iter().map(|number| format!("{}.{}", number / 10, number % 10)).collect();
        let why = format!("it does not know this target; it knows {}", known.join(", "));
        Err(self.error(StatusCode::Unimplemented, &why))
    }
}

/// A program of nvrtc's.
struct Program<'a> {
    compilation: &'a Compilation<'a>,
    handle: api::Program,
}

impl<'a> Program<'a> {
    fn new(compilation: &'a Compilation<'a>) -> StatusOr<Self> {
        let source = compilation.source;
        let names: Vec<_> = source.headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<_> = source.headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let count = compilation.count(names.len(), "headers")?;
        let (mut handle, create) = (ptr::null_mut(), compilation.nvrtc.api.base.create_program);
        // SAFETY: all texts end in a null and outlive the call, which copies them; there are `count` of each list.
        let code = unsafe {
            create(&mut handle, source.text.as_ptr(), source.name.as_ptr(), count, texts.as_ptr(), names.as_ptr())
        };
        compilation.check(code, "the source")?;
        Ok(Self { compilation, handle })
    }

    fn api(&self) -> &Api {
        &self.compilation.nvrtc.api
    }

    /// # Errors
    /// Those of compiling, with the log.
    fn compile(&mut self) -> Result<(), Error> {
        let source = self.compilation.source;
        // `sm_` would make machine code besides.
        let target = source.target.to_string().replace('.', "");
        let target = CString::new(format!("--gpu-architecture=compute_{target}")).unwrap_or_default();
        let options: Vec<_> = [&target].into_iter().chain(&source.options).map(|option| option.as_ptr()).collect();
        let count = self.compilation.count(options.len(), "options")?;
        // SAFETY: the program is nvrtc's; there are so many options, which end in nulls and outlive the call.
        let code = unsafe { (self.api().base.compile_program)(self.handle, count, options.as_ptr()) };
        if code == 0 {
            return Ok(());
        }
        let mut why = self.api().describe(code);
        if let (NO_BUILTINS, Some(words)) = (code, &self.compilation.nvrtc.why_no_builtins) {
            why = format!("{why}: its builtins were not found: {words}");
        }
        // What went wrong is said, whatever becomes of the log.
        let log = self.log().unwrap_or_default();
        if !log.is_empty() {
            why = format!("{why}\n{log}");
        }
        Err(self.compilation.error(api::status(code), &why))
    }

    /// # Errors
    /// nvrtc does not give what it has made.
    fn result(&self) -> StatusOr<Ptx> {
        let base = &self.api().base;
        let log = self.log()?;
        let text = self.text(base.ptx_size_bytes, base.ptx, "the PTX")?;
        if text.is_empty() {
            return Err(self.compilation.error(StatusCode::Internal, "it made no PTX"));
        }
        let mut lowered = Vec::new();
        for expression in &self.compilation.source.name_expressions {
            let mut name = ptr::null();
            // SAFETY: the text ends in a null; nvrtc writes a pointer.
            let code = unsafe { (base.lowered_name)(self.handle, expression.as_ptr(), &mut name) };
            let what = format!("the name of {}", expression.to_string_lossy());
            self.compilation.check(code, &what)?;
            if name.is_null() {
                return Err(self.compilation.error(StatusCode::Internal, &format!("{what} is null")));
            }
            // SAFETY: a text of nvrtc's, as long as the program.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
            lowered.push((expression.to_string_lossy().into_owned(), name));
        }
        Ok(Ptx { text: text.into(), lowered: lowered.into(), log: log.into() })
    }

    fn log(&self) -> StatusOr<String> {
        let base = &self.api().base;
        Ok(self.text(base.log_size_bytes, base.log, "the log")?.trim_end().to_owned())
    }

    /// A text whose size is asked for first, and counts the null at its end.
    fn text(
        &self,
        size: unsafe extern "C" fn(api::Program, *mut usize) -> ResultCode,
        get: unsafe extern "C" fn(api::Program, *mut c_char) -> ResultCode,
        what: &str,
    ) -> StatusOr<String> {
        let mut size_bytes = 0;
        // SAFETY: the program is nvrtc's; it writes a number.
        self.compilation.check(unsafe { size(self.handle, &mut size_bytes) }, what)?;
        let mut bytes: Vec<u8> = Vec::new();
        if bytes.try_reserve_exact(size_bytes).is_err() {
            let why = format!("{what} has {size_bytes} bytes, for which there is no memory");
            return Err(self.compilation.error(StatusCode::ResourceExhausted, &why));
        }
        bytes.resize(size_bytes, 0);
        if size_bytes == 0 {
            return Ok(String::new());
        }
        // SAFETY: as above; there are as many bytes as it has asked for.
        self.compilation.check(unsafe { get(self.handle, bytes.as_mut_ptr().cast()) }, what)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Compilation<'_> {
    /// # Errors
    /// `InvalidArgument`: there are more than C's int can count.
    fn count(&self, count: usize, what: &str) -> StatusOr<c_int> {
        c_int::try_from(count)
            .map_err(|_| self.error(StatusCode::InvalidArgument, &format!("there are {count} {what}")))
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made in new(). What fails here has nobody to be told.
        unsafe { (self.api().base.destroy_program)(&mut self.handle) };
    }
}
