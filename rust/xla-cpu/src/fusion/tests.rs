//! Random graphs, compared with an evaluation element by element in f64, or in integers.

use std::sync::Arc;

use purlin::program::{ArraySpec, Command, Executable, ExecuteOptions, LoadedExecutable, Operand, ProgramBuilder};
use purlin::{Buffer, Client, ClientOptions, DType, Shape};

use super::Fusion;
use super::graph::{Graph, Op};
use super::lanes::{Binary, Fold, Unary};
use crate::module::Array;
use crate::proto::samples::{
    ConvolutionDimensionsProto, ConvolutionProto, DotDimensionsProto, WindowDimensionProto, WindowProto,
};
use crate::random_arrays::{Chance, array_in, for_each_index, place};

/// Rounds a number to an element of that type.
fn rounded(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(x as f32),
        DType::F16 => half::f16::from_f32(x as f32).to_f64(),
        DType::BF16 => half::bf16::from_f32(x as f32).to_f64(),
        DType::S32 => f64::from(x as i64 as i32),
        DType::S8 => f64::from(x as i64 as i8),
        _ => x,
    }
}

fn unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Abs => x.abs(),
        Unary::Negate => -x,
        Unary::Sign => x.signum() * f64::from(u8::from(x != 0.0)),
        Unary::Tanh => x.tanh(),
        Unary::Logistic => 1.0 / (1.0 + (-x).exp()),
        other => unreachable!("{other:?}"),
    }
}

fn folded(fold: Fold, a: f64, b: f64) -> f64 {
    match fold {
        Fold::Add => a + b,
        Fold::Maximum => a.max(b),
        Fold::Minimum => a.min(b),
        Fold::Multiply => a * b,
    }
}

/// All values of the graph, each in the order of its memory.
fn evaluate(graph: &Graph, parameters: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut values: Vec<Vec<f64>> = Vec::new();
    for value in &graph.values {
        let (dims, strides) = (value.array.dims(), value.array.strides());
        let dtype = value.array.shape.dtype();
        let mut out = vec![0.0; dims.iter().product()];
        let operand = |number: usize, index: &[usize]| {
            let operand = value.operands[number];
            values[operand][place(index, &graph.array(operand).strides())]
        };
        let from = |number: usize| graph.array(value.operands[number]).dims();
        match &value.op {
            Op::Parameter(number) => out.clone_from(&parameters[*number]),
            Op::Bitcast => out.clone_from(&values[value.operands[0]]),
            Op::Pad(pads) => {
                out.fill(operand(1, &[]));
                for_each_index(&from(0), |index| {
                    let to: Vec<usize> = index.iter().zip(pads).map(|(at, &(low, step))| low + at * step).collect();
                    out[place(&to, &strides)] = operand(0, index);
                });
            }
            op => for_each_index(&dims, |index| {
                let sum = |init: f64, fold: Fold, sizes: &[usize], at: &dyn Fn(&[usize]) -> f64| {
                    let mut sum = init;
                    for_each_index(sizes, |tap| sum = folded(fold, sum, at(tap)));
                    sum
                };
                let result = match op {
                    Op::Constant(bytes) => f64::from(f32::from_le_bytes(bytes[..4].try_into().unwrap())),
                    Op::Unary(op) => unary(*op, operand(0, index)),
                    Op::Binary(op) => match (op, operand(0, index), operand(1, index)) {
                        (Binary::Add, a, b) => a + b,
                        (Binary::Subtract, a, b) => a - b,
                        (Binary::Multiply, a, b) => a * b,
                        (Binary::Maximum, a, b) => a.max(b),
                        (Binary::Minimum, a, b) => a.min(b),
                        (other, ..) => unreachable!("{other:?}"),
                    },
                    Op::Convert | Op::Copy => operand(0, index),
                    Op::Broadcast(axes) => operand(0, &axes.iter().map(|&axis| index[axis]).collect::<Vec<_>>()),
                    Op::Transpose(axes) => {
                        let mut source = vec![0; axes.len()];
                        axes.iter().zip(index).for_each(|(&axis, &at)| source[axis] = at);
                        operand(0, &source)
                    }
                    Op::Slice(slices) => {
                        let source = index.iter().zip(slices).map(|(at, &(start, step))| start + at * step);
                        operand(0, &source.collect::<Vec<_>>())
                    }
                    Op::Reduce { fold, dims } => {
                        let all = from(0);
                        let sizes: Vec<usize> = dims.iter().map(|&axis| all[axis]).collect();
                        sum(operand(1, &[]), *fold, &sizes, &|tap| {
                            let mut kept = index.iter();
                            let source = (0..all.len()).map(|axis| match dims.iter().position(|&each| each == axis) {
                                Some(at) => tap[at],
                                None => *kept.next().unwrap(),
                            });
                            operand(0, &source.collect::<Vec<_>>())
                        })
                    }
                    Op::ReduceWindow { fold, window } => {
                        let sizes: Vec<usize> = window.iter().map(|each| each[0]).collect();
                        sum(operand(1, &[]), *fold, &sizes, &|tap| {
                            let axes = window.iter().zip(index).zip(tap);
                            let source = axes.map(|((&[_, step, spread], at), tap)| at * step + tap * spread);
                            operand(0, &source.collect::<Vec<_>>())
                        })
                    }
                    // Of two matrices, with the sum along dimension 1 of both, or of batches of them.
                    Op::Dot(dims) => {
                        let (batch, inner) = (dims.lhs_batch.len(), from(0)[dims.lhs_contracting[0] as usize]);
                        sum(0.0, Fold::Add, &[inner], &|tap| {
                            let row = |which: usize| [&index[..batch], &[index[batch + which]], tap].concat();
                            operand(0, &row(0)) * operand(1, &row(1))
                        })
                    }
                    _ => unreachable!("{op:?}"),
                };
                out[place(index, &strides)] = rounded(dtype, result);
            }),
        }
        values.push(out);
    }
    values
}

