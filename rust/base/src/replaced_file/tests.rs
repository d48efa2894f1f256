//! What is opened, what is replaced, what is kept, and what is left in the folder. A race is run many times, and a
//! thread that hangs is noticed by its silence.

#![allow(unsafe_code, reason = "a thread changes to a user without root's rights")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

unsafe extern "C" {
    safe fn setfsuid(user: c_uint) -> c_int;
    safe fn setfsgid(group: c_uint) -> c_int;
    fn setxattr(path: *const c_char, name: *const c_char, value: *const c_void, size: usize, flags: c_int) -> c_int;
}

/// A folder of a test's own, which every user may write.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("purlin-replaced-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o777);
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn holding(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, content).unwrap();
        set_mode(&path, mode);
        path
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.file(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        set_mode(&self.0, 0o777);
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn replace(path: &Path, content: &str) -> Result<(), Failure> {
    let replacement = Replacement::begin(path)?;
    replacement.file().write_all(content.as_bytes())?;
    replacement.commit(false)
}

fn left(error: Failure) -> io::Error {
    match error {
        Failure::Left(error) => error,
        Failure::InPlace(error) => panic!("it is in place: {error}"),
    }
}

/// Does `work` as a user other than root, if we are root. Only file operations look at this thread's user.
fn as_nobody<T>(work: impl FnOnce() -> T) -> T {
    struct BackToUs(c_int, c_int);
    impl Drop for BackToUs {
        fn drop(&mut self) {
            setfsgid(self.1.cast_unsigned());
            setfsuid(self.0.cast_unsigned());
        }
    }
    let group = setfsgid(65534);
    let _back = BackToUs(setfsuid(65534), group);
    work()
}

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        println!("skipped: only root may give files away");
    }
    is_root
}

/// Fails after a minute, where `work` would hang.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => worker.join().unwrap(),
    }
}

#[test]
fn what_is_no_regular_file_is_refused_by_its_kind() {
    let folder = Folder::new();
    let socket = folder.file("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let pipe = folder.pipe("pipe");
    let link = folder.file("link");
    symlink(&pipe, &link).unwrap();
    for (path, kind) in [
        (&*folder.0, "a directory"),
        (&pipe, "a pipe"),
        (&link, "a pipe"),
        (&socket, "a socket"),
        (Path::new("/dev/zero"), "a character device"),
        (Path::new("/dev/full"), "a character device"),
    ] {
        for error in [open(path).unwrap_err(), Replacement::begin(path).unwrap_err()] {
            assert_eq!(error.to_string(), format!("it is no regular file: it is {kind}"), "{path:?}");
            assert_eq!(code_of(&error), StatusCode::FailedPrecondition);
        }
    }
    assert_eq!(folder.names(), ["link", "pipe", "socket"]);
}

#[test]
fn a_pipe_that_takes_the_files_place_meanwhile_hangs_nobody() {
    within_a_minute(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                let pipe = folder.pipe("pipe");
                while !is_over.load(Ordering::Relaxed) {
                    // Links are made and renamed, because a rename of the pipe itself would take its name away.
                    let _ =
                        fs::hard_link(&pipe, folder.file("next")).and_then(|()| fs::rename(folder.file("next"), &path));
                    let _ = fs::write(folder.file("next"), "x").and_then(|()| fs::rename(folder.file("next"), &path));
                }
            });
            for _ in 0..20_000 {
                let read = open(&path).map(|(mut file, _)| file.read(&mut [0]).unwrap());
                let written = Replacement::begin(&path);
                for error in [read.err(), written.err()].into_iter().flatten() {
                    let kind = error.kind();
                    assert!(matches!(kind, ErrorKind::NotFound | ErrorKind::AlreadyExists), "{error}");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(!folder.names().iter().any(|name| name.starts_with(".purlin")), "{:?}", folder.names());
    });
}

#[test]
fn a_file_keeps_its_mode() {
    let folder = Folder::new();
    for kept in [0o600, 0o644, 0o640, 0o400, 0o755] {
        let path = folder.holding("a", "old", kept);
        replace(&path, "new").unwrap();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (kept, "new"), "{kept:o}");
        fs::remove_file(&path).unwrap();
    }
    let path = folder.holding("runs as its owner", "old", 0o4755);
    replace(&path, "new").unwrap();
    assert_eq!(mode(&path), 0o755, "as after any write");
}

#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    let folder = Folder::new();
    replace(&folder.file("ours"), "new").unwrap();
    fs::write(folder.file("of std"), "new").unwrap();
    assert_eq!(mode(&folder.file("ours")), mode(&folder.file("of std")));
}

#[test]
fn a_file_keeps_its_owner_and_group() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o640);
    chown(&path, Some(1234), Some(5678)).unwrap();
    replace(&path, "new").unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid(), mode(&path)), (1234, 5678, 0o640));
}

