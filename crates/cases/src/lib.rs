//! How many cases a property has: the number that its test names, times one factor for all tests,
//! with which `make soak` searches on where `make test` stops.
//!
//! A crate of its own, because tests of every layer use it, and a test of core is not to wait for
//! the servers and the Kubernetes client of `testkit`.

use proptest::test_runner::Config;

const FACTOR: &str = "DOVETAIL_TEST_CASES";

/// The configuration of a property with so many cases, times the factor in `DOVETAIL_TEST_CASES`,
/// such as `10x`, where that is set.
///
/// One number for all properties would not do: some have thousands of cases in a second, others
/// need half a minute for one. `PROPTEST_CASES` is such a number; proptest itself reads it inside
/// of `proptest!`, and it overrides what is said here.
///
/// # Panics
/// If `DOVETAIL_TEST_CASES` is not a factor.
pub fn cases(count: u32) -> Config {
    let Some(text) = std::env::var_os(FACTOR) else { return multiplied(count, 1) };
    let Some(factor) = text.to_str().and_then(factor_of) else {
        panic!("{FACTOR} is {text:?}: it must be a factor such as 10x");
    };
    multiplied(count, factor)
}

/// The x tells a factor from a number of cases.
fn factor_of(text: &str) -> Option<u32> {
    text.strip_suffix('x')?.parse::<u32>().ok().filter(|factor| *factor > 0)
}

fn multiplied(count: u32, factor: u32) -> Config {
    let once = Config::default();
    Config {
        cases: count.saturating_mul(factor),
        // Rejected inputs are counted over all cases of a property.
        max_local_rejects: once.max_local_rejects.saturating_mul(factor),
        max_global_rejects: once.max_global_rejects.saturating_mul(factor),
        ..once
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_multiplies_cases_and_the_rejects_that_they_may_have() {
        let (once, often) = (multiplied(40, 1), multiplied(40, 10));
        assert_eq!((once.cases, often.cases), (40, 400));
        assert_eq!(often.max_local_rejects, 10 * once.max_local_rejects);
        assert_eq!(often.max_global_rejects, 10 * once.max_global_rejects);
        assert_eq!(multiplied(u32::MAX, 2).cases, u32::MAX);
    }

    #[test]
    fn a_factor_is_a_positive_number_with_an_x() {
        let found = ["1x", "10x", "10", "0x", "x", "-1x", "1.5x", ""].map(factor_of);
        assert_eq!(found, [Some(1), Some(10), None, None, None, None, None, None]);
    }
}
