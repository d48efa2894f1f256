//! What the seed decides. Every answer is a function of the seed and the copy's number, not of a generator's state, so
//! it does not depend on the order in which threads ask.

/// Questions about a copy.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Question {
    Stream = 1,
    Latency = 2,
    Duration = 3,
}

/// The longest time between the moment when a copy could begin and that when it does.
const LONGEST_LATENCY_NS: u64 = 20_000;
/// What any copy takes.
const LEAST_DURATION_NS: u64 = 500;
/// How many bytes a device moves per nanosecond at best; at worst it takes twice as long.
const BYTES_PER_NS: u64 = 16;

/// The seed.
#[derive(Clone, Copy)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// The stream, of `streams`, in which copy `number` runs.
    pub(crate) fn stream(self, number: u64, streams: u64) -> u64 {
        self.draw(number, Question::Stream) % streams
    }

    /// How long copy `number` lingers before it begins: longer than a small copy takes, so that any order may result.
    pub(crate) fn latency_ns(self, number: u64) -> u64 {
        self.draw(number, Question::Latency) % LONGEST_LATENCY_NS
    }

    /// How long copy `number` of `size_bytes` takes.
    pub(crate) fn duration_ns(self, number: u64, size_bytes: usize) -> u64 {
        let shortest_ns = LEAST_DURATION_NS + size_bytes as u64 / BYTES_PER_NS;
        shortest_ns + self.draw(number, Question::Duration) % shortest_ns
    }

    /// The finishing steps of splitmix64: every bit of the input changes half of those of the output.
    fn draw(self, number: u64, question: Question) -> u64 {
        let mut mixed = self.0;
        for part in [number, question as u64] {
            mixed = mixed.wrapping_add(part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_depend_on_seed_and_number_only() {
        let answers = |seed| -> Vec<u64> { (0..100).map(|number| Chance(seed).latency_ns(number)).collect() };
        assert_eq!(answers(7), answers(7));
        assert_ne!(answers(7), answers(8));
    }

    #[test]
    fn every_stream_is_chosen() {
        let chosen: std::collections::BTreeSet<u64> = (0..100).map(|number| Chance(1).stream(number, 4)).collect();
        assert_eq!(chosen.len(), 4);
    }

    #[test]
    fn more_bytes_never_take_less_than_the_bus_allows() {
        for number in 0..100 {
            let took_ns = Chance(3).duration_ns(number, 16_000);
            assert!((1500..3000).contains(&took_ns), "{took_ns}");
        }
    }
}
