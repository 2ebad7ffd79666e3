//! What pods of one job do to each other: each of several nodes would take one of them, and their
//! own rules keep them from being there together.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Job, Requirement, RuleCause};
use dovetail_plan::{Engine, View};

/// Rules of one kind, and what their owner calls them.
const KINDS: [(&[RuleCause], &str); 7] = [
    (&[RuleCause::AntiAffinity, RuleCause::ExistingAntiAffinity], "their own pod anti-affinity"),
    (&[RuleCause::Affinity], "their own pod affinity"),
    (&[RuleCause::Spread], "their own topology spread constraints"),
    (&[RuleCause::HostPort], "their own host ports"),
    (
        &[RuleCause::DiskConflict, RuleCause::ReadWriteOncePod],
        "the volumes that only one of them may use at a time",
    ),
    (&[RuleCause::DeviceClaims], "the devices that their claims need together"),
    (&[RuleCause::SharedGpus], "the classes and namespaces of pods that share GPUs"),
];

/// The rules of a job's pods about each other without which it would start now: those of one kind
/// if that is enough, else all; `None` if that would not help.
pub(super) fn what_keeps_apart(engine: &mut Engine, job: &Job) -> Option<String> {
    let counted: BTreeSet<&String> =
        job.pod_sets.iter().flat_map(|set| &set.requirement.counts_into).collect();
    let mut relaxed: Vec<(Job, &str)> = Vec::new();
    for (causes, words) in KINDS {
        let without = without(job, causes, &counted);
        if without != *job {
            relaxed.push((without, words));
        }
    }
    let mut starts =
        |job: &Job| engine.ask().what_if_job(job, &View::Now).is_ok_and(|go| go.is_some());
    if let Some((_, words)) = relaxed.iter().find(|(without, _)| starts(without)) {
        return Some((*words).to_owned());
    }
    let all: Vec<RuleCause> = KINDS.iter().flat_map(|(causes, _)| *causes).copied().collect();
    let helps = relaxed.len() > 1 && starts(&without(job, &all, &counted));
    let words = || relaxed.iter().map(|(_, words)| *words).collect::<Vec<_>>().join(" and ");
    helps.then(words)
}

/// The job without the rules of these causes that are about its own pods.
fn without(job: &Job, causes: &[RuleCause], counted: &BTreeSet<&String>) -> Job {
    let mut relaxed = job.clone();
    for set in &mut relaxed.pod_sets {
        let is_own = |rule: &dovetail_model::CounterRule| {
            causes.contains(&rule.cause) && counted.contains(&rule.selector)
        };
        if set.requirement.rules.iter().any(is_own) {
            let mut requirement = Requirement::clone(&set.requirement);
            requirement.rules.retain(|rule| !is_own(rule));
            set.requirement = Arc::new(requirement);
        }
    }
    relaxed
}