#[test]
fn who_cannot_keep_the_group_gives_the_new_one_no_more_than_everybody_has() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o676);
    as_nobody(|| replace(&path, "new")).unwrap();
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid(), mode(&path)), (65534, 65534, 0o666), "the group loses what others have not");
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced_either() {
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o444);
    let error = left(as_nobody(|| replace(&path, "new")).unwrap_err());
    assert_eq!(code_of(&error), StatusCode::PermissionDenied, "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn links_are_followed_to_their_end_although_nothing_is_there() {
    let (folder, other) = (Folder::new(), Folder::new());
    fs::create_dir(folder.file("deep")).unwrap();
    symlink(other.file("file"), folder.file("deep/far")).unwrap();
    symlink("deep/far", folder.file("near")).unwrap();
    for content in ["dangling", "there"] {
        replace(&folder.file("near"), content).unwrap();
        assert_eq!(fs::read_to_string(other.file("file")).unwrap(), content);
        assert_eq!(fs::read_link(folder.file("near")).unwrap(), Path::new("deep/far"));
        assert_eq!(fs::read_link(folder.file("deep/far")).unwrap(), other.file("file"));
    }
    assert_eq!((folder.names(), other.names()), (vec!["deep".to_owned(), "near".to_owned()], vec!["file".to_owned()]));
}

#[test]
fn links_that_lead_nowhere_are_refused() {
    let folder = Folder::new();
    symlink("circle", folder.file("circle")).unwrap();
    symlink("missing/file", folder.file("far")).unwrap();
    symlink("missing/", folder.file("folder")).unwrap();
    let code = |name: &str| code_of(&left(replace(&folder.file(name), "new").unwrap_err()));
    assert_eq!(code("circle"), StatusCode::FailedPrecondition);
    assert_eq!(code("far"), StatusCode::NotFound);
    assert_eq!(code("folder"), StatusCode::FailedPrecondition);
    for name in ["new/", "new/.", "new/..", "circle/", ""] {
        assert!(replace(&folder.file(name), "new").is_err(), "{name}");
    }
    assert_eq!(folder.names(), ["circle", "far", "folder"]);
}

#[test]
fn a_file_without_a_name_is_refused() {
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o644);
    let file = File::open(&path).unwrap();
    let by_number = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    replace(&by_number, "new").expect("it has a name");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    // Now the descriptor is of the file that was replaced.
    let error = left(replace(&by_number, "newer").unwrap_err());
    assert_eq!(error.to_string(), "the file there has no name that another could take");
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn the_temporary_file_is_private_and_locked() {
    let folder = Folder::new();
    let path = folder.file("a");
    let replacement = Replacement::begin(&path).unwrap();
    let names = folder.names();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(name.starts_with(&format!(".purlin-{}-", process::id())), "{name}");
    assert_eq!(mode(&folder.file(name)), 0o600);
    assert!(File::open(folder.file(name)).unwrap().try_lock().is_err());
    // Another writer leaves it alone.
    replace(&folder.file("b"), "b").unwrap();
    assert_eq!(folder.names(), [name, "b"]);
    replacement.commit(false).unwrap();
    assert_eq!(folder.names(), ["a", "b"]);
    assert!(File::open(&path).unwrap().try_lock().is_ok(), "the new file is not locked");
}

#[test]
fn what_a_killed_writer_left_is_removed_by_the_next() {
    let folder = Folder::new();
    // Another process differs from us by its lock alone: this test's binary, which waits to be killed.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "replaced_file::tests::a_writer_waits_to_be_killed_where_the_test_above_says_so",
            "--nocapture",
        ])
        .env("PURLIN_TEST_FOLDER", &folder.0)
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"it waits") {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
    let left = folder.names();
    assert_eq!(left.len(), 1, "{left:?}");
    replace(&folder.file("b"), "b").unwrap();
    assert_eq!(folder.names(), [left[0].as_str(), "b"], "its maker lives");
    child.kill().unwrap();
    child.wait().unwrap();
    replace(&folder.file("c"), "c").unwrap();
    assert_eq!(folder.names(), ["b", "c"]);
}

