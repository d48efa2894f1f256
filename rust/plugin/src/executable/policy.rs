//! The policy of the mode `auto`: a program that Purlin can run runs on the plugin that compiles all the same, if one
//! of its library calls is so large that the plugin's is faster by more than a delegated run costs.
//!
//! The limits were measured by `scripts/policy`, which prints both times by kind and size of a program; docs/jax.md has
//! the table.

use purlin_program::ProgramSummary;

/// Up to which size Purlin's run of a library call is expected to win.
struct Limit {
    name: &'static str,
    /// Bytes of operands of what is no product.
    bytes: usize,
    /// Floating-point operations of products and convolutions.
    flops_of_products: u64,
}

const LIMITS: [Limit; 1] = [Limit { name: "ynn-fusion", bytes: 8 << 20, flops_of_products: 200_000_000 }];

/// A call that computes at least so much for each byte of its operands is a product or a convolution.
const FLOPS_PER_BYTE_OF_PRODUCTS: u64 = 8;

/// Why the plugin that compiles is expected to be faster, if it is.
pub(super) fn why_delegate(summary: &ProgramSummary) -> Option<String> {
    LIMITS.iter().find_map(|limit| {
        let work = summary.library_calls.get(limit.name)?;
        let is_product = work.largest_flops >= work.largest_bytes as u64 * FLOPS_PER_BYTE_OF_PRODUCTS;
        let (size, most, unit) = match is_product {
            true => (work.largest_flops, limit.flops_of_products, "floating-point operations"),
            false => (work.largest_bytes as u64, limit.bytes as u64, "bytes"),
        };
        (size > most).then(|| {
            format!("a {} of {size} {unit} is expected to be faster there, as all of more than {most} are", limit.name)
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
    fn large_calls_go_to_the_other_plugin() {
        for limit in &LIMITS {
            let (bytes, flops) = (limit.bytes, limit.flops_of_products);
            assert_eq!(why_delegate(&with_call(limit.name, bytes, 0)), None);
            let why = why_delegate(&with_call(limit.name, bytes + 1, 0)).unwrap();
            assert!(why.starts_with(&format!("a {} of {} bytes", limit.name, bytes + 1)), "{why}");
            // A product may have as many bytes.
            assert_eq!(why_delegate(&with_call(limit.name, bytes + 1, flops)), None);
            let why = why_delegate(&with_call(limit.name, 1, flops + 1)).unwrap();
            assert!(why.starts_with(&format!("a {} of {} floating-point", limit.name, flops + 1)), "{why}");
        }
        assert_eq!(why_delegate(&with_call("fft", 1 << 40, 0)), None);
        assert_eq!(why_delegate(&ProgramSummary::default()), None);
    }

    #[test]
    fn the_page_for_users_names_every_limit() {
        let page = std::fs::read_to_string("../../docs/jax.md").unwrap();
        for limit in &LIMITS {
            let (mebibytes, millions) = (limit.bytes >> 20, limit.flops_of_products / 1_000_000);
            let row = format!("| {} | {mebibytes} MiB | {millions} million |", limit.name);
            assert!(page.contains(&row), "{row}");
        }
    }
}
