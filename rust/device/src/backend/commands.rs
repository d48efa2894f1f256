//! What a launch has a device do, as a list: for backends whose devices work by themselves, one command after the
//! other.
//!
//! A list names memory by the ranges of the launch, so that one list serves any number of launches: addresses come with
//! each of them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::OnceLock;
use smallvec::SmallVec;

use super::{Access, DeviceKernel, LaunchDimensions};

/// A place in the memory of a launch.
///
/// ```
/// use purlin::backend::Place;
///
/// assert_eq!(Place::begin_of(2), Place { range: 2, offset_bytes: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of a range of the launch.
    pub range: usize,
    /// Where in the range.
    pub offset_bytes: usize,
}

impl Place {
    /// The first byte of a range.
    #[must_use]
    pub const fn begin_of(range: usize) -> Self {
        Self { range, offset_bytes: 0 }
    }
}

/// One step of a [`CommandList`].
pub enum Command {
    /// Starts a kernel.
    Kernel(Box<KernelCommand>),
    /// Copies bytes. The ends do not overlap, unless they are the same, where nothing is done.
    Copy {
        /// The source.
        from: Place,
        /// The destination.
        to: Place,
        /// How many.
        size_bytes: usize,
    },
    /// Writes a pattern again and again.
    Fill {
        /// The destination.
        to: Place,
        /// How many bytes: a multiple of the pattern's width.
        size_bytes: usize,
        /// What is written.
        pattern: FillPattern,
    },
}

/// What a [`Command::Fill`] writes, in the byte order of the machine.
///
/// ```
/// use purlin::backend::FillPattern;
///
/// assert_eq!(FillPattern::of(&[7, 7, 7, 7, 7, 7]), Some(FillPattern::Byte(7)));
/// assert_eq!(FillPattern::of(&[1, 2]), Some(FillPattern::Pair(u16::from_ne_bytes([1, 2]))));
/// assert_eq!(FillPattern::of(&[1, 2, 3]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillPattern {
    /// A byte.
    Byte(u8),
    /// Two bytes, at an even address.
    Pair(u16),
    /// Four bytes, at a multiple of four.
    Word(u32),
}

impl FillPattern {
    /// The pattern that writes `bytes` again and again. `None`: they do not repeat after four.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let repeats_after = |width: usize| {
            !bytes.is_empty()
                && bytes.len().is_multiple_of(width)
                && bytes.chunks(width).all(|part| part == &bytes[..width])
        };
        match bytes {
            [one, ..] if repeats_after(1) => Some(Self::Byte(*one)),
            [one, two, ..] if repeats_after(2) => Some(Self::Pair(u16::from_ne_bytes([*one, *two]))),
            [one, two, three, four, ..] if repeats_after(4) => {
                Some(Self::Word(u32::from_ne_bytes([*one, *two, *three, *four])))
            }
            _ => None,
        }
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn width_bytes(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Pair(_) => 2,
            Self::Word(_) => 4,
        }
    }
}

/// A kernel with its arguments, but for addresses: packed once, for every launch.
///
/// See the example of [`CommandList`].
pub struct KernelCommand {
    kernel: Arc<dyn DeviceKernel>,
    dimensions: LaunchDimensions,
    /// The arguments, each at a multiple of 8 bytes; addresses are zeros.
    bytes: Vec<u8>,
    /// Where each argument begins.
    begins: SmallVec<[usize; 8]>,
    /// Where an address belongs.
    addresses: SmallVec<[(usize, Place); 8]>,
    touched: SmallVec<[Touched; 4]>,
}

/// Memory that a kernel accesses by an address.
///
/// ```
/// use purlin::backend::{Access, Place, Touched};
///
/// // The first kilobyte of range 1.
/// let result = Touched { access: Access::Write, place: Place::begin_of(1), size_bytes: 1024 };
/// assert_eq!(result.place.range, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What is done there.
    pub access: Access,
    /// The address.
    pub place: Place,
    /// How many bytes from there on.
    pub size_bytes: usize,
}

