//! Kernels: loaded, launched, and refused.

#![allow(unsafe_code, reason = "kernels take addresses")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use purlin::backend::{Access, Command, CommandList, FillPattern, Launch, LaunchDimensions, LaunchInfo, Place};
use purlin::program::{
    KernelArgsPackingSpec, KernelLaunch, KernelLoaderSpec, KernelOperand, KernelPayload, KernelSymbol, LoadedKernel,
    OperandAccess,
};
use purlin::{Device, Error, Event, LaunchOptions, RawBuffer, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::calls::{BUT, counted, quiet};
use crate::support::*;

pub(crate) const FILL: &str = include_str!("../../../../tests/ptx/kernels/fill.ptx");
const MOMENTUM: &str = include_str!("../../../../tests/ptx/kernels/momentum.ptx");
const SOFTMAX: &str = include_str!("../../../../tests/ptx/kernels/softmax.ptx");

/// A kernel whose arguments are addresses of `operands`, then `values`.
pub(crate) fn spec(ptx: &str, name: &str, operands: u32, values: &[&[u8]]) -> KernelLoaderSpec {
    let mut packing = KernelArgsPackingSpec::default();
    (0..operands).for_each(|operand| packing.push_address(operand).unwrap());
    values.iter().for_each(|value| packing.push_constant(value));
    let arity = operands + values.len() as u32;
    KernelLoaderSpec::new(KernelPayload::Ptx(ptx.into()), name, arity).unwrap().with_packing(packing)
}

/// An operand that is written.
pub(crate) fn written(size_bytes: usize) -> KernelOperand {
    KernelOperand { access: OperandAccess::Write, size_bytes }
}

/// Writes `value` to each word of a block of so many bytes.
pub(crate) fn fill(device: &Device, value: u32, bytes: usize) -> Result<Arc<KernelLaunch>, Error> {
    let count = bytes as u64 / 4;
    let spec = spec(FILL, "fill_32", 1, &[&value.to_le_bytes(), &count.to_le_bytes()]);
    LoadedKernel::load(device, &spec)?.bind(LaunchDimensions::linear(count.min(64), 32), &[written(bytes)])
}

/// A step of momentum: weights and velocity are written, the gradient is read.
fn momentum(device: &Device, count: u32) -> Arc<KernelLaunch> {
    let values = [0.5_f32.to_le_bytes(), 0.25_f32.to_le_bytes(), count.to_le_bytes()];
    let kernel = LoadedKernel::load(device, &spec(MOMENTUM, "momentum", 3, &values.each_ref().map(|v| v.as_slice())));
    let operand = |access| KernelOperand { access, size_bytes: 4 * count as usize };
    let operands = [OperandAccess::ReadWrite, OperandAccess::ReadWrite, OperandAccess::Read].map(operand);
    kernel.unwrap().bind(LaunchDimensions::linear(u64::from(count.div_ceil(4)), 64), &operands).unwrap()
}

#[track_caller]
pub(crate) fn start(
    launch: &Arc<KernelLaunch>,
    memory: &[&RawBuffer],
    options: &LaunchOptions<'_>,
) -> Result<Event, Error> {
    // SAFETY: callers order what uses the blocks, and their kernels access the operands alone.
    unsafe { launch.start(memory, options) }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn words(block: &RawBuffer) -> Vec<u32> {
    read(block).unwrap().chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn a_kernel_computes_between_copies_that_events_alone_order() {
    let name = "launches::a_kernel_computes_between_copies_that_events_alone_order";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let step = momentum(device, 1003);
            let block = |kind| session.block(0, kind, 4 * 1003);
            let host = [block("pinned_host"), block("pinned_host"), block("pinned_host")];
            let on_gpu = [block("device"), block("device"), block("device")];
            let data: Vec<Vec<f32>> =
                (0..3).map(|part| (0..1003).map(|at| (at * (part + 1) % 17) as f32 - 8.0).collect()).collect();
            for (block, values) in host.iter().zip(&data) {
                write(block, &floats(values)).unwrap();
            }
            let mut up: Vec<Event> = host.iter().zip(&on_gpu).map(|(from, to)| copy(from, to, &[])).collect();
            let [weights, velocity, gradient] = &on_gpu;
            for _ in 0..2 {
                let options = LaunchOptions { dependencies: &up, label: c"step".into(), ..Default::default() };
                up = vec![start(&step, &[weights, velocity, gradient], &options).unwrap()];
            }
            let down = copy(weights, &host[0], &up);
            outcome(&down).unwrap();
            let expected: Vec<f32> = (0..1003)
                .map(|at| {
                    let first = 0.25 * data[1][at] + data[2][at];
                    let second = 0.25 * first + data[2][at];
                    data[0][at] - 0.5 * first - 0.5 * second
                })
                .collect();
            assert!(read(&host[0]).unwrap() == floats(&expected));
        });
    });
}