#[test]
fn a_writer_waits_to_be_killed_where_the_test_above_says_so() {
    let Some(folder) = std::env::var_os("PURLIN_TEST_FOLDER") else { return };
    let replacement = Replacement::begin(&Path::new(&folder).join("a")).unwrap();
    replacement.file().write_all(b"half").unwrap();
    print!("it waits");
    io::stdout().flush().unwrap();
    // Longer than it takes to kill it, and not for ever.
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn only_what_is_surely_left_behind_is_removed() {
    let folder = Folder::new();
    let random = "0123456789abcdef";
    for name in
        ["purlin", ".purlin-", ".purlin-1", ".purlin-1-", ".purlin-x-0123456789abcdef", ".purlin-1-0123456789abcdeg"]
    {
        folder.holding(name, "mine", 0o600);
    }
    folder.holding(&format!(".purlin-unlocked-1-{random}"), "of a file system without locks", 0o600);
    fs::create_dir(folder.file(&format!(".purlin-1-{random}"))).unwrap();
    symlink("purlin", folder.file(&format!(".purlin-2-{random}"))).unwrap();
    folder.pipe(&format!(".purlin-3-{random}"));
    let before = folder.names();
    let left = folder.holding(&format!(".purlin-4-{random}"), "left", 0o600);
    replace(&folder.file("a"), "a").unwrap();
    assert!(!left.exists());
    let after: Vec<_> = folder.names().into_iter().filter(|name| name != "a").collect();
    assert_eq!(after, before);
}

#[test]
fn a_file_that_would_be_taken_for_left_behind_is_not_written() {
    let folder = Folder::new();
    let name = ".purlin-4-0123456789abcdef";
    symlink(name, folder.file("link")).unwrap();
    for name in [name, "link"] {
        let error = left(replace(&folder.file(name), "new").unwrap_err());
        assert_eq!(code_of(&error), StatusCode::InvalidArgument, "{error}");
    }
    assert_eq!(folder.names(), ["link"]);
}

#[test]
fn a_large_folder_is_not_listed_at_every_write_but_again_and_again() {
    let folder = Folder::new();
    for number in 0..3000 {
        File::create(folder.file(&number.to_string())).unwrap();
    }
    replace(&folder.file("a"), "a").unwrap();
    let left = folder.holding(".purlin-4-0123456789abcdef", "left", 0o600);
    let mut writes = 0;
    while left.exists() {
        replace(&folder.file("a"), "a").unwrap();
        writes += 1;
        assert!(writes <= 4, "three thousand entries are listed at every fourth write");
    }
    assert!(writes > 1, "nor at every one");
}

#[test]
fn writers_of_one_file_each_write_all_of_it_and_leave_nothing() {
    let folder = Folder::new();
    let path = folder.file("a");
    let contents = ["one".repeat(5000), "two".repeat(5000), "three".repeat(5000)];
    thread::scope(|threads| {
        for content in &contents {
            threads.spawn(|| (0..200).for_each(|_| replace(&path, content).unwrap()));
        }
    });
    let last = fs::read_to_string(&path).unwrap();
    assert!(contents.contains(&last));
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn a_durable_write_in_a_folder_that_cannot_be_opened_says_that_the_file_is_there() {
    let folder = Folder::new();
    set_mode(&folder.0, 0o333);
    let path = folder.file("a");
    let written = as_nobody(|| {
        let replacement = Replacement::begin(&path)?;
        replacement.file().write_all(b"new")?;
        replacement.commit(true)
    });
    let error = written.unwrap_err().error("", &path);
    assert_eq!(error.code(), StatusCode::PermissionDenied);
    let says = format!("{} is written whole and in its place, but a loss of power may undo that", path.display());
    assert!(error.message().starts_with(&says), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    set_mode(&folder.0, 0o777);
    assert_eq!(folder.names(), ["a"]);
}

/// A list that lets user 1234 read and write, as Linux stores it.
fn a_list() -> Vec<u8> {
    const ANYBODY: u32 = u32::MAX;
    let entries = [(1_u16, 6_u16, ANYBODY), (2, 6, 1234), (4, 0, ANYBODY), (16, 6, ANYBODY), (32, 0, ANYBODY)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, may, who) in entries {
        list.extend(tag.to_le_bytes().into_iter().chain(may.to_le_bytes()).chain(who.to_le_bytes()));
    }
    list
}

#[test]
fn a_file_keeps_its_access_list_and_gets_no_other() {
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o600);
    let list = a_list();
    let of = |path: &Path| system::access_list(path).unwrap();
    if let Err(error) = system::set_access_list(&File::open(&path).unwrap(), Some(&list)) {
        println!("skipped: {} has no access control lists ({error})", folder.0.display());
        return;
    }
    assert_eq!(mode(&path), 0o660, "what looks like the group's is the most that the list may give");
    replace(&path, "new").unwrap();
    assert_eq!((of(&path), mode(&path)), (Some(list.clone()), 0o660));
    // A file without a list, in a folder that gives one to every new file.
    let plain = folder.holding("plain", "old", 0o640);
    let path = CString::new(folder.0.as_os_str().as_bytes()).unwrap();
    let name = c"system.posix_acl_default".as_ptr();
    // SAFETY: both texts end with a NUL, and the list is as long as is said.
    assert_eq!(unsafe { setxattr(path.as_ptr(), name, list.as_ptr().cast(), list.len(), 0) }, 0);
    assert!(of(&folder.holding("any new file", "", 0o644)).is_some());
    replace(&plain, "new").unwrap();
    assert_eq!((of(&plain), mode(&plain)), (None, 0o640));
    replace(&folder.file("new"), "new").unwrap();
    assert!(of(&folder.file("new")).is_some(), "as any new file");
}

#[test]
fn who_has_the_old_file_open_reads_it_to_its_end() {
    let folder = Folder::new();
    let path = folder.holding("a", "old", 0o600);
    let mut reader = File::open(&path).unwrap();
    replace(&path, "new").unwrap();
    let mut seen = String::new();
    reader.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old");
}
