//! What a backend says of its devices.

use std::borrow::Cow;
use std::fmt;

/// What a backend says of one device.
///
/// ```
/// use purlin::backend::{AttributeValue, DeviceDescription};
///
/// let device = DeviceDescription::of_kind("H100").with_attribute("core_count", AttributeValue::Integer(132));
/// assert_eq!(device.attributes[0].to_string(), "core_count=132");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceDescription {
    /// The model, such as `"NVIDIA H100"`; of virtual devices, that of what they stand for.
    pub kind: Cow<'static, str>,
    /// The number by which the driver knows it. `None`: as in its client.
    pub local_hardware_id: Option<i32>,
    /// Whatever else there is to say, no name twice.
    pub attributes: Vec<DeviceAttribute>,
}

impl DeviceDescription {
    /// A device of that kind, without attributes.
    #[must_use]
    pub fn of_kind(kind: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: kind.into(), local_hardware_id: None, attributes: Vec::new() }
    }

    /// This one, with one attribute more.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<Cow<'static, str>>, value: AttributeValue) -> Self {
        self.attributes.push(DeviceAttribute { name: name.into(), value });
        self
    }
}

/// A property of a device that has a name of the backend's.
///
/// ```
/// use purlin::backend::{AttributeValue, DeviceAttribute};
///
/// let coordinates = DeviceAttribute { name: "coords".into(), value: AttributeValue::Integers(vec![0, 1]) };
/// assert_eq!(coordinates.to_string(), "coords=[0, 1]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceAttribute {
    /// Such as `"core_count"`.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: AttributeValue,
}

impl fmt::Display for DeviceAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// The value of a [`DeviceAttribute`], of a type that PJRT has.
///
/// ```
/// use purlin::backend::AttributeValue;
///
/// assert_eq!(AttributeValue::Text("9.0".to_owned()).to_string(), "9.0");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A number.
    Integer(i64),
    /// Numbers, such as coordinates.
    Integers(Vec<i64>),
    /// A number that need not be whole.
    Float(f32),
    /// Yes or no.
    Boolean(bool),
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Integers(numbers) => write!(f, "{numbers:?}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Boolean(answer) => write!(f, "{answer}"),
        }
    }
}
