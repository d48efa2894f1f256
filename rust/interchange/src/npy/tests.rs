//! `.npy`: what is read, what is written, and what is refused at which byte.

use purlin_array::{DType, Layout};
use purlin_base::StatusCode;
use purlin_device::{Aliasing, Buffer};

use super::*;
use crate::testing::{Folder, Host};

/// A file of version 1.0 without padding.
pub(crate) fn file_of(text: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

/// As a file of these bytes is read: in two steps.
pub(crate) fn parse(bytes: &[u8], named: Option<DType>) -> Result<(HostArray, usize), Fault> {
    let header_bytes = header::size_bytes(&bytes[..bytes.len().min(header::PREFIX_BYTES)], bytes.len())?;
    super::parse(&bytes[..header_bytes], bytes.len(), named)
}

fn fault(bytes: &[u8]) -> Fault {
    parse(bytes, None).expect_err("it is refused")
}

/// Bytes of the elements in row-major order.
fn host_bytes(buffer: &Buffer) -> Vec<u8> {
    HostBytes::of(buffer).unwrap().as_slice().to_vec()
}

fn mapped() -> NpyReadOptions {
    // SAFETY: the files of these tests are the tests' own, and written once.
    NpyReadOptions { access: unsafe { FileAccess::mapped() }, ..Default::default() }
}

#[test]
fn an_array_is_read_as_it_was_written_by_either_access() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.npy");
    let written = Buffer::from_slice(&[1.5_f32, -2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], &host.space).unwrap();
    write_npy(&path, &written, WriteOptions { is_durable: true }).unwrap();
    for (options, aliasing) in [(mapped(), Aliasing::Aliased), (NpyReadOptions::default(), Aliasing::Copied)] {
        let (read, how) = read_npy(&path, &host.space, &options).unwrap();
        assert_eq!(how, aliasing);
        assert_eq!(read.shape(), written.shape());
        assert_eq!(read.to_vec::<f32>().unwrap(), [1.5, -2.0, 3.0, 4.0, 5.0, 6.0]);
    }
    assert_eq!(folder.names(), ["a.npy"]);
}

#[test]
fn every_type_makes_the_journey() {
    let (host, folder) = (Host::new(), Folder::new());
    for dtype in DType::all().filter(|&dtype| dtype != DType::Token) {
        let shape = Shape::new(dtype, &[3, 5]).unwrap();
        let elements: Vec<u8> = (0..shape.host_size_bytes())
            .map(|index| if dtype.is_sub_byte() { index as u8 & ((1 << dtype.bits()) - 1) } else { index as u8 })
            .collect();
        let semantics = purlin_device::HostBufferSemantics::ImmutableOnlyDuringCall;
        // SAFETY: the elements are there during the call.
        let buffer =
            unsafe { Buffer::from_host(elements.as_ptr(), elements.len(), dtype, &[3, 5], &host.space, semantics) };
        let buffer = buffer.unwrap();
        let path = folder.file(dtype.name());
        write_npy(&path, &buffer, WriteOptions::default()).unwrap();
        for access in [FileAccess::read(), mapped().access] {
            let (read, _) = read_npy(&path, &host.space, &NpyReadOptions { dtype: Some(dtype), access }).unwrap();
            assert_eq!(read.shape(), buffer.shape());
            assert_eq!(host_bytes(&read), host_bytes(&buffer), "{dtype}");
        }
    }
}

#[test]
fn a_mapping_outlives_the_files_name_and_ends_with_its_last_buffer() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.npy");
    let first = Buffer::from_slice(&[7_i64; 1024], &[1024], &host.space).unwrap();
    write_npy(&path, &first, WriteOptions::default()).unwrap();
    let (read, how) = read_npy(&path, &host.space, &mapped()).unwrap();
    assert_eq!(how, Aliasing::Aliased);
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
    let name = path.to_str().unwrap();
    assert!(maps().contains(name));
    let other = Buffer::from_slice(&[8_i64; 1024], &[1024], &host.space).unwrap();
    write_npy(&path, &other, WriteOptions::default()).unwrap();
    assert_eq!(read.to_vec::<i64>().unwrap(), [7; 1024], "the mapping is of the file that was replaced");
    drop(read);
    // The worker that has read it releases it soon.
    crate::testing::until("the file is unmapped", || !maps().contains(name));
}

