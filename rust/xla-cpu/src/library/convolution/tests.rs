//! Random convolutions, compared with their definition.

use purlin_array::DType;

use super::super::tests::run;
use super::*;
use crate::proto::samples::{ConvolutionDimensionsProto, WindowDimensionProto, WindowProto};
use crate::random_arrays::{Chance, array_in, for_each_index, place};

/// A convolution of random sizes, in dimensions of a random order.
struct Case {
    proto: ConvolutionProto,
    arrays: [Array; 3],
    /// For each array, the axes of batch and feature (kernel: input and output feature), and those of the window.
    axes: [Vec<usize>; 3],
    groups: usize,
}

impl Case {
    fn new(chance: &mut Chance, large: bool) -> Self {
        let rank = if large { 2 } else { chance.below(4) };
        let groups = 1 + chance.below(3) / 2 * chance.below(4);
        let few = |chance: &mut Chance, most: usize| 1 + chance.below(most);
        let (inputs, outputs) = if large { (8, 40) } else { (few(chance, 4), few(chance, 5)) };
        let batch = few(chance, 3);
        let mut sizes = [vec![batch, inputs * groups], vec![inputs, outputs * groups], vec![batch, outputs * groups]];
        let mut windows = Vec::new();
        for _ in 0..rank {
            let window = few(chance, 4);
            sizes[0].push(few(chance, if large { 20 } else { 7 }));
            sizes[1].push(window);
            sizes[2].push(few(chance, if large { 40 } else { 7 }));
            windows.push(WindowDimensionProto {
                size: window as i64,
                stride: few(chance, 3) as i64,
                padding_low: chance.below(7) as i64 - 2,
                window_dilation: few(chance, 3) as i64,
                base_dilation: few(chance, 4) as i64,
                window_reversal: chance.below(4) == 0,
                ..Default::default()
            });
        }
        let axes = [0; 3].map(|_| {
            let plain = (0..rank + 2).collect();
            if chance.below(2) == 0 { plain } else { chance.shuffled(rank + 2) }
        });
        let mut arrays = sizes.iter().zip(&axes).map(|(sizes, axes)| {
            let mut dims = vec![0; rank + 2];
            axes.iter().zip(sizes).for_each(|(&axis, &size)| dims[axis] = size);
            chance.array(DType::F32, &dims)
        });
        let arrays = [0; 3].map(|_| arrays.next().unwrap());
        let [input, kernel, output] = [0, 1, 2].map(|which: usize| {
            let axes: Vec<i64> = axes[which].iter().map(|&axis| axis as i64).collect();
            (axes[0], axes[1], axes[2..].to_vec())
        });
        let dimensions = ConvolutionDimensionsProto {
            input_batch: input.0,
            input_feature: input.1,
            input_spatial: input.2,
            kernel_input_feature: kernel.0,
            kernel_output_feature: kernel.1,
            kernel_spatial: kernel.2,
            output_batch: output.0,
            output_feature: output.1,
            output_spatial: output.2,
        };
        let proto = ConvolutionProto {
            dimensions: Some(dimensions),
            window: Some(WindowProto { dimensions: windows }),
            feature_group_count: groups as i64,
            ..Default::default()
        };
        Self { proto, arrays, axes, groups }
    }

    /// Array `which`'s place for an index in the order of `axes`.
    fn place(&self, which: usize, index: &[usize]) -> usize {
        let strides = self.arrays[which].strides();
        let strides: Vec<usize> = self.axes[which].iter().map(|&axis| strides[axis]).collect();
        place(index, &strides)
    }

    /// The sizes of array `which` in the order of `axes`.
    fn sizes(&self, which: usize) -> Vec<usize> {
        let dims = self.arrays[which].dims();
        self.axes[which].iter().map(|&axis| dims[axis]).collect()
    }

    /// By definition: each element of the output is a sum over the input channels of its group and over the window.
    fn expected(&self, input: &[f32], kernel: &[f32]) -> Vec<f32> {
        let windows = &self.proto.window.as_ref().unwrap().dimensions;
        let (ins, kernels, outs) = (self.sizes(0), self.sizes(1), self.sizes(2));
        let per_group = outs[1] / self.groups;
        let mut output = vec![0.0; outs.iter().product()];
        for_each_index(&outs, |out| {
            let mut sum = 0.0;
            let taps: Vec<usize> = [&kernels[..1], &kernels[2..]].concat();
            for_each_index(&taps, |tap| {
                let mut from = vec![out[0], out[1] / per_group * kernels[0] + tap[0]];
                let mut by = vec![tap[0], out[1]];
                for (axis, window) in windows.iter().enumerate() {
                    let at = out[axis + 2] as i64 * window.stride + tap[axis + 1] as i64 * window.window_dilation
                        - window.padding_low;
                    if at < 0 || at % window.base_dilation != 0 || at / window.base_dilation >= ins[axis + 2] as i64 {
                        return;
                    }
                    from.push((at / window.base_dilation) as usize);
                    by.push(if window.window_reversal { kernels[axis + 2] - 1 - tap[axis + 1] } else { tap[axis + 1] });
                }
                sum += input[self.place(0, &from)] * kernel[self.place(1, &by)];
            });
            output[self.place(2, out)] = sum;
        });
        output
    }
}

#[test]
fn convolutions_of_any_window_and_layout_are_sums() {
    let mut chance = Chance(14);
    for number in 0..200 {
        let case = Case::new(&mut chance, number % 40 == 0);
        let mut values = |which: usize| -> Vec<f32> {
            // Small whole numbers, so that all sums are exact.
            (0..case.sizes(which).iter().product()).map(|_| chance.below(9) as f32 - 4.0).collect()
        };
        let (input, kernel) = (values(0), values(1));
        let [from, by, to] = &case.arrays;
        let convolution = Convolution::new(&case.proto, from, by, to).unwrap();
        let expected = case.expected(&input, &kernel);
        let found = run(convolution, &[&input, &kernel], expected.len());
        assert!(found == expected, "number {number}: {:?} of {from:?} by {by:?} to {to:?}", case.proto);
    }
}

#[test]
fn a_dilation_of_too_many_phases_is_refused() {
    let array = |size: usize| array_in(DType::F32, &[1, 1, size, size], &[3, 2, 1, 0]);
    let window =
        |dilation: i64| WindowDimensionProto { size: 1, stride: 1, base_dilation: dilation, ..Default::default() };
    let mut proto = ConvolutionProto {
        dimensions: Some(ConvolutionDimensionsProto {
            input_feature: 1,
            input_spatial: vec![2, 3],
            kernel_output_feature: 1,
            kernel_spatial: vec![2, 3],
            output_feature: 1,
            output_spatial: vec![2, 3],
            ..Default::default()
        }),
        window: Some(WindowProto { dimensions: vec![window(64), window(64)] }),
        ..Default::default()
    };
    assert!(Convolution::new(&proto, &array(2), &array(1), &array(65)).is_ok());
    proto.window = Some(WindowProto { dimensions: vec![window(65), window(65)] });
    let refused = Convolution::new(&proto, &array(2), &array(1), &array(65)).unwrap_err();
    assert!(refused.contains("more phases"), "{refused}");
}
