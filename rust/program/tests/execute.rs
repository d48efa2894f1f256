//! Runs: their outputs, their donations, and the calls that are refused.

#![allow(unsafe_code, reason = "memory is imported by address")]

mod fixture;

use std::sync::Arc;

use fixture::*;
use purlin_array::{DType, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{AllocOptions, Buffer, Mutability, RawBuffer};
use purlin_program::{
    ArraySpec, Branch, Command, ExecuteOptions, Execution, Kernel, LibraryCall, LibraryContext, Operand, OperandBytes,
    ProgramBuilder, Sequence, Slice,
};

fn once(execution: Execution) -> Vec<u8> {
    let output = execution.outputs[0].to_vec().unwrap();
    execution.done.wait().unwrap();
    output
}

#[test]
fn a_kernel_reads_arguments_and_writes_results() {
    on_each(|client| {
        for count in [0, 1, 100, 1 << 20] {
            let loaded = load(client, add_one(count));
            let argument = buffer(client, &vec![7; count]);
            assert_eq!(once(loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap()), vec![8; count]);
            assert_eq!(argument.to_vec::<u8>().unwrap(), vec![7; count], "it stays");
        }
    });
}

#[test]
fn runs_chain_by_their_buffers() {
    on_each(|client| {
        for program in [add_one(1000), increment(1000)] {
            let loaded = load(client, program);
            let mut value = buffer(client, &[0; 1000]);
            for _ in 0..100 {
                let mut outputs = loaded.execute(&[value], &ExecuteOptions::default()).unwrap().outputs.into_iter();
                value = outputs.next().unwrap();
            }
            assert_eq!(value.to_vec::<u8>().unwrap(), [100; 1000]);
        }
    });
}

/// The program counts down from its argument in a loop, and doubles a number in it. A conditional then chooses by the
/// rest.
#[test]
fn loops_and_branches_do_as_their_bytes_say() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("loops");
        let counter = builder.donated_parameter(bytes(1));
        let index = builder.parameter(ArraySpec::new(Shape::new(DType::S32, &[]).unwrap()));
        let [sum, chosen] = [(); 2].map(|()| builder.result(bytes(1)));
        let predicate = builder.temporary(1);
        builder.push(Command::Fill { pattern: vec![1], to: sum });
        let twice = || {
            let double = |call: purlin_program::KernelCall<'_, '_>| {
                call.writes[0][0] *= 2;
                Ok(())
            };
            kernel(Kernel::from_fn("double", double), vec![Operand::read_write(sum)])
        };
        builder.push(Command::While {
            condition: Sequence::new(vec![Command::Copy { from: counter, to: predicate }]),
            predicate,
            body: Sequence::new(vec![twice(), kernel(add(255), vec![Operand::read_write(counter)])]),
        });
        let set = |byte| Sequence::new(vec![Command::Fill { pattern: vec![byte], to: chosen }]);
        builder.push(Command::Conditional { branch: Branch::Index(index), branches: vec![set(10), set(11), set(12)] });
        builder.push(Command::Repeat { trip_count: 2, body: Sequence::new(vec![twice()]) });
        let loaded = load(client, builder.build().unwrap());
        for (number, expected) in [(0, 10), (1, 11), (2, 12), (3, 12), (-1, 12), (i32::MIN, 12)] {
            let index = Buffer::from_slice(&[number], &[], &space(client)).unwrap();
            let execution = loaded.execute(&[buffer(client, &[3]), index], &ExecuteOptions::default()).unwrap();
            let outputs: Vec<Vec<u8>> = execution.outputs.iter().map(|output| output.to_vec().unwrap()).collect();
            assert_eq!(outputs, [[0], [32], [expected]]);
        }
    });
}

