//! Waiting pods that want devices nobody can hold against nodes: which GPUs these may be, and how
//! many at most.

use std::collections::BTreeMap;

use dovetail_facts::Untold;

use super::claim::NotTold;
use super::waiting::Cuttable;
use super::whose::Whose;
use crate::facts::shown_by;
use crate::facts::unjudged::Unjudged;

/// A waiting pod of which nobody knows what it wants.
pub(in crate::facts) struct UntoldPod {
    /// Namespace and name.
    pod: String,
    /// Why, in words.
    reason: String,
    /// What shows more of that.
    command: &'static str,
    /// Which GPUs it may want, and how many of them at most.
    wants: Vec<(Wants, Untold)>,
}

/// Which GPUs a pod may want.
enum Wants {
    /// Those of one name.
    Resource(String),
    /// All of some drivers, and parts of them.
    Of(Whose),
}

impl UntoldPod {
    /// A pod of whose claims nobody can tell what they want.
    pub(super) fn of(pod: String, NotTold { reason, command, whose }: NotTold) -> Self {
        Self { pod, reason, command, wants: vec![(Wants::Of(whose), Untold::Any)] }
    }

    /// A pod that nobody may make, for something else than a quota.
    pub(super) fn refused(pod: String) -> Self {
        let reason = "the API server refuses to create it, but not because of a quota".to_owned();
        Self { pod, reason, command: shown_by::EVENTS, wants: Vec::new() }
    }

    /// With what is sure of its claims: it gets that only with all the rest.
    pub(super) fn beside(mut self, gpus: &BTreeMap<String, i64>, cuttable: &Cuttable) -> Self {
        for (resource, units) in gpus {
            let whole = cuttable.get(resource).map(|whole| (*whole).to_owned());
            let names = whole.into_iter().chain([resource.clone()]);
            self.wants.extend(names.map(|name| (Wants::Resource(name), Untold::AtMost(*units))));
        }
        self
    }

    /// A pod that wants so many parts of GPUs, for which so many whole ones at most would be cut.
    pub(super) fn of_parts(pod: String, part: &str, whole: &'static str, units: i64) -> Self {
        let reason = format!("it requests {part}, into which a free GPU can be partitioned");
        let wants = vec![(Wants::Resource(whole.to_owned()), Untold::AtMost(units))];
        Self { pod, reason, command: shown_by::POD, wants }
    }

    /// How many GPUs of that name it may want.
    pub(in crate::facts) fn may_want(&self, resource: &str) -> Untold {
        let is_of = |wants: &Wants| match wants {
            Wants::Resource(wanted) => wanted == resource,
            Wants::Of(whose) => whose.may_be(resource),
        };
        let of_name = self.wants.iter().filter(|(wants, _)| is_of(wants));
        of_name.map(|(_, units)| *units).fold(Untold::default(), Untold::and)
    }

    pub(in crate::facts) fn told(&self) -> Unjudged {
        Unjudged {
            pod: self.pod.clone(),
            reason: self.reason.clone(),
            command: self.command.to_owned(),
        }
    }
}
