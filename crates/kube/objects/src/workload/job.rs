//! Jobs. Their pods start together if all of them run at once and each has a number: completion
//! mode `Indexed`, as many completions as parallel pods, more than one. That is the rule by which
//! Kubernetes' own Job controller makes a gang of a Job (KEP-5547).

use serde::Deserialize;

use super::pods_made::{PodsMade, Unread};
use super::{WorkloadObject, WorkloadRole};
use crate::json::{deadline_s, nullable};
use crate::meta::Meta;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct JobJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: JobSpec<Unread>,
}

/// What a Job, also as part of a JobSet, says of its pods; `T` is their template.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct JobSpec<T> {
    parallelism: Option<u32>,
    completions: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    completion_mode: Box<str>,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
    active_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    template: T,
}

impl<T> JobSpec<T> {
    /// The pods that it makes: no more at a time than are to complete.
    pub fn pods_made(&self) -> PodsMade<'_, T> {
        PodsMade { name: "", parts: 1, pods_each: self.pods(), template: &self.template }
    }

    /// How many pods there are at a time.
    pub(super) fn pods(&self) -> u32 {
        let parallelism = self.parallelism.unwrap_or(1);
        self.completions.map_or(parallelism, |completions| completions.min(parallelism))
    }

    /// Whether one pod is to complete, or one at a time where that is not said.
    fn is_of_one_pod(&self) -> bool {
        self.pods() <= 1 && self.completions.unwrap_or(1) <= 1
    }

    /// Why its pods do not start together; `None` if they do.
    fn apart(&self) -> Option<Box<str>> {
        let parallelism = self.parallelism.unwrap_or(1);
        match self.completions {
            _ if &*self.completion_mode != "Indexed" => {
                Some("its spec.completionMode is not Indexed".into())
            }
            Some(completions) if completions != parallelism => Some(
                format!(
                    "its spec.completions ({completions}) differs from its spec.parallelism ({parallelism})"
                )
                .into(),
            ),
            None => Some("it has no spec.completions".into()),
            Some(_) if parallelism < 2 => {
                Some(format!("its spec.parallelism is {parallelism}").into())
            }
            Some(_) => None,
        }
    }
}

impl From<JobJson> for WorkloadObject {
    fn from(JobJson { metadata, spec }: JobJson) -> Self {
        let apart = spec.apart();
        let role = apart.is_none().then(|| WorkloadRole::fixed("", spec.pods()));
        Self {
            meta: metadata,
            roles: role.into_iter().collect(),
            apart: apart.unwrap_or_default(),
            suspended: spec.suspend,
            is_of_one_pod: spec.is_of_one_pod(),
            active_deadline_s: deadline_s(spec.active_deadline_seconds),
            ..Self::default()
        }
    }
}