/// A graph that is being made.
struct Maker {
    chance: Chance,
    graph: Graph,
    parameters: usize,
}

impl Maker {
    fn push(&mut self, op: Op, operands: Vec<usize>, array: Array) -> usize {
        let said = format!("{op:?} of {operands:?} to {} in {}", array.shape, array.layout);
        self.graph.push(op, operands, array).unwrap_or_else(|why| panic!("{said}: {why}"))
    }

    fn parameter(&mut self, dtype: DType, dims: &[usize]) -> usize {
        let array = self.chance.array(dtype, dims);
        self.parameters += 1;
        self.push(Op::Parameter(self.parameters - 1), Vec::new(), array)
    }

    /// A scalar that changes no sum, or any other one.
    fn scalar(&mut self, dtype: DType) -> usize {
        self.parameter(dtype, &[])
    }

    /// Adds a value that is computed from another one.
    fn step(&mut self, from: usize) -> usize {
        let (dtype, dims) = (self.graph.array(from).shape.dtype(), self.graph.array(from).dims());
        let is_integer = matches!(dtype, DType::S32 | DType::S8);
        match self.chance.below(14) {
            0 | 1 => {
                let all: &[Unary] = match is_integer {
                    true => &[Unary::Abs, Unary::Negate, Unary::Sign],
                    false => &[Unary::Abs, Unary::Negate, Unary::Tanh, Unary::Logistic],
                };
                let op = self.chance.pick(all);
                let array = self.chance.array(dtype, &dims);
                self.push(Op::Unary(op), vec![from], array)
            }
            2 | 3 => {
                let same: Vec<usize> = (0..self.graph.values.len())
                    .filter(|&each| self.graph.array(each).shape == self.graph.array(from).shape)
                    .collect();
                let other = match self.chance.below(3) {
                    0 => self.parameter(dtype, &dims),
                    1 => {
                        let scalar = self.scalar(dtype);
                        let array = self.chance.array(dtype, &dims);
                        self.push(Op::Broadcast(Vec::new()), vec![scalar], array)
                    }
                    _ => self.chance.pick(&same),
                };
                let all = [Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Maximum, Binary::Minimum];
                let op = self.chance.pick(&all);
                let array = self.chance.array(dtype, &dims);
                self.push(Op::Binary(op), vec![from, other], array)
            }
            4 if dims.len() < 4 && dims.iter().product::<usize>() < 2000 => {
                let mut axes = self.chance.shuffled(dims.len() + 1);
                let (added, size) = (axes.pop().unwrap(), 1 + self.chance.below(9));
                let mut to = vec![size; dims.len() + 1];
                axes.iter().zip(&dims).for_each(|(&axis, &size)| to[axis] = size);
                assert_eq!(to[added], size);
                let array = self.chance.array(dtype, &to);
                self.push(Op::Broadcast(axes), vec![from], array)
            }
            5 => {
                let axes = self.chance.shuffled(dims.len());
                let to: Vec<usize> = axes.iter().map(|&axis| dims[axis]).collect();
                let array = self.chance.array(dtype, &to);
                self.push(Op::Transpose(axes), vec![from], array)
            }
            6 => {
                let slices: Vec<(usize, usize)> =
                    dims.iter().map(|&size| (self.chance.below(size), 1 + self.chance.below(2))).collect();
                let to: Vec<usize> =
                    slices.iter().zip(&dims).map(|(&(start, step), &size)| (size - start).div_ceil(step)).collect();
                let array = self.chance.array(dtype, &to);
                self.push(Op::Slice(slices), vec![from], array)
            }
            7 if dims.iter().product::<usize>() < 3000 => {
                let pads: Vec<(usize, usize)> =
                    dims.iter().map(|_| (self.chance.below(3), 1 + self.chance.below(2))).collect();
                let to: Vec<usize> = pads
                    .iter()
                    .zip(&dims)
                    .map(|(&(low, step), &size)| low + (size - 1) * step + 1 + self.chance.below(2))
                    .collect();
                let value = self.scalar(dtype);
                let array = self.chance.array(dtype, &to);
                self.push(Op::Pad(pads), vec![from, value], array)
            }
            8 => {
                let array = self.chance.array(dtype, &dims);
                self.push(Op::Copy, vec![from], array)
            }
            9 if dtype == DType::F32 || is_integer => {
                let to = if is_integer { DType::S32 } else { self.chance.pick(&[DType::BF16, DType::F64, DType::F32]) };
                let array = self.chance.array(to, &dims);
                self.push(Op::Convert, vec![from], array)
            }
            10 => {
                // The same bytes as a vector.
                let array = array_in(dtype, &[dims.iter().product()], &[0]);
                self.push(Op::Bitcast, vec![from], array)
            }
            11 if !dims.is_empty() => {
                let window: Vec<[usize; 3]> = dims
                    .iter()
                    .map(|&size| [1 + self.chance.below(size.min(4)), 1 + self.chance.below(3), 1])
                    .collect();
                let to: Vec<usize> =
                    window.iter().zip(&dims).map(|(&[size, step, _], &all)| (all - size) / step + 1).collect();
                let init = self.scalar(dtype);
                let fold = self.chance.pick(&[Fold::Add, Fold::Maximum, Fold::Minimum]);
                let array = self.chance.array(dtype, &to);
                self.push(Op::ReduceWindow { fold, window }, vec![from, init], array)
            }
            _ => {
                let mut axes = self.chance.shuffled(dims.len());
                axes.truncate(self.chance.below(dims.len() + 1));
                let kept: Vec<usize> =
                    (0..dims.len()).filter(|axis| !axes.contains(axis)).map(|axis| dims[axis]).collect();
                let init = self.scalar(dtype);
                let fold = self.chance.pick(&[Fold::Add, Fold::Add, Fold::Maximum, Fold::Minimum]);
                let array = self.chance.array(dtype, &kept);
                self.push(Op::Reduce { fold, dims: axes }, vec![from, init], array)
            }
        }
    }
}