impl KernelCommand {
    /// The kernel without arguments.
    ///
    /// # Errors
    /// As [`DeviceKernel::check`].
    pub fn new(kernel: Arc<dyn DeviceKernel>, dimensions: LaunchDimensions) -> StatusOr<Self> {
        kernel.check(&dimensions)?;
        let (begins, addresses, touched) = Default::default();
        Ok(Self { kernel, dimensions, bytes: Vec::new(), begins, addresses, touched })
    }

    /// One argument more, which is the address of memory.
    #[must_use]
    pub fn with_address(self, memory: Touched) -> Self {
        self.with_argument(&[0; 8], &[(0, memory)])
    }

    /// One argument more, which is a value.
    #[must_use]
    pub fn with_value(self, bytes: &[u8]) -> Self {
        self.with_argument(bytes, &[])
    }

    /// One argument more, whose bytes have addresses in them: each of 8 bytes, at that offset.
    ///
    /// # Panics
    /// An address would not be inside the argument.
    #[must_use]
    pub fn with_argument(mut self, bytes: &[u8], addresses: &[(usize, Touched)]) -> Self {
        let begin = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(begin, 0);
        self.bytes.extend_from_slice(bytes);
        self.begins.push(begin);
        for &(offset, memory) in addresses {
            assert!(offset.checked_add(8).is_some_and(|end| end <= bytes.len()), "an address at {offset} of {bytes:?}");
            self.addresses.push((begin + offset, memory.place));
            self.touched.push(memory);
        }
        self
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Arc<dyn DeviceKernel> {
        &self.kernel
    }

    /// Its threads.
    #[must_use]
    pub fn dimensions(&self) -> &LaunchDimensions {
        &self.dimensions
    }

    /// The arguments of a launch whose ranges begin at `ranges`: all bytes, and where each argument begins.
    pub fn arguments(&self, ranges: &[u64]) -> (SmallVec<[u8; 256]>, &[usize]) {
        let mut bytes = SmallVec::from_slice(&self.bytes);
        for &(at, place) in &self.addresses {
            let address = ranges[place.range] + place.offset_bytes as u64;
            bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        (bytes, &self.begins)
    }
}

/// Commands that a device does one after the other.
///
/// ```
/// use purlin::backend::{Command, CommandList, FillPattern, Place};
///
/// // Range 0 is cleared, and a part of it copied to range 1.
/// let clear = Command::Fill { to: Place::begin_of(0), size_bytes: 64, pattern: FillPattern::Byte(0) };
/// let copy = Command::Copy { from: Place { range: 0, offset_bytes: 32 }, to: Place::begin_of(1), size_bytes: 32 };
/// let list = CommandList::new(vec![clear, copy])?;
/// assert_eq!(list.commands().len(), 2);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct CommandList {
    /// Before the commands, whose kernels it may name.
    backend_state: OnceLock<Box<dyn Any + Send + Sync>>,
    commands: Vec<Command>,
    /// What each range must be.
    needs: SmallVec<[Need; 8]>,
    alignment_bytes: usize,
}

/// What a range of a launch must be for its commands.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    size_bytes: usize,
    is_written: bool,
}

impl CommandList {
    /// The commands, in their order.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the command and the numbers: a fill whose length is no multiple of its pattern, or
    /// that does not begin at such a multiple; a place whose last byte is at more than `usize::MAX`.
    pub fn new(commands: Vec<Command>) -> StatusOr<Self> {
        let mut needs = SmallVec::new();
        for (number, command) in commands.iter().enumerate() {
            command.add_needs(&mut needs).map_err(|why| {
                Error::invalid_argument(format!("command {number} of {}, {command:?}: {why}", commands.len()))
            })?;
        }
        Ok(Self { commands, needs, alignment_bytes: 1, backend_state: OnceLock::new() })
    }

    /// The same commands, whose ranges must begin at multiples of `alignment_bytes`, a power of two.
    #[must_use]
    pub fn with_alignment(self, alignment_bytes: usize) -> Self {
        Self { alignment_bytes, ..self }
    }

