//! Launches of a kernel that adds 1 to a word: one, a chain, a list that is a graph, and what it costs to enqueue them.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use purlin::backend::{
    Access, Command, CommandList, KernelCode, KernelCommand, KernelImage, Launch, LaunchDimensions, LaunchInfo, Place,
    Touched,
};
use purlin::program::{
    KernelArgsPackingSpec, KernelLaunch, KernelLoaderSpec, KernelOperand, KernelPayload, LoadedKernel, OperandAccess,
};
use purlin::{Error, Event, LaunchOptions, RawBuffer};

use crate::bare::{ADD_ONE, Bare};
use crate::bench::{Bench, address, done};
use crate::column::Column;
use crate::row::Row;

const WORD_BYTES: usize = 4;
const CHAIN: u32 = 100;
const LIST: u32 = 20;

/// All rows of launches.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    let kernel = Kernel::new(bench);
    one(bench, &kernel, add);
    chain(bench, &kernel, add);
    list(bench, &kernel, add);
    enqueued(bench, &kernel, add);
}

/// The kernel, and the word that it adds to.
pub(crate) struct Kernel {
    launch: Arc<KernelLaunch>,
    word: RawBuffer,
}

impl Kernel {
    pub(crate) fn new(bench: &Bench) -> Self {
        let mut packing = KernelArgsPackingSpec::default();
        packing.push_address(0).expect("one address");
        let spec = KernelLoaderSpec::new(KernelPayload::Ptx(ADD_ONE.into()), "add_one", 1).expect("a kernel");
        let kernel = LoadedKernel::load(&bench.device, &spec.with_packing(packing)).expect("PTX that drivers take");
        let operand = KernelOperand { access: OperandAccess::ReadWrite, size_bytes: WORD_BYTES };
        let launch = kernel.bind(LaunchDimensions::linear(1, 1), &[operand]).expect("a thread");
        Self { launch, word: bench.block("device", WORD_BYTES) }
    }

    pub(crate) fn word(&self) -> u64 {
        address(&self.word)
    }

    pub(crate) fn start(&self, after: Option<&Event>) -> Event {
        let dependencies = after.map_or(&[][..], std::slice::from_ref);
        let options = LaunchOptions { dependencies, ..LaunchOptions::default() };
        // SAFETY: rows wait for each turn, launches of a turn come one after the other, and the kernel accesses the
        // word alone.
        unsafe { self.launch.start(&[&self.word], &options) }.expect("a launch")
    }

    /// The row, whose turns must each add so much.
    pub(crate) fn adds<'a>(&'a self, bare: &'a Bare, row: Row<'a>, count: u32) -> Row<'a> {
        // SAFETY: the word is the row's, and turns wait.
        let clear = || unsafe { bare.clear(self.word(), WORD_BYTES) };
        // SAFETY: as above.
        row.checked(clear, move || unsafe { bare.read(self.word(), WORD_BYTES) } == count.to_le_bytes())
    }

    /// The driver's launch.
    pub(crate) fn start_bare(&self, bare: &Bare) {
        // SAFETY: the word is the row's, and turns wait.
        unsafe { bare.add_one(self.word()) };
    }
}

fn one(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    let row = Row::new("launch and see it done", Column::new("purlin", || done(&kernel.start(None)))).goal(1.3);
    let columns = bench.bare.waited(|| kernel.start_bare(&bench.bare));
    add(kernel.adds(&bench.bare, row.beside_all(columns), 1));
}

fn chain(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    let ours = Column::new("purlin", || {
        let mut last = kernel.start(None);
        (1..CHAIN).for_each(|_| last = kernel.start(Some(&last)));
        done(&last);
    });
    let columns = bench.bare.waited(|| (0..CHAIN).for_each(|_| kernel.start_bare(&bench.bare)));
    let row = Row::new("chain of 100 launches", ours).goal(1.15).beside_all(columns);
    add(kernel.adds(&bench.bare, row, CHAIN));
}

/// Commands of the device alone.
struct Listed(CommandList);

impl Launch for Listed {
    fn name(&self) -> &str {
        "listed"
    }

    unsafe fn launch(&self, _info: LaunchInfo, _addresses: &[*mut u8]) -> Result<(), Error> {
        Err(Error::internal("the host is asked for what the GPU does"))
    }

    fn commands(&self, _device: u16) -> Option<&CommandList> {
        Some(&self.0)
    }
}

fn list(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    let (device, bare) = (&bench.device, &bench.bare);
    let code = KernelCode { image: KernelImage::Ptx(ADD_ONE), name: "add_one", parameter_bytes: &[8] };
    let loaded = device.load_kernel(&code).expect("PTX that drivers take");
    let command = |_| {
        let touched = Touched { access: Access::Write, place: Place::begin_of(0), size_bytes: WORD_BYTES };
        let command = KernelCommand::new(Arc::clone(&loaded), LaunchDimensions::linear(1, 1)).expect("a thread");
        Command::Kernel(Box::new(command.with_address(touched)))
    };
    let list = CommandList::new((0..LIST).map(command).collect()).expect("commands of one range");
    let list: Arc<dyn Launch> = Arc::new(Listed(list));
    let ours = Column::new("purlin", || {
        let ranges = [(Access::Write, &kernel.word)];
        // SAFETY: rows wait for each turn, and the kernels access the word alone.
        done(&unsafe { device.launch(Arc::clone(&list), &ranges, &LaunchOptions::default()) }.expect("a launch"));
    });
    let row = Row::new("graph of 20 launches again", ours).goal(1.1);
    let Some(graph) = bare.graph(|| (0..LIST).for_each(|_| kernel.start_bare(bare))) else { return };
    // SAFETY: the word is the row's, and turns wait.
    let columns = bare.waited(|| unsafe { graph.launch() });
    add(kernel.adds(bare, row.beside_all(columns), LIST));
}

/// Without the wait, which is behind the clock.
fn enqueued(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    const COUNT: u32 = Bare::EVENTS as u32;
    let bare = &bench.bare;
    let events = RefCell::new(Vec::with_capacity(COUNT as usize));
    let ours = Column::telling("purlin", COUNT, || {
        let mut events = events.borrow_mut();
        let begin = Instant::now();
        (0..COUNT).for_each(|_| events.push(kernel.start(None)));
        let took = begin.elapsed();
        events.drain(..).for_each(|event| done(&event));
        took
    });
    let driver = |name, records: bool| {
        Column::telling(name, COUNT, move || {
            let begin = Instant::now();
            for event in 0..Bare::EVENTS {
                kernel.start_bare(bare);
                if records {
                    bare.record(event);
                }
            }
            let took = begin.elapsed();
            bare.synchronize();
            took
        })
    };
    let row = Row::new("enqueue a launch, of 16", ours).beside(driver("driver, with a record", true));
    add(kernel.adds(bare, row.beside(driver("driver, launch alone", false)), COUNT));
}
