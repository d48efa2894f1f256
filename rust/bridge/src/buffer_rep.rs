//! What a `purlin::Buffer` is in Rust: one word, the reference of a [`Buffer`] itself, so that a buffer costs no
//! allocation more in C++.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use purlin_device::Buffer;
use purlin_device::buffer::Array;

/// What a `purlin::Buffer` points to: what the reference of a [`Buffer`] does.
#[repr(transparent)]
pub struct BufferRep(Array);

impl BufferRep {
    /// Gives the buffer's reference to C++.
    pub(crate) fn of(buffer: Buffer) -> *const Self {
        buffer.into_pointer().cast()
    }

    /// What the reference points to.
    pub(crate) fn array(&self) -> &Array {
        &self.0
    }

    /// The buffer, for as long as C++ has its reference.
    pub(crate) fn get(&self) -> Borrowed<'_> {
        // SAFETY: it came from of(), C++ keeps a reference for the time of the borrow, and this is not dropped.
        Borrowed(ManuallyDrop::new(unsafe { Buffer::from_pointer(&raw const self.0) }), PhantomData)
    }
}

/// A buffer whose reference is C++'s.
pub(crate) struct Borrowed<'a>(ManuallyDrop<Buffer>, PhantomData<&'a BufferRep>);

impl Deref for Borrowed<'_> {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        &self.0
    }
}
