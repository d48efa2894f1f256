//! Arrays that are strided or packed on the host: through the same chunks as dense ones, whatever their order, with
//! nothing but chunks between.

#![allow(unsafe_code, reason = "arrays are copied by address")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use purlin::{
    Aliasing, Buffer, Client, DType, Error, FromHostOptions, HostArray, HostBufferSemantics, Layout, Shape, StatusCode,
};
use purlin_fakecuda::{Options, process};

use crate::heap;
use crate::support::*;

/// As many chunks as a GPU has.
const CHUNKS: u64 = 16;
const UP: &str = "cuMemcpyHtoDAsync_v2";
const DOWN: &str = "cuMemcpyDtoHAsync_v2";

/// Bytes of which no eight are those at another place.
fn numbers(bytes: usize) -> Vec<u8> {
    let words = 0..bytes.div_ceil(8) as u64;
    let mut numbers: Vec<u8> = words.flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_ne_bytes()).collect();
    numbers.truncate(bytes);
    numbers
}

/// An array of two dimensions, in memory of the host that it spans.
#[derive(Clone)]
struct Matrix {
    array: HostArray,
    layout: Layout,
    bytes: Vec<u8>,
}

impl Matrix {
    /// `strides` in elements.
    fn new(dtype: DType, dims: [i64; 2], strides: [i64; 2], minor_to_major: [i64; 2]) -> Self {
        let width = dtype.host_byte_width() as i64;
        let shape = Shape::new(dtype, &dims).unwrap();
        let array = HostArray::new(&shape, Some(&strides.map(|stride| stride * width))).unwrap();
        let mut bytes = numbers(array.extent().len());
        if dtype.is_sub_byte() {
            // As they are read back: nothing above the low bits.
            bytes.iter_mut().for_each(|byte| *byte &= 7);
        }
        Self { array, layout: Layout::new(&minor_to_major).unwrap(), bytes }
    }

    /// Side by side in rows, and by columns on the GPU.
    fn transposed(dtype: DType, dims: [i64; 2]) -> Self {
        Self::new(dtype, dims, [dims[1], 1], [0, 1])
    }

    fn first(&self) -> *const u8 {
        self.bytes.as_ptr().wrapping_offset(-self.array.extent().start)
    }

    /// Calls `body` with where each element begins in the bytes, in the order of the GPU.
    fn each(&self, mut body: impl FnMut(usize)) {
        let (dims, strides) = (self.array.shape().dims(), self.array.byte_strides());
        let [minor, major] = [0, 1].map(|at| self.layout.minor_to_major()[at] as usize);
        let first = -self.array.extent().start;
        for outer in 0..dims[major] as isize {
            let row = first + outer * strides[major] as isize;
            for inner in 0..dims[minor] as isize {
                body((row + inner * strides[minor] as isize) as usize);
            }
        }
    }

    /// What the GPU must have, element by element.
    fn image(&self) -> Vec<u8> {
        let dtype = self.array.shape().dtype();
        let mut image = Vec::with_capacity(self.array.shape().size_bytes());
        if !dtype.is_sub_byte() {
            let width = dtype.host_byte_width();
            self.each(|from| image.extend_from_slice(&self.bytes[from..from + width]));
            return image;
        }
        let (bits, mut at) = (dtype.bits(), 0);
        self.each(|from| {
            if at == 0 {
                image.push(0);
            }
            *image.last_mut().unwrap() |= self.bytes[from] << at;
            at = (at + bits) % 8;
        });
        image
    }

    /// Starts to send it. It stays as it is until the buffer is ready.
    fn send(&self, client: &Client, semantics: HostBufferSemantics) -> Result<Buffer, Error> {
        let options = FromHostOptions { semantics, layout: Some(self.layout.clone()), ..FromHostOptions::default() };
        let space = client.devices()[0].default_memory_space();
        // SAFETY: the bytes are the array's extent. Tests keep them until the event.
        let (buffer, aliasing) = unsafe { Buffer::from_host_array(self.first(), &self.array, &space, options) }?;
        assert_eq!(aliasing, Aliasing::Copied);
        Ok(buffer)
    }