#[test]
fn workgroups_are_called_each_once_the_fastest_first() {
    let mut builder = ProgramBuilder::new("grid");
    let to = builder.result(bytes(24));
    let number = Kernel::from_fn("number", |call| {
        let [x, y, z] = call.workgroup;
        let at = x + call.workgroups[0] * (y + call.workgroups[1] * z);
        call.writes[0][at as usize] = (x + 10 * y + 100 * z) as u8;
        Ok(())
    });
    builder.push(Command::Fill { pattern: vec![0], to });
    builder.push(Command::Kernel { kernel: number, workgroups: [2, 3, 2], operands: vec![Operand::read_write(to)] });
    let never = Kernel::from_fn("never", |_| panic!("a grid without workgroups"));
    builder.push(Command::Kernel { kernel: never, workgroups: [5, 0, 1], operands: vec![] });
    let client = host();
    let output =
        once(load(&client, builder.build().unwrap()).execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap());
    assert_eq!(output[..12], [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]);
}

#[test]
fn donated_memory_becomes_the_results() {
    on_each(|client| {
        let loaded = load(client, increment(64));
        let argument = buffer(client, &[1; 64]);
        let address = argument.raw_alias().unwrap().device_pointer().unwrap();
        let execution = loaded.execute(&[&argument], &ExecuteOptions { label: c"step".into(), ..Default::default() });
        let output = execution.unwrap().outputs[0].clone();
        assert_eq!(output.to_vec::<u8>().unwrap(), [2; 64]);
        assert_eq!(output.raw_alias().unwrap().device_pointer().unwrap(), address);
        let error = argument.to_vec::<u8>().unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["deleted or donated", "donated by 'step'", "execute.rs"]);
        let error = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap_err();
        assert_error(
            &error,
            StatusCode::InvalidArgument,
            &["'increment' was not run: argument 0", "donated by 'step'"],
        );
    });
}

#[test]
fn a_run_says_whether_it_began_behind_other_work() {
    let client = host();
    let loaded = load(&client, increment(64));
    let run = |argument: &Buffer, options: &ExecuteOptions<'_>| loaded.execute(&[argument], options).unwrap();
    let argument = buffer(&client, &[1; 64]);
    let keeps = ExecuteOptions { non_donatable_input_indices: &[0], caller_waits: true, ..Default::default() };
    assert!(!run(&argument, &keeps).is_behind_others);
    // A run that waits reads the argument, so the one that is given its memory waits, too.
    let gate = EventPromise::new(c"gate");
    let after = [gate.event()];
    let reader = run(&argument, &ExecuteOptions { dependencies: &after, ..keeps.clone() });
    assert!(reader.is_behind_others);
    let taker = run(&argument, &ExecuteOptions { caller_waits: true, ..Default::default() });
    assert!(taker.is_behind_others && !taker.done.is_ready());
    gate.set_ready();
    assert_eq!((once(reader), once(taker)), (vec![2; 64], vec![2; 64]));
    // Memory that is not there yet, of an array that has failed already.
    let (space, shape) = (argument.memory_space(), argument.shape().clone());
    let (later, promise) = Buffer::channel(&shape, None, &space).unwrap();
    let failed = later.donate_after(&purlin_async::Event::from_error(Error::aborted("no"))).unwrap();
    assert!(run(&failed, &keeps).is_behind_others);
    promise.fail(Error::data_loss("never"));
}

#[test]
fn a_donation_that_is_forbidden_is_a_copy() {
    on_each(|client| {
        let loaded = load(client, increment(64));
        let argument = buffer(client, &[1; 64]);
        let options = ExecuteOptions { non_donatable_input_indices: &[0], ..Default::default() };
        assert_eq!(once(loaded.execute(&[&argument], &options).unwrap()), [2; 64]);
        assert_eq!(argument.to_vec::<u8>().unwrap(), [1; 64]);
        let options = ExecuteOptions { non_donatable_input_indices: &[1], ..Default::default() };
        let error = loaded.execute(&[&argument], &options).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["argument 1 shall not be donated, and there are 1"]);
    });
}

#[test]
fn what_others_refer_to_is_copied() {
    on_each(|client| {
        let loaded = load(client, increment(64));
        let argument = buffer(client, &[1; 64]);
        let reference = argument.external_reference().unwrap();
        assert_eq!(once(loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap()), [2; 64]);
        drop(reference);
        assert_eq!(argument.to_vec::<u8>().unwrap(), [1; 64]);
        assert_eq!(once(loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap()), [2; 64]);
        assert!(argument.is_deleted());
    });
}

