//! Objects of libraries for each platform, found by a type: kernels, or contexts of libraries such as a solver's.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use purlin_base::sync::{Mutex, OnceLock};
use purlin_base::{Error, StatusOr};

/// A key of a [`KernelRegistry`]. The code that registers an object and the code that looks for it name the same type,
/// so the object has the type that both expect.
///
/// ```
/// use purlin::program::{KernelLoaderSpec, RegistryKey};
///
/// /// Adds two vectors of f32.
/// struct AddF32;
///
/// impl RegistryKey for AddF32 {
///     type Object = KernelLoaderSpec;
///     const NAME: &'static str = "my_library.add_f32";
/// }
/// ```
pub trait RegistryKey: 'static {
    /// The type of the object, which is the same on all platforms.
    type Object: Send + Sync + 'static;
    /// The name in errors. It does not have to be unique.
    const NAME: &'static str;
}

type ByPlatform = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

/// At most one object for each key and platform.
///
/// Any thread may register and find objects at any time. Entries are never replaced or removed, and an object that was
/// found outlives the registry if need be.
///
/// ```
/// use purlin::program::{KernelLoaderSpec, KernelPayload, KernelRegistry, RegistryKey};
///
/// struct AddF32;
/// impl RegistryKey for AddF32 {
///     type Object = KernelLoaderSpec;
///     const NAME: &'static str = "my_library.add_f32";
/// }
///
/// let registry = KernelRegistry::new();
/// let payload = KernelPayload::Ptx(".version 8.0 ...".into());
/// registry.register::<AddF32>("cuda", KernelLoaderSpec::new(payload, "add_f32", 3)?)?;
/// assert_eq!(registry.find::<AddF32>("cuda")?.kernel_name(), "add_f32");
/// let error = registry.find::<AddF32>("host").unwrap_err();
/// assert_eq!(error.message(), "'my_library.add_f32' is not registered for the platform 'host'; it is registered for cuda");
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct KernelRegistry {
    /// The objects of a key, by platform.
    objects: Mutex<BTreeMap<TypeId, ByPlatform>>,
}

impl KernelRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self { objects: Mutex::new(BTreeMap::new()) }
    }

    /// The registry of this process.
    #[must_use]
    pub fn global() -> &'static Self {
        static PROCESS: OnceLock<KernelRegistry> = OnceLock::new();
        PROCESS.get_or_init(KernelRegistry::new)
    }

    /// Registers the object of `K` for one platform.
    ///
    /// # Errors
    /// - `InvalidArgument`: the platform is empty.
    /// - `AlreadyExists`: there is one. It stays, and `object` is dropped.
    pub fn register<K: RegistryKey>(&self, platform: &str, object: K::Object) -> Result<(), Error> {
        if platform.is_empty() {
            return Err(Error::invalid_argument(format!("'{}' is registered with an empty platform", K::NAME)));
        }
        let object: Arc<dyn Any + Send + Sync> = Arc::new(object);
        let mut objects = self.objects.lock();
        let platforms = objects.entry(TypeId::of::<K>()).or_default();
        if platforms.contains_key(platform) {
            // The destructor of `object` is foreign code, so the lock ends first.
            drop(objects);
            return Err(Error::already_exists(format!(
                "'{}' is already registered for the platform '{platform}'",
                K::NAME
            )));
        }
        platforms.insert(platform.to_owned(), object);
        Ok(())
    }

    /// The object of `K` for a platform. It is valid as long as the result lives.
    ///
    /// # Errors
    /// `NotFound`: there is none. The message names the platforms for which there is one.
    pub fn find<K: RegistryKey>(&self, platform: &str) -> StatusOr<Arc<K::Object>> {
        let objects = self.objects.lock();
        let platforms = objects.get(&TypeId::of::<K>());
        let Some(object) = platforms.and_then(|platforms| platforms.get(platform)).cloned() else {
            let others = super::listed(platforms.into_iter().flat_map(BTreeMap::keys));
            drop(objects);
            return Err(Error::not_found(format!(
                "'{}' is not registered for the platform '{platform}'; it is registered for {others}",
                K::NAME
            )));
        };
        drop(objects);
        Ok(object.downcast().expect("the key decides the object's type, and register() takes no other"))
    }
}

