//! Collectives: devices of one launch exchange arrays; none waits for ever for one that cannot take part.

#![allow(unsafe_code, reason = "a library call accesses its operands by address")]

mod fixture;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fixture::{assert_error, bytes};
use purlin_array::{DType, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, Client, ClientOptions};
use purlin_host::HostBackend;
use purlin_program::{
    ArraySpec, Branch, Collective, CollectiveArray, CollectiveEngine, CollectiveKind, CollectiveLaunch, Command,
    Executable, ExecuteOptions, Execution, GroupMode, InProcess, Kernel, LoadedExecutable, Operand, Program,
    ProgramBuilder, Reduction, Sequence, Slice,
};
use purlin_sim::{SimBackend, SimOptions};

/// A client with fewer threads than devices.
fn client() -> Arc<Client> {
    let options = ClientOptions { device_count: 4, worker_count: 2, ..Default::default() };
    Client::new(&options, Arc::new(HostBackend::new())).unwrap()
}

fn command(
    kind: CollectiveKind,
    mode: GroupMode,
    groups: &[&[u32]],
    arrays: &[(Slice, Slice)],
    dtype: DType,
) -> Command {
    let groups = groups.iter().map(|group| group.to_vec()).collect();
    let arrays = arrays.iter().map(|&(from, to)| CollectiveArray { from, to, dtype }).collect();
    Command::Collective { collective: Collective { kind, mode, groups }, arrays }
}

fn s32(count: usize) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::S32, &[count as i64]).unwrap())
}

/// A program with one collective of one array.
fn one(kind: CollectiveKind, mode: GroupMode, groups: &[&[u32]], from: usize, to: usize) -> Program {
    let mut builder = ProgramBuilder::new("exchange");
    let (x, y) = (builder.parameter(s32(from)), builder.result(s32(to)));
    builder.push(command(kind, mode, groups, &[(x, y)], DType::S32));
    builder.build().unwrap()
}

fn start(client: &Client, program: &Program, partitions: usize, arguments: &[&[i32]]) -> Vec<Execution> {
    let loaded = LoadedExecutable::new(&Executable::new(program.clone()), &client.devices(), partitions).unwrap();
    loaded.execute_sharded(&shards(client, arguments), &ExecuteOptions::default()).unwrap()
}

fn shards(client: &Client, arguments: &[&[i32]]) -> Vec<Vec<Buffer>> {
    let devices = client.devices();
    let shard = |(values, device): (&&[i32], &purlin_device::Device)| {
        vec![Buffer::from_slice(values, &[values.len() as i64], &device.default_memory_space()).unwrap()]
    };
    arguments.iter().zip(&devices).map(shard).collect()
}

fn results(executions: &[Execution]) -> Vec<Vec<i32>> {
    executions.iter().map(|execution| execution.outputs[0].to_vec().unwrap()).collect()
}

#[test]
fn each_operation_has_its_results_on_fewer_threads_than_devices() {
    let client = client();
    let (two, four): ([&[i32]; 4], [&[i32]; 4]) = (
        [&[1, 2], &[10, 20], &[100, 200], &[1000, 2000]],
        [&[1, 2, 3, 4], &[10, 20, 30, 40], &[100, 200, 300, 400], &[1000, 2000, 3000, 4000]],
    );
    let sum = CollectiveKind::AllReduce(Reduction::Sum);
    let all = GroupMode::Participants;
    for _ in 0..20 {
        let run = |program: Program, arguments: &[&[i32]]| results(&start(&client, &program, 1, arguments));
        assert_eq!(run(one(sum.clone(), all, &[], 2, 2), &two), [[1111, 2222]; 4]);
        assert_eq!(
            run(one(sum.clone(), all, &[&[0, 2], &[3, 1]], 2, 2), &two),
            [[101, 202], [1010, 2020], [101, 202], [1010, 2020]]
        );
        assert_eq!(
            run(one(CollectiveKind::AllGather, all, &[&[2, 0], &[1, 3]], 2, 4), &two),
            [[100, 200, 1, 2], [10, 20, 1000, 2000], [100, 200, 1, 2], [10, 20, 1000, 2000]]
        );
        let scatter = CollectiveKind::ReduceScatter(Reduction::Max);
        assert_eq!(run(one(scatter, all, &[], 4, 1), &four), [[1000], [2000], [3000], [4000]]);
        let permute = CollectiveKind::Permute(vec![(0, 1), (1, 2), (3, 3)]);
        assert_eq!(run(one(permute, all, &[], 2, 2), &two), [[0, 0], [1, 2], [10, 20], [1000, 2000]]);
    }
}