#[test]
fn a_launch_is_a_call_and_a_record() {
    process::run("launches::a_launch_is_a_call_and_a_record", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let bytes = 4096;
            let blocks: Vec<RawBuffer> = (0..4).map(|_| session.block(0, "device", bytes)).collect();
            let values = [7_u32.to_le_bytes().as_slice(), &1024_u64.to_le_bytes()].concat();
            let kernel = LoadedKernel::load(device, &spec(FILL, "fill_32", 1, &[&values[..4], &values[4..]])).unwrap();
            let fill = kernel.bind(LaunchDimensions::linear(64, 32), &[written(bytes); 4]).unwrap();
            let memory: Vec<&RawBuffer> = blocks.iter().collect();
            let options = LaunchOptions::default();
            let chain = |launches: usize| {
                let mut last = None;
                for _ in 0..launches {
                    let dependencies = last.as_slice();
                    last = Some(start(&fill, &memory, &LaunchOptions { dependencies, ..options }).unwrap());
                }
                last.unwrap()
            };
            // More are in flight at once here than below, so every event is there.
            let held = Held::new(&session.driver);
            let warm = chain(150);
            drop(held);
            outcome(&warm).unwrap();
            quiet(session);

            outcome(&start(&fill, &memory, &options).unwrap()).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuLaunchKernel", 1), ("cuEventRecord", 1)]));
            quiet(session);
            outcome(&chain(100)).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuLaunchKernel", 100), ("cuEventRecord", 100)]));
            quiet(session);

            let (up, down) = (session.block(0, "pinned_host", bytes), session.block(0, "pinned_host", bytes));
            quiet(session);
            let held = Held::new(&session.driver);
            let sent = copy(&up, &blocks[0], &[]);
            let filled = start(&fill, &memory, &LaunchOptions { dependencies: &[sent], ..options }).unwrap();
            let read = copy(&blocks[0], &down, &[filled]);
            drop(held);
            outcome(&read).unwrap();
            let expected = [
                ("cuMemcpyHtoDAsync_v2", 1),
                ("cuLaunchKernel", 1),
                ("cuMemcpyDtoHAsync_v2", 1),
                ("cuEventRecord", 3),
                ("cuStreamWaitEvent", 2),
            ];
            assert_eq!(session.calls(&BUT), counted(&expected));
            assert_eq!(words(&down), [7; 1024]);
        });
    });
}

