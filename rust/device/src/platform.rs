//! Platforms by name: what a program opens for the names `"host"` or `"cuda"`.
//!
//! Each is a function that makes a backend. The crate of a backend has its [`Platform`]; a program adds its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::backend::{Backend, ByteSource, NullBackend};
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::Mutex;

/// What a platform is asked for.
///
/// ```
/// use purlin::platform::PlatformOptions;
///
/// assert!(PlatformOptions::default().host_memory_allocator.is_none());
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PlatformOptions {
    /// An allocator of the user's for the memory of the host. A platform whose memory is not the host's refuses it.
    pub host_memory_allocator: Option<Arc<dyn ByteSource>>,
    /// A client may have more devices than there is hardware: several are on one piece of it then, each with memory
    /// and streams of its own. A platform whose devices are virtual anyway has no use for it.
    pub virtual_devices: bool,
}

impl PlatformOptions {
    /// These options, with memory of the host from `source`.
    #[must_use]
    pub fn with_host_memory_allocator(mut self, source: Arc<dyn ByteSource>) -> Self {
        self.host_memory_allocator = Some(source);
        self
    }

    /// These options, with or without virtual devices.
    #[must_use]
    pub fn with_virtual_devices(mut self, virtual_devices: bool) -> Self {
        self.virtual_devices = virtual_devices;
        self
    }

    /// For platforms that have no use for an allocator of the host's memory.
    ///
    /// # Errors
    /// `InvalidArgument`, naming `platform`: there is one.
    pub fn without_host_memory_allocator(&self, platform: &str) -> Result<(), Error> {
        match self.host_memory_allocator {
            None => Ok(()),
            Some(_) => Err(Error::invalid_argument(format!(
                "host_memory_allocator is set; it serves platform 'host', not '{platform}'"
            ))),
        }
    }
}

impl fmt::Debug for PlatformOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host_memory_allocator, virtual_devices } = self;
        f.debug_struct("PlatformOptions")
            .field("host_memory_allocator", &host_memory_allocator.is_some())
            .field("virtual_devices", virtual_devices)
            .finish()
    }
}

type Make = dyn Fn(&PlatformOptions) -> StatusOr<Arc<dyn Backend>> + Send + Sync;

/// A platform that a crate brings.
///
/// ```
/// use purlin::host;
///
/// assert_eq!(host::PLATFORM.name, "host");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// By which it is opened; not empty.
    pub name: &'static str,
    /// Makes a backend, as the options say.
    pub make: fn(&PlatformOptions) -> StatusOr<Arc<dyn Backend>>,
}

/// The platform of the null backend.
pub const NULL: Platform = Platform {
    name: "null",
    make: |options| {
        options.without_host_memory_allocator("null")?;
        Ok(Arc::new(NullBackend::new()))
    },
};

/// Platforms by name. A process has those of `purlin::platforms()`; others are for tests.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::platform::{NULL, PlatformOptions, Platforms};
/// use purlin::{Client, ClientOptions, NullBackend, StatusCode};
///
/// static PLATFORMS: Platforms = Platforms::new(&[NULL]);
/// PLATFORMS.register("nowhere", |_options| Ok(Arc::new(NullBackend::new())))?;
/// let backend = PLATFORMS.open("nowhere", &PlatformOptions::default())?;
/// assert_eq!(Client::new(&ClientOptions::default(), backend)?.devices().len(), 1);
/// let error = PLATFORMS.open("cuda", &PlatformOptions::default()).err().unwrap();
/// assert_eq!(error.code(), StatusCode::NotFound);
/// assert_eq!(error.message(), "platform 'cuda' does not exist; there are 'nowhere' and 'null'");
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct Platforms {
    brought: &'static [Platform],
    registered: Mutex<BTreeMap<String, Arc<Make>>>,
}

impl Platforms {
    /// Those of the list, whose names differ.
    #[cfg(not(purlin_model))]
    #[must_use]
    pub const fn new(brought: &'static [Platform]) -> Self {
        Self { brought, registered: Mutex::new(BTreeMap::new()) }
    }

    /// Adds the platform `name`, whose backends `make` makes: called at each [`open`](Self::open), under no lock.
    ///
    /// # Errors
    /// `InvalidArgument`: an empty name. `AlreadyExists`, naming it.
    pub fn register(
        &self,
        name: &str,
        make: impl Fn(&PlatformOptions) -> StatusOr<Arc<dyn Backend>> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        if name.is_empty() {
            return Err(Error::invalid_argument("a platform has a name"));
        }
        let mut registered = self.registered.lock();
        if self.brought(name).is_some() || registered.contains_key(name) {
            drop(registered);
            return Err(Error::already_exists(format!("platform '{name}' is registered already")));
        }
        registered.insert(name.to_owned(), Arc::new(make));
        Ok(())
    }

    /// A backend of the platform `name`.
    ///
    /// # Errors
    /// `NotFound`, naming those that there are. What the platform answers.
    pub fn open(&self, name: &str, options: &PlatformOptions) -> StatusOr<Arc<dyn Backend>> {
        if let Some(platform) = self.brought(name) {
            return (platform.make)(options);
        }
        let make = self.registered.lock().get(name).cloned();
        match make {
            Some(make) => make(options),
            None => Err(Error::not_found(format!("platform '{name}' does not exist; {}", self.listed()))),
        }
    }

    fn brought(&self, name: &str) -> Option<&'static Platform> {
        self.brought.iter().find(|platform| platform.name == name)
    }

    /// The names, in alphabetical order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.registered.lock().keys().cloned().collect();
        names.extend(self.brought.iter().map(|platform| platform.name.to_owned()));
        names.sort_unstable();
        names
    }

    /// `there are 'host', 'null' and 'sim'`
    fn listed(&self) -> String {
        let names: Vec<String> = self.names().iter().map(|name| format!("'{name}'")).collect();
        match names.split_last() {
            None => "there is none".to_owned(),
            Some((only, [])) => format!("there is {only}"),
            Some((last, others)) => format!("there are {} and {last}", others.join(", ")),
        }
    }
}

impl fmt::Debug for Platforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Platforms").field(&self.names()).finish()
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;
    use purlin_base::status::StatusCode;

    #[test]
    fn a_name_is_registered_once_and_none_that_was_brought() {
        let platforms = Platforms::new(&[NULL]);
        let nowhere = |_: &PlatformOptions| -> StatusOr<Arc<dyn Backend>> { Ok(Arc::new(NullBackend::new())) };
        platforms.register("a", nowhere).unwrap();
        for name in ["a", "null"] {
            let error = platforms.register(name, nowhere).unwrap_err();
            assert_eq!(error.code(), StatusCode::AlreadyExists);
            assert_eq!(error.message(), format!("platform '{name}' is registered already"));
        }
        assert_eq!(platforms.register("", nowhere).unwrap_err().code(), StatusCode::InvalidArgument);
        assert_eq!(platforms.names(), ["a", "null"]);
        assert_eq!(Platforms::new(&[]).listed(), "there is none");
    }

    #[test]
    fn what_a_platform_answers_is_passed_on() {
        let platforms = Platforms::new(&[NULL]);
        platforms.register("gone", |_| Err(Error::unavailable("no driver"))).unwrap();
        let name_of = |name| platforms.open(name, &PlatformOptions::default()).map(|backend| backend.platform_name());
        assert_eq!(name_of("null"), Ok("null"));
        assert_eq!(name_of("gone").unwrap_err().message(), "no driver");
        assert_eq!(name_of("tpu").unwrap_err().message(), "platform 'tpu' does not exist; there are 'gone' and 'null'");
    }
}
