//! How a kernel's arguments are made of addresses and constants, as data: it can be serialized, and a launch needs no
//! code of the kernel's author.

use purlin_base::{Error, StatusOr};

use super::PackedKernelArgs;

/// The size of an address in the bytes of an argument, on every host.
const ADDRESS_BYTES: usize = 8;

/// A place in the bytes of an argument where the address of a buffer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelArgPackingRelocation {
    /// Which of the buffers of the launch. At most `i32::MAX`, as on the wire.
    pub argument_index: u32,
    /// The offset of the first of the 8 bytes in the argument.
    pub offset_bytes: usize,
}

/// One argument of a kernel: constant bytes, and relocations in them.
///
/// ```
/// use purlin::program::KernelArgPackingSpec;
///
/// // A struct of a length and a pointer.
/// let mut argument = KernelArgPackingSpec::default();
/// argument.push_constant(&64_u64.to_le_bytes());
/// argument.push_address(0)?;
/// assert_eq!(argument.build(&[0x1000])?, [64, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelArgPackingSpec {
    bytes: Vec<u8>,
    relocations: Vec<KernelArgPackingRelocation>,
}

impl KernelArgPackingSpec {
    /// An argument of these bytes, with addresses at the places that `relocations` name. Where two of them overlap, the
    /// later one wins, as in XLA.
    ///
    /// # Errors
    /// `InvalidArgument`: a relocation does not lie in the bytes, or its index is greater than `i32::MAX`.
    pub fn new(bytes: Vec<u8>, relocations: Vec<KernelArgPackingRelocation>) -> StatusOr<Self> {
        for (number, relocation) in relocations.iter().enumerate() {
            check_index(relocation.argument_index).map_err(|why| invalid(format!("relocation {number}: {why}")))?;
            let offset = relocation.offset_bytes;
            if offset.checked_add(ADDRESS_BYTES).is_none_or(|end| end > bytes.len()) {
                return Err(invalid(format!(
                    "relocation {number}: offset {offset}, and {ADDRESS_BYTES} bytes from there, are not in an argument \
                     of {} bytes",
                    bytes.len()
                )));
            }
        }
        Ok(Self { bytes, relocations })
    }