    /// The same elements in another order on the host, with bytes between that belong to nobody.
    fn elsewhere(&self) -> Self {
        let dims = self.array.shape().dims();
        let to = Self::new(self.array.shape().dtype(), [dims[0], dims[1]], [-1, dims[0] + 3], [1, 0]);
        Self { bytes: vec![0xee; to.bytes.len()], ..to }
    }

    /// What [`elsewhere`](Self::elsewhere) must become.
    fn arrived(&self) -> Vec<u8> {
        let (mut to, width) = (self.elsewhere(), self.array.shape().dtype().host_byte_width());
        let (mut places, mut at) = (Vec::with_capacity(self.array.shape().element_count() as usize), 0);
        // In the same order.
        Self { layout: self.layout.clone(), ..to.clone() }.each(|place| places.push(place));
        self.each(|from| {
            to.bytes[places[at]..places[at] + width].copy_from_slice(&self.bytes[from..from + width]);
            at += 1;
        });
        to.bytes
    }
}

/// The bytes of a buffer, as the GPU has them.
fn raw(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.size_bytes()];
    // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
    outcome(&unsafe { buffer.copy_raw_to_host(bytes.as_mut_ptr(), 0, bytes.len()) }).unwrap();
    bytes
}

/// Of 20 MiB and more, or, where two elements have a byte, of 4 MiB and some elements.
fn large() -> Vec<Matrix> {
    vec![
        Matrix::transposed(DType::F32, [2200, 2500]),
        // A part is some rows of all columns.
        Matrix::transposed(DType::F32, [1 << 20, 5]),
        Matrix::transposed(DType::U4, [1 << 17, 65]),
        // An odd number of elements, packed; in rows that begin within bytes.
        Matrix::new(DType::S4, [3001, 2801], [2801, 1], [1, 0]),
        Matrix::transposed(DType::S4, [2801, 3001]),
        // Backwards.
        Matrix::new(DType::C128, [1100, 1200], [-1200, -1], [1, 0]),
    ]
}

/// Of three parts.
fn three_parts() -> Matrix {
    Matrix::transposed(DType::C128, [700, 800])
}

#[test]
fn large_arrays_of_any_order_arrive_both_ways() {
    process::run("strided::large_arrays_of_any_order_arrive_both_ways", &Options::default(), || {
        Session::with(1, |session| {
            for (matrix, seed) in large().iter().zip(1..) {
                session.driver.control.set_delays(seed, 100);
                let (image, arrived, name) = (matrix.image(), matrix.arrived(), matrix.array.to_string());
                let behind = matrix.send(&session.client, HostBufferSemantics::ImmutableUntilTransferCompletes);
                let mut lost = matrix.clone();
                let during = lost.send(&session.client, HostBufferSemantics::ImmutableOnlyDuringCall).unwrap();
                lost.bytes.fill(0x55);
                for buffer in [&behind.unwrap(), &during] {
                    assert!(raw(buffer) == image, "{name} on the GPU");
                    let mut to = matrix.elsewhere();
                    let first = to.first().cast_mut();
                    // SAFETY: as in raw().
                    outcome(&unsafe { buffer.copy_to_host_array(first, &to.array) }).unwrap();
                    assert!(std::mem::take(&mut to.bytes) == arrived, "{name} in another order");
                }
            }
        });
    });
}

#[test]
fn one_element_is_read_again_and_again() {
    process::run("strided::one_element_is_read_again_and_again", &Options::default(), || {
        Session::with(1, |session| {
            for strides in [[0, 1], [1, 0], [0, 0]] {
                let matrix = Matrix::new(DType::F64, [1700, 1600], strides, [1, 0]);
                let sent = matrix.send(&session.client, HostBufferSemantics::ImmutableOnlyDuringCall).unwrap();
                assert!(raw(&sent) == matrix.image(), "{strides:?}");
                let values = sent.to_vec::<f64>().unwrap();
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                assert!(bytes == matrix.image(), "{strides:?}");
            }
        });
    });
}

/// Cells of events come from such pieces of memory.
const SLAB_OF_CELLS: usize = 64 << 10;

