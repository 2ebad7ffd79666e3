//! The name of a decision, as bound pods carry it: after a crash they say which decision they
//! belong to and how many pods were in it.

/// The name of the decision about one pod.
pub fn decision(epoch: u64, number: u64) -> String {
    format!("{epoch}-{number}")
}

/// The name of the decision about one pod of a gang that runs, and had `size` pods at least.
pub fn decision_beside(epoch: u64, number: u64, size: u32) -> String {
    format!("{epoch}-{number}+{size}")
}

/// How many pods the gang had, at least, of a pod that was placed by itself; `None` for any other
/// decision.
pub fn size_beside(decision: &str) -> Option<u32> {
    decision.split_once('+')?.1.parse().ok()
}

/// The name of a decision about `size` pods that start together.
pub fn gang_decision(epoch: u64, number: u64, size: usize) -> String {
    format!("{epoch}-{number}/{size}")
}

/// How many pods were in a decision about a gang; `None` for any other.
pub fn size_in(decision: &str) -> Option<u32> {
    decision.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_about_a_gang_says_its_size() {
        assert_eq!(size_in(&gang_decision(3, 17, 64)), Some(64));
        assert_eq!(size_in(&decision(3, 17)), None);
        assert_eq!((size_in(""), size_in("3-17/many")), (None, None));
        let beside = decision_beside(3, 17, 4);
        assert_eq!((size_in(&beside), size_beside(&beside)), (None, Some(4)));
        assert_eq!((size_beside("3-17/4"), size_beside("3-17")), (None, None));
    }
}
