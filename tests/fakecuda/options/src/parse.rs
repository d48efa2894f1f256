//! Values of variables as text, one function a form. `None` and empty lists are empty text.

use crate::{Ignored, OnReport};

/// Names separated by commas.
#[must_use]
pub fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `SEED:MICROSECONDS`, or nothing.
#[must_use]
pub fn delays(text: &str) -> Option<Option<(u64, u64)>> {
    if text.is_empty() {
        return Some(None);
    }
    let (seed, most) = text.split_once(':')?;
    Some(Some((seed.parse().ok()?, most.parse().ok()?)))
}

/// `KERNEL[:CODE]`, separated by commas; the code is 719 (LAUNCH_FAILED) unless it is said.
#[must_use]
pub fn traps(text: &str) -> Option<Vec<(String, u32)>> {
    let trap = |name: String| match name.split_once(':') {
        Some((kernel, code)) => Some((kernel.to_owned(), code.parse().ok()?)),
        None => Some((name, 719)),
    };
    names(text).into_iter().map(trap).collect()
}

/// `all`, or labels separated by commas.
#[must_use]
pub fn ignored(text: &str) -> Ignored {
    match names(text) {
        labels if labels.is_empty() => Ignored::None,
        labels if labels == ["all"] => Ignored::All,
        labels => Ignored::Labels(labels),
    }
}

pub(crate) fn ignored_text(ignored: &Ignored) -> String {
    match ignored {
        Ignored::None => String::new(),
        Ignored::All => "all".to_owned(),
        Ignored::Labels(labels) => labels.join(","),
    }
}

pub(crate) fn on_report(text: &str) -> Option<OnReport> {
    [OnReport::Keep, OnReport::Print, OnReport::Abort].into_iter().find(|known| on_report_text(*known) == text)
}

pub(crate) const fn on_report_text(on_report: OnReport) -> &'static str {
    match on_report {
        OnReport::Keep => "keep",
        OnReport::Print => "print",
        OnReport::Abort => "abort",
    }
}

pub(crate) fn either(text: &str, yes: &str, no: &str) -> Option<bool> {
    (text == yes).then_some(true).or_else(|| (text == no).then_some(false))
}

pub(crate) fn bytes(text: &str) -> Option<u64> {
    let shift = match text.bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

pub(crate) fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
