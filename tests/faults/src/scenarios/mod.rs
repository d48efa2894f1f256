//! The scenarios, by what they are about.

mod buffers;
mod clients;
mod files;
mod memory;
mod programs;
mod transfers;
mod work;

use crate::run::On;
use crate::walk::Scenario;

const ALL: &[On] = &[On::Host, On::Sim, On::Null];
const WITH_BYTES: &[On] = &[On::Host, On::Sim];
const HOST: &[On] = &[On::Host];

/// Name, backends, program.
pub const SCENARIOS: &[(&str, &[On], Scenario)] = &[
    ("from the host, immutable only during the call", ALL, buffers::only_during_call),
    ("from the host, immutable until the transfer completes", ALL, buffers::until_transfer_completes),
    ("from the host, immutable zero copy", ALL, buffers::immutable_zero_copy),
    ("from the host, mutable zero copy", ALL, buffers::mutable_zero_copy),
    ("from the host, watched for writes", HOST, buffers::frozen),
    ("a large array, from the host and back", WITH_BYTES, buffers::large),
    ("uninitialized arrays, tokens and failed arrays", ALL, buffers::without_bytes),
    ("strided arrays, small and large, both ways", WITH_BYTES, buffers::strided),
    ("strided arrays, through a block of the host's", &[On::Null], buffers::strided_through_a_block),
    ("raw reads and dynamic dimensions", WITH_BYTES, buffers::raw_reads),
    ("shards", ALL, buffers::shards),
    ("copies to memory spaces and devices", ALL, buffers::copies),
    ("a copy into given memory", ALL, buffers::copy_into),
    ("an array that is provided later", ALL, buffers::provided_later),
    ("donation: confirmed, given back, after an event, bitcast", ALL, buffers::donation),
    ("usage holds, external references, release", ALL, buffers::holds),
    ("raw copies with dependencies, in a chain", ALL, memory::copies_with_dependencies),
    ("parts of slices, copied to parts", ALL, memory::slices),
    ("channels: filled by memory, allocated, aliased", ALL, memory::channels),
    ("imported memory", ALL, memory::imported),
    ("memory mapped for DMA", ALL, memory::dma),
    ("an allocation that waits for what is freed", ALL, memory::waits_for_freed),
    ("an allocation after an event", ALL, memory::after_event),
    ("an allocation with the hook's help", ALL, memory::with_hook),
    ("memory of many sizes, trimmed", ALL, memory::many_sizes),
    ("an allocator of the user's", HOST, memory::own_allocator),
    ("a transfer, piece by piece", ALL, transfers::pieces),
    ("a transfer of whole arrays", ALL, transfers::whole_arrays),
    ("a transfer to memory that comes later", ALL, transfers::memory_later),
    ("programs, whose argument is donated or kept", WITH_BYTES, programs::donated_and_kept),
    ("a program behind an event", WITH_BYTES, programs::behind_an_event),
    ("a program that writes into given memory", WITH_BYTES, programs::given_results),
    ("a program whose argument is used outside", WITH_BYTES, programs::referenced_argument),
    ("programs of one execution stream", WITH_BYTES, programs::one_stream),
    ("a program on two devices", WITH_BYTES, programs::two_devices),
    ("a pool: tasks, join, loops", HOST, work::pool),
    ("a pool whose tasks wait for its tasks", HOST, work::blocked_pool),
    ("tasks when their events happen", HOST, work::when_ready),
    ("an elastic pool", HOST, work::elastic_pool),
    ("a serial queue over a pool", HOST, work::serial_queue),
    ("timers and deadlines", HOST, work::timers),
    ("a semaphore", HOST, work::semaphore),
    ("cancellation", HOST, work::cancellation),
    ("joins of events, waiters, count-downs", HOST, work::joins),
    ("futures on executors, mapped and joined", HOST, work::futures),
    ("async functions on a pool", HOST, work::spawned),
    ("a watchdog", HOST, work::watchdog),
    (".npy files, written and read", HOST, files::npy),
    ("safetensors files, written and read", HOST, files::safetensors),
    ("a trace", HOST, files::traced),
    ("clients that come and go", ALL, clients::come_and_go),
    ("a client that goes while it works", ALL, clients::goes_while_it_works),
    ("a shutdown with work in flight", ALL, clients::shutdown),
];
