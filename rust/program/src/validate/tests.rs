//! The programs that validation refuses, and its messages.

use std::sync::Arc;

use super::*;
use crate::{Branch, Command, Constant, Kernel, LibraryCall, LibraryContext, Operand, OperandBytes, ProgramBuilder};
use purlin_array::dtype::DType;
use purlin_array::shape::Shape;
use purlin_base::StatusCode;

fn bytes(count: i64) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::U8, &[count]).unwrap())
}

fn slice(allocation: u32, offset_bytes: usize, size_bytes: usize) -> Slice {
    Slice { allocation, offset_bytes, size_bytes }
}

fn closure(operands: Vec<Operand>) -> Command {
    Command::Kernel { kernel: Kernel::from_fn("add", |_| Ok(())), workgroups: [1, 1, 1], operands }
}

#[derive(Debug)]
struct Nothing;

impl LibraryCall for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn run(&self, _: &[OperandBytes], _: &LibraryContext<'_>) -> Result<(), Error> {
        Ok(())
    }
}

fn library(operands: Vec<Operand>) -> Command {
    Command::Library { call: Arc::new(Nothing), operands }
}

fn fill(to: Slice) -> Command {
    Command::Fill { pattern: vec![0], to }
}

/// Allocation 0 is parameter 0 of 64 bytes, allocation 1 is result 0 of 64 bytes, allocation 2 is a temporary of 96
/// bytes.
fn builder() -> ProgramBuilder {
    let mut builder = ProgramBuilder::new("p");
    builder.parameter(bytes(64));
    builder.result(bytes(64));
    builder.temporary(96);
    builder
}

#[track_caller]
fn refused(builder: ProgramBuilder, message: &str) {
    let error = builder.build().map(|program| format!("{program:?} was accepted")).unwrap_err();
    assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, message));
}

/// Checks that a program with `command` before the one that writes the result is refused with `why`.
#[track_caller]
fn refuses(command: Command, why: &str) {
    let mut builder = builder();
    builder.push(command).push(fill(slice(1, 0, 64)));
    refused(builder, &format!("the program 'p' cannot run: command 0 {why}"));
}

#[track_caller]
fn accepts(commands: Vec<Command>) {
    let mut builder = builder();
    commands.into_iter().for_each(|command| _ = builder.push(command));
    builder.push(fill(slice(1, 0, 64)));
    builder.build().unwrap();
}

#[test]
fn slices_lie_in_their_allocations() {
    for (to, why) in [
        (slice(2, 64, 64), "bytes [64, 128) do not lie in allocation 2 of 96 bytes"),
        (slice(2, 97, 0), "bytes [97, 97) do not lie in allocation 2 of 96 bytes"),
        (
            slice(2, usize::MAX, 2),
            "bytes [18446744073709551615, 18446744073709551617) do not lie in allocation 2 of 96 bytes",
        ),
        (slice(3, 0, 0), "there is no allocation 3, but 3"),
        (slice(u32::MAX, 0, 0), "there is no allocation 4294967295, but 3"),
    ] {
        refuses(fill(to), &format!("(fill), operand 0: {why}"));
    }
    accepts(vec![fill(slice(2, 96, 0)), fill(slice(2, 0, 96))]);
}

#[test]
fn the_place_is_the_whole_way_to_the_command() {
    let wrong = closure(vec![Operand::read(slice(0, 0, 1)), Operand::write(slice(2, 90, 7))]);
    let body = Sequence::new(vec![fill(slice(2, 0, 1)), wrong]);
    let branch = Sequence::new(vec![Command::Repeat { trip_count: 1, body }]);
    let branches = vec![Sequence::default(), branch];
    let mut builder = builder();
    builder.push(Command::Conditional { branch: Branch::Predicate(slice(0, 0, 1)), branches });
    refused(
        builder,
        "the program 'p' cannot run: command 0.branch1.0.body.1 (kernel 'add'), operand 1: bytes [90, 97) do not lie in \
         allocation 2 of 96 bytes",
    );
}