#[test]
fn an_argument_that_nothing_writes_comes_out() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("pass");
        builder.donated_parameter(bytes(3));
        let loaded = load(client, builder.build().unwrap());
        for kept in [&[][..], &[0]] {
            let options = ExecuteOptions { non_donatable_input_indices: kept, ..Default::default() };
            let argument = buffer(client, &[1, 2, 3]);
            assert_eq!(once(loaded.execute(&[&argument], &options).unwrap()), [1, 2, 3]);
            assert_eq!(argument.is_deleted(), kept.is_empty());
        }
    });
}

#[test]
fn results_come_into_memory_that_is_given() {
    on_each(|client| {
        let loaded = load(client, add_one(64));
        let room = buffer(client, &[0; 64]);
        let address = room.raw_alias().unwrap().device_pointer().unwrap();
        let given = [Some(room.clone())];
        let options = ExecuteOptions { results: &given, ..Default::default() };
        let argument = buffer(client, &[1; 64]);
        let execution = loaded.execute(&[&argument], &options).unwrap();
        assert_eq!(execution.outputs[0].raw_alias().unwrap().device_pointer().unwrap(), address);
        assert_eq!(once(execution), [2; 64]);
        assert!(room.is_deleted());

        let own = [Some(argument.clone())];
        let options = ExecuteOptions { results: &own, ..Default::default() };
        let error = loaded.execute(&[&argument], &options).unwrap_err();
        let parts = ["previously donated in the same call", "argument 0 and memory for result 0"];
        assert_error(&error, StatusCode::InvalidArgument, &parts);
        assert!(!argument.is_deleted());

        let short = [Some(buffer(client, &[0; 63]))];
        let options = ExecuteOptions { results: &short, ..Default::default() };
        let error = loaded.execute(&[&argument], &options).unwrap_err();
        assert_error(
            &error,
            StatusCode::InvalidArgument,
            &["memory for result 0 is u8[63], and the program takes u8[64]"],
        );

        let error = load(client, increment(64)).execute(
            &[&argument],
            &ExecuteOptions { results: &[Some(buffer(client, &[0; 64]))], ..Default::default() },
        );
        assert_error(
            &error.unwrap_err(),
            StatusCode::InvalidArgument,
            &["memory for result 0 is given, and it has that"],
        );
        assert!(!argument.is_deleted(), "given back");
    });
}

#[test]
fn the_same_buffer_is_not_donated_twice_or_donated_and_read() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("two");
        let (x, y) = (builder.donated_parameter(bytes(8)), builder.donated_parameter(bytes(8)));
        let z = builder.parameter(bytes(8));
        builder.push(Command::Copy { from: z, to: x }).push(Command::Copy { from: x, to: y });
        let loaded = load(client, builder.build().unwrap());
        let (a, b) = (buffer(client, &[1; 8]), buffer(client, &[2; 8]));
        for (arguments, kept, part) in [
            ([&a, &a, &b], &[][..], "donate the same buffer twice in Execute()"),
            ([&a, &b, &a], &[], "previously donated"),
            ([&a, &b, &b], &[], "argument 1 and argument 2"),
            ([&a, &a, &b], &[0], "previously donated"),
        ] {
            let options = ExecuteOptions { non_donatable_input_indices: kept, ..Default::default() };
            let error = loaded.execute(&arguments, &options).unwrap_err();
            assert_error(&error, StatusCode::InvalidArgument, &[part, "the same Buffer(u8[8] in"]);
            assert!(!a.is_deleted() && !b.is_deleted());
            assert_eq!((a.hold_counts(), b.hold_counts()), ((0, 0), (0, 0)));
        }
        let options = ExecuteOptions { non_donatable_input_indices: &[0, 1], ..Default::default() };
        let execution = loaded.execute(&[&a, &a, &a], &options).unwrap();
        assert_eq!(execution.outputs[1].to_vec::<u8>().unwrap(), [1; 8]);
    });
}