#[test]
fn columns_become_rows() {
    let (host, folder) = (Host::new(), Folder::new());
    let bytes =
        file_of("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
    let path = folder.holding("columns.npy", &bytes);
    let (read, how) = read_npy(&path, &host.space, &mapped()).unwrap();
    assert_eq!(how, Aliasing::Copied);
    assert_eq!(read.to_vec::<i16>().unwrap(), [1, 3, 5, 2, 4, 6]);
    // And a buffer whose first dimension is contiguous is written in rows.
    let array = HostArray::new(read.shape(), None).unwrap();
    let rows = [1_i16, 3, 5, 2, 4, 6];
    let options = purlin_device::FromHostOptions { layout: Some(Layout::new(&[0, 1]).unwrap()), ..Default::default() };
    // SAFETY: the rows are there during the call.
    let made = unsafe { Buffer::from_host_array(rows.as_ptr().cast(), &array, &host.space, options) };
    let again = folder.file("rows.npy");
    write_npy(&again, &made.unwrap().0, WriteOptions::default()).unwrap();
    assert_eq!(read_npy(&again, &host.space, &mapped()).unwrap().0.to_vec::<i16>().unwrap(), rows);
}

#[test]
fn scalars_and_empty_arrays_are_arrays() {
    let (host, folder) = (Host::new(), Folder::new());
    for dims in [&[][..], &[0], &[3, 0, 5], &[1, 1, 1, 1, 1]] {
        let count = dims.iter().product::<i64>() as usize;
        let buffer = Buffer::from_slice(&vec![9_u16; count], dims, &host.space).unwrap();
        let path = folder.file("a.npy");
        write_npy(&path, &buffer, WriteOptions::default()).unwrap();
        let (read, _) = read_npy(&path, &host.space, &mapped()).unwrap();
        assert_eq!((read.dims(), read.to_vec::<u16>().unwrap()), (dims, vec![9; count]));
    }
}

#[test]
fn the_header_is_pythons_in_whatever_words() {
    for text in [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }          \n",
        "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"<f4\"}",
        " { 'shape' : ( 2L , ) , 'descr' : '<f4' , 'fortran_order' : False } \t\r\n",
    ] {
        let bytes = file_of(text, &[0; 8]);
        let (array, offset) = parse(&bytes, None).unwrap();
        assert_eq!((array.shape().to_string(), offset), ("f32[2]".to_owned(), bytes.len() - 8));
    }
    for version in [2, 3] {
        let text = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0, text.len() as u8, 0, 0, 0]);
        bytes.extend(text.as_bytes());
        bytes.push(1);
        assert_eq!(parse(&bytes, None).unwrap().0.shape().to_string(), "u8[]");
    }
}