    /// Adds constant bytes at the end, without padding.
    pub fn push_constant(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds the address of a buffer of the launch at the end, without padding.
    ///
    /// # Errors
    /// `InvalidArgument`: `argument_index` is greater than `i32::MAX`.
    pub fn push_address(&mut self, argument_index: u32) -> Result<(), Error> {
        check_index(argument_index).map_err(invalid)?;
        self.relocations.push(KernelArgPackingRelocation { argument_index, offset_bytes: self.bytes.len() });
        self.bytes.resize(self.bytes.len() + ADDRESS_BYTES, 0);
        Ok(())
    }

    /// The constant bytes. Those at relocations are overwritten.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The places of addresses.
    #[must_use]
    pub fn relocations(&self) -> &[KernelArgPackingRelocation] {
        &self.relocations
    }

    /// The argument's bytes for buffers at these addresses. Addresses are written with 8 bytes, little-endian.
    ///
    /// # Errors
    /// `InvalidArgument`: a relocation names an address that is not given.
    pub fn build(&self, addresses: &[u64]) -> StatusOr<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        for (number, relocation) in self.relocations.iter().enumerate() {
            let address = addresses.get(relocation.argument_index as usize).ok_or_else(|| {
                invalid(format!(
                    "relocation {number}: argument_index is {}, and {} addresses were given",
                    relocation.argument_index,
                    addresses.len()
                ))
            })?;
            let begin = relocation.offset_bytes;
            bytes[begin..begin + ADDRESS_BYTES].copy_from_slice(&address.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// All arguments of a kernel.
///
/// ```
/// use purlin::program::KernelArgsPackingSpec;
///
/// // kernel(output, input, 42)
/// let mut packing = KernelArgsPackingSpec::default();
/// packing.push_address(1)?;
/// packing.push_address(0)?;
/// packing.push_constant(&42_i64.to_le_bytes());
/// let args = packing.build(&[0x1000, 0x2000], 0)?;
/// assert_eq!(args.argument(0), Some(&0x2000_u64.to_le_bytes()[..]));
/// assert_eq!(packing.build(&[0x1000], 0).unwrap_err().message(),
///     "kernel argument 0, relocation 0: argument_index is 1, and 1 addresses were given");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelArgsPackingSpec {
    arguments: Vec<KernelArgPackingSpec>,
}

impl KernelArgsPackingSpec {
    /// Adds an argument.
    pub fn push(&mut self, argument: KernelArgPackingSpec) {
        self.arguments.push(argument);
    }

    /// Adds an argument that is the address of a buffer of the launch.
    ///
    /// # Errors
    /// `InvalidArgument`: `argument_index` is greater than `i32::MAX`.
    pub fn push_address(&mut self, argument_index: u32) -> Result<(), Error> {
        let mut argument = KernelArgPackingSpec::default();
        argument.push_address(argument_index)?;
        self.push(argument);
        Ok(())
    }

    /// Adds an argument of constant bytes.
    pub fn push_constant(&mut self, bytes: &[u8]) {
        self.push(KernelArgPackingSpec { bytes: bytes.to_vec(), relocations: Vec::new() });
    }

    /// The arguments, in their order.
    #[must_use]
    pub fn arguments(&self) -> &[KernelArgPackingSpec] {
        &self.arguments
    }

    /// The packed arguments for buffers at these addresses.
    ///
    /// # Errors
    /// `InvalidArgument`: a relocation names an address that is not given.
    pub fn build(&self, addresses: &[u64], shared_memory_bytes: u64) -> StatusOr<PackedKernelArgs> {
        let mut args = PackedKernelArgs::new(shared_memory_bytes);
        for (number, argument) in self.arguments.iter().enumerate() {
            let bytes = argument.build(addresses);
            args.push(&bytes.map_err(|why| invalid(format!("kernel argument {number}, {}", why.message())))?);
        }
        Ok(args)
    }
}

impl From<Vec<KernelArgPackingSpec>> for KernelArgsPackingSpec {
    fn from(arguments: Vec<KernelArgPackingSpec>) -> Self {
        Self { arguments }
    }
}

fn check_index(argument_index: u32) -> Result<(), String> {
    match i32::try_from(argument_index) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("argument_index is {argument_index}, and at most {} is possible", i32::MAX)),
    }
}

fn invalid(message: String) -> Error {
    Error::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(argument_index: u32, offset_bytes: usize) -> KernelArgPackingRelocation {
        KernelArgPackingRelocation { argument_index, offset_bytes }
    }

    #[test]
    fn addresses_are_written_where_the_relocations_are() {
        let argument = KernelArgPackingSpec::new(vec![9; 19], vec![at(1, 3), at(0, 11)]).unwrap();
        let bytes = argument.build(&[0x1122_3344_5566_7788, u64::MAX]).unwrap();
        let expected = [&[9; 3][..], &[255; 8], &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]].concat();
        assert_eq!(bytes, expected);
        assert_eq!(argument.bytes(), [9; 19], "the spec itself is as it was");
    }

    #[test]
    fn of_two_relocations_at_one_place_the_later_wins() {
        let argument = KernelArgPackingSpec::new(vec![0; 12], vec![at(0, 4), at(1, 0)]).unwrap();
        let expected = [[2; 8].as_slice(), &[1; 4]].concat();
        assert_eq!(argument.build(&[0x0101_0101_0101_0101, 0x0202_0202_0202_0202]).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_field_and_number() {
        let refused = |bytes: usize, relocation| {
            let outcome = KernelArgPackingSpec::new(vec![0; bytes], vec![at(0, 0), relocation]);
            outcome.unwrap_err().message().to_owned()
        };
        for (offset, bytes) in [(1, 8), (9, 16), (usize::MAX, 8), (usize::MAX - 7, 16)] {
            let expected = format!(
                "relocation 1: offset {offset}, and 8 bytes from there, are not in an argument of {bytes} bytes"
            );
            assert_eq!(refused(bytes, at(0, offset)), expected);
        }
        let expected = "relocation 1: argument_index is 2147483648, and at most 2147483647 is possible";
        assert_eq!(refused(8, at(1 << 31, 0)), expected);
        let mut packing = KernelArgsPackingSpec::default();
        let error = packing.push_address(u32::MAX).unwrap_err();
        assert_eq!(error.message(), "argument_index is 4294967295, and at most 2147483647 is possible");
        assert_eq!(packing.arguments(), [], "and the spec is as it was");
        packing.push_constant(&[7]);
        packing.push_address(2).unwrap();
        let error = packing.build(&[1, 2], 0).unwrap_err();
        assert_eq!(error.message(), "kernel argument 1, relocation 0: argument_index is 2, and 2 addresses were given");
    }

    #[test]
    fn shared_memory_counts_as_an_argument() {
        let mut packing = KernelArgsPackingSpec::default();
        packing.push_address(0).unwrap();
        packing.push_constant(&[]);
        assert_eq!(packing.build(&[1], 0).unwrap().number_of_arguments(), 2);
        assert_eq!(packing.build(&[1], 16).unwrap().number_of_arguments(), 3);
    }
}
