//! Vector clocks: for each lane, which of its operations came before. Lane 0 is the host, the others are streams. All
//! threads of the host share one lane, since how they order themselves by locks of their own is not seen here.

/// How far each lane had come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u64>);

/// The lane of the host.
pub(crate) const HOST: usize = 0;

impl Clock {
    /// How far that lane had come; operations are numbered from 1.
    pub(crate) fn at(&self, lane: usize) -> u64 {
        self.0.get(lane).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, lane: usize, number: u64) {
        if self.0.len() <= lane {
            self.0.resize(lane + 1, 0);
        }
        self.0[lane] = number;
    }

    /// What came before `other` came before this, too.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_has_what_both_have() {
        let (mut first, mut second) = (Clock::default(), Clock::default());
        first.set(1, 5);
        second.set(3, 2);
        second.set(1, 4);
        first.join(&second);
        assert_eq!([first.at(HOST), first.at(1), first.at(2), first.at(3), first.at(9)], [0, 5, 0, 2, 0]);
    }
}
