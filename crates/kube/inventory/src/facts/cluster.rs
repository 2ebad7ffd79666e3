//! Quotas, LimitRanges, disruption budgets, admission policies and the scheduler's configuration.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_facts::{Advice, BudgetLimit, NumaPolicy, ObjectRef, Scoring};
use dovetail_model::is_gpu_resource;
use dovetail_objects::json::{JsonQuantity, nullable};
use dovetail_objects::{DisruptionBudget, read};
use serde::Deserialize;

use super::autoscaler::{ReadAutoscaler, reader};
use super::lenient::lenient;
use super::limit_range::LimitRange;
use super::policy::{is_policy, speaks_of_gpus};
use super::unmade::quota::QuotaRoom;
use crate::dump::{RawObject, Skipped};

/// Kinds beside policies and autoscalers.
const OWN: [&str; 6] = [
    "LimitRange",
    "ResourceQuota",
    "PodDisruptionBudget",
    "ConfigMap",
    "NodeResourceTopology",
    "VerticalPodAutoscaler",
];

/// What is known of them.
#[derive(Default)]
pub(super) struct ClusterObjects {
    /// What quotas give, by namespace and by resource as written; the least of several.
    pub(super) quotas: BTreeMap<String, BTreeMap<String, i64>>,
    /// What quotas still let in, by namespace.
    pub(super) quota_rooms: BTreeMap<String, Vec<QuotaRoom>>,
    /// What they ask of containers and pods, by namespace.
    pub(super) limit_ranges: BTreeMap<String, Vec<LimitRange>>,
    pub(super) budgets: Vec<BudgetObject>,
    pub(super) autoscalers: Vec<ReadAutoscaler>,
    /// What recommenders say, by the owner that it is about.
    pub(super) advice: BTreeMap<ObjectRef, Advice>,
    /// How kubelets put the devices of a pod together, by node.
    pub(super) numa_policies: BTreeMap<String, NumaPolicy>,
    /// Whether a policy speaks of GPUs; `None` where no policy was read.
    pub(super) has_gpu_policy: Option<bool>,
    pub(super) scoring: Option<Scoring>,
}

/// A disruption budget.
pub(super) struct BudgetObject {
    pub(super) object: ObjectRef,
    pub(super) budget: DisruptionBudget,
    pub(super) limit: BudgetLimit,
}

impl ClusterObjects {
    /// Whether an object is one of these.
    pub(super) fn wants(&self, kind: &str, api_version: &str) -> bool {
        OWN.contains(&kind) || reader(kind, api_version).is_some() || is_policy(kind, api_version)
    }

    /// Takes one.
    pub(super) fn add(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        if let Some(read) = reader(raw.kind, raw.api_version) {
            self.autoscalers.push(read(raw)?);
            return Ok(());
        }
        match raw.kind {
            "LimitRange" => {
                let range = LimitRange::read(raw)?;
                self.limit_ranges.entry(raw.namespace.to_owned()).or_default().push(range);
                Ok(())
            }
            "ResourceQuota" => self.quota(raw),
            "PodDisruptionBudget" => self.budget(raw),
            "ConfigMap" => self.configuration(raw),
            "VerticalPodAutoscaler" => {
                self.advice.extend([super::advice::recommender(raw)?]);
                Ok(())
            }
            "NodeResourceTopology" => {
                let policy = super::advice::numa_policy(raw)?;
                self.numa_policies.extend(policy.map(|policy| (raw.name.to_owned(), policy)));
                Ok(())
            }
            _ => {
                let speaks = speaks_of_gpus(raw.json);
                self.has_gpu_policy = Some(self.has_gpu_policy == Some(true) || speaks);
                Ok(())
            }
        }
    }

    /// How much of GPU resources the quotas of a namespace give.
    pub(super) fn gpu_quota(&self, namespace: &str) -> BTreeMap<String, i64> {
        let limits = self.quotas.get(namespace).into_iter().flatten();
        let of_gpus = limits.filter_map(|(name, amount)| {
            let resource = name.strip_prefix("requests.")?;
            is_gpu_resource(resource).then(|| (resource.to_owned(), *amount))
        });
        of_gpus.collect()
    }

    fn quota(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Quota {
            #[serde(deserialize_with = "nullable")]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            hard: BTreeMap<String, JsonQuantity>,
        }
        let quota: Quota = lenient(raw)?;
        let room = QuotaRoom::read(raw)?;
        self.quota_rooms.entry(raw.namespace.to_owned()).or_default().push(room);
        let limited = self.quotas.entry(raw.namespace.to_owned()).or_default();
        for (resource, amount) in quota.spec.hard {
            let amount = amount.0.to_units();
            let least = limited.entry(resource).or_insert(amount);
            *least = amount.min(*least);
        }
        Ok(())
    }

    fn budget(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Budget {
            #[serde(deserialize_with = "nullable")]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Spec {
            min_available: Option<serde_json::Value>,
            max_unavailable: Option<serde_json::Value>,
        }
        let Spec { min_available, max_unavailable } = lenient::<Budget>(raw)?.spec;
        let strange = |field, value: &serde_json::Value| {
            raw.skipped(field, &format!("{value} is neither a number of pods nor a percentage"))
        };
        let limit = match (min_available, max_unavailable) {
            (Some(value), _) => count(&value)
                .map(|count| match count {
                    Count::Pods(pods) => BudgetLimit::MinAvailable(pods),
                    Count::Percent(percent) => BudgetLimit::MinAvailablePercent(percent),
                })
                .ok_or_else(|| strange("spec.minAvailable", &value))?,
            (None, Some(value)) => count(&value)
                .map(|count| match count {
                    Count::Pods(pods) => BudgetLimit::MaxUnavailable(pods),
                    Count::Percent(percent) => BudgetLimit::MaxUnavailablePercent(percent),
                })
                .ok_or_else(|| strange("spec.maxUnavailable", &value))?,
            // A budget that says neither lets everything go but one.
            (None, None) => BudgetLimit::MinAvailable(1),
        };
        let budget = read("PodDisruptionBudget", raw.json.as_bytes())
            .map_err(|strange| raw.skipped(&strange.field, &strange.problem))?;
        let object = ObjectRef::new(raw.kind, raw.namespace, raw.name);
        self.budgets.push(BudgetObject { object, budget, limit });
        Ok(())
    }

    /// A ConfigMap with the configuration of a scheduler; of any other nothing is kept.
    fn configuration(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Map<'a> {
            #[serde(borrow, deserialize_with = "nullable")]
            data: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
        }
        let map: Map<'_> = lenient(raw)?;
        let is_config = |text: &&Cow<'_, str>| text.contains("KubeSchedulerConfiguration");
        if let Some(text) = map.data.values().find(is_config) {
            self.scoring = Some(scoring(text));
        }
        Ok(())
    }
}

enum Count {
    Pods(u32),
    Percent(u32),
}

fn count(value: &serde_json::Value) -> Option<Count> {
    if let Some(pods) = value.as_u64() {
        return u32::try_from(pods).ok().map(Count::Pods);
    }
    let text = value.as_str()?.trim();
    match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(Count::Percent),
        None => text.parse().ok().map(Count::Pods),
    }
}

/// The strategy that a configuration names; the scheduler's default where it names none.
fn scoring(text: &str) -> Scoring {
    match () {
        () if text.contains("RequestedToCapacityRatio") => Scoring::RequestedToCapacityRatio,
        () if text.contains("MostAllocated") => Scoring::MostAllocated,
        () => Scoring::LeastAllocated,
    }
}
