//! Makes what fails small: takes parts out as long as it still fails.

/// The smallest list found by taking parts out of `items`, halves first, then ever smaller ones; `fails` is true for
/// it.
pub(crate) fn shrink<T: Clone>(items: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut items = items.to_vec();
    let mut part = items.len().div_ceil(2);
    while part > 0 {
        let (mut from, mut smaller) = (0, false);
        while from < items.len() {
            let mut without = items.clone();
            without.drain(from..(from + part).min(items.len()));
            if fails(&without) {
                (items, smaller) = (without, true);
            } else {
                from += part;
            }
        }
        if !smaller || part > 1 {
            part /= 2;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::shrink;

    #[test]
    fn what_matters_stays_and_nothing_else() {
        let items: Vec<u32> = (0..200).collect();
        assert_eq!(shrink(&items, |left| left.contains(&17) && left.contains(&140)), [17, 140]);
        assert_eq!(shrink(&items, |_| true), Vec::<u32>::new());
        assert_eq!(shrink(&items, |left| left.len() >= 3).len(), 3);
    }
}
