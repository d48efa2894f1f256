//! The arguments of a launch, packed: the bytes that a kernel receives.

use std::ops::Range;

/// The arguments of one launch, as the bytes that the kernel receives, and the size of its dynamic shared memory.
///
/// The value owns the bytes. Each argument is a range of one buffer, which begins at a multiple of 8 bytes.
///
/// ```
/// use purlin::program::PackedKernelArgs;
///
/// let mut args = PackedKernelArgs::new(1024);
/// args.push_address(0x7000_0000_1000);
/// args.push(&42_i32.to_le_bytes());
/// assert_eq!(args.argument(1), Some(&[42, 0, 0, 0][..]));
/// // The arity of the kernel, and XLA's count of the launch, which takes shared memory for an argument.
/// assert_eq!((args.len(), args.number_of_arguments()), (2, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedKernelArgs {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
    shared_memory_bytes: u64,
}

impl PackedKernelArgs {
    /// No arguments yet, and `shared_memory_bytes` of dynamic shared memory for each block of threads.
    #[must_use]
    pub fn new(shared_memory_bytes: u64) -> Self {
        Self { shared_memory_bytes, ..Self::default() }
    }

    /// Adds an argument with these bytes.
    pub fn push(&mut self, argument: &[u8]) {
        let begin = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(begin, 0);
        self.bytes.extend_from_slice(argument);
        self.ranges.push(begin..self.bytes.len());
    }

    /// Adds an address of device memory: 8 bytes, little-endian, on every host.
    pub fn push_address(&mut self, address: u64) {
        self.push(&address.to_le_bytes());
    }

    /// The number of arguments that the kernel receives: its arity. Shared memory is none of them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of arguments as XLA's launch counts them: dynamic shared memory is one more argument, if there is
    /// any.
    #[must_use]
    pub fn number_of_arguments(&self) -> usize {
        self.len() + usize::from(self.shared_memory_bytes > 0)
    }

    /// The size of the dynamic shared memory of each block of threads.
    #[must_use]
    pub fn shared_memory_bytes(&self) -> u64 {
        self.shared_memory_bytes
    }

    /// The bytes of an argument; `None` if there are not so many.
    #[must_use]
    pub fn argument(&self, index: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.ranges.get(index)?.clone()])
    }

    /// The bytes of each argument, in their order. A driver takes a list of their addresses, which are valid until
    /// arguments are added or the value is dropped.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_bytes_and_are_aligned() {
        let mut args = PackedKernelArgs::new(0);
        assert!(args.is_empty());
        args.push(&[1, 2, 3]);
        args.push(&[]);
        args.push_address(0x0123_4567_89ab_cdef);
        let arguments: Vec<&[u8]> = args.arguments().collect();
        assert_eq!(arguments, [&[1, 2, 3][..], &[], &[0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 1]]);
        let offset = |index: usize| args.argument(index).unwrap().as_ptr().addr() - arguments[0].as_ptr().addr();
        assert_eq!((offset(0), offset(1), offset(2), args.argument(3)), (0, 8, 8, None));
    }

    #[test]
    fn shared_memory_counts_as_one_argument_however_much_it_is() {
        for (shared_memory_bytes, expected) in [(0, 1), (1, 2), (u64::MAX, 2)] {
            let mut args = PackedKernelArgs::new(shared_memory_bytes);
            args.push(&[0]);
            assert_eq!(
                (args.number_of_arguments(), args.len(), args.shared_memory_bytes()),
                (expected, 1, shared_memory_bytes)
            );
        }
    }
}
