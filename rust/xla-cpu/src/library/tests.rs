//! Library calls, compared with simple loops.

#![allow(unsafe_code, reason = "comparators are functions that take addresses")]

use std::ffi::c_void;
use std::sync::Arc;

use purlin::program::{ArraySpec, Command, Executable, ExecuteOptions, LoadedExecutable, Operand, ProgramBuilder};
use purlin::{Buffer, Client, ClientOptions, DType, Element, Shape};
use purlin_program::LibraryCall;

use super::*;
use crate::module::Array;
use crate::proto::{DotDimensionsProto, LayoutProto, ShapeProto};

/// XLA's numbers for element types.
const S32: i32 = 4;
const F32: i32 = 11;
const C64: i32 = 15;

fn array(element_type: i32, dimensions: &[i64], minor_to_major: &[i64]) -> Array {
    let layout = LayoutProto { minor_to_major: minor_to_major.to_vec(), ..Default::default() };
    let dimensions = dimensions.to_vec();
    Array::new(&ShapeProto { element_type, dimensions, layout: Some(layout), ..Default::default() }).unwrap()
}

/// Runs a call that reads the inputs and writes one output of `count` elements. All are flat arrays.
pub(super) fn run<T: Element>(call: impl LibraryCall + 'static, inputs: &[&[T]], count: usize) -> Vec<T> {
    let client = client();
    let flat = |count: usize| ArraySpec::new(Shape::new(T::DTYPE, &[count as i64]).unwrap());
    let mut builder = ProgramBuilder::new("test");
    let mut operands: Vec<Operand> =
        inputs.iter().map(|input| Operand::invariant(builder.parameter(flat(input.len())))).collect();
    operands.push(Operand::write(builder.result(flat(count))));
    builder.push(Command::Library { call: Arc::new(call), operands });
    let executable = Executable::new(builder.build().unwrap());
    let loaded = LoadedExecutable::new(&executable, &client.devices()[..1], 1).unwrap();
    let inputs: Vec<Buffer> = inputs.iter().map(|input| buffer(&client, input)).collect();
    let execution = loaded.execute(&inputs, &ExecuteOptions::default()).unwrap();
    execution.done.wait().unwrap();
    execution.outputs[0].to_vec().unwrap()
}

fn client() -> Arc<Client> {
    Client::new(&ClientOptions::default(), Arc::new(purlin::host::HostBackend::new())).unwrap()
}

fn numbers(count: usize, step: usize) -> Vec<i32> {
    (0..count).map(|at| (at * step % 13) as i32 - 6).collect()
}

fn buffer<T: Element>(client: &Client, values: &[T]) -> Buffer {
    Buffer::from_slice(values, &[values.len() as i64], &client.devices()[0].default_memory_space()).unwrap()
}

#[test]
fn dots_of_any_layout_and_batch_are_products() {
    let (batch, rows, inner, columns) = (3, 4, 5, 6);
    let dims = DotDimensionsProto {
        lhs_contracting: vec![2],
        rhs_contracting: vec![1],
        lhs_batch: vec![0],
        rhs_batch: vec![0],
    };
    for layout in [[2, 1, 0], [1, 2, 0], [0, 1, 2], [1, 0, 2]] {
        let lhs = array(S32, &[3, 4, 5], &layout);
        let rhs = array(S32, &[3, 5, 6], &[2, 1, 0]);
        let out = array(S32, &[3, 4, 6], &layout);
        let (a, b) = (numbers(60, 7), numbers(90, 5));
        let (l, o) = (lhs.strides(), out.strides());
        let mut expected = vec![0; 72];
        for (n, i, j, k) in (0..batch * rows * columns * inner)
            .map(|at| (at / (rows * columns * inner), at / (columns * inner) % rows, at / inner % columns, at % inner))
        {
            expected[n * o[0] + i * o[1] + j * o[2]] += a[n * l[0] + i * l[1] + k * l[2]] * b[n * 30 + k * 6 + j];
        }
        let dot = Dot::new(&dims, &lhs, &rhs, &out).unwrap();
        assert_eq!(run(dot, &[&a, &b], 72), expected);
    }
}

#[test]
fn dots_whose_dimensions_do_not_fit_are_refused() {
    let dims = |lhs: &[i64], rhs: &[i64]| DotDimensionsProto {
        lhs_contracting: lhs.to_vec(),
        rhs_contracting: rhs.to_vec(),
        ..Default::default()
    };
    let (lhs, rhs) = (array(F32, &[2, 3], &[1, 0]), array(F32, &[3, 4], &[1, 0]));
    let refused = |dims, out: &[i64]| Dot::new(&dims, &lhs, &rhs, &array(F32, out, &[1, 0])).unwrap_err();
    assert!(refused(dims(&[1], &[1]), &[2, 4]).contains("do not agree"));
    assert!(refused(dims(&[1], &[0]), &[4, 2]).contains("do not agree"));
    assert!(refused(dims(&[-1], &[0]), &[2, 4]).contains("that there is not"));
    assert!(refused(dims(&[1, 1], &[0, 0]), &[2, 4]).contains("that there is not"));
}

