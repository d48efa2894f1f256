//! The values that a span or an event carries.
//!
//! Numbers stay numbers until the file is written; text is copied, because it may not outlive the call. A value's
//! `Debug` is user code: it runs here, outside every lock, and what it wrote before it failed is kept.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};

/// Values by the name of their field, in order of recording; names are unique.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

/// A value of a span.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number that may be negative.
    Signed(i64),
    /// A number that is not.
    Unsigned(u64),
    /// A fraction.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// Any text.
    Text(String),
}

impl Fields {
    /// Of two values of one name, the later one counts.
    pub(super) fn of(values: Vec<(&'static str, Value)>) -> Self {
        let mut fields = Self::default();
        fields.merge(Self(values));
        fields
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        self.0.iter()
    }

    /// The value of that name, if it is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(known, value)| match value {
            Value::Text(text) if *known == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// The memory that the values take.
    pub(super) fn size_bytes(&self) -> usize {
        let texts = self.0.iter().map(|(_, value)| if let Value::Text(text) = value { text.capacity() } else { 0 });
        self.0.capacity() * size_of::<(&'static str, Value)>() + texts.sum::<usize>()
    }

    /// Takes the values of `newer`, which replace those of the same name.
    pub(super) fn merge(&mut self, newer: Self) {
        for (name, value) in newer.0 {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    fn set_text(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let mut text = String::new();
        // Only the value's own formatting can fail; half a text says more than none.
        let _ = text.write_fmt(value);
        self.set(field.name(), Value::Text(text));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::Unsigned(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::Flag(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::Text(value.to_owned()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.set_text(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set_text(field, format_args!("{value:?}"));
    }
}
