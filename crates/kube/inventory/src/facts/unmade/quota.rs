//! How many more pods the quotas of a namespace let in.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_model::Resources;
use dovetail_objects::json::{JsonQuantity, nullable};
use serde::Deserialize;

use super::scopes::{QuotaScope, ScopeJson, ScopedPod};
use crate::dump::{RawObject, Skipped};
use crate::facts::lenient::lenient;

/// The condition of a ReplicaSet that the server refuses pods.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The condition of a workload of Kueue.
pub(crate) const QUOTA_RESERVED: &str = "QuotaReserved";

/// How the API server says that a quota is used up; names have no blank in them.
const USED_UP: &str = "exceeded quota";

/// Words by which Kueue says that there is none left, or that others hold it:
/// `insufficient unused quota for ...`, `Pending the preemption of ...`,
/// `Preempted to accommodate ...`.
const OF_KUEUE: [&str; 3] = ["quota", "preempted", "preemption"];

/// The same in several words: `borrowing limit for ... exceeded`,
/// `Workload no longer fits after ...`.
const PHRASES_OF_KUEUE: [&str; 2] = ["borrowing limit for ", "no longer fits"];

/// Whether the message of a condition says that there is too little quota: names in it do not.
pub(crate) fn speaks_of_quota(condition: &str, message: &str) -> bool {
    let message = message.to_lowercase();
    let mut words = message.split_whitespace().map(|word| word.trim_matches([':', ',', '.', ';']));
    match condition {
        QUOTA_RESERVED => {
            words.any(|word| OF_KUEUE.contains(&word))
                || PHRASES_OF_KUEUE.iter().any(|phrase| message.contains(phrase))
        }
        _ => message.contains(USED_UP),
    }
}

/// A quota, as far as the server says how much of it is used.
#[derive(Clone)]
pub struct QuotaRoom {
    pub(super) name: String,
    /// What is left, by resource as written: CPU in thousandths, all else in whole units.
    pub(super) left: BTreeMap<String, i64>,
    /// Resources that it limits, as written, counted or not.
    pub(super) limited: Vec<String>,
    /// It is for pods that are in all of these.
    scopes: Vec<QuotaScope>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Whole<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    spec: Spec<'a>,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(deserialize_with = "nullable")]
    hard: BTreeMap<String, JsonQuantity>,
    #[serde(borrow, deserialize_with = "nullable")]
    scopes: Vec<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "nullable")]
    scope_selector: Selector<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    hard: Option<BTreeMap<String, JsonQuantity>>,
    #[serde(deserialize_with = "nullable")]
    used: BTreeMap<String, JsonQuantity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    match_expressions: Vec<ScopeJson<'a>>,
}

impl QuotaRoom {
    /// Reads a quota; of what the server has not counted nothing is known.
    ///
    /// # Errors
    /// If a field has another shape than it should.
    pub(in crate::facts) fn read(raw: &RawObject<'_>) -> Result<Self, Skipped> {
        let Whole { spec, status } = lenient(raw)?;
        let hard = status.hard.unwrap_or(spec.hard);
        let limited = hard.keys().cloned().collect();
        let left = hard.into_iter().filter_map(|(name, hard)| {
            let used = status.used.get(&name)?;
            let amount = |amount: &JsonQuantity| match counted(&name) {
                "cpu" => amount.0.to_milli(),
                _ => amount.0.to_units(),
            };
            let left = amount(&hard).saturating_sub(amount(used));
            Some((name, left))
        });
        let named = spec.scopes.iter().map(|name| QuotaScope::named(name));
        let selected = spec.scope_selector.match_expressions.into_iter().map(ScopeJson::read);
        let (left, scopes) = (left.collect(), named.chain(selected).collect());
        Ok(Self { name: raw.name.to_owned(), left, limited, scopes })
    }

    pub(super) fn is_for(&self, pod: &ScopedPod) -> bool {
        self.scopes.iter().all(|scope| scope.holds(pod))
    }

    /// How many more pods it lets in that ask for so much each; `None` if it limits nothing of
    /// that.
    fn pods(&self, requests: &Resources) -> Option<u64> {
        let pods = self.left.iter().filter_map(|(name, left)| {
            let asked = asked(name, requests, &BTreeMap::new());
            (asked > 0).then(|| (*left).max(0).unsigned_abs() / asked.unsigned_abs())
        });
        pods.min()
    }
}

/// How much of a resource of a quota a pod takes that asks for this and has these limits.
pub(super) fn asked(name: &str, requests: &Resources, limits: &BTreeMap<String, i64>) -> i64 {
    if let Some(limited) = name.strip_prefix("limits.") {
        return limits.get(limited).copied().unwrap_or(0);
    }
    match name {
        "count/pods" | "pods" => 1,
        name => match counted(name) {
            "cpu" => requests.cpu_milli,
            "memory" => requests.memory_bytes,
            "ephemeral-storage" => requests.ephemeral_bytes,
            name => requests.extended.get(name).copied().unwrap_or(0),
        },
    }
}

/// What a resource of a quota is of.
pub(super) fn counted(name: &str) -> &str {
    name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name)
}

/// How many more pods all quotas of a namespace let in; `None` if none of them limits what they ask
/// for.
pub(super) fn room(quotas: &[QuotaRoom], requests: &Resources, pod: &ScopedPod) -> Option<u64> {
    quotas.iter().filter(|quota| quota.is_for(pod)).filter_map(|quota| quota.pods(requests)).min()
}
