//! What a learning policy learns: which pods arrive, how long they run, what the cluster offers,
//! and how much of each GPU model is in use.
//!
//! [`Learnt`] is everything: plain integers that can be written down and read again. A version of
//! it is published at deterministic points only; scores read the published part and nothing else.

mod file;
pub(crate) mod histogram;
pub(crate) mod in_use;
mod limits;
pub(crate) mod mix;
pub(crate) mod supply;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use file::{LearntFile, LearntFileError};
pub use histogram::{CHECK_EVERY, HALF_LIFE_ARRIVALS, PodKind};
pub use limits::LearntError;

use crate::learn::histogram::{Histogram, Shares, distance};
use crate::learn::in_use::{InUse, is_other_use};
use crate::learn::supply::LearnedSupply;
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// Fixed-point one: weights and shares have 20 fractional bits.
pub(crate) const ONE: i64 = 1 << 20;
/// Movement of the shares that makes a new version: 2%.
const PUBLISH_ABOVE: i64 = ONE / 50;
/// From this share of ended pods on, jobs are taken to come and go: a fifth.
const STEADY_FROM: i64 = ONE / 5;

/// Everything a learning policy knows. The default knows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learnt {
    /// Number of the published version; 0 before the first.
    pub(crate) version: u64,
    /// Arrivals and ends, counted and faded.
    pub(crate) histogram: Histogram,
    /// Shares of the published version among the arrivals, in 2^-20.
    #[serde(with = "as_pairs")]
    pub(crate) shares: Shares,
    /// Shares of the published version in the GPU-time asked for, in 2^-20.
    #[serde(with = "as_pairs")]
    pub(crate) gpu_time: Shares,
    /// How far jobs come and go, in eighths: 0 where nothing ends, 8 from [`STEADY_FROM`] on.
    pub(crate) turnover: i64,
    /// Kinds of the published version in the order of their first arrival.
    pub(crate) order: Vec<PodKind>,
    /// What the cluster offered when the version was published.
    pub(crate) supply: LearnedSupply,
    /// Share of each GPU model in use when the version was published, in 2^-20.
    pub(crate) in_use: BTreeMap<String, i64>,
    /// State of the node table that the supply was read from; `None` after a restart.
    #[serde(skip)]
    supply_read_at: Option<u64>,
}

/// [`Learnt::turnover`] where jobs come and go.
pub(crate) const STEADY: i64 = 8;

impl Learnt {
    /// The same for another engine: its node table has versions of its own.
    pub fn for_another_engine(&self) -> Self {
        Self { supply_read_at: None, ..self.clone() }
    }

    /// Counts arriving pods of a shape.
    pub(crate) fn observe(&mut self, state: &State, shape: ShapeId, pods: u32) {
        let requirement = &state.shapes.get(shape).requirement;
        self.histogram.add(PodKind::of(requirement), pods);
    }

    /// Counts a pod of a shape that ended after it ran for so long.
    pub(crate) fn observe_end(&mut self, state: &State, shape: ShapeId, ran_ms: u64) {
        let requirement = &state.shapes.get(shape).requirement;
        self.histogram.add_end(&PodKind::of(requirement), ran_ms);
    }

    /// Publishes a version if it is time to and something moved enough.
    pub(crate) fn publish(&mut self, state: &State) -> bool {
        if !self.histogram.check() {
            return false;
        }
        let turnover = (self.histogram.ended() * STEADY / STEADY_FROM).min(STEADY);
        let (shares, gpu_time) = (self.histogram.shares(), self.histogram.gpu_time_shares());
        let moved = |now: &Shares, published: &Shares| distance(now, published) > PUBLISH_ABOVE;
        let is_news = turnover != self.turnover
            || moved(&shares, &self.shares)
            || (turnover > 0 && moved(&gpu_time, &self.gpu_time));
        if !is_news {
            return false;
        }
        (self.shares, self.gpu_time, self.turnover) = (shares, gpu_time, turnover);
        self.order = self.histogram.order();
        let nodes_now = state.nodes.static_versions();
        if self.supply_read_at != Some(nodes_now) {
            self.supply = LearnedSupply::of(state);
            self.supply_read_at = Some(nodes_now);
        }
        self.version += 1;
        true
    }

    /// Publishes how much of each model is in use, where jobs come and go, pods name models, and it
    /// moved by a sixteenth of a model. Called between decisions.
    pub(crate) fn publish_use(&mut self, in_use: &mut InUse, state: &State) -> bool {
        let names_models = |kind: &PodKind| !kind.gpu_models.is_empty();
        if self.turnover == 0 || !self.gpu_time.keys().any(names_models) {
            return false;
        }
        let shares = in_use.shares(state);
        if !is_other_use(&shares, &self.in_use) {
            return false;
        }
        self.in_use = shares;
        self.version += 1;
        true
    }

    /// The published version as named integers, for the event log.
    pub(crate) fn published_values(&self) -> Vec<(String, i64)> {
        let mut values: Vec<(String, i64)> =
            self.shares.iter().map(|(kind, share)| (kind.to_string(), *share)).collect();
        if self.turnover > 0 {
            let of = |(kind, share): (&PodKind, &i64)| (format!("gpu-time {kind}"), *share);
            values.extend(self.gpu_time.iter().map(of));
        }
        values.push(("turnover".to_owned(), self.turnover));
        values.extend(self.in_use.iter().map(|(model, share)| (format!("in use {model}"), *share)));
        values.extend(self.supply.values());
        values
    }
}

/// Maps with keys that are no text, as lists of pairs.
mod as_pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{PodKind, Shares};

    pub(super) fn serialize<S: Serializer>(map: &Shares, serializer: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Shares, D::Error> {
        Ok(Vec::<(PodKind, i64)>::deserialize(deserializer)?.into_iter().collect())
    }
}
