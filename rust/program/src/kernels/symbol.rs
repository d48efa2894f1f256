//! Kernels that are functions of this process, and the names by which other processes find the same ones.

#![allow(unsafe_code, reason = "addresses of functions, which are called later")]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use purlin_base::sync::{Mutex, OnceLock};
use purlin_base::{Error, StatusOr};

/// The address of a kernel in this process, and an owner that keeps it valid. Clones share the owner.
///
/// The meaning of the address depends on the platform: on `host` and `sim` it is a
/// [`KernelFunction`](crate::KernelFunction), on `cuda` a `CUfunction`, such as `cudaGetFuncBySymbol` answers.
#[derive(Clone)]
pub struct KernelSymbol {
    address: NonNull<c_void>,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the address is a number to this type, and the promise of `new` is to all threads. The owner is `Send + Sync`.
unsafe impl Send for KernelSymbol {}
// SAFETY: as above; a shared reference only reads the address.
unsafe impl Sync for KernelSymbol {}

impl KernelSymbol {
    /// The kernel at `address`, which stays valid while `owner` has a reference. For a function of the program itself,
    /// the owner can be `Arc::new(())`.
    ///
    /// # Safety
    /// As long as `owner` lives, `address` is a kernel of the platforms for which the symbol is registered or launched,
    /// and any thread may launch it.
    ///
    /// # Examples
    /// ```
    /// use std::ffi::c_void;
    /// use std::ptr::NonNull;
    /// use std::sync::Arc;
    ///
    /// use purlin::program::{KernelFrame, KernelFunction, KernelSymbol};
    ///
    /// unsafe extern "C" fn nothing(_: *const KernelFrame) -> *mut c_void {
    ///     std::ptr::null_mut()
    /// }
    ///
    /// let address = NonNull::new(nothing as KernelFunction as *mut c_void).expect("a function has an address");
    /// // SAFETY: the function is part of this program, and has the type of kernels of the platform `host`.
    /// let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
    /// assert_eq!(symbol.address(), address);
    /// ```
    #[must_use]
    pub unsafe fn new(address: NonNull<c_void>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { address, _owner: owner }
    }

    /// The address, which is valid while this symbol or a clone of it lives.
    #[must_use]
    pub fn address(&self) -> NonNull<c_void> {
        self.address
    }
}

/// Symbols are equal if their addresses are.
impl PartialEq for KernelSymbol {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for KernelSymbol {}

impl fmt::Debug for KernelSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelSymbol({:p})", self.address)
    }
}

/// Kernels of this process by persistent name and platform. The name is what is serialized, because an address means
/// nothing in another process.
///
/// Any thread may register and find symbols at any time. Entries are never replaced or removed.
///
/// ```
/// # use std::{ffi::c_void, ptr::NonNull, sync::Arc};
/// use purlin::StatusCode;
/// use purlin::program::{KernelSymbol, SymbolRegistry};
///
/// static CODE: u8 = 0xc3;
/// // SAFETY: nothing launches it.
/// let symbol = unsafe { KernelSymbol::new(NonNull::from(&CODE).cast(), Arc::new(())) };
/// let registry = SymbolRegistry::new();
/// registry.register("my_library.fill", "host", symbol.clone())?;
/// assert_eq!(registry.find("my_library.fill", "host")?, symbol);
/// assert_eq!(registry.find("my_library.fill", "cuda").unwrap_err().code(), StatusCode::NotFound);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct SymbolRegistry {
    /// The symbols of a name, by platform.
    symbols: Mutex<BTreeMap<String, BTreeMap<String, KernelSymbol>>>,
}

