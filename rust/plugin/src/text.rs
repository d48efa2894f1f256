//! Texts and named values that the plugin lends.

use std::ffi::c_char;

use purlin_device::backend::{AttributeValue, DeviceAttribute};
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{NamedValue, NamedValueValue, named_value_type};

/// Address and bytes of a text.
pub(crate) fn lend(text: &str) -> (*const c_char, usize) {
    (text.as_ptr().cast(), text.len())
}

/// Named values for C, and what they point to.
#[derive(Debug, Default)]
pub(crate) struct NamedValues {
    values: Vec<NamedValue>,
    _owned: Vec<DeviceAttribute>,
}

// SAFETY: the pointers are to what this owns, which does not change.
unsafe impl Send for NamedValues {}
// SAFETY: as above.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    pub(crate) fn new(attributes: Vec<DeviceAttribute>) -> Self {
        // Texts and lists stay where they are when the vector that has them moves.
        let values = attributes.iter().map(value).collect();
        Self { values, _owned: attributes }
    }

    /// First and number.
    pub(crate) fn lend(&self) -> (*const NamedValue, usize) {
        (self.values.as_ptr(), self.values.len())
    }
}

fn value(attribute: &DeviceAttribute) -> NamedValue {
    let (name, name_size) = lend(&attribute.name);
    let (r#type, value, value_size) = match &attribute.value {
        AttributeValue::Text(text) => {
            (named_value_type::STRING, NamedValueValue { string_value: text.as_ptr().cast() }, text.len())
        }
        AttributeValue::Integer(number) => (named_value_type::INT64, NamedValueValue { int64_value: *number }, 1),
        AttributeValue::Integers(numbers) => {
            (named_value_type::INT64_LIST, NamedValueValue { int64_array_value: numbers.as_ptr() }, numbers.len())
        }
        AttributeValue::Float(number) => (named_value_type::FLOAT, NamedValueValue { float_value: *number }, 1),
        AttributeValue::Boolean(answer) => {
            (named_value_type::BOOL, NamedValueValue { bool_value: u8::from(*answer) }, 1)
        }
        other => unreachable!("{other}: every value that a backend gives is of PJRT's types"),
    };
    NamedValue { name, name_size, r#type, value, value_size, ..arguments() }
}
