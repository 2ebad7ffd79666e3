//! The last word on every prefix bound: prices in whole numbers, checked exactly.
//!
//! A linear-programming solver works in floating point and may be wrong. It is therefore asked only
//! for *prices*: what each pod pays at least wherever it is placed, and what the whole cluster can
//! take in at most. The prices are rounded to integers, the two sums are recomputed from them with
//! integers alone, and a prefix whose pods pay more than the cluster takes cannot be held by any
//! packer. Rounding and solver errors can make the bound looser, never wrong.

/// The longest prefix of `arrivals` whose prices sum to at most `budget`; `None` as a price ends
/// the prefix.
///
/// Prices are not negative, so the sum grows and the first excess is final.
pub(crate) fn affordable_prefix(arrivals: &[usize], price: &[Option<i128>], budget: i128) -> usize {
    let mut left = budget;
    for (pods, &shape) in arrivals.iter().enumerate() {
        match price[shape] {
            Some(price) if price <= left => left -= price,
            _ => return pods,
        }
    }
    arrivals.len()
}

/// A prefix bound and whether it is the best one its relaxation can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) pods: usize,
    /// The solver found that the relaxation holds these pods. False only if the solver gave up: the
    /// bound is then valid but may be loose.
    pub(crate) tight: bool,
}
