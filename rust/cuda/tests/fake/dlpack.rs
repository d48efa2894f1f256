//! Arrays of GPUs that pass to other libraries and back as DLPack's, in order by streams.

#![allow(unsafe_code, reason = "the arrays are pointers")]

use purlin::interchange::dlpack::abi::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, MAJOR, MINOR, code, device as kind, flag,
};
use purlin::interchange::{DlpackStream, DlpackTensor, import_dlpack, import_dlpack_behind};
use purlin::{Aliasing, Buffer, DType, Error, EventPromise, HostArray, MemorySpace, RawBuffer, Shape, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::stranger::{Stranger, Told};
use crate::support::*;

/// Rows, columns, and bytes of their words.
const DIMS: [i64; 2] = [32, 16];
const BYTES: usize = 32 * 16 * 4;

fn two() -> Options {
    Options { devices: 2, ..Options::default() }
}

/// The number of the GPU of a client's second device: where there is one GPU, that is virtual.
fn of_the_second() -> i32 {
    (1 % gpus()) as i32
}

fn shape() -> Shape {
    Shape::new(DType::U32, &DIMS).unwrap()
}

fn on(number: usize) -> DlpackStream {
    // SAFETY: tests pass handles that are there.
    unsafe { DlpackStream::new(i64::try_from(number).unwrap()) }.unwrap()
}

fn space(session: &Session, device: usize, kind: &str) -> MemorySpace {
    session.client.devices()[device].memory_space(kind).unwrap()
}

/// An array of another library's, and how often it was ended.
struct Theirs {
    shape: Vec<i64>,
    strides: Vec<i64>,
    told: Told,
}

unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: the boxes of tensor(); the deleter is called once.
    unsafe {
        let tensor = Box::from_raw(tensor);
        let theirs = Box::from_raw(tensor.manager_ctx.cast::<Theirs>());
        theirs.told.release()();
    }
}

/// Words of that device at `data`.
fn tensor(data: *mut u8, (kind, id): (i32, i32), strides: &[i64], told: &Told) -> *mut DLManagedTensorVersioned {
    let theirs = Theirs { shape: DIMS.to_vec(), strides: strides.to_vec(), told: told.clone() };
    let theirs = Box::into_raw(Box::new(theirs));
    // SAFETY: it was a box just now, and stays until delete().
    let (shape, strides) = unsafe { ((*theirs).shape.as_mut_ptr(), (*theirs).strides.as_mut_ptr()) };
    Box::into_raw(Box::new(DLManagedTensorVersioned {
        version: DLPackVersion { major: MAJOR, minor: MINOR },
        manager_ctx: theirs.cast(),
        deleter: Some(delete),
        flags: flag::READ_ONLY,
        dl_tensor: DLTensor {
            data: data.cast(),
            device: DLDevice { device_type: kind, device_id: id },
            ndim: 2,
            dtype: DLDataType { code: code::UINT, bits: 32, lanes: 1 },
            shape,
            strides,
            byte_offset: 0,
        },
    }))
}

/// Refused, and the struct is still the caller's, which ends it.
#[track_caller]
fn is_refused(
    tensor: *mut DLManagedTensorVersioned,
    space: &MemorySpace,
    stream: Option<DlpackStream>,
    code: StatusCode,
    words: &[&str],
) {
    // SAFETY: the struct is what DLPack says, and its memory has no other user.
    let made = unsafe {
        match stream {
            Some(stream) => import_dlpack_behind(tensor, space, stream),
            None => import_dlpack(tensor, space),
        }
    };
    let error = made.map(drop).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    words.iter().for_each(|words| assert!(error.message().contains(words), "'{words}' in: {error}"));
    // SAFETY: it was not taken.
    unsafe { delete(tensor) };
}

fn view(tensor: &DlpackTensor) -> &DLTensor {
    // SAFETY: the struct lives as long as the tensor.
    unsafe { &(*tensor.as_ptr()).dl_tensor }
}

fn words_of(buffer: &Buffer) -> Result<Vec<u8>, Error> {
    Ok(buffer.to_vec::<u32>()?.iter().flat_map(|word| word.to_le_bytes()).collect())
}

#[test]
fn the_stream_of_a_reader_waits_for_an_array_and_no_thread_does() {
    process::run("dlpack::the_stream_of_a_reader_waits_for_an_array_and_no_thread_does", &two(), || {
        Session::with(2, |session| {
            let gpu = of_the_second();
            let stranger = Stranger::on(gpu);
            let (made, copied) = (stranger.make_stream(), stranger.allocate(BYTES));
            let from = session.block(1, "pinned_host", BYTES);
            write(&from, &pattern(BYTES, 4)).unwrap();
            for theirs in [1, 2, made] {
                let block = session.block(1, "device", BYTES);
                let held = Held::new(&session.driver);
                session.driver.control.reset_calls();
                let buffer = Buffer::from_raw(block.clone(), &shape(), None, &copy(&from, &block, &[])).unwrap();
                // A GPU may be done with the copy by now.
                if session.driver.control.is_fake() {
                    assert_eq!(DlpackTensor::new(&buffer).unwrap_err().code(), StatusCode::FailedPrecondition);
                }
                let tensor = DlpackTensor::for_stream(&buffer, on(theirs)).unwrap();
                let array = view(&tensor);
                assert_eq!(array.device, DLDevice { device_type: kind::CUDA, device_id: gpu });
                assert_eq!(array.data.addr(), block.device_pointer().unwrap());
                stranger.copy(theirs, array.data.cast(), copied, BYTES);
                held.keeps([&buffer.ready_event()]);
                session.called(&[("cuEventSynchronize", 0)], "no thread waits");
                drop((held, buffer, block));
                stranger.synchronise(theirs);
                drop(tensor);
            }
            let told = Told::default();
            let back = crate::stranger::import(session, (1, "device"), copied, BYTES, &told).unwrap();
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 4));
            drop(back);
            stranger.free(copied);
            stranger.destroy_stream(made);
        });
    });
}

