//! Which kinds the server does not list, and since when: who cannot read the cluster must not keep
//! the lease from others.

use std::collections::BTreeMap;

use dovetail_control::repeats::Repeats;
use dovetail_objects::Kind;

use super::look::{OTHERS_WITHIN_MS, resource};

/// How long lists may fail, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPatience {
    /// After it has the lease and as long as not everything is listed: the lease is given up when a
    /// kind has failed for so long without an object of it.
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
    /// What fails: kinds as roles name them, with their group, or what else is asked.
    failing: BTreeMap<String, Failing>,
    /// Kinds that the user may not see, as roles name them, and what the server says.
    refused: BTreeMap<String, String>,
    /// When they are to be told.
    refusals_due_ms: Option<u64>,
    repeats: Repeats<String>,
}

#[derive(Debug)]
struct Failing {
    since_ms: u64,
    problem: String,
}

impl FirstLists {
    /// A kind cannot be listed. Whether to tell it: not at each attempt.
    pub(super) fn failed(&mut self, kind: Kind, problem: &str, now_ms: u64) -> bool {
        self.has_failed(&resource(kind), problem, now_ms)
    }

    /// A request has failed. Whether to tell it: not at each attempt.
    pub(super) fn has_failed(&mut self, what: &str, problem: &str, now_ms: u64) -> bool {
        self.fails(what, problem, now_ms);
        self.repeats.is_due(what.to_owned(), problem, now_ms)
    }

    fn fails(&mut self, what: &str, problem: &str, now_ms: u64) {
        let new = Failing { since_ms: now_ms, problem: String::new() };
        let failing = self.failing.entry(what.to_owned()).or_insert(new);
        problem.clone_into(&mut failing.problem);
    }

    /// The server does not let the user see a kind. [`Self::refusals`] tells it together with
    /// others.
    pub(super) fn refused(&mut self, kind: Kind, message: String, now_ms: u64) {
        self.fails(&resource(kind), &message, now_ms);
        self.refused.insert(resource(kind), message);
        self.refusals_due_ms.get_or_insert(now_ms.saturating_add(OTHERS_WITHIN_MS));
    }

    /// What is to be told now of all kinds that the user may not see: not at each attempt.
    pub(super) fn refusals(&mut self, now_ms: u64) -> Option<String> {
        self.refusals_due_ms.take_if(|due_ms| now_ms >= *due_ms)?;
        let message = self.refused.values().next()?;
        let kinds: Vec<&str> = self.refused.keys().map(String::as_str).collect();
        let text = format!(
            "the user is not allowed to list and watch {}: grant this permission, as the \
             ClusterRole of deploy/rbac.yaml does; dovetail retries; the server's message about \
             the first kind: {message}",
            kinds.join(", ")
        );
        self.repeats.is_due("refused".to_owned(), &text, now_ms).then_some(text)
    }

    /// Something of a kind has arrived.
    pub(super) fn listed(&mut self, kind: Kind) {
        // It is asked of every object that arrives.
        if self.failing.is_empty() && self.refused.is_empty() {
            return;
        }
        let name = resource(kind);
        self.arrived(&name);
        self.refused.remove(&name);
    }

    /// A request was answered.
    pub(super) fn arrived(&mut self, what: &str) {
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
    fn all_kinds_that_may_not_be_listed_are_told_in_one_line() {
        let mut lists = FirstLists::default();
        lists.refused(Kind::Pod, "no pods".to_owned(), 1_000);
        assert_eq!(lists.refusals(1_999), None, "others may follow");
        lists.refused(Kind::Node, "no nodes".to_owned(), 1_999);
        let told = lists.refusals(2_000).expect("a line");
        let begin = "the user is not allowed to list and watch nodes, pods: grant this permission, \
             as the ClusterRole of deploy/rbac.yaml does; ";
        assert!(told.starts_with(begin) && told.ends_with(": no nodes"), "{told}");
        lists.refused(Kind::Pod, "no pods".to_owned(), 10_000);
        assert_eq!(lists.refusals(11_000), None, "the same is told once a minute");
        lists.refused(Kind::Pod, "no pods".to_owned(), 62_000);
        assert_eq!(lists.refusals(63_000), Some(told));
        lists.listed(Kind::Node);
        lists.refused(Kind::Pod, "no pods".to_owned(), 64_000);
        let told = lists.refusals(65_000).expect("another line");
        assert!(told.starts_with("the user is not allowed to list and watch pods: "), "{told}");
        lists.listed(Kind::Pod);
        assert!(lists.trouble().is_none() && lists.refusals(200_000).is_none());
    }

    #[test]
    fn a_kind_that_fails_for_long_is_hopeless_and_one_whose_objects_arrive_is_not() {
        let patience = ListPatience { fails_for_ms: 30_000, pause_ms: 0 };
        let mut lists = FirstLists::default();
        let pods = |lists: &mut FirstLists, at_ms| lists.failed(Kind::Pod, "forbidden", at_ms);
        assert!(pods(&mut lists, 1_000) && !pods(&mut lists, 2_000));
        assert!(lists.failed(Kind::Node, "forbidden", 500));
        lists.listed(Kind::Node);
        assert!(!lists.is_hopeless(patience, 30_999));
        assert!(lists.is_hopeless(patience, 31_000), "since it failed first");
        let told = lists.trouble();
        assert_eq!(told.as_deref(), Some("cannot list and watch pods: forbidden"));
        lists.listed(Kind::Pod);
        assert!(!lists.is_hopeless(patience, u64::MAX) && lists.trouble().is_none());
    }

    #[test]
    fn kinds_of_one_name_in_two_groups_fail_and_arrive_apart() {
        let mut lists = FirstLists::default();
        let both = [Kind::PodGroup, Kind::VolcanoGroup];
        assert!(both.into_iter().all(|kind| lists.failed(kind, "forbidden", 0)));
        lists.listed(Kind::PodGroup);
        let told = lists.trouble().expect("the other one");
        assert_eq!(told, "cannot list and watch podgroups.scheduling.volcano.sh: forbidden");
        lists.listed(Kind::VolcanoGroup);
        assert_eq!(lists.trouble(), None);
    }
}