#[test]
fn code_is_loaded_once_and_unloaded_with_its_last_kernel() {
    process::run("launches::code_is_loaded_once_and_unloaded_with_its_last_kernel", &Options::default(), || {
        Session::with(2, |session| {
            let devices = session.client.devices();
            let modules = || session.driver.control.ledger("modules");
            let loads = || session.driver.control.calls("cuModuleLoadDataEx");
            let first = fill(&devices[0], 1, 64).unwrap();
            let second =
                LoadedKernel::load(&devices[0], &spec(FILL, "fill_8", 1, &[&[1], &8_u64.to_le_bytes()])).unwrap();
            assert_eq!((modules(), loads()), (1, 1));
            let there = fill(&devices[1], 1, 64).unwrap();
            assert_eq!((modules(), loads()), (2, 2));
            drop(first);
            assert_eq!(modules(), 2);
            // Loaded by several at once, it is loaded once.
            drop(second);
            until(|| format!("{} modules", modules()), || modules() == 1);
            let all: Vec<_> = std::thread::scope(|scope| {
                let loading: Vec<_> = (0..4).map(|_| scope.spawn(|| fill(&devices[0], 2, 64).unwrap())).collect();
                loading.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!((modules(), loads()), (2, 3));
            drop((all, there));
            until(|| format!("{} modules", modules()), || modules() == 0);
        });
    });
}

#[test]
fn a_kernel_is_loaded_on_the_runner() {
    process::run("launches::a_kernel_is_loaded_on_the_runner", &Options::default(), || {
        Session::with(1, |session| {
            let (device, control) = (&session.client.devices()[0], &session.driver.control);
            control.watch(true);
            let loading = LoadedKernel::load_on_runner(device, spec(FILL, "fill_8", 1, &[&[1], &8_u64.to_le_bytes()]));
            outcome(&loading.ready_event()).unwrap();
            let failing = LoadedKernel::load_on_runner(device, spec(FILL, "fill_9", 1, &[]));
            assert_eq!(outcome(&failing.ready_event()).unwrap_err().code(), StatusCode::NotFound);
            control.watch(false);
            let loads = ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetParamInfo"];
            let mut calls = control.watched();
            calls.retain(|call| loads.contains(&call.entry.as_str()));
            assert!(loads.iter().all(|load| calls.iter().any(|call| call.entry == *load)), "{calls:?}");
            assert!(calls.iter().all(|call| call.thread.starts_with("purlin/")), "{calls:?}");
        });
    });
}

/// The error of loading, which names all that is expected.
#[track_caller]
fn refused(device: &Device, spec: &KernelLoaderSpec, code: StatusCode, expected: &[&str]) {
    let error = LoadedKernel::load(device, spec).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    expected.iter().for_each(|text| assert!(error.message().contains(text), "{error} has no {text}"));
}

#[test]
fn what_cannot_be_loaded_is_refused_with_the_reason() {
    process::run("launches::what_cannot_be_loaded_is_refused_with_the_reason", &Options::default(), || {
        Session::with(1, |session| {
            use StatusCode::{InvalidArgument, NotFound, Unimplemented};
            let device = &session.client.devices()[0];
            let count = 8_u64.to_le_bytes();
            refused(
                device,
                &spec("this is no code", "fill_8", 1, &[]),
                InvalidArgument,
                &["'fill_8' of PTX", "log says"],
            );
            let cubin = |bytes: &[u8]| KernelLoaderSpec::new(KernelPayload::Cubin(bytes.into()), "fill_8", 0).unwrap();
            refused(device, &cubin(b"\x7fELF..."), Unimplemented, &["'fill_8' of a cubin", "209"]);
            // The driver would read it as PTX, beyond its end.
            let neither = "it begins neither as ELF nor as a fatbin";
            refused(device, &cubin(&[1, 2, 3]), InvalidArgument, &["'fill_8' of a cubin", neither]);
            let newer = FILL.replace(".version 8.2", ".version 99.0");
            refused(device, &spec(&newer, "fill_8", 1, &[]), Unimplemented, &["222"]);
            refused(device, &spec(FILL, "fill_9", 1, &[]), NotFound, &["'fill_9'"]);
            refused(device, &spec(FILL, "fill_8", 1, &[]), InvalidArgument, &["it has more than the 1 parameters"]);
            let four = [[1].as_slice(), &count, &count];
            refused(
                device,
                &spec(FILL, "fill_8", 1, &four),
                InvalidArgument,
                &["it has 3 parameters, and 4 are passed"],
            );
            let wide = [[1, 0].as_slice(), &count];
            refused(device, &spec(FILL, "fill_8", 1, &wide), InvalidArgument, &["parameter 1 has 1 bytes, and 2 are"]);
            let modules = || session.driver.control.ledger("modules");
            until(|| format!("{} modules", modules()), || modules() == 0);
        });
    });
}

#[test]
fn dimensions_beyond_the_device_are_refused_with_its_limits() {
    process::run("launches::dimensions_beyond_the_device_are_refused_with_its_limits", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let kernel =
                LoadedKernel::load(device, &spec(SOFTMAX, "softmax_rows", 2, &[&4_u32.to_le_bytes()])).unwrap();
            let operands = [OperandAccess::Write, OperandAccess::Read];
            let operands = operands.map(|access| KernelOperand { access, size_bytes: 16 });
            let bind = |grid, block, shared_memory_bytes| {
                kernel.bind(LaunchDimensions { grid, block, shared_memory_bytes }, &operands).map(drop)
            };
            let why = |grid, block, bytes| bind(grid, block, bytes).unwrap_err().message().to_owned();
            // More than a device gives unasked, up to all that it has, which is 64 KiB at least.
            bind([1; 3], [1; 3], 60 << 10).unwrap();
            assert!(why([0, 1, 1], [1; 3], 0).contains("0 blocks in x, and 1 to 2147483647 are possible"));
            assert!(why([1, 70000, 1], [1; 3], 0).contains("70000 blocks in y, and 1 to 65535 are possible"));
            assert!(why([1; 3], [1, 1, 65], 0).contains("65 threads in z, and 1 to 64 are possible"));
            assert!(why([1; 3], [64, 32, 1], 0).contains("2048 threads in a block, and 1024 are possible"));
            let text = why([1; 3], [1; 3], 1 << 20);
            assert!(text.contains("1048576 bytes of dynamic shared memory, and ") && text.contains("GPU 0"), "{text}");
            assert!(text.contains("'softmax_rows' cannot be launched with 1 x 1 x 1 blocks"), "{text}");
        });
    });
}