#[test]
fn an_array_comes_behind_the_stream_of_its_producer() {
    process::run("dlpack::an_array_comes_behind_the_stream_of_its_producer", &two(), || {
        Session::with(2, |session| {
            let gpu = of_the_second();
            let (stranger, told) = (Stranger::on(gpu), Told::default());
            let (made, data) = (stranger.make_stream(), stranger.allocate(BYTES));
            let (there, back) = (space(session, 1, "device"), session.block(1, "pinned_host", BYTES));
            for (number, theirs) in [1, 2, made].into_iter().enumerate() {
                let byte = number as u8 + 7;
                let held = Held::new(&session.driver);
                stranger.set(theirs, data, byte, BYTES);
                let tensor = tensor(data, (kind::CUDA, gpu), &[16, 1], &told);
                // SAFETY: the struct is what DLPack says; its memory is written by the stream alone.
                let (buffer, how) = unsafe { import_dlpack_behind(tensor, &there, on(theirs)) }.unwrap();
                assert_eq!((how, buffer.shape()), (Aliasing::Aliased, &shape()));
                let reference = buffer.external_reference().unwrap();
                let ready = buffer.ready_event();
                let down = copy(reference.memory(), &back, std::slice::from_ref(&ready));
                session.called(&[("cuMemcpyDtoHAsync_v2", number as u64 + 1)], "enqueued");
                held.keeps([&ready]);
                drop((reference, buffer));
                assert!(told.count() == number || !session.driver.control.is_fake(), "told {} times", told.count());
                drop(held);
                outcome(&down).unwrap();
                assert_eq!(read(&back).unwrap(), [byte; BYTES]);
                until(|| format!("told {} times", told.count()), || told.count() == number + 1);
            }
            // Without a stream its producer has waited.
            stranger.synchronise(made);
            // SAFETY: as above.
            let (buffer, _) =
                unsafe { import_dlpack(tensor(data, (kind::CUDA, gpu), &[16, 1], &told), &there) }.unwrap();
            assert_eq!(words_of(&buffer).unwrap(), [9; BYTES]);
            drop(buffer);
            stranger.free(data);
            stranger.destroy_stream(made);
        });
    });
}

/// Of immutable memory, the one struct is about the other's memory.
#[test]
fn an_array_that_passes_again_and_again_is_the_first_one() {
    process::run("dlpack::an_array_that_passes_again_and_again_is_the_first_one", &two(), || {
        Session::with(1, |session| {
            let (stranger, told, here) = (Stranger::on(0), Told::default(), space(session, 0, "device"));
            let data = stranger.allocate(BYTES);
            stranger.set(0, data, 5, BYTES);
            // SAFETY: the struct is what DLPack says; its memory is written by the stream alone.
            let mut buffer =
                unsafe { import_dlpack_behind(tensor(data, (kind::CUDA, 0), &[16, 1], &told), &here, on(1)) }
                    .unwrap()
                    .0;
            for _ in 0..3 {
                let exported = DlpackTensor::for_stream(&buffer, on(1)).unwrap().into_raw();
                // SAFETY: as above; the struct is given away.
                buffer = unsafe { import_dlpack_behind(exported, &here, on(1)) }.unwrap().0;
                assert_eq!(told.count(), 0);
            }
            assert_eq!(words_of(&buffer).unwrap(), [5; BYTES]);
            drop(buffer);
            assert_eq!(told.count(), 1);
            stranger.free(data);
        });
    });
}

