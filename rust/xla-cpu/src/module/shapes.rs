//! XLA's shapes and layouts, converted to Purlin's.

use purlin_array::{DType, Layout, Shape};
use purlin_program::{ArraySpec, ProgramSignature};

use crate::fault::Reasons;
use crate::proto::{LayoutProto, ProgramShapeProto, ShapeProto};

/// XLA's element type of a tuple.
const TUPLE: i32 = 13;

/// The type of an array: element type, dimensions, and the order of its elements in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
}

impl Array {
    /// The array of that shape, or the reason why it is not supported.
    pub(crate) fn new(proto: &ShapeProto) -> Result<Self, String> {
        let dtype = dtype(proto.element_type)?;
        let said = |error: purlin_base::Error| error.message().to_owned();
        if proto.is_dynamic_dimension.contains(&true) {
            return Err(format!("dynamic dimensions of {}{:?}", dtype.name(), proto.dimensions));
        }
        let shape = Shape::new(dtype, &proto.dimensions).map_err(said)?;
        let layout = match &proto.layout {
            Some(layout) => read_layout(layout, &shape)?,
            None => Layout::row_major(shape.rank()),
        };
        layout.check_rank(&shape).map_err(said)?;
        Ok(Self { shape, layout })
    }

    /// The size of its elements, packed.
    pub(crate) fn size_bytes(&self) -> usize {
        self.shape.size_bytes()
    }

    /// The dimensions in memory order, the slowest first.
    pub(crate) fn physical_dims(&self) -> Vec<usize> {
        self.layout.minor_to_major().iter().rev().map(|&axis| self.shape.dims()[axis as usize] as usize).collect()
    }

    /// The stride of each dimension, in elements.
    pub(crate) fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; self.shape.rank()];
        let mut stride = 1_usize;
        for &axis in self.layout.minor_to_major() {
            strides[axis as usize] = stride;
            stride = stride.saturating_mul(self.shape.dims()[axis as usize] as usize);
        }
        strides
    }

    /// Its dimensions.
    pub(crate) fn dims(&self) -> Vec<usize> {
        self.shape.dims().iter().map(|&dim| dim as usize).collect()
    }
}

/// The order of dimensions. All other fields of a layout must have no effect; else the reason is returned.
fn read_layout(layout: &LayoutProto, shape: &Shape) -> Result<Layout, String> {
    let packed = shape.dtype().bits() as i64;
    if !layout.tiles.is_empty() {
        return Err(format!("a tiled layout of {shape}"));
    }
    if layout.memory_space != 0 || layout.dynamic_shape_metadata_prefix_bytes != 0 {
        return Err(format!("a layout of {shape} in memory space {}", layout.memory_space));
    }
    if layout.tail_padding_alignment_in_elements > 1 {
        return Err(format!("padding behind {shape}"));
    }
    if layout.element_size_in_bits != 0 && layout.element_size_in_bits != packed {
        return Err(format!("elements of {} bits in {shape}", layout.element_size_in_bits));
    }
    Layout::new(&layout.minor_to_major).map_err(|error| error.message().to_owned())
}

/// The element type of that number in XLA.
fn dtype(number: i32) -> Result<DType, String> {
    let dtype = match number {
        1 => DType::Pred,
        2 => DType::S8,
        3 => DType::S16,
        4 => DType::S32,
        5 => DType::S64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C64,
        16 => DType::BF16,
        18 => DType::C128,
        19 => DType::F8E5M2,
        20 => DType::F8E4M3FN,
        21 => DType::S4,
        22 => DType::U4,
        23 => DType::F8E4M3B11FNUZ,
        24 => DType::F8E5M2FNUZ,
        25 => DType::F8E4M3FNUZ,
        26 => DType::S2,
        27 => DType::U2,
        28 => DType::F8E4M3,
        29 => DType::F8E3M4,
        32 => DType::F4E2M1FN,
        33 => DType::F8E8M0FNU,
        TUPLE => return Err("a tuple inside of a tuple".to_owned()),
        17 => return Err("a token".to_owned()),
        30 | 31 | 35 | 36 => return Err("elements of 1 or 6 bits".to_owned()),
        other => return Err(format!("elements of type {other}")),
    };
    Ok(dtype)
}

/// The shapes of the results, and whether they are the parts of a tuple.
pub(super) fn results(layout: &ProgramShapeProto) -> (&[ShapeProto], bool) {
    match &layout.result {
        Some(result) if result.element_type == TUPLE => (&result.tuple_shapes, true),
        Some(result) => (std::slice::from_ref(result), false),
        None => (&[], true),
    }
}

/// The signature of the entry. An array that is not supported is added to `reasons`, and left out.
pub(super) fn signature(layout: &ProgramShapeProto, reasons: &mut Reasons) -> ProgramSignature {
    let mut specs = |what: &str, shapes: &[ShapeProto]| -> Vec<ArraySpec> {
        let numbered = shapes.iter().enumerate();
        let spec = |(number, shape)| {
            let spec = Array::new(shape).and_then(|array| {
                let spec = ArraySpec::new(array.shape).with_layout(array.layout);
                spec.map_err(|error| error.message().to_owned())
            });
            reasons.take(spec.map_err(|why| format!("{what} {number}: {why}")))
        };
        numbered.filter_map(spec).collect()
    };
    let parameters = specs("parameter", &layout.parameters);
    let results = specs("result", results(layout).0);
    ProgramSignature { parameters, results, aliases: Vec::new() }
}