impl SymbolRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self { symbols: Mutex::new(BTreeMap::new()) }
    }

    /// The registry of this process.
    #[must_use]
    pub fn global() -> &'static Self {
        static PROCESS: OnceLock<SymbolRegistry> = OnceLock::new();
        PROCESS.get_or_init(SymbolRegistry::new)
    }

    /// Gives `symbol` a name for one platform.
    ///
    /// # Errors
    /// - `InvalidArgument`: the name or the platform is empty.
    /// - `AlreadyExists`: the name has a symbol for this platform, even if it is the same one. The entry stays as it
    ///   is.
    pub fn register(&self, persistent_name: &str, platform: &str, symbol: KernelSymbol) -> Result<(), Error> {
        for (field, value) in [("persistent_name", persistent_name), ("platform", platform)] {
            if value.is_empty() {
                return Err(Error::invalid_argument(format!("a kernel symbol is registered with an empty {field}")));
            }
        }
        let mut symbols = self.symbols.lock();
        let platforms = symbols.entry(persistent_name.to_owned()).or_default();
        if platforms.contains_key(platform) {
            // The owner's destructor is foreign code, which runs after the lock: `symbol` outlives the guard.
            drop(symbols);
            return Err(Error::already_exists(format!(
                "the kernel symbol '{persistent_name}' is already registered for the platform '{platform}'"
            )));
        }
        platforms.insert(platform.to_owned(), symbol);
        Ok(())
    }

    /// The symbol with this name for a platform.
    ///
    /// # Errors
    /// `NotFound`: there is none. The message names the platforms for which there is one.
    pub fn find(&self, persistent_name: &str, platform: &str) -> StatusOr<KernelSymbol> {
        let symbols = self.symbols.lock();
        let platforms = symbols.get(persistent_name);
        if let Some(symbol) = platforms.and_then(|platforms| platforms.get(platform)) {
            return Ok(symbol.clone());
        }
        let others = super::listed(platforms.into_iter().flat_map(BTreeMap::keys));
        drop(symbols);
        Err(Error::not_found(format!(
            "no kernel symbol '{persistent_name}' is registered for the platform '{platform}'; it is registered for {others}"
        )))
    }
}

impl Default for SymbolRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SymbolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.symbols.lock().keys().cloned().collect();
        f.debug_tuple("SymbolRegistry").field(&names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{OnDrop, within_a_minute};
    use super::*;

    static CODE: [u8; 2] = [0xc3; 2];

    fn symbol(number: usize, owner: Arc<dyn Any + Send + Sync>) -> KernelSymbol {
        // SAFETY: nothing launches it.
        unsafe { KernelSymbol::new(NonNull::from(&CODE[number]).cast(), owner) }
    }

    #[test]
    fn a_name_has_one_symbol_for_each_platform() {
        let registry = SymbolRegistry::new();
        registry.register("fill", "host", symbol(0, Arc::new(()))).unwrap();
        registry.register("fill", "cuda", symbol(1, Arc::new(()))).unwrap();
        assert_eq!(registry.find("fill", "host").unwrap(), symbol(0, Arc::new(())));
        assert_eq!(registry.find("fill", "cuda").unwrap(), symbol(1, Arc::new(())));
        let error = registry.register("fill", "host", symbol(1, Arc::new(()))).unwrap_err();
        assert_eq!(error.message(), "the kernel symbol 'fill' is already registered for the platform 'host'");
        assert_eq!(registry.find("fill", "host").unwrap(), symbol(0, Arc::new(())), "the entry is as it was");
        let error = registry.find("fill", "sim").unwrap_err();
        let expected = "no kernel symbol 'fill' is registered for the platform 'sim'; it is registered for cuda, host";
        assert_eq!(error.message(), expected);
        let error = registry.find("Fill", "host").unwrap_err();
        assert!(error.message().ends_with("it is registered for no platform"), "{error}");
        for (name, platform, field) in [("", "host", "persistent_name"), ("fill", "", "platform")] {
            let error = registry.register(name, platform, symbol(0, Arc::new(()))).unwrap_err();
            assert_eq!(error.message(), format!("a kernel symbol is registered with an empty {field}"));
        }
    }

    #[test]
    fn an_owner_lives_as_long_as_its_symbol() {
        let owner = Arc::new(());
        let registry = SymbolRegistry::new();
        registry.register("fill", "host", symbol(0, owner.clone())).unwrap();
        let found = registry.find("fill", "host").unwrap();
        drop(registry);
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(found);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn a_refused_owner_is_dropped_without_the_lock() {
        within_a_minute(|| {
            let registry = Arc::new(SymbolRegistry::new());
            registry.register("fill", "host", symbol(0, Arc::new(()))).unwrap();
            let inner = registry.clone();
            let owner = Arc::new(OnDrop(move || drop(inner.find("fill", "host").unwrap())));
            registry.register("fill", "host", symbol(1, owner)).unwrap_err();
        });
    }
}