/// Columns that follow each other are a layout; what has gaps is refused.
#[test]
fn dense_arrays_of_any_order_are_used_where_they_are() {
    process::run("dlpack::dense_arrays_of_any_order_are_used_where_they_are", &two(), || {
        Session::with(1, |session| {
            let (stranger, told, here) = (Stranger::on(0), Told::default(), space(session, 0, "device"));
            let data = stranger.allocate(2 * BYTES);
            let sent = pattern(BYTES, 8);
            let whole = crate::stranger::import(session, (0, "device"), data, BYTES, &told).unwrap();
            write(&whole, &sent).unwrap();
            drop(whole);
            // SAFETY: the struct is what DLPack says, and nothing writes its memory.
            let (buffer, _) = unsafe { import_dlpack(tensor(data, (kind::CUDA, 0), &[1, 32], &told), &here) }.unwrap();
            assert_eq!(buffer.layout().minor_to_major(), [0, 1]);
            let array = HostArray::new(&shape(), None).unwrap();
            let columns: Vec<u8> = (0..32)
                .flat_map(|row| (0..16).map(move |column| 4 * (row + 32 * column)))
                .flat_map(|at| sent[at..at + 4].to_vec())
                .collect();
            assert_eq!((words_of(&buffer).unwrap(), array.extent().len()), (columns, BYTES));
            let exported = DlpackTensor::new(&buffer).unwrap();
            // SAFETY: the struct has two strides.
            assert_eq!(unsafe { std::slice::from_raw_parts(view(&exported).strides, 2) }, [1, 32]);
            drop((exported, buffer));
            let gaps = tensor(data, (kind::CUDA, 0), &[32, 2], &told);
            is_refused(gaps, &here, None, StatusCode::Unimplemented, &["[128, 8] bytes", "without gaps"]);
            stranger.free(data);
        });
    });
}

#[test]
fn what_is_elsewhere_is_refused_with_both_places() {
    process::run("dlpack::what_is_elsewhere_is_refused_with_both_places", &two(), || {
        Session::with(2, |session| {
            let (stranger, told, here) = (Stranger::on(0), Told::default(), space(session, 0, "device"));
            let data = stranger.allocate(BYTES);
            let of = |device| tensor(data, device, &[16, 1], &told);
            let wrong = StatusCode::InvalidArgument;
            is_refused(of((kind::CUDA, 1)), &here, None, wrong, &["is of GPU 1", "is that of GPU 0"]);
            // The struct says one GPU, and the driver another.
            let there = space(session, 1, "device");
            is_refused(of((kind::CUDA, 1)), &there, None, wrong, &["memory of GPU 0", &format!("{:#x}", data.addr())]);
            let host = space(session, 0, "pinned_host");
            is_refused(of((kind::CUDA, 0)), &host, None, StatusCode::Unimplemented, &["GPU 0", "takes the host's"]);
            is_refused(of((13, 0)), &here, None, StatusCode::Unimplemented, &["device type 13"]);
            let mut words = vec![0_u32; BYTES / 4];
            let of_host = tensor(words.as_mut_ptr().cast(), (kind::CPU, 0), &[16, 1], &told);
            is_refused(of_host, &host, Some(on(1)), wrong, &["the stream 0x1", "memory of the host"]);
            for number in [0, -2, i64::MIN] {
                // SAFETY: no handle is meant.
                let error = unsafe { DlpackStream::new(number) }.unwrap_err();
                assert_eq!(error.code(), wrong);
                assert!(error.message().contains(&format!("no stream {number} ")), "{error}");
            }
            stranger.free(data);
        });
    });
}

#[test]
fn pinned_memory_is_cudas_and_the_host_waits_for_it() {
    process::run("dlpack::pinned_memory_is_cudas_and_the_host_waits_for_it", &two(), || {
        Session::with(1, |session| {
            let pinned = space(session, 0, "pinned_host");
            let values: Vec<u32> = (0..(BYTES as u32) / 4).collect();
            let buffer = Buffer::from_slice(&values, &DIMS, &pinned).unwrap();
            outcome(&buffer.ready_event()).unwrap();
            // SAFETY: -1 is no stream.
            let none = unsafe { DlpackStream::new(-1) }.unwrap();
            for tensor in [DlpackTensor::new(&buffer), DlpackTensor::for_stream(&buffer, none)] {
                let tensor = tensor.unwrap();
                assert_eq!(view(&tensor).device, DLDevice { device_type: kind::CUDA_HOST, device_id: 0 });
                // SAFETY: the struct is given away, and nothing writes the elements.
                let (back, how) = unsafe { import_dlpack(tensor.into_raw(), &pinned) }.unwrap();
                assert_eq!((back.to_vec::<u32>().unwrap(), how), (values.clone(), Aliasing::Aliased));
            }
            let refused = DlpackTensor::for_stream(&buffer, on(2)).unwrap_err();
            assert_eq!(refused.code(), StatusCode::InvalidArgument, "{refused}");
            let plain = Buffer::from_slice(&values, &DIMS, &space(session, 0, "unpinned_host")).unwrap();
            outcome(&plain.ready_event()).unwrap();
            assert_eq!(view(&DlpackTensor::new(&plain).unwrap()).device.device_type, kind::CPU);
            let promise = EventPromise::new(c"input");
            let block = RawBuffer::allocate(&pinned, BYTES).unwrap();
            let pending = Buffer::from_raw(block, &shape(), None, &promise.event()).unwrap();
            for tensor in [DlpackTensor::new(&pending), DlpackTensor::for_stream(&pending, none)] {
                assert_eq!(tensor.unwrap_err().code(), StatusCode::FailedPrecondition);
            }
            promise.set_error(Error::aborted("planned"));
            assert_eq!(DlpackTensor::new(&pending).unwrap_err().code(), StatusCode::Aborted);
        });
    });
}