#[test]
fn what_is_not_of_the_run_is_not_written() {
    refuses(
        fill(slice(0, 0, 1)),
        "(fill), operand 0: writes bytes [0, 1) of allocation 0, which is parameter 0 of 64 bytes",
    );
    let mut builder = builder();
    let constant = builder.constant(&[1, 2]);
    builder.push(library(vec![Operand::read_write(constant)]));
    refused(
        builder,
        "the program 'p' cannot run: command 0 (library 'nothing'), operand 0: writes bytes [0, 2) of allocation 3, which \
         is constant of 2 bytes",
    );
}

#[test]
fn what_is_read_was_written_on_every_path() {
    let copy = |from| Command::Copy { from, to: slice(1, 0, 64) };
    refuses(
        copy(slice(2, 0, 64)),
        "(copy), operand 0: reads bytes [0, 64) of allocation 2, of which [0, 64) may not have been written",
    );
    let then = |command: Command, why: &str| {
        let mut builder = builder();
        builder.push(command).push(copy(slice(2, 0, 64)));
        match builder.build() {
            Ok(_) => assert_eq!(why, ""),
            Err(error) => assert_eq!(
                error.message(),
                format!(
                    "the program 'p' cannot run: command 1 (copy), operand 0: reads bytes [0, 64) of allocation 2, of which \
                     {why} may not have been written"
                )
            ),
        }
    };
    let part = || Sequence::new(vec![fill(slice(2, 0, 32))]);
    let all = || Sequence::new(vec![fill(slice(2, 0, 64))]);
    then(fill(slice(2, 0, 32)), "[32, 64)");
    then(Command::Call(all()), "");
    then(Command::Repeat { trip_count: 1, body: all() }, "");
    then(Command::Repeat { trip_count: 0, body: all() }, "[0, 64)");
    let branch = Branch::Predicate(slice(0, 0, 1));
    then(Command::Conditional { branch, branches: vec![all(), part()] }, "[32, 64)");
    then(Command::Conditional { branch, branches: vec![all(), all()] }, "");
    let predicate = slice(0, 0, 1);
    then(Command::While { condition: all(), predicate, body: Sequence::default() }, "");
    then(Command::While { condition: part(), predicate, body: all() }, "[32, 64)");
}

#[test]
fn a_condition_writes_its_predicate_before_it_is_read() {
    refuses(
        Command::While { condition: Sequence::default(), predicate: slice(2, 0, 1), body: Sequence::default() },
        "(while), operand 0: reads bytes [0, 1) of allocation 2, of which [0, 1) may not have been written",
    );
}

#[test]
fn operands_of_a_command_do_not_write_the_same_bytes() {
    let (a, b) = (slice(2, 0, 64), slice(2, 63, 2));
    refuses(
        library(vec![Operand::write(b), Operand::read(slice(0, 0, 8)), Operand::write(a)]),
        "(library 'nothing'), operands 2 and 0: both write, bytes [0, 64) of allocation 2 and bytes [63, 65) of allocation 2",
    );
    accepts(vec![library(vec![Operand::write(a), Operand::write(slice(2, 64, 32)), Operand::write(slice(2, 64, 0))])]);
}

#[test]
fn what_is_invariant_is_not_written() {
    let written = [Operand::write(slice(2, 0, 8)), Operand::write(slice(2, 8, 24))];
    for (read, why) in [
        (Operand::invariant(slice(2, 4, 8)), "is invariant, but operand 1 writes bytes [0, 8) of allocation 2"),
        (Operand::invariant(slice(2, 30, 2)), "is invariant, but operand 2 writes bytes [8, 32) of allocation 2"),
    ] {
        let mut builder = builder();
        builder.push(fill(slice(2, 0, 96))).push(library([&[read][..], &written].concat()));
        let what = read.slice;
        refused(
            builder,
            &format!("the program 'p' cannot run: command 1 (library 'nothing'), operand 0: {what} {why}"),
        );
    }
    let fine = [&[Operand::invariant(slice(2, 32, 8)), Operand::read(slice(2, 0, 8))][..], &written].concat();
    accepts(vec![fill(slice(2, 0, 96)), library(fine)]);
}