#[test]
fn launches_on_the_wrong_memory_or_device_are_refused() {
    process::run("launches::launches_on_the_wrong_memory_or_device_are_refused", &Options::default(), || {
        Session::with(2, |session| {
            let devices = session.client.devices();
            let fill = fill(&devices[0], 1, 64).unwrap();
            let why = |device: usize, access, block: &RawBuffer| {
                let launch: Arc<dyn Launch> = fill.clone();
                // SAFETY: nothing is launched.
                let launched = unsafe { devices[device].launch(launch, &[(access, block)], &LaunchOptions::default()) };
                let error = launched.and_then(|event| outcome(&event)).unwrap_err();
                assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
                error.message().to_owned()
            };
            let (block, short) = (session.block(0, "device", 64), session.block(0, "device", 63));
            if gpus() > 1 {
                assert!(why(1, Access::Write, &block).contains("'fill_32' is loaded on GPU 0, and not on GPU 1"));
            }
            assert!(why(0, Access::Write, &short).contains("64 bytes of range 0 are launched with 63"));
            assert!(why(0, Access::Read, &block).contains("write range 0 are launched with one that is only read"));
            let text = why(0, Access::Write, &session.block(0, "unpinned_host", 64));
            assert!(text.contains("a GPU does not reach") && text.contains("'pinned_host'"), "{text}");
            // SAFETY: nothing is launched.
            let error = unsafe { devices[0].launch(fill.clone(), &[], &LaunchOptions::default()) }.unwrap_err();
            assert!(error.message().contains("1 ranges are launched with 0"), "{error}");
            let error = start(&fill, &[], &LaunchOptions::default()).unwrap_err();
            assert_eq!(error.message(), "the kernel 'fill_32' has 1 operands, and is launched on 0 ranges");
            // Memory of the host that is pinned is as good as the GPU's.
            let pinned = session.block(0, "pinned_host", 64);
            outcome(&start(&fill, &[&pinned], &LaunchOptions::default()).unwrap()).unwrap();
            assert_eq!(words(&pinned), [1; 16]);
        });
    });
}

