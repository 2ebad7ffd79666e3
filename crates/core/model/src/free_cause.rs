//! Why a GPU is free, by name. How a cause is found is defined where capacity is judged, in
//! `core/capacity`.

use serde::{Deserialize, Serialize};

/// Why something is free; `core/capacity` defines what each means. The first that applies is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FreeCause {
    /// The node is cordoned or draining.
    DrainingOrCordoned = 0,
    /// The node is coming up.
    Starting,
    /// A reservation keeps it, or the order keeps it for the head of the line.
    Reserved,
    /// Taints, labels or names keep away what waits.
    Taint,
    /// What waits may not use this model.
    TypeMismatch,
    /// Spread, affinity or a required level keeps away what waits.
    Topology,
    /// Too little CPU is left beside it.
    StrandedByCpu,
    /// Too little memory is left beside it.
    StrandedByMemory,
    /// Too little of something else is left beside it.
    StrandedByOther,
    /// The free pieces are too small or too few.
    Fragmented,
    /// A pod would fit, its whole gang does not.
    GangShort,
    /// A queue or a quota is at its limit.
    Quota,
    /// Nothing waits for it.
    NoDemand,
    /// Its GPU is cut into MIG instances that leave it over: nobody can ask for it. It stands last
    /// because recordings hold arrays in this order.
    LayoutRest,
}

const CAUSES: usize = 14;

impl FreeCause {
    /// All causes in the order in which they are looked at.
    pub const ALL: [Self; CAUSES] = [
        Self::DrainingOrCordoned,
        Self::Starting,
        Self::Reserved,
        Self::Taint,
        Self::TypeMismatch,
        Self::Topology,
        Self::StrandedByCpu,
        Self::StrandedByMemory,
        Self::StrandedByOther,
        Self::Fragmented,
        Self::GangShort,
        Self::Quota,
        Self::NoDemand,
        Self::LayoutRest,
    ];

    /// The causes that rest on waiting demand, the one nearest to starting first.
    pub const OF_DEMAND: [Self; 10] = [
        Self::Reserved,
        Self::Quota,
        Self::GangShort,
        Self::Fragmented,
        Self::StrandedByOther,
        Self::StrandedByMemory,
        Self::StrandedByCpu,
        Self::Topology,
        Self::TypeMismatch,
        Self::Taint,
    ];

    /// Name as in every output, for example `stranded_by_cpu`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DrainingOrCordoned => "draining_or_cordoned",
            Self::Starting => "starting",
            Self::Reserved => "reserved",
            Self::Taint => "taint",
            Self::TypeMismatch => "type_mismatch",
            Self::Topology => "topology",
            Self::StrandedByCpu => "stranded_by_cpu",
            Self::StrandedByMemory => "stranded_by_memory",
            Self::StrandedByOther => "stranded_by_other",
            Self::Fragmented => "fragmented",
            Self::GangShort => "gang_short",
            Self::Quota => "quota",
            Self::NoDemand => "no_demand",
            Self::LayoutRest => "layout_rest",
        }
    }

    /// Whether free time of this cause is waste.
    pub fn is_waste(self) -> bool {
        !matches!(self, Self::Reserved | Self::Starting)
    }

    /// Whether work waits that would use the time, were this out of its way.
    pub fn is_of_demand(self) -> bool {
        Self::OF_DEMAND.contains(&self)
    }
}