#[test]
fn an_argument_that_is_not_what_the_program_takes_is_named() {
    let (client, other) = (host(), host());
    let matrix = Shape::new(DType::F32, &[2, 3]).unwrap();
    let columns = Layout::new(&[0, 1]).unwrap();
    let mut builder = ProgramBuilder::new("p");
    builder.parameter(bytes(8));
    builder.parameter(ArraySpec::new(matrix.clone()).with_layout(columns).unwrap());
    builder.parameter(bytes(8).in_memory("pinned_host"));
    let loaded = load(&client, builder.build().unwrap());
    let right = || {
        let pinned = device(&client).memory_space("pinned_host").unwrap();
        let columns = Layout::new(&[0, 1]).unwrap();
        let matrix = Buffer::uninitialized(&matrix, Some(&columns), &space(&client), &AllocOptions::default()).unwrap();
        vec![buffer(&client, &[0; 8]), matrix, Buffer::from_slice(&[0_u8; 8], &[8], &pinned).unwrap()]
    };
    assert!(loaded.execute(&right(), &ExecuteOptions::default()).is_ok());
    let uninitialized = |shape| Buffer::uninitialized(&shape, None, &space(&client), &AllocOptions::default()).unwrap();
    let elsewhere = Buffer::from_slice(&[0_u8; 8], &[8], &client.devices()[1].default_memory_space()).unwrap();
    for (number, wrong, message) in [
        (0, buffer(&client, &[0; 9]), "argument 0 is u8[9], and the program takes u8[8]"),
        (0, uninitialized(Shape::new(DType::S8, &[8]).unwrap()), "argument 0 is s8[8], and the program takes u8[8]"),
        (
            1,
            uninitialized(matrix.clone()),
            "argument 1 is f32[2,3] in layout {1,0}, and the program takes layout {0,1}",
        ),
        (
            0,
            buffer(&other, &[0; 8]),
            "argument 0, Buffer(u8[8] in host:0/device), is of another client than host:0/device, where the program takes it",
        ),
        (0, elsewhere, "argument 0 is in host:1/device, and the program takes it in host:0/device"),
        (2, buffer(&client, &[0; 8]), "argument 2 is in host:0/device, and the program takes it in host:0/pinned_host"),
    ] {
        let mut arguments = right();
        arguments[number] = wrong;
        let error = loaded.execute(&arguments, &ExecuteOptions::default()).unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (StatusCode::InvalidArgument, &*format!("'p' was not run: {message}"))
        );
    }
    let error = loaded.execute(&right()[..2], &ExecuteOptions::default()).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["2 arguments are given, and the program takes 3"]);
}

#[test]
fn an_argument_that_fails_later_fails_the_outputs_and_nothing_runs() {
    on_each(|client| {
        let loaded = load(client, increment(8));
        let (argument, promise) = Buffer::channel(bytes(8).shape(), None, &space(client)).unwrap();
        let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
        assert!(!execution.done.is_ready());
        promise.fail(Error::not_found("the weights"));
        for error in [execution.done.wait().unwrap_err(), execution.outputs[0].to_vec::<u8>().unwrap_err()] {
            assert_error(&error, StatusCode::NotFound, &["the weights"]);
        }
        assert!(argument.is_deleted(), "it was donated");
    });
}

#[test]
fn an_argument_without_memory_fails_the_run_at_once() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("two");
        let (x, y) = (builder.donated_parameter(bytes(8)), builder.parameter(bytes(8)));
        let z = builder.result(bytes(8));
        builder.push(Command::Copy { from: y, to: z }).push(Command::Copy { from: z, to: x });
        let loaded = load(client, builder.build().unwrap());
        let (pending, promise) = Buffer::channel(bytes(8).shape(), None, &space(client)).unwrap();
        let failed = Buffer::error(Error::not_found("the weights"), bytes(8).shape(), &space(client));
        let execution = loaded.execute(&[&pending, &failed], &ExecuteOptions::default()).unwrap();
        assert!(execution.done.is_ready(), "it does not wait for the other argument");
        let check = |outputs: &[Buffer]| {
            for output in outputs {
                assert_error(&output.to_vec::<u8>().unwrap_err(), StatusCode::NotFound, &["the weights"]);
            }
        };
        check(execution.outputs.as_slice());
        let again = loaded.execute(execution.outputs.as_slice(), &ExecuteOptions::default()).unwrap();
        check(again.outputs.as_slice());
        assert!(pending.is_deleted());
        promise.fail(Error::aborted("nobody waits for it"));
    });
}

