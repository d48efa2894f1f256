//! What is compiled, for what, and how: all that decides what a compilation gives, so that it is the key of a cache.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

use purlin_base::{Error, StatusOr};
use purlin_program::ComputeCapability;

/// CUDA C, its file name, the target, and everything else that decides what a compilation gives: options, headers and
/// name expressions. Two that are equal give the same PTX by the same nvrtc, but for its comments. Clones share one
/// copy.
///
/// Files that the text includes, and that are not [headers](Self::with_header) of it, are read by nvrtc when it
/// compiles, and are no part of this.
///
/// ```
/// use purlin_cuda::KernelSource;
/// use purlin::program::ComputeCapability;
///
/// let text = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }";
/// let source = KernelSource::new("twice.cu", text, ComputeCapability::new(7, 5))?
///     .with_option("--use_fast_math")?
///     .with_name_expression("twice<float>")?;
/// assert_eq!(source.name(), "twice.cu");
/// let error = source.with_option("-arch=sm_90").unwrap_err();
/// assert_eq!(error.message(), "twice.cu: the option '-arch=sm_90' is refused: the target of the source says it");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KernelSource(pub(super) Arc<Fields>);

/// The texts have no null before their end.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Fields {
    pub(super) name: CString,
    pub(super) text: CString,
    pub(super) target: ComputeCapability,
    pub(super) options: Vec<CString>,
    /// Name and text of each.
    pub(super) headers: Vec<(CString, CString)>,
    pub(super) name_expressions: Vec<CString>,
}

/// Options by which nvrtc would not give the PTX of the source for its target.
const REFUSED: [(&[&str], &str); 2] = [
    (&["-arch", "--gpu-architecture"], "the target of the source says it"),
    (&["-dlto", "--dlink-time-opt", "-optix-ir", "--optix-ir"], "what it makes is no PTX"),
];

impl KernelSource {
    /// `text` is CUDA C++, `name` its file name in errors and in the PTX, `target` what PTX is made for. Options may be
    /// added.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty; name or text has a zero byte; nvrtc has no name for the target, whose
    /// minor version is greater than 9.
    pub fn new(name: &str, text: &str, target: ComputeCapability) -> StatusOr<Self> {
        if name.is_empty() {
            return Err(Error::invalid_argument("a source of CUDA C has no name"));
        }
        if target.minor > 9 {
            return Err(Error::invalid_argument(format!("{name}: nvrtc has no name for the target {target}")));
        }
        let fields = Fields {
            name: checked(name, "the name", name)?,
            text: checked(name, "the text", text)?,
            target,
            options: Vec::new(),
            headers: Vec::new(),
            name_expressions: Vec::new(),
        };
        Ok(Self(Arc::new(fields)))
    }

    /// With an option of nvrtc's, after those that are there: one word, such as `--use_fast_math`, `-I/usr/include` or
    /// `--define-macro=N=4`.
    ///
    /// # Errors
    /// `InvalidArgument`: it does not begin with `-`; it has a zero byte; it names a target (`-arch`) or what is no PTX
    /// (`-dlto`, `-optix-ir`). Whether nvrtc knows it, compiling tells.
    pub fn with_option(self, option: &str) -> StatusOr<Self> {
        let refused = |why: &str| {
            let shown = option.escape_debug();
            Err(Error::invalid_argument(format!("{}: the option '{shown}' is refused: {why}", self.name())))
        };
        if !option.starts_with('-') {
            return refused("it does not begin with '-'; a value follows its option behind '='");
        }
        let name = option.split_once('=').map_or(option, |(name, _)| name).trim_end();
        if let Some((_, why)) = REFUSED.iter().find(|(names, _)| names.contains(&name)) {
            return refused(why);
        }
        let option = checked(self.name(), "an option", option)?;
        Ok(self.changed(|fields| fields.options.push(option)))
    }

    /// With a header, which the text includes by that name, instead of a file. Of two with one name, nvrtc decides.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty; name or text has a zero byte.
    pub fn with_header(self, name: &str, text: &str) -> StatusOr<Self> {
        if name.is_empty() {
            return Err(Error::invalid_argument(format!("{}: a header has no name", self.name())));
        }
        let header =
            (checked(self.name(), "the name of a header", name)?, checked(self.name(), "the text of a header", text)?);
        Ok(self.changed(|fields| fields.headers.push(header)))
    }

    /// With a name of C++'s that is to be compiled and found: of an instance of a template, such as `twice<float>`, or
    /// of an overloaded or namespaced function. [`Ptx::lowered_name`](super::Ptx::lowered_name) is what it is called in
    /// the PTX.
    ///
    /// # Errors
    /// `InvalidArgument`: it is empty or has a zero byte. Whether it names anything, compiling tells.
    pub fn with_name_expression(self, expression: &str) -> StatusOr<Self> {
        if expression.trim().is_empty() {
            return Err(Error::invalid_argument(format!("{}: a name expression is empty", self.name())));
        }
        let expression = checked(self.name(), "a name expression", expression)?;
        Ok(self.changed(|fields| fields.name_expressions.push(expression)))
    }

