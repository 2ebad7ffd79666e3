//! What an object says of pods that it makes and that are not there.

use dovetail_objects::labels;
use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_facts::ObjectRef;
use dovetail_objects::json::nullable;
use serde::Deserialize;

use super::quota::{REPLICA_FAILURE, speaks_of_quota};
use super::{Maker, QUEUE_LABEL, Says, Unmade, Why, admission, kueue, sets};
use crate::dump::{RawObject, Skipped};
use crate::facts::detail::{OwnerConditionDetail, OwnerDetail, OwnerStatusDetail};
use crate::facts::lenient::lenient;

/// The label that JobSet gives its Jobs.
const REPLICATED_JOB: &str = labels::REPLICATED_JOB;

impl Unmade {
    /// Takes what may make pods.
    ///
    /// # Errors
    /// If a field has another shape than it should.
    pub(in crate::facts) fn add(
        &mut self,
        raw: &RawObject<'_>,
        detail: &OwnerDetail<'_>,
    ) -> Result<(), Skipped> {
        let object = || ObjectRef::new(raw.kind, raw.namespace, raw.name);
        if kueue::is_workload(raw.kind, raw.api_version) {
            if let Some(workload) = kueue::read(raw)? {
                self.workloads.insert(object(), workload);
            }
            return Ok(());
        }
        if admission::is_flavor(raw.kind, raw.api_version) {
            self.flavors.insert(raw.name.to_owned(), admission::read_flavor(raw)?);
            return Ok(());
        }
        if detail.metadata.deletion_timestamp.0.is_some() {
            return Ok(());
        }
        let job_set = detail.metadata.controller().filter(|owner| owner.kind == "JobSet");
        if let (Some(set), "Job") = (job_set, raw.kind) {
            let set = ObjectRef::new("JobSet", raw.namespace, &set.name);
            let name = labels(raw)?.remove(REPLICATED_JOB).map(Cow::into_owned);
            let name = name.unwrap_or_else(|| name_in_set(raw.name, &set.name));
            self.of_job_sets.insert(object(), (set, name));
        }
        if detail.status.as_ref().is_some_and(OwnerStatusDetail::is_over) {
            return Ok(());
        }
        if detail.spec.is_suspended() {
            self.names_a_queue |= labels(raw)?.contains_key(QUEUE_LABEL);
            self.suspended(raw, detail)
        } else {
            self.short(raw, detail)
        }
    }

    fn suspended(&mut self, raw: &RawObject<'_>, detail: &OwnerDetail<'_>) -> Result<(), Skipped> {
        let mut sets = sets::of(raw)?;
        if raw.kind == "Job" {
            // What succeeded is not run again.
            for set in &mut sets {
                set.pods_each = set.pods_each.min(detail.left_to_complete());
            }
        }
        if !sets.is_empty() {
            let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
            self.makers.insert(object, Maker { why: Why::Suspended, sets });
        }
        Ok(())
    }

    /// Takes an object that counts its pods and has fewer than it wants.
    fn short(&mut self, raw: &RawObject<'_>, detail: &OwnerDetail<'_>) -> Result<(), Skipped> {
        let Some(status) = &detail.status else { return Ok(()) };
        let (wanted, present) = match raw.kind {
            "ReplicaSet" | "StatefulSet" => {
                let Some(present) = status.replicas else { return Ok(()) };
                (detail.spec.wanted(), present)
            }
            "Job" => {
                (detail.spec.wanted().min(detail.left_to_complete()), status.active.unwrap_or(0))
            }
            _ => return Ok(()),
        };
        if wanted <= present {
            return Ok(());
        }
        let set = sets::set(raw, "spec.template", ("", wanted, 1), detail.spec.template)?;
        if let Some(set) = set {
            let refused = refused(&status.conditions);
            let since_ms = refused.and_then(|condition| condition.last_transition_time.0);
            let why = Why::Short { present, says: says(refused), since_ms };
            let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
            self.makers.insert(object, Maker { why, sets: vec![set] });
        }
        Ok(())
    }
}

/// The condition by which a ReplicaSet says that the server refuses it pods.
fn refused<'c, 'a>(
    conditions: &'c [OwnerConditionDetail<'a>],
) -> Option<&'c OwnerConditionDetail<'a>> {
    conditions.iter().find(|condition| {
        condition.kind == REPLICA_FAILURE
            && condition.status == "True"
            && condition.reason == "FailedCreate"
    })
}

/// What it says of why it has no pods.
fn says(refused: Option<&OwnerConditionDetail<'_>>) -> Says {
    match refused.map(|condition| (&*condition.about, &*condition.message)) {
        None => Says::Nothing,
        Some(("", "")) => Says::Refused,
        Some(("", message)) if speaks_of_quota(REPLICA_FAILURE, message) => Says::NoQuota,
        Some(("quota", _)) => Says::NoQuota,
        Some(_) => Says::SomethingElse,
    }
}

/// Which replicated Job a Job is of by its name: `SET-NAME-NUMBER`.
fn name_in_set(job: &str, set: &str) -> String {
    let rest = job.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
    let name = rest.and_then(|rest| rest.rsplit_once('-')).map(|(name, _)| name);
    name.unwrap_or_default().to_owned()
}

fn labels<'a>(raw: &RawObject<'a>) -> Result<BTreeMap<Cow<'a, str>, Cow<'a, str>>, Skipped> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Labelled<'a> {
        #[serde(borrow, deserialize_with = "nullable")]
        metadata: Labels<'a>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Labels<'a> {
        #[serde(borrow, deserialize_with = "nullable")]
        labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    }
    Ok(lenient::<Labelled<'_>>(raw)?.metadata.labels)
}
