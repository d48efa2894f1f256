//! How to load a kernel: its code, its name, its number of arguments, and how they are packed.

use std::sync::Arc;

use purlin_base::{Error, StatusOr};

use super::{KernelArgsPackingSpec, KernelSymbol, PackedKernelArgs};

/// The code of a kernel. It is owned, so a spec is valid on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelPayload {
    /// PTX, which the driver compiles when it loads it.
    Ptx(Arc<str>),
    /// Machine code of an NVIDIA GPU.
    Cubin(Arc<[u8]>),
    /// A function of this process.
    InProcessSymbol {
        /// The function.
        symbol: KernelSymbol,
        /// Its name in the [`SymbolRegistry`](crate::SymbolRegistry) of each process that has the function. Without
        /// one, the spec cannot be serialized.
        persistent_name: Option<Arc<str>>,
    },
}

/// A description of a kernel from which a platform can load it: exactly one [`KernelPayload`], the kernel's name, the
/// number of its arguments, and, if arguments are not just the addresses of all buffers, their packing.
///
/// ```
/// use purlin::program::{KernelArgsPackingSpec, KernelLoaderSpec, KernelPayload};
///
/// let mut packing = KernelArgsPackingSpec::default();
/// packing.push_address(0)?;
/// packing.push_constant(&7_i32.to_le_bytes());
/// let spec = KernelLoaderSpec::new(KernelPayload::Ptx(".version 8.0 ...".into()), "fill", 2)?.with_packing(packing);
/// assert_eq!(spec.pack(&[0x1000], 0)?.argument(1), Some(&[7, 0, 0, 0][..]));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLoaderSpec {
    payload: KernelPayload,
    kernel_name: Arc<str>,
    arity: u32,
    packing: Option<KernelArgsPackingSpec>,
}

impl KernelLoaderSpec {
    /// A kernel that takes `arity` arguments, which are the addresses of the buffers of the launch, in their order.
    /// `kernel_name` is the name in the code, where compilers of C++ may have mangled it. Shared memory is not an
    /// argument of the kernel.
    ///
    /// # Errors
    /// `InvalidArgument`: `kernel_name`, the code or the persistent name is empty; a name or PTX has a zero byte before
    /// its end; `arity` is greater than `i32::MAX`.
    pub fn new(payload: KernelPayload, kernel_name: impl Into<Arc<str>>, arity: u32) -> StatusOr<Self> {
        let kernel_name = kernel_name.into();
        check_text("kernel_name", &kernel_name)?;
        match &payload {
            // nvrtc counts the zero byte at the end of its PTX.
            KernelPayload::Ptx(text) => check_text("ptx", text.trim_end_matches('\0'))?,
            KernelPayload::Cubin(bytes) if bytes.is_empty() => return Err(empty("cubin")),
            KernelPayload::InProcessSymbol { persistent_name: Some(name), .. } => check_text("persistent_name", name)?,
            KernelPayload::Cubin(_) | KernelPayload::InProcessSymbol { persistent_name: None, .. } => {}
        }
        if i32::try_from(arity).is_err() {
            let why = format!("a kernel loader spec has an arity of {arity}, and at most {} is possible", i32::MAX);
            return Err(Error::invalid_argument(why));
        }
        Ok(Self { payload, kernel_name, arity, packing: None })
    }

    /// The same kernel, with arguments that are packed so.
    #[must_use]
    pub fn with_packing(self, packing: KernelArgsPackingSpec) -> Self {
        Self { packing: Some(packing), ..self }
    }

    /// The code.
    #[must_use]
    pub fn payload(&self) -> &KernelPayload {
        &self.payload
    }

    /// The name in the code.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// The number of arguments of the kernel.
    #[must_use]
    pub fn arity(&self) -> u32 {
        self.arity
    }

    /// How arguments are packed. `None`: they are the addresses of the buffers, in their order.
    #[must_use]
    pub fn packing(&self) -> Option<&KernelArgsPackingSpec> {
        self.packing.as_ref()
    }

    /// The packed arguments of a launch with buffers at these addresses.
    ///
    /// # Errors
    /// `InvalidArgument`: the packing names an address that is not given, or the number of arguments is not the arity.
    pub fn pack(&self, addresses: &[u64], shared_memory_bytes: u64) -> StatusOr<PackedKernelArgs> {
        let name = &self.kernel_name;
        let args = match &self.packing {
            Some(packing) => {
                let built = packing.build(addresses, shared_memory_bytes);
                built.map_err(|why| Error::invalid_argument(format!("kernel '{name}': {}", why.message())))?
            }
            None => {
                let mut args = PackedKernelArgs::new(shared_memory_bytes);
                addresses.iter().for_each(|address| args.push_address(*address));
                args
            }
        };
        if args.len() != self.arity as usize {
            let why = format!("kernel '{name}': its arity is {}, and {} arguments were packed", self.arity, args.len());
            return Err(Error::invalid_argument(why));
        }
        Ok(args)
    }
}

