//! What a stream waits for already: of each other stream, the last submission that it is behind, at first or second
//! hand.

use std::sync::Arc;

use crate::line::Line;

/// A stream of the client's: its device's number, and its name there.
pub(crate) type Place = (usize, Line);

/// See the module. Clones share what they know until one learns more.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Vec<(Place, u64)>>);

impl Known {
    /// Whether it is behind that submission of the other stream.
    pub(crate) fn has(&self, place: Place, number: u64) -> bool {
        self.0.iter().any(|&(other, last)| other == place && last >= number)
    }

    /// The last submission of each other stream that it is behind.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, u64)> + '_ {
        self.0.iter().copied()
    }

    /// It is behind that submission from now on, and what that one was behind.
    pub(crate) fn learn(&mut self, place: Place, number: u64, before: &Self) {
        let known = Arc::make_mut(&mut self.0);
        for &(place, number) in before.0.iter().chain([&(place, number)]) {
            match known.iter_mut().find(|(other, _)| *other == place) {
                Some((_, last)) => *last = number.max(*last),
                None => known.push((place, number)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Role;

    #[test]
    fn what_is_known_is_known_at_second_hand() {
        let [up, within, down] =
            [(0, Line::Own(Role::ToDevice)), (0, Line::Own(Role::Within)), (1, Line::Own(Role::ToHost))];
        let (mut of_within, mut of_down) = (Known::default(), Known::default());
        of_within.learn(up, 3, &Known::default());
        let before = of_within.clone();
        of_within.learn(up, 9, &Known::default());
        of_down.learn(within, 1, &before);
        assert!(of_down.has(within, 1) && of_down.has(up, 3) && of_down.has(up, 2));
        assert!(!of_down.has(up, 4) && !of_down.has(within, 2) && !of_down.has(down, 1));
        of_down.learn(up, 1, &Known::default());
        assert!(of_down.has(up, 3), "it forgets nothing");
        assert!(of_within.has(up, 9) && !before.has(up, 9));
    }
}