#[test]
fn a_run_waits_for_its_arguments_and_for_what_it_is_told() {
    on_each(|client| {
        let loaded = load(client, add_one(8));
        let (argument, promise) = Buffer::channel(bytes(8).shape(), None, &space(client)).unwrap();
        let gate = EventPromise::new(c"gate");
        let after = [gate.event()];
        let options = ExecuteOptions { dependencies: &after, ..Default::default() };
        let execution = loaded.execute(&[&argument], &options).unwrap();
        gate.set_ready();
        assert!(!execution.done.is_ready());
        promise.fulfil(&buffer(client, &[1; 8])).map_err(|(error, _)| error).unwrap();
        assert_eq!(once(execution), [2; 8]);
        let failed = [purlin_async::Event::from_error(Error::aborted("the gate"))];
        let options = ExecuteOptions { dependencies: &failed, ..Default::default() };
        let execution = loaded.execute(&[buffer(client, &[1; 8])], &options).unwrap();
        assert_error(&execution.outputs[0].to_vec::<u8>().unwrap_err(), StatusCode::Aborted, &["the gate"]);
    });
}

#[test]
fn donated_memory_is_written_when_its_readers_are_done() {
    on_each(|client| {
        let loaded = load(client, increment(8));
        let (argument, reader) = (buffer(client, &[1; 8]), EventPromise::new(c"reader"));
        argument.usage_hold().unwrap().release_after(reader.event());
        let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
        assert!(!execution.done.is_ready());
        reader.set_error(Error::aborted("that read's concern alone"));
        assert_eq!(once(execution), [2; 8]);
    });
}

#[test]
fn a_kernel_that_fails_names_the_place_and_fails_the_outputs() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("bad");
        let x = builder.donated_parameter(bytes(8));
        let fails = Kernel::from_fn("nan", |_| Err(Error::data_loss("not a number")));
        let body = Sequence::new(vec![kernel(add(1), vec![Operand::read_write(x)]), kernel(fails, vec![])]);
        builder.push(Command::Repeat { trip_count: 2, body });
        let loaded = load(client, builder.build().unwrap());
        let execution = loaded.execute(&[buffer(client, &[1; 8])], &ExecuteOptions::default()).unwrap();
        let message = "command 0.body.1 (kernel 'nan') of 'bad': not a number";
        for error in [execution.done.wait().unwrap_err(), execution.outputs[0].ready_event().wait().unwrap_err()] {
            assert_eq!((error.code(), error.message()), (StatusCode::DataLoss, message));
        }
    });
}

#[test]
fn a_kernel_that_panics_fails_the_run() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("bad");
        builder.push(kernel(Kernel::from_fn("panics", |_| panic!("a bug of its own")), vec![]));
        let loaded = load(client, builder.build().unwrap());
        let execution = loaded.execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap();
        let error = execution.done.wait().unwrap_err();
        assert_error(&error, StatusCode::Internal, &["the program 'bad' panicked: a bug of its own"]);
    });
}

/// Adds the number in its context.
#[derive(Debug)]
struct AddContext;

impl LibraryCall for AddContext {
    fn name(&self) -> &str {
        "add-context"
    }

    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        let by = context.user::<u8>().ok_or_else(|| Error::failed_precondition("no number is given"))?;
        // SAFETY: the one operand is read and written.
        let bytes = unsafe { std::slice::from_raw_parts_mut(operands[0].address, operands[0].size_bytes) };
        let cells: &[std::cell::Cell<u8>] = std::cell::Cell::from_mut(bytes).as_slice_of_cells();
        let address = cells.as_ptr().addr();
        context.parallel_for(cells.len(), 16, &|range| {
            for at in range {
                let byte = std::ptr::with_exposed_provenance_mut::<u8>(address + at);
                // SAFETY: ranges are disjoint parts of the operand.
                unsafe { *byte = (*byte).wrapping_add(*by) };
            }
            Ok(())
        })
    }
}

