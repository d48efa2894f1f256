//! Messages of `xla/xla_data.proto` and `xla/service/shaped_slice.proto`: shapes, layouts, slices, dimension numbers,
//! windows.

use prost::Message as Prost;

use super::wire::{Message, Passed};

/// An array's type and dimensions, or a tuple of shapes.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ShapeProto {
    #[prost(int32, tag = "2")]
    pub(crate) element_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) tuple_shapes: Vec<ShapeProto>,
    #[prost(message, optional, tag = "5")]
    pub(crate) layout: Option<LayoutProto>,
    #[prost(bool, repeated, tag = "6")]
    pub(crate) is_dynamic_dimension: Vec<bool>,
}

pub(crate) static SHAPE: Message = Message {
    name: "ShapeProto",
    size_bytes: size_of::<ShapeProto>(),
    scalars: &[2, 3, 6],
    nested: &[(4, &SHAPE), (5, &LAYOUT)],
    passed: Passed::These(&[]),
};

/// The order of the elements in memory.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct LayoutProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) minor_to_major: Vec<i64>,
    /// No kind of tile is supported, so their content is not read.
    #[prost(message, repeated, tag = "6")]
    pub(crate) tiles: Vec<Unread>,
    #[prost(int64, tag = "7")]
    pub(crate) element_size_in_bits: i64,
    #[prost(int64, tag = "8")]
    pub(crate) memory_space: i64,
    #[prost(int64, tag = "15")]
    pub(crate) dynamic_shape_metadata_prefix_bytes: i64,
    #[prost(int64, tag = "16")]
    pub(crate) tail_padding_alignment_in_elements: i64,
}

/// Unknown fields: levels of sparse arrays, physical shapes, split configurations.
pub(crate) static LAYOUT: Message = Message {
    name: "LayoutProto",
    size_bytes: size_of::<LayoutProto>(),
    scalars: &[1, 7, 8, 15, 16],
    nested: &[(6, &UNREAD)],
    passed: Passed::These(&[]),
};

/// A message of which only the presence matters.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct Unread {}

pub(crate) static UNREAD: Message = Message {
    name: "a message that is not read",
    size_bytes: size_of::<Unread>(),
    scalars: &[],
    nested: &[],
    passed: Passed::All,
};

/// Parameters and results.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ProgramShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) parameters: Vec<ShapeProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) result: Option<ShapeProto>,
}

pub(crate) static PROGRAM_SHAPE: Message = Message {
    name: "ProgramShapeProto",
    size_bytes: size_of::<ProgramShapeProto>(),
    scalars: &[],
    nested: &[(1, &SHAPE), (2, &SHAPE)],
    passed: Passed::These(&[3]),
};

/// Bytes of an allocation.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct SliceProto {
    #[prost(int64, tag = "1")]
    pub(crate) offset: i64,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
    #[prost(int64, tag = "3")]
    pub(crate) allocation: i64,
}

pub(crate) static SLICE: Message = Message {
    name: "BufferAllocationSliceProto",
    size_bytes: size_of::<SliceProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    // The type of the elements, which the shape beside it has, too.
    passed: Passed::These(&[4]),
};

/// An operand of a kernel.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ShapedSliceProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) slice: Option<SliceProto>,
}

/// The shape is ignored: a kernel's code has its shapes built in.
pub(crate) static SHAPED_SLICE: Message = Message {
    name: "ShapedSliceProto",
    size_bytes: size_of::<ShapedSliceProto>(),
    scalars: &[],
    nested: &[(1, &SLICE)],
    passed: Passed::These(&[2]),
};

/// An operand of any other thunk.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ShapeSliceProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) shape: Option<ShapeProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) slice: Option<SliceProto>,
}

pub(crate) static SHAPE_SLICE: Message = Message {
    name: "ShapeBufferAllocationSliceProto",
    size_bytes: size_of::<ShapeSliceProto>(),
    scalars: &[],
    nested: &[(1, &SHAPE), (2, &SLICE)],
    passed: Passed::These(&[]),
};

/// The contracting dimensions and the batch dimensions of a dot.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct DotDimensionsProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) lhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) rhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) lhs_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) rhs_batch: Vec<i64>,
}

pub(crate) static DOT_DIMENSIONS: Message = Message {
    name: "DotDimensionNumbers",
    size_bytes: size_of::<DotDimensionsProto>(),
    scalars: &[1, 2, 3, 4],
    nested: &[],
    passed: Passed::These(&[]),
};

/// The roles of the dimensions of a convolution's arrays.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ConvolutionDimensionsProto {
    #[prost(int64, tag = "7")]
    pub(crate) input_batch: i64,
    #[prost(int64, tag = "8")]
    pub(crate) input_feature: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(crate) input_spatial: Vec<i64>,
    #[prost(int64, tag = "3")]
    pub(crate) kernel_input_feature: i64,
    #[prost(int64, tag = "4")]
    pub(crate) kernel_output_feature: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) kernel_spatial: Vec<i64>,
    #[prost(int64, tag = "9")]
    pub(crate) output_batch: i64,
    #[prost(int64, tag = "10")]
    pub(crate) output_feature: i64,
    #[prost(int64, repeated, tag = "12")]
    pub(crate) output_spatial: Vec<i64>,
}

pub(crate) static CONVOLUTION_DIMENSIONS: Message = Message {
    name: "ConvolutionDimensionNumbers",
    size_bytes: size_of::<ConvolutionDimensionsProto>(),
    scalars: &[3, 4, 6, 7, 8, 9, 10, 11, 12],
    nested: &[],
    passed: Passed::These(&[]),
};

/// How a window moves over an array.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct WindowProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<WindowDimensionProto>,
}

pub(crate) static WINDOW: Message = Message {
    name: "Window",
    size_bytes: size_of::<WindowProto>(),
    scalars: &[],
    nested: &[(1, &WINDOW_DIMENSION)],
    passed: Passed::These(&[]),
};

/// The movement along one dimension.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct WindowDimensionProto {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
    #[prost(int64, tag = "2")]
    pub(crate) stride: i64,
    #[prost(int64, tag = "3")]
    pub(crate) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(crate) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(crate) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(crate) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(crate) window_reversal: bool,
}

pub(crate) static WINDOW_DIMENSION: Message = Message {
    name: "WindowDimension",
    size_bytes: size_of::<WindowDimensionProto>(),
    scalars: &[1, 2, 3, 4, 5, 6, 7],
    nested: &[],
    passed: Passed::These(&[]),
};