/// The bytes of numbers, as elements of that type.
fn bytes(dtype: DType, numbers: &[f64]) -> Vec<u8> {
    let each = |&x: &f64| match dtype {
        DType::F32 => (x as f32).to_le_bytes().to_vec(),
        DType::F64 => x.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(x).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(x).to_le_bytes().to_vec(),
        DType::S32 => (x as i32).to_le_bytes().to_vec(),
        DType::S8 => (x as i8).to_le_bytes().to_vec(),
        other => unreachable!("{}", other.name()),
    };
    numbers.iter().flat_map(each).collect()
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x).into()).collect(),
        DType::F64 => bytes.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect(),
        DType::F16 => bytes.as_chunks().0.iter().map(|&x| half::f16::from_le_bytes(x).to_f64()).collect(),
        DType::BF16 => bytes.as_chunks().0.iter().map(|&x| half::bf16::from_le_bytes(x).to_f64()).collect(),
        DType::S32 => bytes.as_chunks().0.iter().map(|&x| i32::from_le_bytes(x).into()).collect(),
        DType::S8 => bytes.iter().map(|&x| f64::from(x.cast_signed())).collect(),
        other => unreachable!("{}", other.name()),
    }
}

fn client() -> Arc<Client> {
    let options = ClientOptions { worker_count: 2, ..Default::default() };
    Client::new(&options, Arc::new(purlin::host::HostBackend::new())).unwrap()
}