#[test]
fn a_closure_reads_nothing_that_it_writes() {
    let mut builder = builder();
    builder.push(fill(slice(2, 0, 96)));
    builder.push(closure(vec![Operand::read(slice(2, 0, 8)), Operand::read_write(slice(2, 0, 8))]));
    refused(
        builder,
        "the program 'p' cannot run: command 1 (kernel 'add'), operand 0: bytes [0, 8) of allocation 2 is read by a \
         closure, but operand 1 writes bytes [0, 8) of allocation 2",
    );
}

#[test]
fn thread_local_memory_is_for_native_kernels() {
    let mut builder = builder();
    builder.allocate(Allocation { size_bytes: 8, kind: AllocationKind::ThreadLocal });
    builder.push(fill(slice(3, 0, 8)));
    refused(
        builder,
        "the program 'p' cannot run: command 0 (fill), operand 0: allocation 3 is thread-local memory, which only native \
         kernels may name",
    );
}

#[test]
fn sizes_of_commands_make_sense() {
    refuses(Command::Copy { from: slice(0, 0, 8), to: slice(2, 0, 9) }, "(copy): 8 bytes cannot be copied to 9");
    refuses(Command::Fill { pattern: vec![], to: slice(2, 0, 9) }, "(fill): 9 bytes are no multiple of a pattern of 0");
    refuses(
        Command::Fill { pattern: vec![1, 2], to: slice(2, 0, 9) },
        "(fill): 9 bytes are no multiple of a pattern of 2",
    );
    refuses(
        Command::ReplicaId { to: slice(2, 0, 8) },
        "(replica-id), operand 0: a number has 4 bytes, and bytes [0, 8) of allocation 2 are 8",
    );
    let branches = |count| (0..count).map(|_| Sequence::default()).collect();
    let predicate = Branch::Predicate(slice(0, 0, 1));
    refuses(
        Command::Conditional { branch: predicate, branches: branches(3) },
        "(conditional): a predicate chooses among 2 branches, not 3",
    );
    refuses(
        Command::Conditional { branch: Branch::Index(slice(0, 0, 4)), branches: branches(0) },
        "(conditional): an index chooses among 1 branch or more, not 0",
    );
    refuses(
        Command::Conditional { branch: Branch::Index(slice(0, 0, 1)), branches: branches(1) },
        "(conditional), operand 0: an index has 4 bytes, and bytes [0, 1) of allocation 0 are 1",
    );
    let kernel = Kernel::from_fn("k", |_| Ok(()));
    refuses(
        Command::Kernel { kernel, workgroups: [u64::MAX, 2, 1], operands: vec![] },
        "(kernel 'k'): a grid of 18446744073709551615 x 2 x 1 workgroups has more than a u64 counts",
    );
}

#[test]
fn sequences_nest_so_deep_and_no_deeper() {
    let nested =
        |depth: usize| (1..depth).fold(Sequence::default(), |inner, _| Sequence::new(vec![Command::Call(inner)]));
    // The program's own sequence is one level more.
    accepts(vec![Command::Call(nested(MOST_NESTED - 1))]);
    let mut builder = builder();
    builder.push(Command::Call(nested(MOST_NESTED)));
    refused(builder, "the program 'p' cannot run: sequences stand 65 deep inside one another; 64 is the most");
}

#[test]
fn results_are_written() {
    let mut builder = builder();
    builder.push(fill(slice(1, 0, 60)));
    refused(
        builder,
        "the program 'p' cannot run: result 0: not every path writes bytes [60, 64) of allocation 1, which is result 0 of 64 \
         bytes",
    );
}

/// A program of one parameter and one result of 64 bytes each, with these allocations, and aliases.
#[track_caller]
fn refuses_allocations(allocations: &[(usize, AllocationKind)], aliases: &[(usize, usize)], why: &str) {
    let aliases = aliases.iter().map(|&(parameter, result)| Alias { parameter, result }).collect();
    let signature = ProgramSignature { parameters: vec![bytes(64)], results: vec![bytes(64)], aliases };
    let mut builder = ProgramBuilder::with_signature("p", signature);
    for (size_bytes, kind) in allocations {
        builder.allocate(Allocation { size_bytes: *size_bytes, kind: kind.clone() });
    }
    refused(builder, &format!("the program 'p' cannot run: {why}"));
}

