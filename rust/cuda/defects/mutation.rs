
/// Whether a defect acts: `PURLIN_MUTATION` names it.
pub(crate) fn mutation(name: &str) -> bool {
    static PLANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PLANTED.get_or_init(|| std::env::var("PURLIN_MUTATION").ok()).as_deref() == Some(name)
}

/// Writes down that a stream waits in that way: a line at the end of the file that `PURLIN_WAITS` names.
pub(crate) fn waited(kind: &str) {
    use std::io::Write;
    static FILE: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
    let open = || std::fs::File::options().create(true).append(true).open(std::env::var_os("PURLIN_WAITS")?).ok();
    if let Some(mut file) = FILE.get_or_init(open).as_ref() {
        file.write_all(format!("wait-{kind}\n").as_bytes()).expect("the kinds of waits are written down");
    }
}