#[test]
fn arrays_go_from_all_to_all() {
    let client = client();
    let mut builder = ProgramBuilder::new("transpose");
    let (x, y) = (builder.parameter(s32(4)), builder.result(s32(4)));
    let part = |of: Slice, number: usize| Slice { offset_bytes: 4 * number, size_bytes: 4, ..of };
    let arrays: Vec<_> = (0..4).map(|number| (part(x, number), part(y, number))).collect();
    builder.push(command(CollectiveKind::AllToAll, GroupMode::Replicas, &[], &arrays, DType::S32));
    let arguments: [&[i32]; 4] = [&[1, 2, 3, 4], &[10, 20, 30, 40], &[5, 6, 7, 8], &[50, 60, 70, 80]];
    let executions = start(&client, &builder.build().unwrap(), 1, &arguments);
    assert_eq!(results(&executions), [[1, 10, 5, 50], [2, 20, 6, 60], [3, 30, 7, 70], [4, 40, 8, 80]]);
}

#[test]
fn partitions_exchange_within_their_replica_also_in_loops_and_in_place() {
    let client = client();
    let mut builder = ProgramBuilder::new("loop");
    let x = builder.donated_parameter(s32(2));
    let sum = command(CollectiveKind::AllReduce(Reduction::Sum), GroupMode::Partitions, &[], &[(x, x)], DType::S32);
    builder.push(Command::Repeat { trip_count: 3, body: Sequence::new(vec![sum]) });
    let executions = start(&client, &builder.build().unwrap(), 2, &[&[1, 2], &[3, 4], &[10, 20], &[30, 40]]);
    assert_eq!(results(&executions), [[16, 24], [16, 24], [160, 240], [160, 240]]);
}

/// A program that fails on participants whose argument is not 0, before a sum over all.
fn failing() -> Program {
    let mut builder = ProgramBuilder::new("failing");
    let (x, y) = (builder.parameter(s32(1)), builder.result(s32(1)));
    let checks = Kernel::from_fn("checks", |call| match call.reads[0][0] {
        0 => Ok(()),
        1 => Err(Error::data_loss("it is one")),
        _ => panic!("on purpose"),
    });
    builder.push(Command::Kernel { kernel: checks, workgroups: [1; 3], operands: vec![Operand::invariant(x)] });
    let sum = CollectiveKind::AllReduce(Reduction::Sum);
    builder.push(command(sum, GroupMode::Participants, &[], &[(x, y)], DType::S32));
    builder.build().unwrap()
}

#[test]
fn a_participant_that_fails_fails_the_others() {
    let client = client();
    for _ in 0..20 {
        for (bad, code, text) in [(1, StatusCode::DataLoss, "it is one"), (2, StatusCode::Internal, "on purpose")] {
            let executions = start(&client, &failing(), 1, &[&[0], &[0], &[bad], &[0]]);
            let what = "all-reduce sum in launch 0 of 'failing' lacks participant 2, which has failed: ";
            for (participant, execution) in executions.iter().enumerate() {
                let error = execution.done.wait().unwrap_err();
                assert_error(&error, code, &[text]);
                assert_eq!(error.message().contains(what), participant != 2, "{error}");
            }
        }
    }
}

#[test]
fn a_participant_that_never_begins_fails_the_others() {
    let client = client();
    let loaded = LoadedExecutable::new(&Executable::new(failing()), &client.devices(), 1).unwrap();
    let mut arguments = shards(&client, &[&[0], &[0], &[0], &[0]]);
    let space = client.devices()[3].default_memory_space();
    arguments[3][0] = Buffer::error(Error::unavailable("it was never there"), s32(1).shape(), &space);
    let executions = loaded.execute_sharded(&arguments, &ExecuteOptions::default()).unwrap();
    for execution in &executions {
        assert_error(&execution.done.wait().unwrap_err(), StatusCode::Unavailable, &["it was never there"]);
    }
}

#[test]
fn a_participant_that_takes_another_way_fails_the_others() {
    let client = client();
    let mut builder = ProgramBuilder::new("diverges");
    let (x, y) = (builder.parameter(s32(1)), builder.result(s32(1)));
    let sum = CollectiveKind::AllReduce(Reduction::Sum);
    let sum = command(sum, GroupMode::Participants, &[], &[(x, y)], DType::S32);
    let branches = vec![Sequence::new(vec![sum]), vec![Command::Copy { from: x, to: y }].into()];
    builder.push(Command::Conditional { branch: Branch::Index(x), branches });
    let executions = start(&client, &builder.build().unwrap(), 1, &[&[0], &[1], &[0], &[0]]);
    for (participant, execution) in executions.iter().enumerate() {
        match execution.done.wait() {
            Ok(()) => assert_eq!(participant, 1),
            Err(error) => {
                let text = "lacks participant 1, which has ended without it";
                assert_error(&error, StatusCode::FailedPrecondition, &["command 0.branch.0", text]);
            }
        }
    }
}

