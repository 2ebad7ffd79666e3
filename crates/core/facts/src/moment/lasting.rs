//! Since when a part of a GPU is what it is, and whether that may be taken for a month.
//!
//! A snapshot shows what is, not what comes. Only a state that has lasted for its threshold, and of
//! a kind that somebody has to end, is taken for one that goes on: a broken GPU, a cordon, GPUs
//! that nobody asks for or that waiting work cannot use, GPUs that were measured for long. What
//! ends by itself (a node or a pod that starts, a pod that waits for its gang) is counted for the
//! time that it has lasted, and what follows is unknown.

use std::collections::BTreeMap;

use dovetail_account::device_time::DeviceState;
use dovetail_model::FreeCause;
use rustc_hash::FxHashMap;

use super::{HeldGpus, Moment};
use crate::cluster::{Facts, Node, Pod, WorkloadClass};
use crate::thresholds::Thresholds;
use crate::usage::GpuUse;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;

/// No state that is younger than this is taken for a month, however early a check reports it.
const LEAST_MINUTES: u64 = 60;
pub(super) const LEAST_MS: u64 = LEAST_MINUTES * MINUTE_MS;

/// Since when something is as it is, and whether that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// Since when; `None` if nobody knows.
    pub since_ms: Option<u64>,
    /// Whether it may be taken for a month.
    pub goes_on: bool,
}

impl Lasting {
    /// What goes on since a time that nobody knows.
    pub const ALWAYS: Self = Self { since_ms: None, goes_on: true };

    fn after(since_ms: Option<u64>, now_ms: u64, minutes: u64) -> Self {
        let length_ms = since_ms.map(|since_ms| now_ms.saturating_sub(since_ms));
        let minutes = minutes.max(LEAST_MINUTES);
        Self { since_ms, goes_on: length_ms.is_none_or(|length| length >= minutes * MINUTE_MS) }
    }
}

/// What is looked up to tell it.
pub(super) struct Times<'f> {
    facts: &'f Facts,
    node_of: FxHashMap<&'f str, &'f Node>,
    /// Since when the first of the pods waits that ask for a resource.
    wanted_since_ms: BTreeMap<&'f str, u64>,
    /// Since when the first of the jobs waits for which there is no quota of a resource.
    no_quota_since_ms: BTreeMap<&'f str, u64>,
    /// Since when a pod of a workload is missing that others wait for.
    missing_since_ms: BTreeMap<usize, u64>,
    /// Pods of holders by their workload and name.
    pod_of: FxHashMap<(usize, &'f str), &'f Pod>,
}

impl<'f> Times<'f> {
    pub(super) fn of(facts: &'f Facts, moment: &'f Moment) -> Self {
        let node_of = facts.nodes.iter().map(|node| (&*node.node.name, node)).collect();
        let (mut wanted_since_ms, mut missing_since_ms) = (BTreeMap::new(), BTreeMap::new());
        let first = |times: &mut u64, at_ms: u64| *times = at_ms.min(*times);
        for (number, workload) in facts.workloads.iter().enumerate().filter(|(_, w)| w.has_gpus()) {
            for pod in &workload.pods {
                let Some(made_ms) = pod.created_ms else { continue };
                if pod.node.is_none() {
                    for resource in workload.gpus_per_pod().into_keys() {
                        first(wanted_since_ms.entry(resource).or_insert(made_ms), made_ms);
                    }
                }
                if pod.node.is_none() || pod.is_starting {
                    first(missing_since_ms.entry(number).or_insert(made_ms), made_ms);
                }
            }
        }
        let mut no_quota_since_ms = BTreeMap::new();
        for demand in &moment.demand {
            for since_ms in demand.without_quota.values().flatten().copied() {
                let of_resource = no_quota_since_ms.entry(demand.resource.as_str());
                first(of_resource.or_insert(since_ms), since_ms);
            }
        }
        let holders: std::collections::BTreeSet<usize> =
            moment.held.iter().map(|held| held.workload).collect();
        let pods = holders.into_iter().flat_map(|number| {
            let pods = facts.workloads[number].pods.iter();
            pods.map(move |pod| ((number, pod.name.as_str()), pod))
        });
        let pod_of = pods.collect();
        Self { facts, node_of, wanted_since_ms, no_quota_since_ms, missing_since_ms, pod_of }
    }

