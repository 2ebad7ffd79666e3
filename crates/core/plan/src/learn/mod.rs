//! What a learning policy learns: which pods arrive, and what the cluster offers.
//!
//! [`Learnt`] is everything: plain integers that can be written down and read again. A version of it is
//! published at deterministic points only; scores read the published part and nothing else.

pub(crate) mod histogram;
pub(crate) mod supply;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use histogram::{CHECK_EVERY, HALF_LIFE_ARRIVALS, PodKind};

use crate::learn::histogram::Histogram;
use crate::learn::supply::Supply;
use crate::state::State;
use crate::state::shapes::ShapeId;

/// Fixed-point one: weights and shares have 20 fractional bits.
pub(crate) const ONE: i64 = 1 << 20;

/// Everything a learning policy knows. The default knows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learnt {
    /// Number of the published version; 0 before the first.
    pub(crate) version: u64,
    /// Arrivals, counted and faded.
    pub(crate) histogram: Histogram,
    /// Shares of the published version, in 2^-20.
    #[serde(with = "as_pairs")]
    pub(crate) shares: BTreeMap<PodKind, i64>,
    /// Kinds of the published version in the order of their first arrival.
    pub(crate) order: Vec<PodKind>,
    /// What the cluster offered when the version was published.
    pub(crate) supply: Supply,
    /// State of the node table that the supply was read from; `None` after a restart.
    #[serde(skip)]
    supply_read_at: Option<u64>,
}

impl Learnt {
    /// The same for another engine: its node table has versions of its own.
    pub(crate) fn for_another_engine(&self) -> Self {
        Self { supply_read_at: None, ..self.clone() }
    }

    /// Counts arriving pods of a shape.
    pub(crate) fn observe(&mut self, state: &State, shape: ShapeId, pods: u32) {
        let requirement = &state.shapes.get(shape).requirement;
        self.histogram.add(PodKind::of(requirement), pods);
    }

    /// Publishes a version if it is time to and the shares moved enough.
    pub(crate) fn publish(&mut self, state: &State) -> bool {
        let Some(shares) = self.histogram.shares_to_publish(&self.shares) else { return false };
        self.shares = shares;
        self.order = self.histogram.order();
        let nodes_now = state.nodes.static_versions();
        if self.supply_read_at != Some(nodes_now) {
            self.supply = Supply::of(state);
            self.supply_read_at = Some(nodes_now);
        }
        self.version += 1;
        true
    }

    /// The common kinds of the published version with weights in 2^-20, the most common first.
    pub(crate) fn mix(&self) -> Vec<(PodKind, i64)> {
        histogram::common_kinds(&self.shares, &self.order)
    }

    /// The published version as named integers, for the event log.
    pub(crate) fn published_values(&self) -> Vec<(String, i64)> {
        let mut values: Vec<(String, i64)> =
            self.shares.iter().map(|(kind, share)| (kind.to_string(), *share)).collect();
        values.extend(self.supply.values());
        values
    }
}

/// Maps with keys that are no text, as lists of pairs.
mod as_pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PodKind;

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<PodKind, i64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<BTreeMap<PodKind, i64>, D::Error> {
        Ok(Vec::<(PodKind, i64)>::deserialize(deserializer)?.into_iter().collect())
    }
}
