//! DLPack: exports, imports, and that each deleter is called once or, after an error, not at all.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_array::{HostArray, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, NullBackend, RawBuffer};

use super::abi::{DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use super::*;
use crate::array_bytes::HostBytes;
use crate::testing::Host;

/// A foreign array: bytes, numbers, and a count of its ends.
pub(crate) struct Stranger {
    pub(crate) managed: DLManagedTensorVersioned,
    _bytes: Vec<u64>,
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
    ends: Arc<AtomicUsize>,
}

impl Stranger {
    /// `bytes` begin at a multiple of 16, and the struct is passed by pointer: its deleter frees it.
    pub(crate) fn new(bytes: &[u8], dtype: DLDataType, shape: &[i64], strides: Option<&[i64]>) -> (*mut Self, Ends) {
        let ends = Arc::new(AtomicUsize::new(0));
        let mut words = vec![0_u64; bytes.len() / 8 + 4];
        let begin = words.as_ptr().cast::<u8>().align_offset(16);
        let data = words.as_mut_ptr().cast::<u8>().wrapping_add(begin);
        // SAFETY: there is room for the bytes and 16 more.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        let mut shape: Box<[i64]> = shape.into();
        let mut kept: Box<[i64]> = strides.unwrap_or_default().into();
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: ptr::null_mut(),
            deleter: Some(Self::end),
            flags: 0,
            dl_tensor: DLTensor {
                data: data.cast(),
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim: shape.len() as i32,
                dtype,
                shape: shape.as_mut_ptr(),
                strides: if strides.is_some() { kept.as_mut_ptr() } else { ptr::null_mut() },
                byte_offset: 0,
            },
        };
        let made = Box::new(Self { managed, _bytes: words, _shape: shape, _strides: kept, ends: Arc::clone(&ends) });
        let raw = Box::into_raw(made);
        // SAFETY: it was a box just now.
        unsafe { (*raw).managed.manager_ctx = raw.cast::<c_void>() };
        (raw, Ends(ends))
    }

    pub(crate) unsafe extern "C" fn end(managed: *mut DLManagedTensorVersioned) {
        // SAFETY: called once; the context is the box.
        let this = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Self>()) };
        this.ends.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn managed(this: *mut Self) -> *mut DLManagedTensorVersioned {
        // SAFETY: it is alive; this is an address.
        unsafe { &raw mut (*this).managed }
    }
}

/// How often a deleter was called.
pub(crate) struct Ends(Arc<AtomicUsize>);

impl Ends {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until it was called: what was copied is released by a worker, soon.
    pub(crate) fn wait(&self) {
        crate::testing::until("a deleter was called", || self.count() > 0);
    }
}

const F32: DLDataType = DLDataType { code: code::FLOAT, bits: 32, lanes: 1 };
const U8: DLDataType = DLDataType { code: code::UINT, bits: 8, lanes: 1 };
const S4: DLDataType = DLDataType { code: code::INT, bits: 4, lanes: 1 };

fn import(host: &Host, tensor: *mut Stranger) -> purlin_base::StatusOr<(Buffer, purlin_device::Aliasing)> {
    // SAFETY: a `Stranger` is what DLPack says, or what the test made of it, and nothing writes it.
    unsafe { import_dlpack(Stranger::managed(tensor), &host.space) }
}

fn host_bytes(buffer: &Buffer) -> Vec<u8> {
    HostBytes::of(buffer).unwrap().as_slice().to_vec()
}

/// The memory that the client still counts as in use.
fn in_use(host: &Host) -> u64 {
    host.space.stats().bytes_in_use
}

#[test]
fn every_type_but_token_has_a_description_that_is_read_back() {
    for each in DType::all() {
        match described(each) {
            Some(described) => assert_eq!(dtype(described), Some(each)),
            None => assert_eq!(each, DType::Token),
        }
    }
    for lanes in [0, 2, 4] {
        assert_eq!(dtype(DLDataType { lanes, ..F32 }), None);
    }
    assert_eq!(dtype(DLDataType { code: 3, bits: 64, lanes: 1 }), None, "an opaque handle");
    assert_eq!(dtype(DLDataType { code: code::BOOL, bits: 1, lanes: 1 }), None);
}