    fn thresholds(&self) -> &'f Thresholds {
        &self.facts.thresholds
    }

    /// Of GPUs of a node that nobody can use.
    pub(super) fn unavailable(&self, node: &str) -> Lasting {
        let since_ms = self.node_of.get(node).and_then(|node| node.not_ready_since_ms);
        Lasting::after(since_ms, self.facts.now_ms, self.thresholds().empty_node_minutes)
    }

    /// Of GPUs that a node has lost: since when nobody knows, but not before there was the node.
    /// Those of a node that changes its MIG layout come back.
    pub(super) fn lost(&self, node: &str) -> Lasting {
        let now_ms = self.facts.now_ms;
        let is_young = |joined_ms: &u64| now_ms.saturating_sub(*joined_ms) < LEAST_MS;
        let node = self.node_of.get(node);
        if node.is_some_and(|node| node.is_changing_layout()) {
            return Lasting { since_ms: None, goes_on: false };
        }
        let joined_ms = node.and_then(|node| node.joined_ms).filter(is_young);
        Lasting { since_ms: joined_ms, goes_on: joined_ms.is_none() }
    }

    pub(super) fn free(
        &self,
        node: &str,
        resource: Option<&str>,
        cause: Option<FreeCause>,
    ) -> Lasting {
        let (Some(node), Some(cause)) = (self.node_of.get(node), cause) else {
            return Lasting::ALWAYS;
        };
        let now_ms = self.facts.now_ms;
        let some_minutes = self.thresholds().empty_node_minutes;
        match cause {
            FreeCause::Starting => Lasting { since_ms: node.joined_ms, goes_on: false },
            FreeCause::DrainingOrCordoned => {
                let minutes = self.thresholds().cordoned_minutes;
                let lasting = Lasting::after(node.cordoned_since_ms, now_ms, minutes);
                // When a node joined is not when it was cordoned.
                match node.cordon_is_undated && lasting.goes_on {
                    true => Lasting::ALWAYS,
                    false => lasting,
                }
            }
            FreeCause::LayoutRest if node.is_changing_layout() => {
                Lasting { since_ms: None, goes_on: false }
            }
            FreeCause::LayoutRest => Lasting::after(node.joined_ms, now_ms, some_minutes),
            FreeCause::NoDemand => Lasting::after(node.free_since_ms, now_ms, some_minutes),
            FreeCause::Reserved => Lasting { since_ms: node.free_since_ms, goes_on: true },
            _ => {
                let wanted = resource.and_then(|name| {
                    let for_quota = self.no_quota_since_ms.get(name);
                    let for_quota = for_quota.filter(|_| cause == FreeCause::Quota);
                    for_quota.or_else(|| self.wanted_since_ms.get(name)).copied()
                });
                let since_ms = wanted.map(|ms| ms.max(node.free_since_ms.unwrap_or(0)));
                Lasting::after(since_ms, now_ms, some_minutes)
            }
        }
    }

    /// Of what a pod holds for nothing: its containers with GPUs are over, or it was deleted and
    /// should be gone. `None` if neither is known of it.
    pub(super) fn useless(&self, held: &HeldGpus) -> Option<Lasting> {
        let pod = self.pod_of.get(&(held.workload, held.pod.as_str()))?;
        let now_ms = self.facts.now_ms;
        if let Some(ended_ms) = pod.work_ended_ms.filter(|ended_ms| *ended_ms <= now_ms) {
            return Some(Lasting::after(Some(ended_ms), now_ms, LEAST_MINUTES));
        }
        let minutes = self.thresholds().overdue_minutes;
        let since_ms = pod.should_be_gone_ms?;
        let overdue_ms = now_ms.checked_sub(since_ms)?;
        (overdue_ms > minutes * MINUTE_MS).then(|| Lasting::after(Some(since_ms), now_ms, minutes))
    }

    /// Of what a pod holds, in the state that it is in without a measurement.
    pub(super) fn held(&self, held: &HeldGpus, state: DeviceState) -> Lasting {
        let pod = self.pod_of.get(&(held.workload, held.pod.as_str()));
        let since_ms = match state {
            DeviceState::GangWait => {
                let missing = self.missing_since_ms.get(&held.workload).copied();
                let own = pod.and_then(|pod| pod.ready_since_ms.or(pod.placed_since_ms));
                own.map(|own| own.max(missing.unwrap_or(0))).or(missing)
            }
            _ => pod.and_then(|pod| pod.placed_since_ms),
        };
        let goes_on = !matches!(state, DeviceState::Provisioning | DeviceState::GangWait);
        Lasting { since_ms, goes_on }
    }

    /// Of what was measured of a GPU: long enough for the checks that look at it.
    pub(super) fn measured(&self, held: &HeldGpus, used: &GpuUse) -> Lasting {
        let thresholds = self.thresholds();
        let end_ms = self.facts.usage.map_or(self.facts.now_ms, |period| period.span.to_ms);
        let is_long = used.looked_ms() >= thresholds.least_measured_hours * HOUR_MS;
        let idle_minutes = match self.facts.workloads[held.workload].class {
            Some(WorkloadClass::Interactive) => Some(thresholds.idle_notebook_minutes),
            Some(WorkloadClass::Inference) => Some(thresholds.idle_server_minutes),
            _ => None,
        };
        let idle_ms = used.idle_since_ms.map(|since_ms| end_ms.saturating_sub(since_ms));
        let is_idle =
            idle_minutes.zip(idle_ms).is_some_and(|(minutes, ms)| ms > minutes * MINUTE_MS);
        Lasting { since_ms: used.idle_since_ms, goes_on: is_long || is_idle }
    }
}