#[test]
fn every_stream_number_is_a_stream_and_four_go_on_at_once() {
    process::run("launches::every_stream_number_is_a_stream_and_four_go_on_at_once", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let blocks: Vec<RawBuffer> = (0..6).map(|_| session.block(0, "device", 64)).collect();
            let endless =
                LoadedKernel::load(device, &spec(FILL, "fill_64", 1, &[&[0; 8], &8_u64.to_le_bytes()])).unwrap();
            let endless = endless.bind(LaunchDimensions::linear(8, 8), &[written(64)]).unwrap();
            let fill = fill(device, 3, 64).unwrap();
            session.driver.control.set_endless("fill_64");
            let on = |stream, kernel, block| {
                let options = LaunchOptions { stream, ..Default::default() };
                start(kernel, &[block], &options).unwrap()
            };
            let stuck = on(0, &endless, &blocks[0]);
            for stream in 1..4 {
                outcome(&on(stream, &fill, &blocks[usize::from(stream)])).unwrap();
            }
            // Others are the first.
            let behind = [on(4, &fill, &blocks[4]), on(255, &fill, &blocks[5])];
            assert!(!stuck.is_ready() && behind.iter().all(|event| !event.is_ready()));
            session.driver.control.set_endless("");
            outcome(&stuck).unwrap();
            behind.iter().for_each(|event| outcome(event).unwrap());
        });
    });
}

#[test]
fn a_kernel_that_traps_breaks_its_device_and_is_named() {
    process::run("launches::a_kernel_that_traps_breaks_its_device_and_is_named", &Options::default(), || {
        let session = Session::new(2);
        let devices = session.client.devices();
        session.driver.control.set_traps("fill_32");
        let (block, there) = (session.block(0, "device", 64), session.block(1, "device", 64));
        let fill = fill(&devices[0], 1, 64).unwrap();
        let options = LaunchOptions { label: c"clear the gradient".into(), launch_id: 7, ..Default::default() };
        let error = outcome(&start(&fill, &[&block], &options).unwrap()).unwrap_err();
        for text in ["719", "launch 7 of 'fill_32' ('clear the gradient', asked for at", "launches.rs:"] {
            assert!(error.message().contains(text), "{error} has no {text}");
        }
        // The other goes on.
        write(&there, &[1; 64]).unwrap();
        drop((block, there, fill, devices));
        session.end_broken();
    });
}

/// A function that is loaded already, by the handle that the driver has for it.
#[test]
fn a_function_of_the_program_is_launched_by_its_handle() {
    process::run("launches::a_function_of_the_program_is_launched_by_its_handle", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let driver = &session.driver;
            let (mut context, mut module, mut function) = (0, 0, 0);
            let ptx = [FILL.as_bytes(), b"\0"].concat();
            // SAFETY: the driver writes handles, and reads PTX that ends in a null.
            let codes = unsafe {
                [
                    (driver.cuda.cuDevicePrimaryCtxRetain)(&mut context, 0),
                    (driver.cuda.cuCtxSetCurrent)(context),
                    (driver.cuda.cuModuleLoadData)(&mut module, ptx.as_ptr().cast::<c_void>()),
                    (driver.cuda.cuModuleGetFunction)(&mut function, module, c"fill_32".as_ptr()),
                ]
            };
            assert_eq!(codes, [0; 4]);
            let address = NonNull::new(std::ptr::with_exposed_provenance_mut(function)).unwrap();
            // SAFETY: the handle is good until the module is unloaded, at the end of this test.
            let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
            let payload = KernelPayload::InProcessSymbol { symbol, persistent_name: None };
            let (value, count) = (5_u32.to_le_bytes(), 16_u64.to_le_bytes());
            let mut packing = KernelArgsPackingSpec::default();
            packing.push_address(0).unwrap();
            [value.as_slice(), &count].iter().for_each(|bytes| packing.push_constant(bytes));
            let spec = KernelLoaderSpec::new(payload, "fill_32", 3).unwrap().with_packing(packing);
            let kernel = LoadedKernel::load(device, &spec).unwrap();
            let fill = kernel.bind(LaunchDimensions::linear(16, 16), &[written(64)]).unwrap();
            let block = session.block(0, "device", 64);
            outcome(&start(&fill, &[&block], &LaunchOptions::default()).unwrap()).unwrap();
            assert_eq!(words(&block), [5; 16]);
            drop((block, fill, kernel));
            // SAFETY: nothing is launched from it any more.
            let codes = unsafe {
                [
                    (driver.cuda.cuModuleUnload)(module),
                    (driver.cuda.cuCtxSetCurrent)(0),
                    (driver.cuda.cuDevicePrimaryCtxRelease_v2)(0),
                ]
            };
            assert_eq!(codes, [0; 3]);
        });
    });
}