/// How often the driver is asked to copy up, to copy down, to record, and to pin memory.
fn counted(session: &Session) -> [u64; 4] {
    [UP, DOWN, "cuEventRecord", "cuMemHostAlloc"].map(|name| session.driver.control.calls(name))
}

#[test]
fn nothing_but_chunks_is_between_an_array_and_the_gpu() {
    process::run("strided::nothing_but_chunks_is_between_an_array_and_the_gpu", &Options::default(), || {
        Session::with(1, |session| {
            let (tall, small) =
                (Matrix::transposed(DType::F32, [1 << 20, 5]), Matrix::transposed(DType::F32, [100, 100]));
            let square = Matrix::transposed(DType::F32, [2200, 2500]);
            // Copies of the GPU and parts: of columns, of which a part has several runs, and of what is near to them.
            for (matrix, across, along) in
                [(&square, [6, 6], [6, 6]), (&tall, [30, 6], [5, 5]), (&small, [1, 1], [1, 1])]
            {
                let name = &matrix.array.to_string();
                let (mut to, semantics) = (matrix.elsewhere(), HostBufferSemantics::ImmutableOnlyDuringCall);
                let mut values = Vec::<f32>::new();
                session.driver.control.reset_calls();
                heap::forget();
                let sent = matrix.send(&session.client, semantics).unwrap();
                let (largest, _) = heap::since();
                assert!(largest <= SLAB_OF_CELLS, "sending {name} allocates {largest} bytes");
                let [up, down, records, pinned] = counted(session);
                assert_eq!(([up, records], down), (across, 0), "{name}, up");
                assert!(pinned <= CHUNKS, "{pinned} chunks for {name}");
                session.driver.control.reset_calls();
                heap::forget();
                // SAFETY: as in raw().
                outcome(&unsafe { sent.copy_to_host_array(to.first().cast_mut(), &to.array) }).unwrap();
                let (largest, _) = heap::since();
                assert!(largest <= SLAB_OF_CELLS, "receiving {name} allocates {largest} bytes");
                assert_eq!(counted(session)[1..3], along, "{name}, down");
                assert!(std::mem::take(&mut to.bytes) == matrix.arrived(), "{name}");
                session.driver.control.reset_calls();
                heap::forget();
                values.extend(sent.to_vec::<f32>().unwrap());
                let (largest, all) = heap::since();
                // The vector that to_vec() returns, and ours.
                let ours = size_of_val(values.as_slice());
                assert!(largest <= ours && all <= 2 * ours, "reading {name} allocates {largest} and {all} bytes");
                assert_eq!(counted(session)[1..3], across, "{name}, read");
            }
        });
    });
}

#[test]
fn many_arrays_at_once_share_the_chunks() {
    process::run("strided::many_arrays_at_once_share_the_chunks", &Options::default(), || {
        Session::with(1, |session| {
            let matrix = three_parts();
            let (image, arrived) = (matrix.image(), matrix.arrived());
            let mut places: Vec<Matrix> = (0..6).map(|_| matrix.elsewhere()).collect();
            let calls = |name| session.driver.control.calls(name);
            // Memory for them, which the driver would keep waiting for.
            drop([image.len(); 6].map(|bytes| session.block(0, "device", bytes)));
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            let semantics = HostBufferSemantics::ImmutableUntilTransferCompletes;
            let sent: Vec<Buffer> = places.iter().map(|_| matrix.send(&session.client, semantics).unwrap()).collect();
            until(|| format!("{} chunks are filled", calls(UP)), || calls(UP) == CHUNKS);
            let down: Vec<_> = sent
                .iter()
                .zip(&mut places)
                // SAFETY: the places stay until the events, which outcome() waits for or fails the process.
                .map(|(buffer, to)| unsafe { buffer.copy_to_host_array(to.first().cast_mut(), &to.array) })
                .collect();
            drop(held);
            down.iter().for_each(|event| outcome(event).unwrap());
            assert!(sent.iter().all(|buffer| raw(buffer) == image));
            assert!(places.iter().all(|place| place.bytes == arrived));
            assert!(calls("cuMemHostAlloc") <= CHUNKS, "{} chunks", calls("cuMemHostAlloc"));
        });
    });
}

