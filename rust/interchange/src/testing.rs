//! What the tests share: a client, a folder of a test's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use purlin_device::{Client, ClientOptions, MemorySpace};
use purlin_host::HostBackend;

/// Memory on the host, and the client that it is of.
pub(crate) struct Host {
    pub(crate) client: Arc<Client>,
    pub(crate) space: MemorySpace,
}

impl Host {
    pub(crate) fn new() -> Self {
        let options = ClientOptions { device_count: 1, worker_count: 2, ..Default::default() };
        let client = Client::new(&options, Arc::new(HostBackend::new())).unwrap();
        let space = client.devices()[0].default_memory_space();
        Self { client, space }
    }
}

/// Waits until `what` holds, or fails after a minute, instead of hanging.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed().as_secs() < 60, "never: {what}");
        std::thread::yield_now();
    }
}

/// A folder that is removed at the end of its scope.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("purlin-interchange-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of that content.
    pub(crate) fn holding(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