/// Refuses what would be lost where text ends at its first zero byte, as it does in drivers.
fn check_text(field: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(empty(field));
    }
    match text.bytes().position(|byte| byte == 0) {
        Some(at) => {
            let bytes = text.len();
            let why = format!("a kernel loader spec has a {field} of {bytes} bytes with a zero byte at {at}");
            Err(Error::invalid_argument(why))
        }
        None => Ok(()),
    }
}

fn empty(field: &str) -> Error {
    Error::invalid_argument(format!("a kernel loader spec has an empty {field}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::some_symbol;
    use super::*;

    fn ptx(text: &str) -> KernelPayload {
        KernelPayload::Ptx(text.into())
    }

    fn symbol(name: Option<&str>) -> KernelPayload {
        KernelPayload::InProcessSymbol { symbol: some_symbol(), persistent_name: name.map(Into::into) }
    }

    #[test]
    fn what_no_platform_could_load_is_refused_with_its_field() {
        let refused =
            |payload, name: &str, arity| KernelLoaderSpec::new(payload, name, arity).unwrap_err().message().to_owned();
        let empty = |field| format!("a kernel loader spec has an empty {field}");
        assert_eq!(refused(ptx("p"), "", 0), empty("kernel_name"));
        assert_eq!(refused(ptx(""), "k", 0), empty("ptx"));
        assert_eq!(refused(ptx("\0"), "k", 0), empty("ptx"));
        assert_eq!(refused(KernelPayload::Cubin([].into()), "k", 0), empty("cubin"));
        assert_eq!(refused(symbol(Some("")), "k", 0), empty("persistent_name"));
        let zero =
            |field, bytes, at| format!("a kernel loader spec has a {field} of {bytes} bytes with a zero byte at {at}");
        assert_eq!(refused(ptx("p"), "a\0b", 0), zero("kernel_name", 3, 1));
        assert_eq!(refused(ptx("p\0q\0"), "k", 0), zero("ptx", 3, 1));
        assert_eq!(refused(symbol(Some("n\0")), "k", 0), zero("persistent_name", 2, 1));
        let expected = "a kernel loader spec has an arity of 2147483648, and at most 2147483647 is possible";
        assert_eq!(refused(ptx("p"), "k", 1 << 31), expected);
        for payload in [ptx("p"), ptx("p\0"), KernelPayload::Cubin([0].into()), symbol(None), symbol(Some("n"))] {
            let spec = KernelLoaderSpec::new(payload.clone(), "k", i32::MAX as u32).unwrap();
            assert_eq!((spec.payload(), spec.kernel_name(), spec.arity()), (&payload, "k", i32::MAX as u32));
        }
    }

    #[test]
    fn a_spec_owns_its_code() {
        let bytes = vec![1, 2, 3];
        let spec = KernelLoaderSpec::new(KernelPayload::Cubin(bytes.as_slice().into()), "k", 0).unwrap();
        drop(bytes);
        assert_eq!(spec.clone().payload(), &KernelPayload::Cubin([1, 2, 3].into()));
    }

    #[test]
    fn without_a_packing_arguments_are_the_addresses() {
        let spec = KernelLoaderSpec::new(ptx("p"), "k", 2).unwrap();
        let args = spec.pack(&[1, u64::MAX], 64).unwrap();
        assert_eq!(args.arguments().collect::<Vec<_>>(), [1_u64.to_le_bytes(), [0xff; 8]]);
        assert_eq!(args.number_of_arguments(), 3);
    }

    #[test]
    fn the_arity_is_checked_and_shared_memory_is_no_part_of_it() {
        let spec = KernelLoaderSpec::new(ptx("p"), "k", 2).unwrap();
        for shared_memory_bytes in [0, 64] {
            let error = spec.pack(&[1], shared_memory_bytes).unwrap_err();
            assert_eq!(error.message(), "kernel 'k': its arity is 2, and 1 arguments were packed");
        }
        let mut packing = KernelArgsPackingSpec::default();
        packing.push_address(1).unwrap();
        let spec = spec.with_packing(packing);
        let error = spec.pack(&[1, 2], 0).unwrap_err();
        assert_eq!(error.message(), "kernel 'k': its arity is 2, and 1 arguments were packed");
        let error = spec.pack(&[1], 0).unwrap_err();
        let expected = "kernel 'k': kernel argument 0, relocation 0: argument_index is 1, and 1 addresses were given";
        assert_eq!(error.message(), expected);
    }
}
