//! safetensors: what is read, what is written, what is refused at which byte, and what the format's own implementation
//! says.

use std::collections::HashMap;

use ::safetensors::tensor::{SafeTensors, TensorView};
use purlin_base::StatusCode;

use super::header::METADATA;
use super::*;
use crate::array_bytes::HostBytes;
use crate::file::WriteOptions;
use crate::testing::{Folder, Host};

/// A file of that header.
pub(crate) fn file_of(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// As a file of these bytes is read: in two steps.
pub(crate) fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    let header_bytes = header::size_bytes(&bytes[..bytes.len().min(header::PREFIX_BYTES)], bytes.len())?;
    Header::parse(&bytes[..header_bytes], bytes.len())
}

fn fault(bytes: &[u8]) -> Fault {
    parse(bytes).expect_err("it is refused")
}

fn mapped() -> FileAccess {
    // SAFETY: the files of these tests are the tests' own, and written once.
    unsafe { FileAccess::mapped() }
}

fn buffer(host: &Host, dtype: DType, dims: &[i64]) -> Buffer {
    let shape = Shape::new(dtype, dims).unwrap();
    let mask = if dtype.is_sub_byte() { (1 << dtype.bits()) - 1 } else { u8::MAX };
    let elements: Vec<u8> = (0..shape.host_size_bytes()).map(|index| index as u8 & mask).collect();
    let semantics = purlin_device::HostBufferSemantics::ImmutableOnlyDuringCall;
    // SAFETY: the elements are there during the call.
    unsafe { Buffer::from_host(elements.as_ptr(), elements.len(), dtype, dims, &host.space, semantics) }.unwrap()
}

fn host_bytes(buffer: &Buffer) -> Vec<u8> {
    HostBytes::of(buffer).unwrap().as_slice().to_vec()
}

#[test]
fn arrays_are_read_as_they_were_written_by_either_access() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.safetensors");
    let names: Vec<String> = TYPES.iter().map(|(name, _)| format!("a \"{name}\" \u{e9}")).collect();
    let buffers: Vec<Buffer> = TYPES.iter().map(|(_, dtype)| buffer(&host, *dtype, &[3, 2])).collect();
    let mut tensors: Vec<(&str, &Buffer)> = names.iter().map(String::as_str).zip(&buffers).collect();
    let (scalar, empty) = (buffer(&host, DType::F64, &[]), buffer(&host, DType::F32, &[4, 0]));
    tensors.extend([("scalar", &scalar), ("", &empty)]);
    let metadata = [("format", "pt"), ("a\n", "\u{1f600}")];
    write_safetensors(&path, &tensors, &metadata, WriteOptions { is_durable: true }).unwrap();
    for access in [FileAccess::read(), mapped()] {
        let file = SafetensorsFile::open(&path, access).unwrap();
        assert_eq!(file.tensors().len(), tensors.len());
        assert_eq!(file.metadata(), metadata.map(|(key, text)| (key.to_owned(), text.to_owned())));
        for (name, written) in &tensors {
            let (read, how) = file.read(name, &host.space).unwrap();
            assert_eq!(read.shape(), written.shape());
            assert_eq!(host_bytes(&read), host_bytes(written), "{name}");
            let tensor = file.header.find(name).unwrap();
            assert!(tensor.range().start.is_multiple_of(written.dtype().host_byte_width()), "{name}");
            let may_alias = access == mapped() && tensor.range().start.is_multiple_of(16);
            let aliased = may_alias && !written.dtype().is_sub_byte() && !tensor.range().is_empty();
            assert_eq!(how == Aliasing::Aliased, aliased, "{name}");
        }
    }
    assert_eq!(folder.names(), ["a.safetensors"]);
}

#[test]
fn the_formats_own_implementation_reads_what_we_write() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.safetensors");
    let buffers: Vec<Buffer> = TYPES.iter().map(|(_, dtype)| buffer(&host, *dtype, &[5, 4])).collect();
    let tensors: Vec<(&str, &Buffer)> = TYPES.iter().map(|(name, _)| *name).zip(&buffers).collect();
    write_safetensors(&path, &tensors, &[("k", "v")], WriteOptions::default()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.len(), TYPES.len());
    for (name, buffer) in &tensors {
        let view = read.tensor(name).unwrap();
        assert_eq!(format!("{:?}", view.dtype()), *name);
        assert_eq!(view.shape(), [5, 4]);
        assert_eq!(view.data(), HostBytes::packed(buffer).unwrap().as_slice(), "{name}");
    }
}