    /// What a backend keeps for this list, for as long as the list lives. `None`: another one keeps something of
    /// another type.
    pub fn backend_state<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.backend_state.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// What each range begins at a multiple of.
    #[must_use]
    pub fn alignment_bytes(&self) -> usize {
        self.alignment_bytes
    }

    /// The commands.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// That a launch with ranges of these sizes has what the commands need.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the range and the numbers.
    pub(crate) fn check(&self, ranges: impl ExactSizeIterator<Item = (Access, usize)>) -> Result<(), Error> {
        if ranges.len() < self.needs.len() {
            let (needed, there) = (self.needs.len(), ranges.len());
            return Err(Error::invalid_argument(format!("commands on {needed} ranges are launched with {there}")));
        }
        for (number, (need, (access, size_bytes))) in self.needs.iter().zip(ranges).enumerate() {
            if size_bytes < need.size_bytes {
                return Err(Error::invalid_argument(format!(
                    "commands on {} bytes of range {number} are launched with {size_bytes}",
                    need.size_bytes
                )));
            }
            if need.is_written && access == Access::Read {
                return Err(Error::invalid_argument(format!(
                    "commands that write range {number} are launched with one that is only read"
                )));
            }
        }
        Ok(())
    }
}

impl Command {
    /// # Errors
    /// What is wrong with the command.
    fn add_needs(&self, needs: &mut SmallVec<[Need; 8]>) -> Result<(), String> {
        let mut add = |access: Access, place: Place, size_bytes: usize| {
            let end = place.offset_bytes.checked_add(size_bytes);
            let end = end.ok_or_else(|| format!("{size_bytes} bytes at {} end nowhere", place.offset_bytes))?;
            needs.resize(needs.len().max(place.range + 1), Need::default());
            let need = &mut needs[place.range];
            need.size_bytes = need.size_bytes.max(end);
            need.is_written |= access == Access::Write;
            Ok(())
        };
        match *self {
            Self::Kernel(ref kernel) => {
                kernel.touched.iter().try_for_each(|memory| add(memory.access, memory.place, memory.size_bytes))
            }
            Self::Copy { from, to, size_bytes } => {
                add(Access::Read, from, size_bytes)?;
                add(Access::Write, to, size_bytes)
            }
            Self::Fill { to, size_bytes, pattern } => {
                let width = pattern.width_bytes();
                if !size_bytes.is_multiple_of(width) || !to.offset_bytes.is_multiple_of(width) {
                    return Err(format!("{size_bytes} bytes at {} are not whole patterns of {width}", to.offset_bytes));
                }
                add(Access::Write, to, size_bytes)
            }
        }
    }
}

/// `kernel 'scale'`, `copy of 8 bytes`, `fill of 8 bytes`
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(kernel) => write!(f, "kernel '{}'", kernel.kernel.name()),
            Self::Copy { size_bytes, .. } => write!(f, "copy of {size_bytes} bytes"),
            Self::Fill { size_bytes, .. } => write!(f, "fill of {size_bytes} bytes"),
        }
    }
}

impl fmt::Debug for KernelCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelCommand('{}', {})", self.kernel.name(), self.dimensions)
    }
}