#[test]
fn a_written_header_is_numpys_to_the_byte() {
    // As NumPy 2.4 writes them.
    for (dims, text) in [
        (&[2, 3][..], "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"),
        (&[3], "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
        (&[], "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"),
    ] {
        let header = header::written(&Shape::new(DType::F32, dims).unwrap()).unwrap();
        assert_eq!(header.len(), 128);
        assert!(header.starts_with(b"\x93NUMPY\x01\x00v\x00"));
        assert_eq!(std::str::from_utf8(&header[10..]).unwrap(), format!("{text:117}\n"));
    }
    let most = Shape::new(DType::U8, &[i64::MAX, 0].repeat(32)).unwrap();
    let header = header::written(&most).unwrap();
    assert_eq!(parse(&header, None).unwrap().0.shape(), &most);
    assert!(header::written(&Shape::new(DType::U8, &[1; 65]).unwrap()).is_err());
}

#[test]
fn what_is_damaged_is_refused_at_its_byte() {
    let good = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]);
    assert!(parse(&good, None).is_ok());
    for length in 0..good.len() {
        let refused = fault(&good[..length]);
        assert!(refused.offset <= length, "{refused:?}");
        assert_eq!(refused.code, StatusCode::DataLoss, "{refused:?}");
    }
    let longer = [&good[..], &[0]].concat();
    assert_eq!(
        (fault(&longer).offset, fault(&longer).what.as_str()),
        (good.len(), "1 bytes follow after the 8 bytes of f32[2]")
    );
    let shorter = &good[..good.len() - 1];
    assert_eq!(
        (fault(shorter).offset, fault(shorter).what.as_str()),
        (74, "the file ends after 7 of the 8 bytes of f32[2]")
    );
    for (text, offset, says) in [
        ("", 10, "the header ends instead of a dictionary"),
        ("[1]", 10, "\"[1]\" instead of a dictionary"),
        ("{'descr': '<f4', 'fortran_order': False, }", 52, "the header lacks one of"),
        ("{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 27, "a second entry \"descr\""),
        ("{'descr': '<f4', 'order': 1}", 27, "\"order\" is no entry"),
        ("{'descr': '<f5'", 20, "\"<f5\" is no type of elements"),
        ("{'descr': '<f\\x34'", 23, "an escape or control character"),
        ("{'descr': '<f4", 20, "a string without an end"),
        ("{'descr': 4", 20, "\"4\" instead of a string"),
        ("{'descr' '<f4'", 19, "instead of a colon"),
        ("{'descr': '<f4' 'shape'", 26, "instead of a comma or the end"),
        ("{'fortran_order': 1", 28, "\"1\" instead of True or False"),
        ("{'shape': [2]", 20, "instead of a tuple"),
        ("{'shape': (2)", 22, "one number in parentheses is no tuple"),
        ("{'shape': (,)", 21, "instead of a dimension"),
        ("{'shape': (-2,)", 21, "\"-2,)\" instead of a dimension"),
        ("{'shape': (2, 3", 25, "the header ends instead of a comma or the end of the tuple"),
        ("{'shape': (9223372036854775808,)", 21, "is more than any memory"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", 68, "\"x\" instead of the end"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 60, "needs more than"),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (1152921504606846975,), }", 61, "reaches over more than"),
        (
            "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,), }",
            85,
            "the file ends after 0 of the",
        ),
    ] {
        let refused = fault(&file_of(text, &[]));
        assert_eq!(refused.offset, offset, "{text}: {refused:?}");
        assert!(refused.what.contains(says), "{text}: {refused:?}");
        assert_eq!(refused.code, StatusCode::DataLoss, "{text}");
    }
    let refused = fault(b"\x93NUMPY\x01\x00\xff\xff{'descr'");
    assert_eq!(
        (refused.offset, refused.what.as_str()),
        (8, "the header is said to be 65535 bytes long, but the file ends after 8")
    );
    let refused = fault(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'");
    assert_eq!(refused.offset, 8);
    assert_eq!(fault(b"\x93NUMPY\x03\x00\x03\x00\x00\x00{ \xff").offset, 14);
    assert_eq!(fault(b"\x93NUMBA").offset, 4);
}

#[test]
fn what_no_buffer_holds_is_said_by_name() {
    for (descr, offset, says) in [
        ("'|O'", 20, "pickled objects"),
        ("'>f4'", 20, "big-endian elements"),
        ("'<U5'", 20, "text"),
        ("[('a', '<f4'), ('b', '|u1')]", 20, "structured type"),
        ("('<f4', (2,))", 20, "structured type"),
    ] {
        let refused = fault(&file_of(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (), }}"), &[0; 8]));
        assert_eq!((refused.offset, refused.code), (offset, StatusCode::Unimplemented), "{refused:?}");
        assert!(refused.what.contains(says), "{refused:?}");
    }
    let many = format!("{{'shape': ({}), ", "1, ".repeat(65));
    assert_eq!(fault(&file_of(&many, &[])).what, "more than 64 dimensions");
    assert_eq!(fault(b"\x93NUMPY\x04\x00").code, StatusCode::Unimplemented);
}

#[test]
fn a_type_that_numpy_does_not_know_must_be_named_and_fit() {
    let opaque = file_of("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", &[0x80, 0x3f]);
    let refused = fault(&opaque);
    assert_eq!((refused.offset, refused.code), (20, StatusCode::InvalidArgument));
    assert!(refused.what.contains("must be named"), "{refused:?}");
    assert_eq!(parse(&opaque, Some(DType::BF16)).unwrap().0.shape().dtype(), DType::BF16);
    for wrong in [DType::F8E5M2, DType::F16, DType::F32, DType::Token] {
        assert_eq!(parse(&opaque, Some(wrong)).unwrap_err().code, StatusCode::InvalidArgument, "{wrong}");
    }
    let plain = file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &[0; 4]);
    assert_eq!(parse(&plain, Some(DType::S32)).unwrap_err().what, "the elements are f32, not s32");
}

#[test]
fn errors_name_the_file_and_the_byte() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.holding("damaged.npy", b"\x93NUMPY\x01\x00\x05\x00{'de");
    let error = read_npy(&path, &host.space, &NpyReadOptions::default()).unwrap_err();
    let says = "byte 8: the header is said to be 5 bytes long, but the file ends after 4";
    assert_eq!(error.message(), format!("{}, {says}", path.display()));
    for (path, code) in [
        (folder.file("none.npy"), StatusCode::NotFound),
        (folder.path().to_owned(), StatusCode::FailedPrecondition),
        ("/dev/zero".into(), StatusCode::FailedPrecondition),
        (folder.holding("empty.npy", b""), StatusCode::DataLoss),
        ("a\0b".into(), StatusCode::InvalidArgument),
    ] {
        for options in [mapped(), NpyReadOptions::default()] {
            let error = read_npy(&path, &host.space, &options).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(&*path.to_string_lossy()), "{error}");
        }
    }
}