#[test]
fn what_the_formats_own_implementation_writes_is_read() {
    let (host, folder) = (Host::new(), Folder::new());
    let data: Vec<u8> = (0..48).collect();
    let views = [
        ("wide", TensorView::new(::safetensors::Dtype::F64, vec![2, 3], &data).unwrap()),
        ("narrow", TensorView::new(::safetensors::Dtype::F4, vec![3, 2], &data[..3]).unwrap()),
        ("flags", TensorView::new(::safetensors::Dtype::BOOL, vec![5], &data[..5]).unwrap()),
        ("six", TensorView::new(::safetensors::Dtype::F6_E2M3, vec![4], &data[..3]).unwrap()),
    ];
    let metadata = HashMap::from([("format".to_owned(), "np".to_owned())]);
    let bytes = ::safetensors::tensor::serialize(views.clone(), Some(metadata)).unwrap();
    let file = SafetensorsFile::open(&folder.holding("a.safetensors", &bytes), mapped()).unwrap();
    assert_eq!(file.metadata(), [("format".to_owned(), "np".to_owned())]);
    for (name, view) in &views[..3] {
        let (read, _) = file.read(name, &host.space).unwrap();
        assert_eq!(HostBytes::packed(&read).unwrap().as_slice(), view.data(), "{name}");
    }
    // What no buffer holds does not keep the rest from being read.
    let six = file.tensors().iter().find(|tensor| tensor.name() == "six").unwrap();
    assert_eq!((six.dtype(), six.dtype_name(), six.dims()), (None, "F6_E2M3", &[4][..]));
    let error = file.read("six", &host.space).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.message().contains(&format!("a.safetensors, byte {}: ", six.offset)), "{error}");
}

#[test]
fn buffers_outlive_their_file() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.file("a.safetensors");
    write_safetensors(&path, &[("a", &buffer(&host, DType::U8, &[9]))], &[], WriteOptions::default()).unwrap();
    let file = SafetensorsFile::open(&path, mapped()).unwrap();
    let (read, how) = file.read("a", &host.space).unwrap();
    assert_eq!(how, Aliasing::Aliased);
    drop(file);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.to_vec::<u8>().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let error = SafetensorsFile::open(&path, mapped()).unwrap_err();
    assert_eq!(error.code(), StatusCode::NotFound);
}

#[test]
fn a_name_that_is_not_there_is_not_found() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.holding("a.safetensors", &file_of("{}", &[]));
    let file = SafetensorsFile::open(&path, FileAccess::read()).unwrap();
    assert!(file.tensors().is_empty());
    for name in ["a", METADATA] {
        let error = file.read(name, &host.space).unwrap_err();
        assert_eq!(error.code(), StatusCode::NotFound);
        assert_eq!(error.message(), format!("{} has no array {name:?}", path.display()));
    }
}

