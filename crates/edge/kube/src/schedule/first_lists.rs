//! Which kinds the server does not list, and since when: who cannot read the cluster must not keep the lease from
//! others.

use std::collections::BTreeMap;

use crate::repeats::Repeats;

/// How long lists may fail, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPatience {
    /// After it has the lease and as long as not everything is listed: the lease is given up when a kind has failed
    /// for so long without an object of it.
    pub fails_for_ms: u64,
    /// For so long it does not run for the leadership then.
    pub pause_ms: u64,
}

impl Default for ListPatience {
    fn default() -> Self {
        Self { fails_for_ms: 30_000, pause_ms: 30_000 }
    }
}

/// What the server does not say.
#[derive(Debug, Default)]
pub(super) struct FirstLists {
    failing: BTreeMap<&'static str, Failing>,
    repeats: Repeats<&'static str>,
}

#[derive(Debug)]
struct Failing {
    since_ms: u64,
    problem: String,
}

impl FirstLists {
    /// A request about these objects has failed. Whether to tell it: not at each attempt.
    pub(super) fn failed(&mut self, what: &'static str, problem: &str, now_ms: u64) -> bool {
        let new = Failing { since_ms: now_ms, problem: String::new() };
        let failing = self.failing.entry(what).or_insert(new);
        problem.clone_into(&mut failing.problem);
        self.repeats.is_due(what, problem, now_ms)
    }

    /// Something about these objects has arrived.
    pub(super) fn arrived(&mut self, what: &'static str) {
        self.failing.remove(what);
    }

    /// What fails at this time, that which has failed for longest first; `None`: nothing.
    pub(super) fn trouble(&self) -> Option<String> {
        let longest = self.failing.iter().min_by_key(|(_, failing)| failing.since_ms);
        let (what, Failing { problem, .. }) = longest?;
        let others = match self.failing.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} other kinds)"),
        };
        Some(format!("cannot list and watch {what}{others}: {problem}"))
    }

    /// Whether something has failed for too long.
    pub(super) fn is_hopeless(&self, patience: ListPatience, now_ms: u64) -> bool {
        let is_over =
            |failing: &Failing| now_ms >= failing.since_ms.saturating_add(patience.fails_for_ms);
        self.failing.values().any(is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_fails_for_long_is_hopeless_and_one_whose_objects_arrive_is_not() {
        let patience = ListPatience { fails_for_ms: 30_000, pause_ms: 0 };
        let mut lists = FirstLists::default();
        assert!(
            lists.failed("pods", "forbidden", 1_000) && !lists.failed("pods", "forbidden", 2_000)
        );
        assert!(lists.failed("nodes", "forbidden", 500));
        lists.arrived("nodes");
        assert!(!lists.is_hopeless(patience, 30_999));
        assert!(lists.is_hopeless(patience, 31_000), "since it failed first");
        let told = lists.trouble();
        assert_eq!(told.as_deref(), Some("cannot list and watch pods: forbidden"));
        lists.arrived("pods");
        assert!(!lists.is_hopeless(patience, u64::MAX) && lists.trouble().is_none());
    }
}