#[test]
fn a_buffer_goes_out_and_comes_back_where_it_is() {
    let host = Host::new();
    for each in DType::all().filter(|&dtype| dtype != DType::Token) {
        let shape = Shape::new(each, &[3, 5]).unwrap();
        let mask = if each.is_sub_byte() { (1 << each.bits()) - 1 } else { u8::MAX };
        let elements: Vec<u8> = (0..shape.host_size_bytes()).map(|index| index as u8 & mask).collect();
        let semantics = purlin_device::HostBufferSemantics::ImmutableOnlyDuringCall;
        // SAFETY: the elements are there during the call.
        let made =
            unsafe { Buffer::from_host(elements.as_ptr(), elements.len(), each, &[3, 5], &host.space, semantics) };
        let buffer = made.unwrap();
        let tensor = DlpackTensor::new(&buffer).unwrap();
        // SAFETY: the tensor is ours, and as DLPack says.
        let view = unsafe { &*tensor.as_ptr() };
        assert_eq!((view.version, view.flags), (DLPackVersion { major: 1, minor: 1 }, abi::flag::READ_ONLY));
        assert_eq!(view.dl_tensor.dtype.bits as usize, each.bits());
        // SAFETY: it is given away.
        let (back, how) = unsafe { import_dlpack(tensor.into_raw(), &host.space) }.unwrap();
        assert_eq!(how == purlin_device::Aliasing::Aliased, !each.is_sub_byte());
        assert_eq!(back.shape(), buffer.shape());
        assert_eq!(host_bytes(&back), host_bytes(&buffer), "{each}");
    }
}

#[test]
fn what_is_exported_is_the_memory_itself_in_its_own_order() {
    let host = Host::new();
    let shape = Shape::new(DType::F32, &[2, 3]).unwrap();
    let array = HostArray::new(&shape, None).unwrap();
    let rows = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let options = purlin_device::FromHostOptions { layout: Some(Layout::new(&[0, 1]).unwrap()), ..Default::default() };
    // SAFETY: the rows are there during the call.
    let (buffer, _) = unsafe { Buffer::from_host_array(rows.as_ptr().cast(), &array, &host.space, options) }.unwrap();
    let tensor = DlpackTensor::new(&buffer).unwrap();
    // SAFETY: the tensor is ours, and as DLPack says.
    let (view, shape, strides) = unsafe {
        let view = &(*tensor.as_ptr()).dl_tensor;
        (view, std::slice::from_raw_parts(view.shape, 2), std::slice::from_raw_parts(view.strides, 2))
    };
    assert_eq!((shape, strides, view.byte_offset), (&[2, 3][..], &[1, 2][..], 0));
    assert_eq!(view.device, DLDevice { device_type: 1, device_id: 0 });
    assert_eq!(view.data.cast(), buffer.raw_alias().unwrap().host_pointer().unwrap().as_ptr());
    // SAFETY: as above.
    let (back, how) = unsafe { import_dlpack(tensor.into_raw(), &host.space) }.unwrap();
    assert_eq!(how, purlin_device::Aliasing::Copied);
    assert_eq!(back.to_vec::<f32>().unwrap(), rows);
}

#[test]
fn an_empty_array_that_the_host_reaches_has_an_address() {
    let host = Host::new();
    let buffer = Buffer::from_slice::<f32>(&[], &[2, 0], &host.space).unwrap();
    let tensor = DlpackTensor::new(&buffer).unwrap();
    // SAFETY: the tensor is ours. With null, what NumPy makes of it is not the same array (tests/interchange).
    assert!(!unsafe { (*tensor.as_ptr()).dl_tensor.data }.is_null());
}

#[test]
fn the_memory_stays_and_is_not_donated_until_the_deleter() {
    let host = Host::new();
    let buffer = Buffer::from_slice(&[7_u8; 4096], &[4096], &host.space).unwrap();
    let before = in_use(&host);
    let (first, second) = (DlpackTensor::new(&buffer).unwrap(), DlpackTensor::new(&buffer).unwrap());
    let error = buffer.donate(c"test").unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.message().contains("external reference"), "{error}");
    buffer.delete();
    drop(buffer);
    assert_eq!(in_use(&host), before);
    // SAFETY: it is alive.
    assert_eq!(unsafe { *(*first.as_ptr()).dl_tensor.data.cast::<u8>() }, 7);
    drop(first);
    assert_eq!(in_use(&host), before);
    let raw = second.into_raw();
    // SAFETY: it was given away, so this is the one call of the deleter.
    unsafe { (*raw).deleter.unwrap()(raw) };
    // The worker that has copied the bytes into it releases it soon.
    crate::testing::until("nothing is in use", || in_use(&host) == 0);
}

