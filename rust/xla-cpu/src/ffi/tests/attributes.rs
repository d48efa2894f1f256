//! Attributes: from text to what a handler reads.

use super::super::attributes::{Dictionary, Value};
use super::super::text::parse;
use super::abi::{Array, Attributes, ByteSpan, Scalar};
use super::*;

fn one(value: &str) -> Value {
    parse(format!("{{a = {value}}}").as_bytes()).unwrap().remove(&b"a"[..]).unwrap()
}

#[test]
fn numbers_have_the_type_and_the_bits_that_the_text_says() {
    for (text, dtype, bytes) in [
        ("true", 1, vec![1]),
        ("false", 1, vec![0]),
        ("-3 : i8", 2, vec![0xfd]),
        ("255 : i8", 2, vec![0xff]),
        ("200 : ui8", 6, vec![200]),
        ("-5 : i32", 4, (-5_i32).to_le_bytes().to_vec()),
        ("0x10 : i32", 4, 16_i32.to_le_bytes().to_vec()),
        ("4000000000 : ui32", 8, 4_000_000_000_u32.to_le_bytes().to_vec()),
        ("-9223372036854775808", 5, i64::MIN.to_le_bytes().to_vec()),
        ("18446744073709551615 : ui64", 9, u64::MAX.to_le_bytes().to_vec()),
        ("-7 : si16", 3, (-7_i16).to_le_bytes().to_vec()),
        ("65535:ui16", 7, vec![255, 255]),
        ("1.000000e-01 : f32", 11, 0.1_f32.to_le_bytes().to_vec()),
        ("1.000000e-01", 12, 0.1_f64.to_le_bytes().to_vec()),
        ("1 : f64", 12, 1_f64.to_le_bytes().to_vec()),
        ("0x7FC00000 : f32", 11, 0x7fc0_0000_u32.to_le_bytes().to_vec()),
        ("0xFFF0000000000000 : f64", 12, f64::NEG_INFINITY.to_le_bytes().to_vec()),
        ("-0.000000e+00 : f16", 10, vec![0, 0x80]),
        ("1.5 : bf16", 16, vec![0xc0, 0x3f]),
    ] {
        assert_eq!(one(text), Value::Scalar { dtype, bytes }, "{text}");
    }
}

#[test]
fn arrays_are_dense_or_lists_and_one_number_may_stand_for_all() {
    let array = |dtype, count, bytes: &[u8]| Value::Array { dtype, count, bytes: bytes.to_vec() };
    assert_eq!(one("array<i1: true, false>"), array(1, 2, &[1, 0]));
    assert_eq!(one("array<i64>"), array(5, 0, &[]));
    assert_eq!(one("array<i16: 1, -1>"), array(3, 2, &[1, 0, 255, 255]));
    assert_eq!(one("dense<[1, 2, 3]> : tensor<3xui8>"), array(6, 3, &[1, 2, 3]));
    assert_eq!(one("dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>"), array(2, 4, &[1, 2, 3, 4]));
    assert_eq!(one("dense<7> : tensor<3xi8>"), array(2, 3, &[7, 7, 7]));
    assert_eq!(one("dense<7> : tensor<i8>"), array(2, 1, &[7]));
    assert_eq!(one("dense<> : tensor<0xf32>"), array(11, 0, &[]));
    assert_eq!(one("dense<\"0x01FF\"> : tensor<2xi8>"), array(2, 2, &[1, 255]));
    let floats = [1_f32.to_le_bytes(), 0x7fc0_0000_u32.to_le_bytes()].concat();
    assert_eq!(one("dense<[1.000000e+00, 0x7FC00000]> : tensor<2xf32>"), array(11, 2, &floats));
}