unsafe extern "C" fn less(
    out: *mut u8,
    _: *const c_void,
    pairs: *const *const c_void,
    _: *const *const c_void,
    _: *mut i64,
    _: *mut c_void,
) {
    // SAFETY: the sort has elements of i32.
    unsafe { *out = u8::from(*(*pairs).cast::<i32>() / 4 < *(*pairs.add(1)).cast::<i32>() / 4) };
}

#[test]
fn sorts_are_stable_along_their_dimension() {
    for (dims, dimension) in [([2, 100], 1), ([100, 2], 0), ([1, 200], 1), ([200, 1], 1)] {
        let arrays = SortArrays::new(&[array(S32, &dims, &[1, 0])], dimension).unwrap();
        let sort = Sort::new(arrays);
        // SAFETY: the comparator is a function of this program.
        unsafe { sort.bind(less, Arc::new(())) };
        let client = client();
        let mut builder = ProgramBuilder::new("sort");
        let spec = ArraySpec::new(Shape::new(DType::S32, &[200]).unwrap());
        let values = builder.donated_parameter(spec);
        builder.push(Command::Library { call: Arc::new(sort), operands: vec![Operand::read_write(values)] });
        let executable = Executable::new(builder.build().unwrap());
        let loaded = LoadedExecutable::new(&executable, &client.devices()[..1], 1).unwrap();
        let values: Vec<i32> = (0..200).map(|at| at * 77 % 101).collect();
        let execution = loaded.execute(&[buffer(&client, &values)], &ExecuteOptions::default()).unwrap();
        execution.done.wait().unwrap();
        let (length, stride) = if dimension == 0 { (100, 2) } else { (dims[1] as usize, 1) };
        let mut expected = values;
        for row in 0..200 / length {
            let begin = if stride == 1 { row * length } else { row };
            let mut sorted: Vec<i32> = (0..length).map(|at| expected[begin + at * stride]).collect();
            sorted.sort_by_key(|x| x / 4);
            sorted.into_iter().enumerate().for_each(|(at, x)| expected[begin + at * stride] = x);
        }
        assert_eq!(execution.outputs[0].to_vec::<i32>().unwrap(), expected, "{dims:?}, {dimension}");
    }
}

#[test]
fn the_greatest_come_first_and_the_earlier_of_equals() {
    let top = TopK::new([2, 4, 2], [32, 16, 16]).unwrap();
    let client = client();
    let mut builder = ProgramBuilder::new("top");
    let spec = |dtype, count| ArraySpec::new(Shape::new(dtype, &[count]).unwrap());
    let (values, output, places) = (
        builder.parameter(spec(DType::F32, 8)),
        builder.result(spec(DType::F32, 4)),
        builder.result(spec(DType::S32, 4)),
    );
    let operands = vec![Operand::invariant(values), Operand::write(output), Operand::write(places)];
    builder.push(Command::Library { call: Arc::new(top), operands });
    let executable = Executable::new(builder.build().unwrap());
    let loaded = LoadedExecutable::new(&executable, &client.devices()[..1], 1).unwrap();
    let values = buffer(&client, &[1.0_f32, 3.0, 3.0, 2.0, -0.0, f32::NAN, 0.0, -1.0]);
    let execution = loaded.execute(&[values], &ExecuteOptions::default()).unwrap();
    execution.done.wait().unwrap();
    assert_eq!(execution.outputs[1].to_vec::<i32>().unwrap(), [1, 2, 1, 2]);
    assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap()[..2], [3.0, 3.0]);
    assert!(TopK::new([2, 4, 5], [32, 40, 40]).is_err() && TopK::new([u64::MAX, 4, 2], [32, 16, 16]).is_err());
}

#[test]
fn a_copy_to_another_layout_moves_each_element() {
    let (from, to) = (array(S32, &[2, 3, 4], &[2, 1, 0]), array(S32, &[2, 3, 4], &[0, 2, 1]));
    let (f, t) = (from.strides(), to.strides());
    let values = numbers(24, 5);
    let mut expected = vec![0; 24];
    for (i, j, k) in (0..24).map(|at| (at / 12, at / 4 % 3, at % 4)) {
        expected[i * t[0] + j * t[1] + k * t[2]] = values[i * f[0] + j * f[1] + k * f[2]];
    }
    let transpose = Transpose::new(&from, &to).unwrap();
    assert_eq!(run(transpose, &[&values], 24), expected);
}

#[test]
fn transforms_of_lengths_and_shapes_that_do_not_fit_are_refused() {
    let row = |element_type, length| array(element_type, &[length], &[0]);
    assert!(Fft::new(0, &[8], &row(C64, 8), &row(C64, 8)).is_ok());
    assert!(Fft::new(2, &[8], &row(F32, 8), &row(C64, 5)).is_ok());
    assert!(Fft::new(3, &[7], &row(C64, 4), &row(F32, 7)).is_ok());
    for (kind, length, from, to) in [
        (2, 8, row(F32, 8), row(C64, 8)),
        (0, 4, row(C64, 8), row(C64, 8)),
        (0, -8, row(C64, 8), row(C64, 8)),
        (4, 8, row(C64, 8), row(C64, 8)),
        (0, 8, row(F32, 8), row(C64, 8)),
    ] {
        assert!(Fft::new(kind, &[length], &from, &to).is_err());
    }
}