/// Runs a graph on these parameters, each a flat array of bytes.
fn run(client: &Client, graph: &Graph, parameters: &[Vec<f64>], in_place: bool) -> Vec<Vec<f64>> {
    let fusion = Fusion::new(graph, parameters.len(), in_place).unwrap();
    let flat = |size: usize| ArraySpec::new(Shape::new(DType::U8, &[size as i64]).unwrap());
    let mut builder = ProgramBuilder::new("fusion");
    let mut operands = Vec::new();
    let mut arguments = Vec::new();
    let space = client.devices()[0].default_memory_space();
    for (number, values) in parameters.iter().enumerate() {
        let is_it = |value: &&super::graph::Value| matches!(value.op, Op::Parameter(each) if each == number);
        let dtype = graph.values.iter().find(is_it).unwrap().array.shape.dtype();
        let bytes = bytes(dtype, values);
        operands.push(Operand::invariant(builder.parameter(flat(bytes.len()))));
        arguments.push(Buffer::from_slice(&bytes, &[bytes.len() as i64], &space).unwrap());
    }
    for &result in &graph.results {
        operands.push(Operand::write(builder.result(flat(graph.array(result).size_bytes()))));
    }
    if fusion.scratch_bytes() > 0 {
        operands.push(Operand::write(builder.temporary(fusion.scratch_bytes())));
    }
    builder.push(Command::Library { call: Arc::new(fusion), operands });
    let loaded = LoadedExecutable::new(&Executable::new(builder.build().unwrap()), &client.devices()[..1], 1).unwrap();
    let execution = loaded.execute(&arguments, &ExecuteOptions::default()).unwrap();
    execution.done.wait().unwrap();
    let outputs = execution.outputs.iter().zip(&graph.results);
    outputs.map(|(out, &result)| numbers(graph.array(result).shape.dtype(), &out.to_vec::<u8>().unwrap())).collect()
}

/// Numbers for the parameters of a graph.
fn parameters(graph: &Graph, chance: &mut Chance) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    for value in graph.values.iter().filter(|value| matches!(value.op, Op::Parameter(_))) {
        let dtype = value.array.shape.dtype();
        let number = |chance: &mut Chance| {
            let x = chance.below(2001) as f64 / 1000.0 - 1.0;
            if matches!(dtype, DType::S32 | DType::S8) { (x * 9.0).round() } else { rounded(dtype, x) }
        };
        all.push((0..value.array.shape.element_count()).map(|_| number(chance)).collect());
    }
    all
}

/// Compares all results with those of the oracle.
fn compare(what: &str, graph: &Graph, ours: &[Vec<f64>], parameters: &[Vec<f64>]) {
    let exact = evaluate(graph, parameters);
    // A number of bf16 or f16 anywhere rounds what comes after it.
    let is_narrow = graph.values.iter().any(|value| matches!(value.array.shape.dtype(), DType::BF16 | DType::F16));
    for (ours, &result) in ours.iter().zip(&graph.results) {
        let array = graph.array(result);
        let largest = exact[result].iter().fold(1e-3_f64, |most, x| most.max(x.abs()));
        let allowed = match array.shape.dtype() {
            DType::S32 | DType::S8 => 0.0,
            _ if is_narrow => 0.1,
            _ => 1e-4,
        };
        for (at, (a, b)) in ours.iter().zip(&exact[result]).enumerate() {
            let apart = (a - b).abs() / largest;
            assert!(apart <= allowed, "{what}: element {at} of {} is {a}, not {b}\n{graph:?}", array.shape);
        }
    }
}

