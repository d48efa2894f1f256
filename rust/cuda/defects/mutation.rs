
/// Whether a defect acts: `PURLIN_MUTATION` names it.
pub(crate) fn mutation(name: &str) -> bool {
    static PLANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PLANTED.get_or_init(|| std::env::var("PURLIN_MUTATION").ok()).as_deref() == Some(name)
}