#[test]
fn what_is_damaged_is_refused_at_its_byte() {
    let good = file_of(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}  "#, &[1, 2]);
    assert_eq!(parse(&good).unwrap().tensors.len(), 1);
    for length in 0..good.len() {
        let refused = fault(&good[..length]);
        assert!(refused.offset <= length, "{refused:?}");
    }
    assert_eq!(fault(&[&good[..], &[0]].concat()).what, "1 bytes follow that are no array's");
    let one = |value: &str| format!(r#"{{"a":{value}}}"#);
    let two = |first: &str, second: &str| {
        format!(
            r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":{first}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{second}}}}}"#
        )
    };
    for (header, offset, says) in [
        ("".to_owned(), 8, "instead of the brace"),
        (" {}".to_owned(), 8, "instead of the brace"),
        ("{".to_owned(), 8, "not the JSON that it should be: EOF"),
        ("{}x".to_owned(), 10, "trailing characters"),
        ("{\"a\"".to_owned(), 11, "EOF while parsing"),
        ("{\n\"a\":\n1,,".to_owned(), 17, "not the JSON that it should be"),
        (one("1"), 13, "\"1\" instead of an object"),
        (one("null"), 13, "\"null\" instead of an object"),
        (one(r#"["U8",[4],[0,4]]"#), 13, "instead of an object"),
        (one("{}"), 14, "missing field `dtype`"),
        (one(r#"{"dtype":"U8","shape":[2],"shape":[2],"data_offsets":[0,2]}"#), 45, "duplicate field `shape`"),
        (one(r#"{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}"#), 37, "invalid value: integer `-2`"),
        (one(r#"{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}"#), 38, "invalid type: floating point"),
        (one(r#"{"dtype":"U8","shape":[2],"data_offsets":[0]}"#), 56, "invalid length 1"),
        (one(r#"{"dtype":"U8","shape":[2],"data_offsets":[2,0]}"#), 13, "its bytes are said to be [2, 0)"),
        (
            one(r#"{"dtype":"U8","shape":[5],"data_offsets":[0,5]}"#),
            13,
            "its bytes are said to be [0, 5), and the file has 4",
        ),
        (one(r#"{"dtype":"U8","shape":[2],"data_offsets":[0,18446744073709551615]}"#), 13, "its bytes are said to be"),
        (
            one(r#"{"dtype":"U8","shape":[3],"data_offsets":[0,4]}"#),
            13,
            "u8[3] is 3 bytes, but 4 are said to be its own",
        ),
        (one(r#"{"dtype":"F4","shape":[7],"data_offsets":[0,4]}"#), 13, "f4e2m1fn[7] is no whole number of bytes"),
        (one(r#"{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]}"#), 13, "is more than any memory"),
        (one(r#"{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}"#), 13, "needs more than"),
        (two("[0,2]", "[1,3]"), 65, "the bytes of \"b\" begin at 1 and overlap those before, which end at 2"),
        (two("[0,2]", "[0,2]"), 65, "overlap"),
        (two("[0,2]", "[3,5]"), 65, "its bytes are said to be [3, 5)"),
        (two("[1,3]", "[0,2]"), 13, "overlap"),
        (
            one(r#"{"dtype":"U8","shape":[2],"data_offsets":[1,3]}"#),
            13,
            "leave a gap after those before, which end at 0",
        ),
        (one(r#"{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#), 63, "2 bytes follow"),
        (two("[0,2]", "[2,4]").replace("\"b\"", "\"\\u0061\""), 70, "a second entry \"a\""),
        (r#"{"__metadata__":{"a":1}}"#.to_owned(), 29, "invalid type: integer `1`"),
        (r#"{"__metadata__":{"a":"","a":""}}"#.to_owned(), 24, "a second key \"a\" of the metadata"),
        (r#"{"__metadata__":[]}"#.to_owned(), 24, "invalid type: sequence"),
    ] {
        let refused = fault(&file_of(&header, &[0; 4]));
        assert_eq!(refused.offset, offset, "{header}: {refused:?}");
        assert!(refused.what.contains(says), "{header}: {refused:?}");
        assert_eq!(refused.code, StatusCode::DataLoss, "{header}");
    }
    assert_eq!(fault(&[b"\x02\0\0\0\0\0\0\0{".as_slice(), &[0xff]].concat()).offset, 9);
    assert_eq!(fault(&u64::MAX.to_le_bytes()).offset, 0);
    assert_eq!(
        fault(&100_000_001_u64.to_le_bytes()).what,
        "the header is said to be 100000001 bytes long; the most is 100000000"
    );
    for deep in ["[".repeat(100_000), "[".repeat(100_000) + &"]".repeat(100_000)] {
        assert!(fault(&file_of(&one(&deep), &[])).offset >= 13, "a stack is not overrun");
    }
    let many = format!("{{{}\"\":0}}", "\"\":{},".repeat(100_000));
    let refused = fault(&file_of(&many, &[]));
    assert!(refused.what.contains("more entries than its length can describe"), "{refused:?}");
    let wide = one(&format!(r#"{{"dtype":"U8","shape":[{}1],"data_offsets":[0,1]}}"#, "1,".repeat(64)));
    assert!(fault(&file_of(&wide, &[0])).what.contains("65 dimensions, and the most is 64"));
}

#[test]
fn what_the_format_cannot_hold_is_not_written() {
    let (host, folder) = (Host::new(), Folder::new());
    let path = folder.holding("old", b"old");
    let (fine, again) = (buffer(&host, DType::U8, &[1]), buffer(&host, DType::U8, &[2]));
    let token = Buffer::token(&host.space, &purlin_async::Event::ready()).unwrap();
    let dynamic = Shape::with_dynamic(DType::F32, &[1], &[true]).unwrap();
    let dynamic = Buffer::uninitialized(&dynamic, None, &host.space, &Default::default()).unwrap();
    let failed = Buffer::error(Error::aborted("no such luck"), &Shape::new(DType::F32, &[1]).unwrap(), &host.space);
    let invalid = StatusCode::InvalidArgument;
    for (tensors, metadata, code, says) in [
        (vec![("a", &fine), ("a", &again)], vec![], invalid, "a second array \"a\""),
        (vec![(METADATA, &fine)], vec![], invalid, "no array can be called \"__metadata__\""),
        (vec![("a", &fine)], vec![("k", "1"), ("k", "2")], invalid, "a second key of the metadata \"k\""),
        (vec![("a", &buffer(&host, DType::C128, &[1]))], vec![], invalid, "cannot hold c128[1]"),
        (vec![("a", &buffer(&host, DType::S4, &[2]))], vec![], invalid, "cannot hold s4[2]"),
        (vec![("a", &buffer(&host, DType::F4E2M1FN, &[3]))], vec![], invalid, "cannot hold f4e2m1fn[3]"),
        (vec![("a", &token)], vec![], invalid, "cannot hold token"),
        (vec![("a", &dynamic)], vec![], invalid, "cannot hold f32[<=1]"),
        (vec![("b", &fine), ("a", &failed)], vec![], StatusCode::Aborted, "array \"a\": no such luck"),
    ] {
        let error = write_safetensors(&path, &tensors, &metadata, WriteOptions::default()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
    let deleted = buffer(&host, DType::U8, &[1]);
    deleted.delete();
    let error = write_safetensors(&path, &[("a", &fine), ("b", &deleted)], &[], WriteOptions::default()).unwrap_err();
    assert!(error.message().starts_with("array \"b\": Buffer has been deleted or donated."), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(folder.names(), ["old"]);
}