#[test]
fn a_pipe_that_nobody_writes_is_refused_at_once() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("pipe.npy");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for options in [mapped(), NpyReadOptions::default()] {
        assert_eq!(read_npy(&path, &host.space, &options).unwrap_err().code(), StatusCode::FailedPrecondition);
    }
    let buffer = Buffer::from_slice(&[1_u8], &[1], &host.space).unwrap();
    assert_eq!(write_npy(&path, &buffer, WriteOptions::default()).unwrap_err().code(), StatusCode::FailedPrecondition);
}

#[test]
fn who_reads_while_others_write_gets_one_file_or_the_other() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.npy");
    let arrays = [1_u32, 2].map(|value| Buffer::from_slice(&[value; 5000], &[5000], &host.space).unwrap());
    write_npy(&path, &arrays[0], WriteOptions::default()).unwrap();
    std::thread::scope(|threads| {
        for array in &arrays {
            threads.spawn(|| (0..100).for_each(|_| write_npy(&path, array, WriteOptions::default()).unwrap()));
        }
        for options in [mapped(), NpyReadOptions::default()] {
            let (path, space) = (&path, &host.space);
            threads.spawn(move || {
                for _ in 0..100 {
                    let values = read_npy(path, space, &options).unwrap().0.to_vec::<u32>().unwrap();
                    assert!(values == [1; 5000] || values == [2; 5000]);
                }
            });
        }
    });
    assert_eq!(folder.names(), ["a.npy"]);
}

#[test]
fn a_file_that_cannot_be_written_is_left_as_it_was() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.holding("old.npy", b"old");
    let failed = Buffer::error(Error::aborted("no such luck"), &Shape::new(DType::F32, &[1]).unwrap(), &host.space);
    let deleted = Buffer::from_slice(&[1_u8], &[1], &host.space).unwrap();
    deleted.delete();
    let dynamic = Shape::with_dynamic(DType::F32, &[1], &[true]).unwrap();
    let dynamic = Buffer::uninitialized(&dynamic, None, &host.space, &Default::default()).unwrap();
    let token = Buffer::token(&host.space, &purlin_async::Event::ready()).unwrap();
    for (buffer, code) in [
        (failed, StatusCode::Aborted),
        (deleted, StatusCode::InvalidArgument),
        (dynamic, StatusCode::InvalidArgument),
        (token, StatusCode::InvalidArgument),
    ] {
        assert_eq!(write_npy(&path, &buffer, WriteOptions::default()).unwrap_err().code(), code);
    }
    let fine = Buffer::from_slice(&[1_u8], &[1], &host.space).unwrap();
    for (path, code) in [
        (folder.file("none/a.npy"), StatusCode::NotFound),
        (folder.path().to_owned(), StatusCode::FailedPrecondition),
        (folder.file("new/"), StatusCode::FailedPrecondition),
        ("/dev/null".into(), StatusCode::FailedPrecondition),
        ("".into(), StatusCode::InvalidArgument),
    ] {
        let error = write_npy(&path, &fine, WriteOptions::default()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(folder.names(), ["old.npy"]);
}

#[test]
fn a_link_stays_a_link() {
    let (host, folder) = (Host::new(), Folder::new());
    let (target, link) = (folder.holding("target.npy", b"old"), folder.file("link.npy"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let buffer = Buffer::from_slice(&[1_u8], &[1], &host.space).unwrap();
    write_npy(&link, &buffer, WriteOptions::default()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&target).unwrap().last(), Some(&1));
}

#[test]
fn memory_that_is_lent_to_a_writer_is_free_when_it_is_done() {
    let host = Host::new();
    let buffer = Buffer::from_slice(&[1_u8, 2, 3], &[3], &host.space).unwrap();
    let bytes = HostBytes::of(&buffer).unwrap();
    assert!(matches!(bytes, HostBytes::Lent { .. }));
    let donation = buffer.donate(c"test").expect("a donation does not fail because of a writer");
    let free = donation.free_event();
    assert!(!free.is_ready());
    assert_eq!(bytes.as_slice(), [1, 2, 3]);
    drop(bytes);
    free.wait().unwrap();
}