/// Threads of the runner that are awake and have no time, until this is dropped.
struct Occupied(Arc<AtomicBool>);

impl Occupied {
    fn all(client: &Client) -> Self {
        let leave = Arc::new(AtomicBool::new(false));
        let (arrived, arrivals) = mpsc::channel();
        let workers = client.runner().num_threads();
        for _ in 0..workers {
            let (leave, arrived) = (Arc::clone(&leave), arrived.clone());
            let busy = move || {
                arrived.send(()).expect("the test waits for it");
                // Acquire: pairs with drop().
                while !leave.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            };
            client.runner().schedule(c"occupied", busy).unwrap();
        }
        (0..workers).for_each(|_| arrivals.recv_timeout(LIMIT).expect("each worker takes a task"));
        Self(leave)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        // Release: pairs with the tasks.
        self.0.store(true, Ordering::Release);
    }
}

/// What `body` returns on a thread of its own, which must not hang.
fn soon<R: Send>(what: &str, body: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let (done, result) = mpsc::channel();
        scope.spawn(move || done.send(body()));
        result.recv_timeout(LIMIT).unwrap_or_else(|_| {
            // The scope would wait for the thread.
            eprintln!("panicked at: hangs: {what}");
            std::process::exit(101)
        })
    })
}

#[test]
fn a_caller_that_waits_needs_no_thread_and_no_chunk_of_others() {
    let name = "strided::a_caller_that_waits_needs_no_thread_and_no_chunk_of_others";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (matrix, bytes) = (three_parts(), (CHUNKS as usize) * (4 << 20));
            let small = Matrix::transposed(DType::F32, [100, 100]);
            let control = &session.driver.control;
            let block = session.block(0, "device", bytes);
            write(&block, &numbers(bytes)).unwrap();
            let mut read = vec![0; bytes];
            // Longer than a caller looks by itself.
            control.set_delays(4, 3000);
            let occupied = Occupied::all(&session.client);
            let during = HostBufferSemantics::ImmutableOnlyDuringCall;
            let way = |matrix: &Matrix| {
                let sent = matrix.send(&session.client, during).unwrap();
                // Dense as the GPU has it, and strided.
                let mut to = vec![0_u8; matrix.image().len()];
                let shape = Shape::new(DType::U8, &[to.len() as i64]).unwrap();
                let alias = Buffer::from_raw(sent.raw_alias().unwrap(), &shape, None, &sent.ready_event()).unwrap();
                to.copy_from_slice(&alias.to_vec::<u8>().unwrap());
                assert!(to == matrix.image());
                sent
            };
            soon("with chunks", || (way(&matrix), way(&small)));
            // A caller looks 2000 times by itself. Then the poller asks, and learns of the end.
            let held = Held::new(&session.driver);
            control.reset_calls();
            soon("what the poller learns", || {
                thread::scope(|scope| {
                    let waiting = scope.spawn(|| outcome(&way(&small).ready_event()));
                    let asked = || control.calls("cuEventQuery");
                    until(|| format!("the driver is asked {} times", asked()), || asked() > 2500);
                    drop(held);
                    waiting.join().unwrap().unwrap();
                });
            });
            control.reset_calls();
            // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
            let down = unsafe { block.copy_to_host(read.as_mut_ptr(), 0, bytes, &[]) };
            until(|| "not all chunks are taken".to_owned(), || control.calls(DOWN) == CHUNKS);
            control.reset_calls();
            soon("without chunks", || {
                let sent = way(&matrix);
                let plain = Buffer::from_slice(&numbers(9 << 20), &[9 << 20], &sent.memory_space()).unwrap();
                assert!(plain.to_vec::<u8>().unwrap() == numbers(9 << 20));
            });
            assert!(!down.is_ready(), "the runner has no time to empty its chunks");
            let calls = || ["cuMemHostAlloc", "cuMemFreeHost"].map(|name| control.calls(name));
            let all_are_freed = || matches!(calls(), [made, freed] if made > 0 && made == freed);
            until(|| format!("made and freed are {:?} chunks more", calls()), all_are_freed);
            drop(occupied);
            outcome(&down).unwrap();
            assert!(read == numbers(bytes));
        });
    });
}