#[test]
fn what_cannot_be_exported_says_why() {
    let host = Host::new();
    let shape = Shape::new(DType::F32, &[1]).unwrap();
    let memory = RawBuffer::allocate(&host.space, 4).unwrap();
    let promise = EventPromise::new(c"pending");
    let pending = Buffer::from_raw(memory, &shape, None, &promise.event()).unwrap();
    let error = DlpackTensor::new(&pending).unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert!(error.message().contains("is not ready yet"), "{error}");
    promise.set_ready();
    drop(DlpackTensor::new(&pending).unwrap());
    let memory = RawBuffer::allocate(&host.space, 4).unwrap();
    let poison = purlin_async::Event::from_error(Error::aborted("no such luck"));
    let deleted = Buffer::from_slice(&[1_u8], &[1], &host.space).unwrap();
    deleted.delete();
    let dynamic = Shape::with_dynamic(DType::F32, &[1], &[true]).unwrap();
    for (buffer, code) in [
        (Buffer::from_raw(memory, &shape, None, &poison).unwrap(), StatusCode::Aborted),
        (Buffer::error(Error::aborted("no such luck"), &shape, &host.space), StatusCode::Aborted),
        (deleted, StatusCode::InvalidArgument),
        (Buffer::uninitialized(&dynamic, None, &host.space, &Default::default()).unwrap(), StatusCode::InvalidArgument),
        (Buffer::token(&host.space, &purlin_async::Event::ready()).unwrap(), StatusCode::InvalidArgument),
    ] {
        assert_eq!(DlpackTensor::new(&buffer).unwrap_err().code(), code);
    }
    let options = purlin_device::ClientOptions { device_count: 1, ..Default::default() };
    let client = purlin_device::Client::new(&options, Arc::new(NullBackend::new())).unwrap();
    let space = client.devices()[0].default_memory_space();
    let far = Buffer::uninitialized(&shape, None, &space, &Default::default()).unwrap();
    far.ready_event().wait().unwrap();
    let error = DlpackTensor::new(&far).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented, "{error}");
}

#[test]
fn the_deleter_is_called_when_the_last_user_is_gone() {
    let host = Host::new();
    let (tensor, ends) = Stranger::new(&[1, 2, 3, 4, 5, 6], U8, &[2, 3], None);
    let (buffer, how) = import(&host, tensor).unwrap();
    assert_eq!(how, purlin_device::Aliasing::Aliased);
    let alias = buffer.raw_alias().unwrap();
    let clone = buffer.clone();
    drop((buffer, clone));
    assert_eq!(ends.count(), 0);
    drop(alias);
    ends.wait();
    assert_eq!(ends.count(), 1);
}

#[test]
fn what_is_copied_is_let_go_when_the_copy_is_made() {
    let host = Host::new();
    for (strides, offset, expected) in [
        (&[1, 2][..], 0, [1, 3, 5, 2, 4, 6]),
        (&[3, -1], 2, [3, 2, 1, 6, 5, 4]),
        (&[-3, -1], 5, [6, 5, 4, 3, 2, 1]),
        (&[0, 1], 1, [2, 3, 4, 2, 3, 4]),
    ] {
        let (tensor, ends) = Stranger::new(&[1, 2, 3, 4, 5, 6], U8, &[2, 3], Some(strides));
        // SAFETY: it is alive, and ours.
        unsafe { (*tensor).managed.dl_tensor.byte_offset = offset };
        let (buffer, how) = import(&host, tensor).unwrap();
        assert_eq!(how, purlin_device::Aliasing::Copied);
        assert_eq!(buffer.to_vec::<u8>().unwrap(), expected);
        ends.wait();
        drop(buffer);
        assert_eq!(ends.count(), 1);
    }
}

#[test]
fn narrow_elements_come_packed_or_padded() {
    let host = Host::new();
    let (packed, packed_ends) = Stranger::new(&[0x21, 0x03], S4, &[3], None);
    let (padded, padded_ends) = Stranger::new(&[1, 0xf2, 3], S4, &[3], Some(&[1]));
    // SAFETY: it is alive, and ours.
    unsafe { (*padded).managed.flags = abi::flag::IS_SUBBYTE_TYPE_PADDED };
    for (tensor, ends) in [(packed, packed_ends), (padded, padded_ends)] {
        let (buffer, _) = import(&host, tensor).unwrap();
        assert_eq!(host_bytes(&buffer), [1, 2, 3]);
        ends.wait();
        assert_eq!(ends.count(), 1);
    }
    let (gaps, ends) = Stranger::new(&[0x21, 0x03], S4, &[2], Some(&[2]));
    assert_eq!(import(&host, gaps).unwrap_err().code(), StatusCode::Unimplemented);
    // SAFETY: it stayed ours.
    unsafe { Stranger::end(Stranger::managed(gaps)) };
    assert_eq!(ends.count(), 1);
}

