//! What a program takes and gives: arrays, flat.

use std::fmt;

use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_base::StatusOr;

/// An array that a program takes or gives.
///
/// ```
/// use purlin::program::ArraySpec;
/// use purlin::{DType, Shape};
///
/// let spec = ArraySpec::new(Shape::new(DType::F32, &[2, 3])?);
/// assert_eq!(spec.to_string(), "f32[2,3]");
/// assert_eq!(spec.in_memory("pinned_host").to_string(), "f32[2,3] in pinned_host");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    shape: Shape,
    /// `None`: row-major.
    layout: Option<Layout>,
    /// `None`: the device's default.
    memory_kind: Option<Box<str>>,
}

impl ArraySpec {
    /// A row-major array in the default memory of its device.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { shape, layout: None, memory_kind: None }
    }

    /// The same in that layout.
    ///
    /// # Errors
    /// `InvalidArgument`: a layout of another rank.
    pub fn with_layout(mut self, layout: Layout) -> StatusOr<Self> {
        layout.check_rank(&self.shape)?;
        self.layout = (!layout.is_row_major()).then_some(layout);
        Ok(self)
    }

    /// The same in memory of that kind.
    #[must_use]
    pub fn in_memory(mut self, kind: impl Into<Box<str>>) -> Self {
        self.memory_kind = Some(kind.into());
        self
    }

    /// Element type and dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// In which order the elements stand; `None`: row-major.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The kind of memory; `None`: the device's default.
    #[must_use]
    pub fn memory_kind(&self) -> Option<&str> {
        self.memory_kind.as_deref()
    }

    /// Bytes of a buffer of it.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.shape.on_device_size_bytes()
    }
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shape)?;
        if let Some(layout) = &self.layout {
            write!(f, " in layout {layout}")?;
        }
        match &self.memory_kind {
            Some(kind) => write!(f, " in {kind}"),
            None => Ok(()),
        }
    }
}

/// A result that has a parameter's memory, where that is donated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The parameter.
    pub parameter: usize,
    /// The result.
    pub result: usize,
}

/// What a program takes and gives. Tuples are flat.
///
/// ```
/// use purlin::program::{ArraySpec, ProgramSignature};
/// use purlin::{DType, Shape};
///
/// let vector = ArraySpec::new(Shape::new(DType::F32, &[8])?);
/// let signature =
///     ProgramSignature { parameters: vec![vector.clone(), vector.clone()], results: vec![vector], aliases: vec![] };
/// assert_eq!(signature.to_string(), "(f32[8], f32[8]) -> (f32[8])");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSignature {
    /// In the order of the arguments.
    pub parameters: Vec<ArraySpec>,
    /// In the order of the outputs.
    pub results: Vec<ArraySpec>,
    /// Which results have a parameter's memory; each parameter and each result at most once. The allocations say the
    /// same ([`AllocationKind::Parameter`](crate::AllocationKind)).
    pub aliases: Vec<Alias>,
}

impl fmt::Display for ProgramSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |specs: &[ArraySpec]| specs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "({}) -> ({})", list(&self.parameters), list(&self.results))
    }
}