#[test]
fn a_stall_report_names_who_is_missing() {
    let client = client();
    let loaded = LoadedExecutable::new(&Executable::new(failing()), &client.devices(), 1).unwrap();
    let gate = EventPromise::new(c"gate");
    let mut arguments = shards(&client, &[&[0], &[0], &[0], &[0]]);
    // The last argument becomes ready later.
    let (memory, _) = arguments[3][0].release().unwrap();
    arguments[3][0] = Buffer::from_raw(memory, s32(1).shape(), None, &gate.event()).unwrap();
    let executions =
        loaded.execute_sharded(&arguments, &ExecuteOptions { launch_id: 5, ..Default::default() }).unwrap();
    let expected = "program 'failing', launch 5: all-reduce sum waits for participants [3]; [0, 1, 2] are there";
    while !purlin_async::dump_stalls(Duration::ZERO).contains(expected) {
        thread::yield_now();
    }
    gate.set_ready();
    assert_eq!(results(&executions), [[0]; 4]);
}

#[test]
fn what_cannot_run_is_refused_when_it_is_loaded() {
    let load = |program: Program, client: &Client| {
        LoadedExecutable::new(&Executable::new(program), &client.devices(), 1).unwrap_err()
    };
    let sum = || one(CollectiveKind::AllReduce(Reduction::Sum), GroupMode::Participants, &[&[0, 1, 2]], 1, 1);
    let error = load(sum(), &client());
    let text = "collective 'all-reduce sum' on 4 x 1 devices: its groups are [[0, 1, 2]]";
    assert_error(&error, StatusCode::InvalidArgument, &["'exchange' cannot be loaded", text]);
    let options = ClientOptions { device_count: 3, ..Default::default() };
    let sim = Client::new(&options, Arc::new(SimBackend::new(SimOptions::default()))).unwrap();
    let error = load(sum(), &sim);
    assert_error(&error, StatusCode::Unimplemented, &["launches wait for each other", "sim:0"]);

    let mut builder = ProgramBuilder::new("overlaps");
    let x = builder.donated_parameter(bytes(8));
    let (low, high) = (Slice { size_bytes: 6, ..x }, Slice { offset_bytes: 2, size_bytes: 6, ..x });
    let sum = CollectiveKind::AllReduce(Reduction::Sum);
    builder.push(command(sum, GroupMode::Participants, &[], &[(low, high)], DType::U8));
    let error = builder.build().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["command 0 (collective 'all-reduce sum')", "is invariant"]);
}

/// An engine that says no.
#[derive(Debug)]
struct Refuses;

impl CollectiveEngine for Refuses {
    fn begin(&self, _program: &str, _launch_id: i32, _participants: u32) -> Arc<dyn CollectiveLaunch> {
        Arc::new(Self)
    }
}

impl CollectiveLaunch for Refuses {
    fn join(&self, call: &purlin_program::CollectiveCall<'_>) -> Result<(), Error> {
        Err(Error::unavailable(format!("rank {} of {:?}", call.rank, call.members)))
    }

    fn left(&self, _participant: u32, _outcome: &Result<(), Error>) {}
}

#[test]
fn another_engine_can_take_the_place() {
    let client = client();
    let loaded = LoadedExecutable::new(&Executable::new(failing()), &client.devices(), 1).unwrap();
    let refused = loaded.with_collectives(Arc::new(Refuses));
    let arguments = shards(&client, &[&[0], &[0], &[0], &[0]]);
    let executions = refused.execute_sharded(&arguments, &ExecuteOptions::default()).unwrap();
    for (rank, execution) in executions.iter().enumerate() {
        let text = format!("rank {rank} of [0, 1, 2, 3]");
        assert_error(&execution.done.wait().unwrap_err(), StatusCode::Unavailable, &["command 1", &text]);
    }
    let executions =
        loaded.with_collectives(Arc::new(InProcess)).execute_sharded(&arguments, &ExecuteOptions::default());
    assert_eq!(results(&executions.unwrap()), [[0]; 4]);
}