#[test]
fn a_part_that_fails_fails_its_array_alone() {
    process::run("strided::a_part_that_fails_fails_its_array_alone", &Options::default(), || {
        Session::with(1, |session| {
            let (matrix, control) = (three_parts(), &session.driver.control);
            let (image, arrived) = (matrix.image(), matrix.arrived());
            let fault = |name: &str, at| {
                control.reset_calls();
                control.set_faults(&format!("{name}:{at}:1"));
            };
            let semantics =
                [HostBufferSemantics::ImmutableOnlyDuringCall, HostBufferSemantics::ImmutableUntilTransferCompletes];
            for at in 1..=3 {
                for semantics in semantics {
                    fault(UP, at);
                    let sent = matrix.send(&session.client, semantics);
                    let error = sent.and_then(|sent| outcome(&sent.ready_event())).unwrap_err();
                    assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
                    control.set_faults("");
                }
                let sent = matrix.send(&session.client, semantics[1]).unwrap();
                assert!(raw(&sent) == image, "memory is whole after a failure");
                fault(DOWN, at);
                let mut to = matrix.elsewhere();
                // SAFETY: the place stays until the event, which outcome() waits for or fails the process.
                let down = unsafe { sent.copy_to_host_array(to.first().cast_mut(), &to.array) };
                assert_eq!(outcome(&down).unwrap_err().code(), StatusCode::InvalidArgument);
                // It is the caller's again.
                to.bytes.fill(0x77);
                let read = sent.copy_to_device(&session.client.devices()[0]).unwrap();
                assert!(raw(&read) == image && to.bytes.iter().all(|byte| *byte == 0x77));
                fault(DOWN, at);
                let plain = Buffer::from_raw(
                    sent.raw_alias().unwrap(),
                    &Shape::new(DType::U8, &[image.len() as i64]).unwrap(),
                    None,
                    &sent.ready_event(),
                );
                assert_eq!(plain.unwrap().to_vec::<u8>().unwrap_err().code(), StatusCode::InvalidArgument);
                control.set_faults("");
                let mut to = matrix.elsewhere();
                // SAFETY: as above.
                outcome(&unsafe { sent.copy_to_host_array(to.first().cast_mut(), &to.array) }).unwrap();
                assert!(std::mem::take(&mut to.bytes) == arrived);
            }
        });
    });
}

#[test]
fn a_gpu_that_breaks_ends_all_arrays() {
    process::run("strided::a_gpu_that_breaks_ends_all_arrays", &Options::default(), || {
        for fault in [format!("{UP}:3:719:async"), format!("{UP}:3:700:sticky"), format!("{DOWN}:2:719:async")] {
            forked(&fault, || {
                let session = Session::new(1);
                let matrix = three_parts();
                let sent = matrix.send(&session.client, HostBufferSemantics::ImmutableOnlyDuringCall).unwrap();
                let mut to = matrix.elsewhere();
                session.driver.control.reset_calls();
                session.driver.control.set_faults(&fault);
                let more = [
                    matrix.send(&session.client, HostBufferSemantics::ImmutableUntilTransferCompletes),
                    matrix.send(&session.client, HostBufferSemantics::ImmutableOnlyDuringCall),
                ];
                // SAFETY: the place stays until the event, which outcome() waits for or fails the process.
                let down = unsafe { sent.copy_to_host_array(to.first().cast_mut(), &to.array) };
                let outcomes: Vec<_> = more
                    .into_iter()
                    .map(|sent| sent.and_then(|sent| outcome(&sent.ready_event())))
                    .chain([outcome(&down)])
                    .collect();
                let failed: Vec<&Error> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
                assert!(!failed.is_empty(), "{fault} breaks nothing");
                failed.iter().for_each(|error| assert!(error.message().contains("is broken until"), "{error}"));
                to.bytes.fill(0);
                drop(sent);
                session.end_broken();
            });
        }
    });
}