    /// The file name.
    #[must_use]
    pub fn name(&self) -> &str {
        // It was made of a string.
        self.0.name.to_str().unwrap_or_default()
    }

    /// What PTX is made for.
    #[must_use]
    pub fn target(&self) -> ComputeCapability {
        self.0.target
    }

    fn changed(mut self, change: impl FnOnce(&mut Fields)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields { name, target, options, name_expressions, .. } = &*self.0;
        write!(f, "KernelSource({name:?} for {target}, options {options:?}, names {name_expressions:?})")
    }
}

/// # Errors
/// `InvalidArgument`: there is a zero byte, before which the text would end for nvrtc.
fn checked(source: &str, what: &str, text: &str) -> StatusOr<CString> {
    CString::new(text).map_err(|why| {
        let (source, at) = (source.escape_debug(), why.nul_position());
        Error::invalid_argument(format!("{source}: {what} has a zero byte, at offset {at}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: ComputeCapability = ComputeCapability::new(7, 5);

    fn source() -> KernelSource {
        KernelSource::new("a.cu", "text", TARGET).unwrap()
    }

    #[track_caller]
    fn refused<T: fmt::Debug>(outcome: StatusOr<T>, message: &str) {
        assert_eq!(outcome.unwrap_err(), Error::invalid_argument(message));
    }

    #[test]
    fn what_nvrtc_would_cut_off_is_refused() {
        refused(KernelSource::new("", "", TARGET), "a source of CUDA C has no name");
        refused(KernelSource::new("a\0.cu", "", TARGET), "a\\0.cu: the name has a zero byte, at offset 1");
        refused(KernelSource::new("a.cu", "int\0", TARGET), "a.cu: the text has a zero byte, at offset 3");
        refused(source().with_option("-w\0"), "a.cu: an option has a zero byte, at offset 2");
        refused(source().with_header("", "x"), "a.cu: a header has no name");
        refused(source().with_header("h\0", "x"), "a.cu: the name of a header has a zero byte, at offset 1");
        refused(source().with_header("h", "\0"), "a.cu: the text of a header has a zero byte, at offset 0");
        refused(source().with_name_expression(" "), "a.cu: a name expression is empty");
        refused(source().with_name_expression("f\0g"), "a.cu: a name expression has a zero byte, at offset 1");
        for target in [ComputeCapability::new(1, 20), ComputeCapability::new(12, 10)] {
            let message = format!("a.cu: nvrtc has no name for the target {target}");
            refused(KernelSource::new("a.cu", "", target), &message);
        }
    }

    #[test]
    fn options_that_would_not_give_its_ptx_are_refused() {
        for option in ["-arch", "-arch=sm_90", "--gpu-architecture=compute_80", "--gpu-architecture =compute_80"] {
            let message = format!("a.cu: the option '{option}' is refused: the target of the source says it");
            refused(source().with_option(option), &message);
        }
        for option in ["-dlto", "--dlink-time-opt", "--dlink-time-opt=true", "-optix-ir", "--optix-ir"] {
            let message = format!("a.cu: the option '{option}' is refused: what it makes is no PTX");
            refused(source().with_option(option), &message);
        }
        for option in ["", "compute_80", " -w"] {
            let message = format!(
                "a.cu: the option '{option}' is refused: it does not begin with '-'; a value follows its option behind '='"
            );
            refused(source().with_option(option), &message);
        }
        for option in ["-w", "-G", "--define-macro=N=4", "-DN=arch", "-architect"] {
            assert_eq!(source().with_option(option).unwrap().0.options, [CString::new(option).unwrap()]);
        }
    }

    #[test]
    fn everything_that_decides_makes_another_source() {
        let other = |name, text, target| KernelSource::new(name, text, target).unwrap();
        let with = |options: &[&str]| options.iter().fold(source(), |made, option| made.with_option(option).unwrap());
        let header = |name, text| source().with_header(name, text).unwrap();
        let named = |expressions: &[&str]| {
            expressions.iter().fold(source(), |made, name| made.with_name_expression(name).unwrap())
        };
        let all = [
            source(),
            other("b.cu", "text", TARGET),
            other("a.cu", "other", TARGET),
            other("a.cu", "text", ComputeCapability::new(8, 5)),
            other("a.cu", "text", ComputeCapability::new(7, 0)),
            other("a.cu", "text", TARGET.with(purlin_program::FeatureExtension::Accelerated)),
            with(&["-w"]),
            with(&["-w", "-G"]),
            with(&["-G", "-w"]),
            header("h", "x"),
            header("h", "y"),
            header("g", "x"),
            named(&["f"]),
            named(&["f", "g"]),
            named(&["g", "f"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|source| source == one), Some(at), "{one:?}");
        }
        assert_eq!(with(&["-w", "-G"]), with(&["-w", "-G"]));
    }
}