#[test]
fn a_tensor_that_is_refused_stays_the_callers() {
    let host = Host::new();
    type Spoil = fn(&mut DLManagedTensorVersioned);
    fn set(first: *mut i64, number: i64) {
        // SAFETY: the foreign struct's shape and strides have two entries.
        unsafe { *first = number };
    }
    let invalid = StatusCode::InvalidArgument;
    let cases: [(Spoil, StatusCode, &str); 14] = [
        (|it| it.version.major = 2, invalid, "it is of version 2.3, and only 1.x"),
        (|it| it.version.major = 0, invalid, "it is of version 0.3"),
        (|it| it.dl_tensor.device.device_type = 2, StatusCode::Unimplemented, "device type 2"),
        (|it| it.dl_tensor.ndim = -1, invalid, "-1 dimensions"),
        (|it| it.dl_tensor.ndim = 65, invalid, "65 dimensions"),
        (|it| it.dl_tensor.shape = ptr::null_mut(), invalid, "its shape is null"),
        (|it| it.dl_tensor.data = ptr::null_mut(), invalid, "its data is null"),
        (|it| it.dl_tensor.dtype.lanes = 4, StatusCode::Unimplemented, "4 lanes"),
        (|it| it.dl_tensor.dtype.bits = 80, StatusCode::Unimplemented, "80 bits"),
        (|it| it.dl_tensor.byte_offset = u64::MAX, invalid, "beyond all addresses"),
        (|it| set(it.dl_tensor.shape, -2), invalid, "is negative: -2"),
        (|it| set(it.dl_tensor.shape, i64::MAX), invalid, "needs more than"),
        (|it| set(it.dl_tensor.strides, i64::MAX), invalid, "more than any memory"),
        (|it| set(it.dl_tensor.strides, i64::MAX / 4), invalid, "reaches over more than"),
    ];
    for (spoil, code, says) in cases {
        let (tensor, ends) = Stranger::new(&[0; 24], F32, &[2, 3], Some(&[3, 1]));
        // SAFETY: it is alive, and ours.
        spoil(unsafe { &mut (*tensor).managed });
        let error = import(&host, tensor).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(says), "{error}");
        assert_eq!(ends.count(), 0, "{says}");
        // SAFETY: it stayed ours.
        unsafe { Stranger::end(Stranger::managed(tensor)) };
    }
    // SAFETY: null is allowed.
    let error = unsafe { import_dlpack(ptr::null_mut(), &host.space) }.unwrap_err();
    assert_eq!(error.message(), "the DLPack tensor is null");
}

#[test]
fn a_tensor_that_there_is_no_memory_for_stays_the_callers() {
    let options = purlin_device::ClientOptions { device_count: 1, memory_limit_bytes: 64, ..Default::default() };
    let client = purlin_device::Client::new(&options, Arc::new(purlin_host::HostBackend::new())).unwrap();
    let space = client.devices()[0].default_memory_space();
    let (tensor, ends) = Stranger::new(&[0; 4096], U8, &[64, 64], Some(&[1, 64]));
    // SAFETY: a `Stranger` is what DLPack says.
    let error = unsafe { import_dlpack(Stranger::managed(tensor), &space) }.unwrap_err();
    assert_eq!(error.code(), StatusCode::ResourceExhausted);
    assert_eq!(ends.count(), 0);
    // SAFETY: it stayed ours.
    unsafe { Stranger::end(Stranger::managed(tensor)) };
}

#[test]
fn scalars_empty_arrays_and_those_without_a_deleter_are_arrays() {
    let host = Host::new();
    let (scalar, ends) = Stranger::new(&[0, 0, 128, 63], F32, &[], None);
    assert_eq!(import(&host, scalar).unwrap().0.to_vec::<f32>().unwrap(), [1.0]);
    ends.wait();
    let (empty, ends) = Stranger::new(&[], F32, &[2, 0], Some(&[i64::MAX, i64::MIN]));
    // SAFETY: it is alive, and ours.
    unsafe { (*empty).managed.dl_tensor.data = ptr::null_mut() };
    let (buffer, _) = import(&host, empty).unwrap();
    assert_eq!(buffer.dims(), [2, 0]);
    ends.wait();
    let back = DlpackTensor::new(&buffer).unwrap();
    // SAFETY: it is ours.
    assert_eq!(unsafe { (*back.as_ptr()).dl_tensor.ndim }, 2);
    let (kept, ends) = Stranger::new(&[5], U8, &[1], None);
    // SAFETY: it is alive, and ours.
    unsafe { (*kept).managed.deleter = None };
    drop(import(&host, kept).unwrap());
    assert_eq!(ends.count(), 0);
    // SAFETY: no other code ends it.
    unsafe { Stranger::end(Stranger::managed(kept)) };
}