/// Commands that a caller has put together, of code of its own.
pub(crate) struct Recorded(pub(crate) CommandList);

impl Launch for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    unsafe fn launch(&self, _info: LaunchInfo, _addresses: &[*mut u8]) -> Result<(), Error> {
        Err(Error::internal("the host is asked for what the GPU does"))
    }

    fn commands(&self, _device: u16) -> Option<&CommandList> {
        Some(&self.0)
    }
}

#[test]
fn fills_and_copies_are_commands_like_kernels() {
    process::run("launches::fills_and_copies_are_commands_like_kernels", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let place = |range, offset_bytes| Place { range, offset_bytes };
            let fill = |to, size_bytes, pattern| Command::Fill { to, size_bytes, pattern };
            let list = CommandList::new(vec![
                fill(place(0, 0), 16, FillPattern::Word(0x0403_0201)),
                fill(place(0, 4), 4, FillPattern::Pair(0x0605)),
                fill(place(0, 9), 2, FillPattern::Byte(7)),
                fill(place(0, 0), 0, FillPattern::Byte(9)),
                Command::Copy { from: place(0, 0), to: place(1, 16), size_bytes: 16 },
                Command::Copy { from: place(0, 4), to: place(0, 12), size_bytes: 4 },
            ]);
            let recorded: Arc<dyn Launch> = Arc::new(Recorded(list.unwrap()));
            let (first, second) = (session.block(0, "device", 16), session.block(0, "device", 32));
            let ranges = [(Access::Write, &first), (Access::Write, &second)];
            // SAFETY: nothing else uses the blocks.
            let done = unsafe { device.launch(recorded, &ranges, &LaunchOptions::default()) }.unwrap();
            outcome(&done).unwrap();
            assert_eq!(read(&first).unwrap(), [1, 2, 3, 4, 5, 6, 5, 6, 1, 7, 7, 4, 5, 6, 5, 6]);
            let copied = read(&second.slice(16, 16).unwrap()).unwrap();
            assert_eq!(copied, [1, 2, 3, 4, 5, 6, 5, 6, 1, 7, 7, 4, 1, 2, 3, 4]);
        });
    });
}

#[test]
fn a_command_that_is_refused_is_named_and_nothing_goes_on() {
    process::run("launches::a_command_that_is_refused_is_named_and_nothing_goes_on", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let launched = |commands: Vec<Command>| {
                let recorded: Arc<dyn Launch> = Arc::new(Recorded(CommandList::new(commands).unwrap()));
                let block = session.block(0, "device", 64);
                // SAFETY: nothing else uses the block.
                let done = unsafe { device.launch(recorded, &[(Access::Write, &block)], &LaunchOptions::default()) };
                outcome(&done.unwrap()).unwrap_err()
            };
            let begin = Place::begin_of(0);
            let clear = || Command::Fill { to: begin, size_bytes: 64, pattern: FillPattern::Byte(0) };
            let copy =
                |bytes| Command::Copy { from: begin, to: Place { range: 0, offset_bytes: 8 }, size_bytes: bytes };
            let error = launched(vec![clear(), copy(9)]);
            assert!(error.message().ends_with("the ends of a copy of 9 bytes overlap"), "{error}");
            session.driver.control.set_faults("cuMemcpyDtoDAsync_v2:1:1");
            let error = launched(vec![clear(), copy(8)]);
            session.driver.control.set_faults("");
            assert_eq!(error.code(), StatusCode::InvalidArgument);
            assert!(error.message().ends_with("its command 1, copy of 8 bytes, was refused"), "{error}");
        });
    });
}