impl Default for KernelRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KernelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.objects.lock().values().map(BTreeMap::len).sum::<usize>();
        f.debug_struct("KernelRegistry").field("objects", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::super::tests::{OnDrop, within_a_minute};
    use super::*;

    struct Number;
    impl RegistryKey for Number {
        type Object = usize;
        const NAME: &'static str = "number";
    }

    /// Has the same name and the same type of object, and is another key all the same.
    struct OtherNumber;
    impl RegistryKey for OtherNumber {
        type Object = usize;
        const NAME: &'static str = "number";
    }

    #[test]
    fn a_key_has_one_object_for_each_platform() {
        let registry = KernelRegistry::new();
        registry.register::<Number>("host", 1).unwrap();
        registry.register::<Number>("cuda", 2).unwrap();
        registry.register::<OtherNumber>("host", 3).unwrap();
        assert_eq!(*registry.find::<Number>("host").unwrap(), 1);
        assert_eq!(*registry.find::<Number>("cuda").unwrap(), 2);
        assert_eq!(*registry.find::<OtherNumber>("host").unwrap(), 3);
        let error = registry.register::<Number>("host", 4).unwrap_err();
        assert_eq!(error.message(), "'number' is already registered for the platform 'host'");
        assert_eq!(*registry.find::<Number>("host").unwrap(), 1, "the entry is as it was");
        let error = registry.find::<OtherNumber>("cuda").unwrap_err();
        let expected = "'number' is not registered for the platform 'cuda'; it is registered for host";
        assert_eq!(error.message(), expected);
        let error = KernelRegistry::new().find::<Number>("host").unwrap_err();
        assert!(error.message().ends_with("it is registered for no platform"), "{error}");
        let error = registry.register::<Number>("", 5).unwrap_err();
        assert_eq!(error.message(), "'number' is registered with an empty platform");
    }

    #[test]
    fn what_was_found_outlives_the_registry() {
        let registry = KernelRegistry::new();
        registry.register::<Number>("host", 7).unwrap();
        let found = registry.find::<Number>("host").unwrap();
        assert_eq!(Arc::as_ptr(&found), Arc::as_ptr(&registry.find::<Number>("host").unwrap()), "one object");
        drop(registry);
        assert_eq!(*found, 7);
    }

    #[test]
    fn threads_register_and_find_at_once() {
        const THREADS: usize = 4;
        for _ in 0..200 {
            let (registry, start) = (KernelRegistry::new(), Barrier::new(THREADS));
            let outcomes: Vec<(bool, usize)> = thread::scope(|scope| {
                let race = |number: usize| {
                    start.wait();
                    let won = registry.register::<Number>("host", number).is_ok();
                    registry.register::<OtherNumber>(&format!("platform {number}"), number).unwrap();
                    (won, *registry.find::<Number>("host").unwrap())
                };
                let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || race(number))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let winners: Vec<usize> = (0..THREADS).filter(|&number| outcomes[number].0).collect();
            assert_eq!(winners.len(), 1, "{outcomes:?}");
            assert!(outcomes.iter().all(|(_, found)| *found == winners[0]), "{outcomes:?}");
            for number in 0..THREADS {
                assert_eq!(*registry.find::<OtherNumber>(&format!("platform {number}")).unwrap(), number);
            }
        }
    }

    #[test]
    fn a_refused_object_is_dropped_without_the_lock() {
        struct Refused;
        impl RegistryKey for Refused {
            type Object = OnDrop<Box<dyn Fn() + Send + Sync>>;
            const NAME: &'static str = "refused";
        }
        within_a_minute(|| {
            let registry = Arc::new(KernelRegistry::new());
            registry.register::<Refused>("host", OnDrop(Box::new(|| ()))).unwrap();
            let inner = registry.clone();
            let object = OnDrop::<Box<dyn Fn() + Send + Sync>>(Box::new(move || drop(inner.find::<Number>("host"))));
            registry.register::<Refused>("host", object).unwrap_err();
        });
    }
}