impl fmt::Debug for CommandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.commands).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that takes anything.
    struct Anything;

    impl DeviceKernel for Anything {
        fn name(&self) -> &str {
            "any"
        }

        fn check(&self, _dimensions: &LaunchDimensions) -> Result<(), Error> {
            Ok(())
        }
    }

    fn kernel() -> KernelCommand {
        KernelCommand::new(Arc::new(Anything), LaunchDimensions::linear(1, 1)).unwrap()
    }

    fn memory(access: Access, range: usize, size_bytes: usize) -> Touched {
        Touched { access, place: Place { range, offset_bytes: 4 }, size_bytes }
    }

    #[test]
    fn addresses_come_with_each_launch_and_values_stay() {
        let memory = memory(Access::Read, 1, 8);
        let command = kernel().with_value(&[7, 8, 9]).with_address(memory).with_argument(&[5; 16], &[(8, memory)]);
        for base in [0x1000_u64, 0x7000_0000_0000] {
            let (bytes, begins) = command.arguments(&[0, base]);
            let address = (base + 4).to_le_bytes();
            assert_eq!(begins, [0, 8, 16]);
            assert_eq!(bytes[..3], [7, 8, 9]);
            assert_eq!((&bytes[8..16], &bytes[16..24], &bytes[24..32]), (&address[..], &[5; 8][..], &address[..]));
        }
    }

    #[test]
    fn ranges_are_as_long_and_as_writable_as_all_commands_need() {
        let copy = Command::Copy { from: Place::begin_of(0), to: Place { range: 1, offset_bytes: 8 }, size_bytes: 24 };
        let kernel = Command::Kernel(Box::new(kernel().with_address(memory(Access::Write, 3, 100))));
        let list = CommandList::new(vec![copy, kernel]).unwrap();
        let why =
            |ranges: &[(Access, usize)]| list.check(ranges.iter().copied()).map_err(|error| error.message().to_owned());
        let (reads, writes) = (|bytes| (Access::Read, bytes), |bytes| (Access::Write, bytes));
        assert_eq!(why(&[reads(24), writes(32), reads(0), writes(104)]), Ok(()));
        assert_eq!(why(&[reads(24), writes(32), reads(0)]), Err("commands on 4 ranges are launched with 3".into()));
        let short = "commands on 32 bytes of range 1 are launched with 31";
        assert_eq!(why(&[reads(24), writes(31), reads(0), writes(104)]), Err(short.into()));
        let short = "commands on 104 bytes of range 3 are launched with 103";
        assert_eq!(why(&[reads(24), writes(32), reads(0), writes(103)]), Err(short.into()));
        let read_only = "commands that write range 3 are launched with one that is only read";
        assert_eq!(why(&[writes(24), writes(32), reads(0), reads(104)]), Err(read_only.into()));
    }

    #[test]
    fn what_no_device_could_do_is_refused() {
        let why = |command| CommandList::new(vec![command]).unwrap_err().message().to_owned();
        let fill = |offset_bytes, size_bytes| {
            let to = Place { range: 0, offset_bytes };
            why(Command::Fill { to, size_bytes, pattern: FillPattern::Word(1) })
        };
        assert_eq!(fill(0, 6), "command 0 of 1, fill of 6 bytes: 6 bytes at 0 are not whole patterns of 4");
        assert_eq!(fill(2, 8), "command 0 of 1, fill of 8 bytes: 8 bytes at 2 are not whole patterns of 4");
        let nowhere = Place { range: 0, offset_bytes: usize::MAX };
        let copy = Command::Copy { from: nowhere, to: Place::begin_of(1), size_bytes: 2 };
        assert_eq!(why(copy), format!("command 0 of 1, copy of 2 bytes: 2 bytes at {} end nowhere", usize::MAX));
    }

    #[test]
    #[should_panic(expected = "an address at 1 of [0, 0, 0, 0, 0, 0, 0, 0]")]
    fn an_address_is_inside_its_argument() {
        drop(kernel().with_argument(&[0; 8], &[(1, memory(Access::Read, 0, 1))]));
    }

    #[test]
    fn patterns_are_the_shortest_that_repeat() {
        for (bytes, pattern) in [
            (&[0; 8][..], Some(FillPattern::Byte(0))),
            (&[1, 2, 1, 2], Some(FillPattern::Pair(u16::from_ne_bytes([1, 2])))),
            (&[1, 2, 3, 4, 1, 2, 3, 4], Some(FillPattern::Word(u32::from_ne_bytes([1, 2, 3, 4])))),
            (&[1, 2, 3, 4, 5, 6, 7, 8], None),
            (&[1, 2, 1], None),
            (&[], None),
        ] {
            assert_eq!(FillPattern::of(bytes), pattern, "{bytes:?}");
        }
    }
}