#[test]
fn allocations_are_what_the_signature_says() {
    use AllocationKind::{Output, Parameter};
    let output = (64, Output { number: 0 });
    let parameter = |number, result| Parameter { number, result };
    refuses_allocations(&[], &[], "result 0 has no allocation");
    refuses_allocations(
        &[(64, Output { number: 1 })],
        &[],
        "allocation 0 is result 1 of 64 bytes, but of results there are 1",
    );
    refuses_allocations(
        &[output.clone(), output.clone()],
        &[],
        "allocation 1 is result 0 of 64 bytes, but result 0 has allocation 0 already",
    );
    refuses_allocations(
        &[(64, parameter(0, None)), (64, parameter(0, None))],
        &[],
        "allocation 1 is parameter 0 of 64 bytes, but parameter 0 has allocation 0 already",
    );
    refuses_allocations(
        &[(63, Output { number: 0 })],
        &[],
        "allocation 0 is result 0 of 63 bytes, but result 0 is u8[64] of 64 bytes",
    );
    refuses_allocations(
        &[output.clone(), (2, AllocationKind::Constant(Constant::new(&[1])))],
        &[],
        "allocation 1 is constant of 2 bytes, but the constant has 1 bytes",
    );
    let both = (64, parameter(0, Some(0)));
    refuses_allocations(
        &[output, both.clone()],
        &[(0, 0)],
        "allocation 1 is parameter 0, which becomes result 0, of 64 bytes, but result 0 has allocation 0 already",
    );
}

#[test]
fn aliases_are_named_on_both_sides() {
    use AllocationKind::{Output, Parameter};
    let both = [(64, Parameter { number: 0, result: Some(0) })];
    let neither = [(64, Parameter { number: 0, result: None }), (64, Output { number: 0 })];
    refuses_allocations(
        &both,
        &[],
        "allocation 0 is parameter 0, which becomes result 0, of 64 bytes but the signature makes parameter 0 result none",
    );
    refuses_allocations(&neither, &[(0, 0)], "the signature makes parameter 0 result 0, but no allocation is both");
    refuses_allocations(&both, &[(0, 0), (0, 0)], "parameter 0 shall become result 0 and result 0");
    refuses_allocations(&both, &[(1, 0)], "parameter 1 shall become result 0, but of parameters there are 1");
}

#[test]
fn temporaries_that_no_address_counts_are_refused() {
    let mut builder = builder();
    builder.push(fill(slice(1, 0, 64)));
    builder.temporary(usize::MAX - 200);
    refused(
        builder,
        "the program 'p' cannot run: temporaries of 128 and 18446744073709551415 bytes are more than an address counts",
    );
}

#[test]
fn a_program_has_code_for_all_of_its_kernels() {
    let body = || {
        let kernel = Kernel::unbound("add");
        Command::Kernel { kernel, workgroups: [1, 1, 1], operands: vec![Operand::write(slice(1, 0, 64))] }
    };
    let program = |operand: Option<Operand>| {
        let mut builder = builder();
        builder.push(Command::Repeat { trip_count: 1, body: Sequence::new(vec![fill(slice(2, 0, 1)), body()]) });
        if let Some(operand) = operand {
            builder.push(library(vec![operand]));
        }
        builder
    };
    let why = "the program 'p' cannot run: command 0.body.1 (kernel 'add') has no code";
    refused(program(None), why);
    let unbound = program(None).build_unbound().unwrap();
    assert_eq!(unbound.bind(|_| Some(Kernel::unbound("sub"))).unwrap_err().code(), StatusCode::InvalidArgument);
    let error = program(None).build_unbound().unwrap().bind(|_| Some(Kernel::from_fn("sub", |_| Ok(())))).unwrap_err();
    assert!(error.message().ends_with("(kernel 'sub') is bound to a kernel that is not native"), "{error}");
    let error = program(Some(Operand::read(slice(2, 1, 1)))).build_unbound().unwrap_err();
    assert!(error.message().contains("may not have been written"), "validated before it has code: {error}");
}
