use std::fs;
use std::io::ErrorKind;
use std::process;

use super::*;
use purlin_base::status::StatusCode;

/// A directory of this test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("purlin-trace-file-{test}-{}", process::id()));
        fs::create_dir(&path).expect("the temporary directory can be written to");
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_check_leaves_nothing_behind() {
    let directory = Directory::new("check");
    Target::check(&directory.0.join("a.json")).expect("the path is good");
    assert_eq!(directory.names(), [""; 0]);
}

#[test]
fn a_write_that_fails_half_way_leaves_the_old_file() {
    let directory = Directory::new("half");
    let path = directory.0.join("a.json");
    fs::write(&path, "old").expect("the file can be written");
    let target = Target::check(&path).expect("the path is good");
    let error = target.write(|out| {
        // More than the buffer holds, so that some of it reaches the disk.
        out.write_all(&[b'x'; 100_000])?;
        Err(ErrorKind::StorageFull.into())
    });
    let error = error.expect_err("the content failed");
    assert_eq!(error.code(), StatusCode::ResourceExhausted);
    assert!(error.message().contains(path.to_str().expect("a plain path")), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("it is still there"), "old");
    assert_eq!(directory.names(), ["a.json"]);
}

#[test]
fn a_content_that_panics_leaves_nothing_behind() {
    let directory = Directory::new("panic");
    let target = Target::check(&directory.0.join("a.json")).expect("the path is good");
    let result = purlin_base::panics::caught(|| target.write(|_| panic!("planted")));
    assert!(result.is_err());
    assert_eq!(directory.names(), [""; 0]);
}

#[test]
fn a_write_replaces_all_of_the_old_file() {
    let directory = Directory::new("replace");
    let path = directory.0.join("a.json");
    fs::write(&path, "older and longer").expect("the file can be written");
    // A reader that has the old file open must not see it change: a second name stands for it.
    let reader = directory.0.join("reader");
    fs::hard_link(&path, &reader).expect("the link can be made");
    let target = Target::check(&path).expect("the path is good");
    target.write(|out| out.write_all(b"new")).expect("nothing is in the way");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
    assert_eq!(fs::read_to_string(&reader).expect("it is there"), "older and longer");
    assert_eq!(directory.names(), ["a.json", "reader"]);
}

#[test]
fn a_name_that_a_killed_process_left_is_passed_over() {
    let directory = Directory::new("left");
    let path = directory.0.join("a.json");
    let left: Vec<_> = (0..64).map(|number| directory.0.join(format!(".purlin-{}-{number}", process::id()))).collect();
    left.iter().for_each(|name| fs::write(name, "left").expect("the file can be written"));
    let target = Target::check(&path).expect("there are other names");
    target.write(|out| out.write_all(b"new")).expect("there are other names");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
    assert!(left.iter().all(|name| fs::read_to_string(name).is_ok_and(|content| content == "left")));
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let directory = Directory::new("link");
    let (link, file) = (directory.0.join("link"), directory.0.join("file"));
    fs::write(&file, "old").expect("the file can be written");
    std::os::unix::fs::symlink(&file, &link).expect("the link can be made");
    let target = Target::check(&link).expect("the path is good");
    target.write(|out| out.write_all(b"new")).expect("nothing is in the way");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "new");
    assert_eq!(fs::read_link(&link).expect("it is a link"), file);
}

#[test]
fn what_is_no_file_is_refused() {
    let directory = Directory::new("refused");
    let code = |path: &Path| Target::check(path).expect_err("the path is bad").code();
    assert_eq!(code(Path::new("")), StatusCode::InvalidArgument);
    assert_eq!(code(&directory.0.join("nul\0byte")), StatusCode::InvalidArgument);
    assert_eq!(code(&directory.0.join("x".repeat(300))), StatusCode::InvalidArgument);
    assert_eq!(code(&directory.0), StatusCode::FailedPrecondition);
    let error = Target::check(&directory.0).expect_err("the path is bad");
    assert!(error.message().ends_with("is a directory"), "{error}");
    assert_eq!(code(Path::new("/")), StatusCode::FailedPrecondition);
    assert_eq!(code(&directory.0.join("..")), StatusCode::FailedPrecondition);
    assert_eq!(code(&directory.0.join("new/")), StatusCode::FailedPrecondition);
    assert_eq!(code(Path::new("/dev/null")), StatusCode::FailedPrecondition);
    assert_eq!(code(&directory.0.join("missing/a.json")), StatusCode::NotFound);
    fs::write(directory.0.join("file"), "").expect("the file can be written");
    assert_eq!(code(&directory.0.join("file/a.json")), StatusCode::FailedPrecondition);
    assert_eq!(directory.names(), ["file"]);
}

#[test]
fn reasons_of_the_system_become_codes() {
    let code = |kind: ErrorKind| failure(Path::new("a.json"), &io::Error::from(kind).into()).code();
    assert_eq!(code(ErrorKind::PermissionDenied), StatusCode::PermissionDenied);
    assert_eq!(code(ErrorKind::ReadOnlyFilesystem), StatusCode::FailedPrecondition);
    assert_eq!(code(ErrorKind::QuotaExceeded), StatusCode::ResourceExhausted);
    assert_eq!(code(ErrorKind::BrokenPipe), StatusCode::Unknown);
}