#[test]
fn text_is_bytes_and_dictionaries_are_sorted() {
    assert_eq!(one(r#""a\22b\\c\0A\C3\A9\00\ff""#), Value::String(b"a\"b\\c\n\xc3\xa9\0\xff".to_vec()));
    let raw = parse(b"{a = \"\xff\xfe\"}").unwrap();
    assert_eq!(raw[&b"a"[..]], Value::String(vec![0xff, 0xfe]));
    let nested = parse(b" { z = {}, \"a b\" = { x = 1 : i8 } , b.c$_9 = \"\"} ").unwrap();
    assert_eq!(nested.keys().map(Vec::as_slice).collect::<Vec<_>>(), [&b"a b"[..], b"b.c$_9", b"z"]);
    assert_eq!((parse(b"").unwrap(), parse(b"{}").unwrap()), (Dictionary::new(), Dictionary::new()));
}

#[test]
fn what_cannot_be_read_is_told_by_its_byte() {
    let deep = format!("{}{}", "{a = ".repeat(40), "}".repeat(40));
    let lists = format!("{{a = dense<{}1> : tensor<1xi8>}}", "[".repeat(40));
    for (text, why) in [
        ("7", "byte 0: expected '{'"),
        ("{a = 1", "byte 6: expected ',' or '}'"),
        ("{a = 1} x", "byte 8: expected the end of the text"),
        ("{a}", "byte 2: expected '='"),
        ("{= 1}", "byte 1: expected the name of an attribute"),
        ("{a = 1, a = 2}", "byte 8: attribute 'a' is there twice"),
        ("{a = @symbol}", "byte 5: expected a number, text, an array or a dictionary"),
        ("{a = [1 : i8]}", "byte 5: expected a number, text, an array or a dictionary"),
        ("{a = 1 : index}", "byte 9: expected a type: i1 to i64, ui8 to ui64, f16 to f64"),
        ("{a = 256 : i8}", "byte 5: expected an integer of that type"),
        ("{a = -1 : ui8}", "byte 5: expected an integer of that type"),
        ("{a = 128 : si8}", "byte 5: expected an integer of that type"),
        ("{a = 1.5 : i8}", "byte 5: expected an integer of that type"),
        ("{a = 0x1FFFF : f16}", "byte 5: expected a floating-point number of that type, or its bits"),
        ("{a = 1 : i1}", "byte 5: expected true or false"),
        ("{a = array<i8: 1, x>}", "byte 18: expected an integer of that type"),
        ("{a = dense<[1, 2]> : tensor<3xi8>}", "byte 11: expected 3 elements"),
        ("{a = dense<1> : vector<3xi8>}", "byte 22: expected 'tensor'"),
        ("{a = dense<\"0x0\"> : tensor<1xi8>}", "byte 11: expected the hexadecimal bytes of the elements"),
        ("{a = dense<1> : tensor<99999999999xi8>}", "byte 11: an array of more than 16777216 bytes"),
        ("{a = dense<1> : tensor<3yi8>}", "byte 24: expected 'x'"),
        ("{a = \"x", "byte 7: expected '\"'"),
        ("{a = \"\\q\"}", "byte 7: expected an escape: \\\\, \\\", \\n, \\t or two hexadecimal digits"),
        (&deep, "byte 160: dictionaries are nested more than 32 deep"),
        (&lists, "byte 43: lists are nested more than 32 deep"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), why, "{text}");
    }
}

/// Attributes as a handler reads them, as text.
fn shown(attributes: &Attributes) -> String {
    let mut shown = String::new();
    for at in 0..attributes.count as usize {
        // SAFETY: the host gives as many kinds, names and values as it says, each of its kind.
        shown += &unsafe {
            let name = bytes(&**attributes.names.add(at));
            let value = *attributes.values.add(at);
            let value = match *attributes.kinds.add(at) {
                abi::SCALAR => {
                    let Scalar { dtype, value } = *value.cast();
                    format!("{dtype}:{}", *value.cast::<u8>())
                }
                abi::ARRAY => {
                    let Array { dtype, count, data } = *value.cast();
                    format!("{dtype}:{:?}", std::slice::from_raw_parts(data.cast::<u8>(), count))
                }
                abi::STRING => format!("'{}'", bytes(&*value.cast())),
                abi::DICTIONARY => format!("({})", self::shown(&*value.cast())),
                other => format!("kind {other}"),
            };
            format!("{name}={value} ")
        };
    }
    shown
}

/// # Safety
/// The span is valid.
unsafe fn bytes(span: &ByteSpan) -> String {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(span.begin.cast::<u8>(), span.size_bytes) }.escape_ascii().to_string()
}

unsafe extern "C-unwind" fn reads_attributes(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        same(shown(&frame.attributes).as_str(), r"a=2:[1, 2] b=(n=1:1 t='' ) c='\xff\x00' d=(e=2:[] ) z=2:5 ")?;
        let (from, to) = operands(frame);
        to.copy_from_slice(from);
        Ok(())
    })
}

#[test]
fn handlers_read_attributes_of_all_kinds_sorted_by_name() {
    let text = r#"{z = 5 : i8, c = "\FF\00", b = {t = "", n = true}, a = array<i8: 1, 2>, d = {e = array<i8>}}"#;
    assert_eq!(run(reads_attributes, text).unwrap(), [1.0, 2.0, 3.0, 4.0]);
}
