//! The policy of the mode `auto`: a program that Purlin can run runs on the plugin that compiles all the same, if one
//! of its library calls is so large that the plugin's is faster by more than a delegated run costs.
//!
//! The limits were measured by `scripts/policy`, which prints both times by kind and size of a program; docs/jax.md has
//! the table.

use purlin_program::ProgramSummary;

/// The name of a library call, and the bytes of its operands up to which Purlin's run is expected to win.
pub(crate) const LIMITS: [(&str, usize); 1] = [("ynn-fusion", 8 << 20)];

/// A call that computes at least so much for each byte is a product or a convolution: Purlin's runs of those win or
/// lose by little at every size.
const FLOPS_PER_BYTE_OF_PRODUCTS: u64 = 8;

/// Why the plugin that compiles is expected to be faster, if it is.
pub(super) fn why_delegate(summary: &ProgramSummary) -> Option<String> {
    LIMITS.iter().find_map(|&(name, limit)| {
        let work = summary.library_calls.get(name)?;
        let is_product = work.largest_flops >= work.largest_bytes as u64 * FLOPS_PER_BYTE_OF_PRODUCTS;
        (work.largest_bytes > limit && !is_product).then(|| {
            format!(
                "a {name} over {} bytes is expected to be faster there, as all over {limit} are",
                work.largest_bytes
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use purlin_program::{LibraryWork, ProgramSummary};

    use super::{LIMITS, why_delegate};

    fn with_call(name: &str, bytes: usize, flops: u64) -> ProgramSummary {
        let mut work = LibraryWork::default();
        (work.count, work.largest_bytes, work.largest_flops) = (1, bytes, flops);
        let mut summary = ProgramSummary::default();
        summary.library_calls.insert(name.to_owned(), work);
        summary
    }

    #[test]
    fn only_large_calls_that_are_no_products_go_to_the_other_plugin() {
        for (name, limit) in LIMITS {
            assert_eq!(why_delegate(&with_call(name, limit, 0)), None);
            let why = why_delegate(&with_call(name, limit + 1, 0)).unwrap();
            assert!(why.starts_with(&format!("a {name} over {} bytes", limit + 1)), "{why}");
            assert_eq!(why_delegate(&with_call(name, limit + 1, 100 * limit as u64)), None);
        }
        assert_eq!(why_delegate(&with_call("fft", 1 << 40, 0)), None);
        assert_eq!(why_delegate(&ProgramSummary::default()), None);
    }

    #[test]
    fn the_page_for_users_names_every_limit() {
        let page = std::fs::read_to_string("../../docs/jax.md").unwrap();
        for (name, limit) in LIMITS {
            let row = format!("| `{name}` | {} MiB |", limit >> 20);
            assert!(page.contains(&row), "{row}");
        }
    }
}
