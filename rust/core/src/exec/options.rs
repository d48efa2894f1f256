//! What a caller may say about a task beside what it does.

/// Which of the tasks that wait for a thread goes first. A hint: an executor without such a choice ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Priority {
    /// After the others.
    Low = 0,
    /// In its turn.
    #[default]
    Normal = 1,
    /// Before the others.
    High = 2,
}
