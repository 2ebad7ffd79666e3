//! Pods that somebody waits for and that nobody has made: of what is suspended, of what a quota
//! keeps from being made, and of Kueue's workloads that are not admitted.
//!
//! They are worked out when all objects are read, since each may stand for the same pods as another
//! one: a JobSet for those of its Jobs, a workload of Kueue for those of the Job that it is about.
//! The nearest object that makes pods counts; what is there counts itself.

pub(super) mod admission;
mod children;
mod kueue;
mod missing;
pub(crate) mod quota;
mod read;
pub(crate) mod replaced;
mod scopes;
mod sets;
mod settle;

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_facts::ObjectRef;
use dovetail_model::Toleration;
use dovetail_objects::Pod;

use super::claims::ClaimOf;
use admission::Admission;
use kueue::KueueWorkload;
use scopes::ScopedPod;
pub(super) use settle::settle;

/// Namespace and name.
type Key = (Box<str>, Box<str>);

/// The label by which something asks for a queue of Kueue.
pub(super) const QUEUE_LABEL: &str = labels::KUEUE_QUEUE;

/// A pod that nobody has made.
pub(super) struct UnmadePod {
    pub(super) pod: Pod,
    /// What would make it.
    pub(super) maker: ObjectRef,
    /// Resource claims that it would refer to.
    pub(super) claims: Vec<ClaimOf>,
    /// Whether the GPUs that it waits for are asked of them, or of device classes.
    pub(super) wants_claimed: bool,
    pub(super) fate: Fate,
    /// Since when there is no quota for it; `None` if there is, or if nobody knows.
    pub(super) short_since_ms: Option<u64>,
}

/// What keeps a pod from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its owner is held back: it would be made, and whether it then starts is for nodes to say.
    HeldBack,
    /// There is no quota for it.
    WaitsForQuota,
    /// The server refuses it, for something else than a quota.
    Refused,
}

/// What waits beside pods that are there.
#[derive(Default)]
pub(super) struct UnmadeWork {
    /// Pods that nobody has made.
    pub(super) pods: Vec<UnmadePod>,
    /// Pods that are there, and that Kueue keeps back until there is quota for them, with since
    /// when; `None` if nobody knows.
    pub(super) kept_for_quota: BTreeMap<Key, Option<u64>>,
    /// Whether something names a queue of Kueue.
    pub(super) names_a_queue: bool,
    /// What is added to them when they are created or admitted.
    pub(super) admission: Admission,
}

/// What is kept of objects that make pods, until all are read.
#[derive(Default)]
pub(super) struct Unmade {
    makers: BTreeMap<ObjectRef, Maker>,
    workloads: BTreeMap<ObjectRef, KueueWorkload>,
    /// Tolerations of Kueue's flavors, by the name of the flavor.
    flavors: BTreeMap<String, Vec<Toleration>>,
    /// Of Jobs that a JobSet made: the JobSet, and which of its replicated Jobs each is of.
    of_job_sets: BTreeMap<ObjectRef, (ObjectRef, String)>,
    names_a_queue: bool,
}

/// An object that makes pods of which some are not there.
struct Maker {
    why: Why,
    sets: Vec<PodSet>,
}

/// Why pods are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Suspended,
    /// It wants more pods than there are.
    Short {
        /// How many it says there are.
        present: u64,
        says: Says,
        /// Since when the server refuses them; `None` if it does not, or if nobody knows.
        since_ms: Option<u64>,
    },
}

/// What an object says of why the server makes it no pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    /// They are refused, and nobody says for what.
    Refused,
    /// They are refused for a quota.
    NoQuota,
    /// They are refused for something else.
    SomethingElse,
}

/// Pods from one template.
#[derive(Clone)]
struct PodSet {
    /// Its name; empty where there is one alone.
    name: String,
    /// Jobs, hosts or replicas that it is made of.
    parts: u64,
    pods_each: u64,
    pod: Pod,
    claims: Vec<ClaimOf>,
    scoped: ScopedPod,
}

impl PodSet {
    fn pods(&self) -> u64 {
        self.parts.saturating_mul(self.pods_each)
    }
}
