//! No pod is preempted without effect: what it was evicted for starts, unless something happened
//! that nobody could know when that was decided.

use std::collections::VecDeque;

use serde_json::Value;

use crate::api::ApiServer;
use crate::books::pods;
use crate::objects::OWNER;

/// The pod that was evicted is gone by then, and its room is used: the longest grace period, the
/// time after which a victim is waited for no more, and some for what is on its way.
const WITHIN_MS: u64 = 120_000;
/// What happened so shortly before an eviction may not have been known when it was decided.
const UNKNOWN_MS: u64 = 15_000;

/// Evictions, until that is known.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    open: VecDeque<Eviction>,
    /// When something happened that changes what can start.
    disturbed_ms: Vec<u64>,
}

#[derive(Debug)]
struct Eviction {
    at_ms: u64,
    victim: String,
    /// Name of the pod it was evicted for, and its gang, if it is of one.
    preemptor: String,
    gang: Option<String>,
}

impl Evictions {
    /// The scheduler says that it has evicted a pod for another one.
    pub(crate) fn evicted(
        &mut self,
        server: &ApiServer,
        now_ms: u64,
        victim: &str,
        preemptor: &str,
    ) {
        let gang = pods(server).find(|pod| pod["metadata"]["name"] == preemptor).and_then(gang_of);
        let has_started = |pod: &Value| {
            let is_it =
                pod["metadata"]["name"] == preemptor || gang.is_some() && gang_of(pod) == gang;
            is_it && pod["spec"]["nodeName"].is_string()
        };
        // What is left of a gang that was evicted goes when the preemptor has started.
        if !pods(server).any(has_started) {
            let (victim, preemptor) = (victim.to_owned(), preemptor.to_owned());
            self.open.push_back(Eviction { at_ms: now_ms, victim, preemptor, gang });
        }
    }

    pub(crate) fn started(&mut self, pod: &Value) {
        let gang = gang_of(pod);
        self.open.retain(|eviction| {
            let is_of_gang = gang.is_some() && eviction.gang == gang;
            !is_of_gang && pod["metadata"]["name"] != *eviction.preemptor
        });
    }

    /// Something happened that changes what can start.
    pub(crate) fn disturbed(&mut self, now_ms: u64) {
        self.disturbed_ms.push(now_ms);
    }

    /// The first eviction without effect.
    pub(crate) fn without_effect(&mut self, now_ms: u64) -> Option<String> {
        while let Some(first) = self.open.front() {
            if now_ms < first.at_ms + WITHIN_MS {
                return None;
            }
            let time = first.at_ms.saturating_sub(UNKNOWN_MS)..first.at_ms + WITHIN_MS;
            let is_excused = self.disturbed_ms.iter().any(|at_ms| time.contains(at_ms));
            let Eviction { victim, preemptor, .. } = self.open.pop_front()?;
            if !is_excused {
                return Some(format!(
                    "{victim} was evicted for {preemptor}, which has not started"
                ));
            }
        }
        None
    }
}

/// The owner of a pod that starts with others.
fn gang_of(pod: &Value) -> Option<String> {
    let labels = &pod["metadata"]["labels"];
    let is_member =
        labels["dovetail.dev/gang"].is_string() || pod["spec"]["schedulingGroup"].is_object();
    labels[OWNER].as_str().filter(|_| is_member).map(str::to_owned)
}