#[test]
fn random_graphs_are_evaluated_as_their_elements_are() {
    let client = client();
    for seed in 0..400 {
        let chance = Chance(seed);
        let mut maker = Maker { chance, graph: Graph::default(), parameters: 0 };
        let dtype = maker.chance.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::S32, DType::S8]);
        let rank = maker.chance.below(5);
        let mut dims: Vec<usize> = (0..rank).map(|_| 1 + maker.chance.below(8)).collect();
        if let Some(dim) = dims.first_mut().filter(|_| seed % 5 == 0) {
            *dim = 600 / 8_usize.pow(rank as u32 - 1).min(60) + 7;
        }
        let mut value = maker.parameter(dtype, &dims);
        for _ in 0..1 + maker.chance.below(9) {
            value = maker.step(value);
        }
        let Maker { mut chance, mut graph, .. } = maker;
        graph.results = vec![value];
        if seed % 7 == 0 {
            graph.results.push(chance.below(graph.values.len()));
        }
        let in_place = seed % 3 == 0 && !graph.results.iter().any(|&each| is_parameter(&graph, each));
        let parameters = parameters(&graph, &mut chance);
        let ours = run(&client, &graph, &parameters, in_place);
        compare(&format!("seed {seed}"), &graph, &ours, &parameters);
    }
}

/// Whether a value has the bytes of a parameter.
fn is_parameter(graph: &Graph, value: usize) -> bool {
    let value = &graph.values[value];
    match value.op {
        Op::Bitcast => is_parameter(graph, value.operands[0]),
        Op::Parameter(_) => true,
        _ => false,
    }
}

#[test]
fn long_reductions_are_shared_and_accurate() {
    let client = client();
    for (dims, axes) in [
        (vec![300_001], vec![0]),
        (vec![2, 150_000], vec![1]),
        (vec![150_000, 3], vec![0]),
        (vec![700, 600], vec![0]),
        (vec![600, 700], vec![1]),
        (vec![40, 30, 50], vec![0, 2]),
    ] {
        for (fold, dtype) in [(Fold::Add, DType::F32), (Fold::Maximum, DType::F32), (Fold::Add, DType::S32)] {
            let mut graph = Graph::default();
            let order: Vec<i64> = (0..dims.len() as i64).rev().collect();
            let from = graph.push(Op::Parameter(0), Vec::new(), array_in(dtype, &dims, &order)).unwrap();
            let init = graph.push(Op::Parameter(1), Vec::new(), array_in(dtype, &[], &[])).unwrap();
            let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).map(|axis| dims[axis]).collect();
            let order: Vec<i64> = (0..kept.len() as i64).rev().collect();
            let op = Op::Reduce { fold, dims: axes.clone() };
            let sum = graph.push(op, vec![from, init], array_in(dtype, &kept, &order)).unwrap();
            graph.results = vec![sum];
            let parameters = parameters(&graph, &mut Chance(3));
            let ours = run(&client, &graph, &parameters, false);
            compare(&format!("{fold:?} of {dims:?} along {axes:?}"), &graph, &ours, &parameters);
        }
    }
}

#[test]
fn products_take_operands_of_any_layout_and_narrow_elements() {
    let client = client();
    for seed in 0..60 {
        let mut maker = Maker { chance: Chance(seed), graph: Graph::default(), parameters: 0 };
        let (from, to) = maker.chance.pick(&[
            (DType::F32, DType::F32),
            (DType::F64, DType::F64),
            (DType::BF16, DType::F32),
            (DType::BF16, DType::BF16),
            (DType::F16, DType::F16),
            (DType::S8, DType::S32),
            (DType::S8, DType::S8),
        ]);
        let [batch, rows, columns, inner] = [3, 5, 4, 6].map(|most| 1 + maker.chance.below(most));
        let is_batched = maker.chance.below(2) == 0;
        let dims = |of: [usize; 2]| if is_batched { vec![batch, of[0], of[1]] } else { of.to_vec() };
        let mut operands =
            vec![maker.parameter(from, &dims([rows, inner])), maker.parameter(from, &dims([columns, inner]))];
        if maker.chance.below(2) == 0 {
            let array = maker.graph.array(operands[0]).clone();
            operands[0] = maker.push(Op::Unary(Unary::Negate), vec![operands[0]], array);
        }
        let axis = i64::from(is_batched) + 1;
        let batch: Vec<i64> = (0..i64::from(is_batched)).collect();
        let op = Op::Dot(DotDimensionsProto {
            lhs_contracting: vec![axis],
            rhs_contracting: vec![axis],
            lhs_batch: batch.clone(),
            rhs_batch: batch,
        });
        let array = maker.chance.array(to, &dims([rows, columns]));
        let dot = maker.push(op, operands, array.clone());
        let sum = maker.push(Op::Binary(Binary::Add), vec![dot, dot], array);
        let Maker { mut chance, mut graph, .. } = maker;
        graph.results = vec![sum];
        let parameters = parameters(&graph, &mut chance);
        let ours = run(&client, &graph, &parameters, seed % 2 == 0);
        compare(&format!("seed {seed}, {} to {}", from.name(), to.name()), &graph, &ours, &parameters);
    }
}