#[test]
fn library_calls_see_the_context_of_their_run() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("library");
        let x = builder.donated_parameter(bytes(100));
        builder.push(Command::Library { call: Arc::new(AddContext), operands: vec![Operand::read_write(x)] });
        let loaded = load(client, builder.build().unwrap());
        let options = ExecuteOptions { context: Some(Arc::new(5_u8)), ..Default::default() };
        assert_eq!(once(loaded.execute(&[buffer(client, &[1; 100])], &options).unwrap()), [6; 100]);
        let error = loaded.execute(&[buffer(client, &[1; 100])], &ExecuteOptions::default()).unwrap().done.wait();
        assert_error(&error.unwrap_err(), StatusCode::FailedPrecondition, &["(library 'add-context')", "no number"]);
    });
}

/// A kernel that checks the alignment of its operands.
fn aligned(name: &'static str) -> Kernel {
    Kernel::from_fn(name, |call| {
        let reads = call.reads.iter().map(|bytes| bytes.as_ptr());
        let mut all = reads.chain(call.writes.iter().map(|bytes| bytes.as_ptr()));
        let right = all.all(|address| address.addr().is_multiple_of(64));
        call.writes[0][0] += u8::from(right);
        Ok(())
    })
}

#[test]
fn memory_that_is_not_aligned_is_copied() {
    let client = host();
    let mut builder = ProgramBuilder::new("aligned");
    let (x, y) = (builder.donated_parameter(bytes(100)), builder.parameter(bytes(100)));
    let z = builder.result(bytes(100));
    builder.push(Command::Copy { from: y, to: z });
    builder.push(kernel(aligned("x"), vec![Operand::read_write(x), Operand::read(y)]));
    builder.push(kernel(aligned("z"), vec![Operand::read_write(z)]));
    let loaded = load(&client, builder.build().unwrap());
    let imported = |fill: u8, mutability| {
        let bytes: &'static mut [u64] = vec![u64::from_ne_bytes([fill; 8]); 64].leak();
        let start = bytes.as_mut_ptr().cast::<u8>();
        // An address that is a multiple of 16, and not of 64.
        let start = start.wrapping_add(start.align_offset(64) + 16);
        // SAFETY: the bytes are never freed, and no other code uses them.
        let memory = unsafe { RawBuffer::import(&space(&client), start, 100, mutability, None) }.unwrap();
        Buffer::from_raw(memory, bytes_shape(), None, &purlin_async::Event::ready()).unwrap()
    };
    for mutability in [Mutability::Mutable, Mutability::Immutable] {
        let arguments = [imported(1, mutability), imported(2, Mutability::Immutable)];
        let given = [None, Some(imported(9, Mutability::Mutable))];
        let options = ExecuteOptions { results: &given, ..Default::default() };
        let execution = loaded.execute(&arguments, &options).unwrap();
        let outputs: Vec<Vec<u8>> = execution.outputs.iter().map(|output| output.to_vec().unwrap()).collect();
        assert_eq!((outputs[0][..2].to_vec(), outputs[1][..2].to_vec()), (vec![2, 1], vec![3, 2]));
        assert_eq!(arguments[0].is_deleted(), mutability == Mutability::Mutable);
    }
    let given = [None, Some(imported(9, Mutability::Immutable))];
    let options = ExecuteOptions { results: &given, ..Default::default() };
    let arguments = [imported(1, Mutability::Mutable), imported(2, Mutability::Mutable)];
    let error = loaded.execute(&arguments, &options).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["memory for result 1", "imported read-only"]);
    assert!(!arguments[0].is_deleted());
}

fn bytes_shape() -> &'static Shape {
    Box::leak(Box::new(Shape::new(DType::U8, &[100]).unwrap()))
}

#[test]
fn constants_and_temporaries_are_where_commands_expect_them() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("constants");
        let y = builder.result(bytes(6));
        let (constant, temporary) = (builder.constant(&[1, 2, 3]), builder.temporary(3));
        let half = |offset_bytes| Slice { offset_bytes, size_bytes: 3, ..y };
        builder.push(add_to(constant, temporary, 10));
        builder.push(Command::Copy { from: temporary, to: half(3) });
        builder.push(Command::Copy { from: constant, to: half(0) });
        let loaded = load(client, builder.build().unwrap());
        for _ in 0..2 {
            let execution = loaded.execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap();
            assert_eq!(once(execution), [1, 2, 3, 11, 12, 13]);
        }
    });
}
