//! Attributes of a custom call, and their form in C.
//!
//! The values are bytes, so that text which is not UTF-8 survives. In C, attributes are arrays of pointers into memory
//! that [`Lowered`] owns, sorted by name, because handlers look names up by a binary search.

#![allow(unsafe_code, reason = "the form in C is made of addresses")]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;

use super::abi::{ARRAY, Array, Attributes, ByteSpan, DICTIONARY, SCALAR, STRING, Scalar};

/// Attributes by name.
pub(crate) type Dictionary = BTreeMap<Vec<u8>, Value>;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// One number. `dtype` is XLA's.
    Scalar { dtype: c_int, bytes: Vec<u8> },
    /// Numbers of one type, one after the other.
    Array { dtype: c_int, count: usize, bytes: Vec<u8> },
    /// Any bytes.
    String(Vec<u8>),
    /// Attributes of their own.
    Dictionary(Dictionary),
}

/// Attributes in C's form. Their addresses stay the same when this moves.
pub(crate) struct Lowered {
    attributes: Attributes,
    _memory: Memory,
}

// SAFETY: handlers read the attributes, and nothing writes them after new().
unsafe impl Send for Lowered {}
// SAFETY: as above.
unsafe impl Sync for Lowered {}

impl Lowered {
    pub(crate) fn new(dictionary: &Dictionary) -> Self {
        let mut memory = Memory(Vec::new());
        let attributes = memory.dictionary(dictionary);
        Self { attributes, _memory: memory }
    }

    /// The struct that a call frame holds. It is valid as long as this lives.
    pub(crate) fn attributes(&self) -> Attributes {
        self.attributes
    }
}

impl fmt::Debug for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lowered({} attributes)", self.attributes.count)
    }
}

/// Blocks of memory, each aligned to 8 bytes, whose addresses stay the same.
struct Memory(Vec<Vec<u64>>);

impl Memory {
    /// A copy of `items`, which need an alignment of at most 8. The address is not null, also for no items.
    fn put<T: Copy>(&mut self, items: &[T]) -> *mut T {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let mut words = vec![0_u64; size_of_val(items).div_ceil(size_of::<u64>()).max(1)];
        let address = words.as_mut_ptr().cast::<T>();
        // SAFETY: the block is as large as the items, is aligned, and nothing else refers to it.
        unsafe { ptr::copy_nonoverlapping(items.as_ptr(), address, items.len()) };
        self.0.push(words);
        address
    }

    fn span(&mut self, bytes: &[u8]) -> ByteSpan {
        ByteSpan { begin: self.put(bytes).cast(), size_bytes: bytes.len() }
    }

    /// The recursion is bounded by the parser.
    fn dictionary(&mut self, dictionary: &Dictionary) -> Attributes {
        let (mut kinds, mut names, mut values) = (Vec::new(), Vec::new(), Vec::<*mut c_void>::new());
        for (name, value) in dictionary {
            let name = self.span(name);
            names.push(self.put(&[name]));
            let (kind, address) = match value {
                Value::Scalar { dtype, bytes } => {
                    let scalar = Scalar { dtype: *dtype, value: self.put(bytes).cast() };
                    (SCALAR, self.put(&[scalar]).cast())
                }
                Value::Array { dtype, count, bytes } => {
                    let array = Array { dtype: *dtype, count: *count, data: self.put(bytes).cast() };
                    (ARRAY, self.put(&[array]).cast())
                }
                Value::String(bytes) => {
                    let span = self.span(bytes);
                    (STRING, self.put(&[span]).cast())
                }
                Value::Dictionary(inner) => {
                    let inner = self.dictionary(inner);
                    (DICTIONARY, self.put(&[inner]).cast())
                }
            };
            kinds.push(kind);
            values.push(address);
        }
        Attributes {
            struct_size: size_of::<Attributes>(),
            extension_start: ptr::null_mut(),
            count: dictionary.len() as i64,
            kinds: self.put(&kinds),
            names: self.put(&names),
            values: self.put(&values),
        }
    }
}
