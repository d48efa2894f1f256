//! Signatures: the arrays that a program takes and returns, without tuples.

use std::fmt;

use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_base::StatusOr;

/// The type of an array that a program takes or returns: shape, layout, kind of memory.
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

    /// The same array in that layout.
    ///
    /// # Errors
    /// `InvalidArgument`: the layout has another rank than the shape.
    pub fn with_layout(mut self, layout: Layout) -> StatusOr<Self> {
        layout.check_rank(&self.shape)?;
        self.layout = (!layout.is_row_major()).then_some(layout);
        Ok(self)
    }

    /// The same array in memory of that kind.
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

    /// The order of the elements in memory; `None`: row-major.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The kind of memory; `None`: the device's default.
    #[must_use]
    pub fn memory_kind(&self) -> Option<&str> {
        self.memory_kind.as_deref()
    }

    /// The size of a buffer that holds the array.
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

/// A parameter and a result that share memory, if the argument is donated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The parameter.
    pub parameter: usize,
    /// The result.
    pub result: usize,
}

/// The parameters, results and aliases of a program. Tuples are flattened.
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
    /// The results that share a parameter's memory. Each parameter and each result occurs at most once. The allocations
    /// must list the same pairs ([`AllocationKind::Parameter`](crate::AllocationKind)).
    pub aliases: Vec<Alias>,
}

impl fmt::Display for ProgramSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |specs: &[ArraySpec]| specs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "({}) -> ({})", list(&self.parameters), list(&self.results))
    }
}
