//! How a buffer ended.

use purlin_base::clock::{now_ms, touch};
use purlin_base::label::Label;
use purlin_base::static_text::StaticText;
use purlin_base::status::{Error, SourceLocation};

/// How, by which caller, where and when a buffer ended.
#[derive(Clone, Copy)]
pub(in crate::buffer) struct Ending {
    how: &'static str,
    pub(super) by: Label,
    pub(super) place: SourceLocation,
    pub(super) at_ms: u32,
}

const DELETED: &str = "deleted";
const RELEASED: &str = "released";
const DONATED: &str = "donated";

impl Ending {
    pub(in crate::buffer) fn deleted(place: SourceLocation) -> Self {
        Self::new(DELETED, Label::default(), place)
    }

    pub(in crate::buffer) fn donated(by: Label, place: SourceLocation) -> Self {
        Self::new(DONATED, by, place)
    }

    pub(in crate::buffer) fn released(place: SourceLocation) -> Self {
        Self::new(RELEASED, Label::default(), place)
    }

    fn new(how: &'static str, by: Label, place: SourceLocation) -> Self {
        Self { how, by, place, at_ms: now_ms() }
    }

    /// Whether the memory goes to another owner.
    pub(super) fn is_release(&self) -> bool {
        self.how == RELEASED
    }

    /// Whether the memory goes to nobody.
    pub(super) fn is_deletion(&self) -> bool {
        self.how == DELETED
    }

    /// A deletion, from its parts.
    pub(super) fn deletion(file: StaticText, line: Line, at_ms: u32) -> Self {
        let place = SourceLocation::from_parts(file, line.number());
        Self { how: DELETED, by: Label::default(), place, at_ms }
    }

    /// A donation, from its parts.
    pub(super) fn donation(by: Label, file: StaticText, line: Line, at_ms: u32) -> Self {
        Self { how: DONATED, by, place: SourceLocation::from_parts(file, line.number()), at_ms }
    }

    /// ` It was donated by 'step' at train.cc:12, 40 ms ago.`
    pub(super) fn sentence(&self) -> String {
        let age_ms = touch().wrapping_sub(self.at_ms);
        let by = if self.by == Label::default() { String::new() } else { format!(" by '{}'", self.by) };
        format!(" It was {}{by} at {}, {age_ms} ms ago.", self.how, self.place)
    }
}

/// A line of a file, in three bytes.
#[derive(Clone, Copy)]
pub(super) struct Line([u8; 3]);

impl Line {
    /// `None`: there are not so many lines.
    #[inline]
    pub(super) fn new(line: u32) -> Option<Self> {
        let [low, middle, high, rest] = line.to_le_bytes();
        (rest == 0).then_some(Self([low, middle, high]))
    }

    fn number(self) -> u32 {
        let [low, middle, high] = self.0;
        u32::from_le_bytes([low, middle, high, 0])
    }
}

/// The error of a use after the end, in PJRT's words.
pub(super) fn gone(ending: &Ending) -> Error {
    Error::invalid_argument(format!("Buffer has been deleted or donated.{}", ending.sentence()))
}