#[test]
fn a_convolution_feeds_the_operations_behind_it() {
    // Two inputs of one channel under a window of two: x0*k0 + x1*k1, and then its absolute value.
    let mut graph = Graph::default();
    let array = |dims: &[usize]| array_in(DType::BF16, dims, &[2, 1, 0]);
    let input = graph.push(Op::Parameter(0), Vec::new(), array(&[1, 5, 1])).unwrap();
    let kernel = graph.push(Op::Parameter(1), Vec::new(), array(&[2, 1, 1])).unwrap();
    let dimensions = ConvolutionDimensionsProto {
        input_feature: 2,
        input_spatial: vec![1],
        kernel_input_feature: 1,
        kernel_output_feature: 2,
        kernel_spatial: vec![0],
        output_feature: 2,
        output_spatial: vec![1],
        ..Default::default()
    };
    let window =
        WindowDimensionProto { size: 2, stride: 1, window_dilation: 1, base_dilation: 1, ..Default::default() };
    let proto = ConvolutionProto {
        dimensions: Some(dimensions),
        window: Some(WindowProto { dimensions: vec![window] }),
        feature_group_count: 1,
        ..Default::default()
    };
    let out = graph.push(Op::Convolution(Box::new(proto)), vec![input, kernel], array(&[1, 4, 1])).unwrap();
    let size = graph.push(Op::Unary(Unary::Abs), vec![out], array(&[1, 4, 1])).unwrap();
    graph.results = vec![size];
    let parameters = [vec![1.0, 2.0, -4.0, 0.5, 3.0], vec![2.0, -1.0]];
    assert_eq!(run(&client(), &graph, &parameters, false), [[0.0, 8.0, 8.5, 2.0]]);
}

#[test]
fn values_that_read_outside_of_their_operands_are_refused() {
    let mut graph = Graph::default();
    let array = |dims: &[usize]| array_in(DType::F32, dims, &(0..dims.len() as i64).rev().collect::<Vec<_>>());
    let from = graph.push(Op::Parameter(0), Vec::new(), array(&[4, 6])).unwrap();
    let scalar = graph.push(Op::Parameter(1), Vec::new(), array(&[])).unwrap();
    let mut refused =
        |op: Op, operands: &[usize], dims: &[usize]| graph.push(op, operands.to_vec(), array(dims)).is_err();
    assert!(refused(Op::Slice(vec![(1, 1), (0, 1)]), &[from], &[4, 6]));
    assert!(refused(Op::Slice(vec![(0, 2), (0, 1)]), &[from], &[3, 6]));
    assert!(refused(Op::Slice(vec![(usize::MAX, 1), (0, 1)]), &[from], &[4, 6]));
    assert!(refused(Op::Broadcast(vec![0, 2]), &[from], &[4, 6]));
    assert!(refused(Op::Broadcast(vec![0, 0]), &[from], &[4, 6]));
    assert!(refused(Op::Transpose(vec![1, 0]), &[from], &[4, 6]));
    assert!(refused(Op::Pad(vec![(1, 2), (0, 1)]), &[from, scalar], &[7, 6]));
    assert!(refused(Op::Reduce { fold: Fold::Add, dims: vec![2] }, &[from, scalar], &[4, 6]));
    assert!(refused(Op::Reduce { fold: Fold::Add, dims: vec![0] }, &[from, from], &[6]));
    assert!(refused(
        Op::ReduceWindow { fold: Fold::Add, window: vec![[2, 2, 1], [1, 1, 1]] },
        &[from, scalar],
        &[3, 6]
    ));
    assert!(refused(Op::Bitcast, &[from], &[5, 5]));
    assert!(refused(Op::Unary(Unary::Abs), &[from], &[6, 4]));
    assert!(refused(Op::Unary(Unary::Abs), &[9], &[4, 6]));
    assert!(!refused(Op::Slice(vec![(1, 2), (5, 1)]), &[from], &[2, 1]));
}
