//! Reports, taken apart into their operations.

use super::{NON_BLOCKING, Options, Session, process};

/// Where an operation is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Host,
    /// An operation of that stream, on that device.
    On(usize, usize),
    /// A call on it that is refused, and becomes no operation.
    RefusedOn(usize, usize),
}

/// An operation as a report is to name it.
pub(crate) struct Side {
    entry: &'static str,
    place: Place,
    label: &'static str,
    bytes: Option<(u64, usize)>,
}

pub(crate) fn side(entry: &'static str, place: Place, label: &'static str, bytes: Option<(u64, usize)>) -> Side {
    Side { entry, place, label, bytes }
}

fn range((start, size): (u64, usize)) -> String {
    format!("{start:#x}..{:#x}", start + size as u64)
}

impl Side {
    /// Whether a report's text of one operation is this, whole.
    #[track_caller]
    fn is(&self, text: &str) {
        let place = match self.place {
            Place::Host => " by the host".to_owned(),
            Place::On(stream, device) => format!(" on stream {stream:#x} of device {device}, its operation "),
            Place::RefusedOn(stream, device) => format!(" on stream {stream:#x} of device {device} ["),
        };
        let bytes = self.bytes.map(|bytes| format!(", bytes {}", range(bytes))).unwrap_or_default();
        let end = format!(" [{}]{bytes}", self.label);
        assert!(text.starts_with(&format!("{} #", self.entry)), "{}: {text}", self.entry);
        assert!(text.contains(&place), "{place}: {text}");
        assert!(text.ends_with(&end), "{end}: {text}");
    }
}

/// There is one report: of that kind, of those bytes, with the later operation first.
#[track_caller]
pub(crate) fn reported(gpu: &Session, kind: &str, bytes: Option<(u64, usize)>, sides: &[Side]) {
    let reports = gpu.control.take_reports();
    let [report] = &reports[..] else { panic!("{kind}: {reports:#?}") };
    println!("{report}");
    let bytes = bytes.map(|bytes| format!(" of {} bytes at {}", bytes.1, range(bytes))).unwrap_or_default();
    let begin = format!("{kind}{bytes}: ");
    let rest = report.strip_prefix(&begin).unwrap_or_else(|| panic!("'{begin}' is not how it begins: {report}"));
    let mut texts = rest.split("; ");
    for side in sides {
        side.is(texts.next().unwrap_or_else(|| panic!("a side is missing: {report}")));
    }
    // What follows is words of why.
    assert!(texts.all(|text| !text.contains('#')), "{report}");
}

pub(crate) fn label<'a>(gpu: &'a Session, label: &str) -> &'a Session {
    gpu.control.set_label(label);
    gpu
}

/// Runs with two streams of the first of many devices.
pub(crate) fn case(name: &str, body: impl FnOnce(&Session, usize, usize)) {
    process::run(name, &Options { devices: 8, address_bytes: 1 << 24, ..Options::default() }, || {
        let gpu = Session::new();
        let (first, second) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
        body(&gpu, first, second);
    });
}
