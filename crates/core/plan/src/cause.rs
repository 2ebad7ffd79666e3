//! Why a node cannot take a pod, and what kind of event could change that.

use serde::{Deserialize, Serialize};

use crate::state::holdings::HoldingRecord;

/// The first thing that keeps a pod off a node, in the order in which things are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// Nothing does.
    None = 0,
    /// The node is not ready.
    NotReady,
    /// The node is coming up.
    Starting,
    /// The node is cordoned or draining.
    Cordoned,
    /// A taint is not tolerated.
    Taint,
    /// Labels or name do not match.
    Selector,
    /// The node holds more than it has: it takes nothing until that has healed.
    Overcommitted,
    /// No device of an allowed model, or with enough memory.
    Model,
    /// Too little CPU free.
    Cpu,
    /// Too little memory free.
    Memory,
    /// Too little ephemeral storage free.
    Ephemeral,
    /// No pod slot free.
    PodSlots,
    /// Too little of an extended resource free.
    Extended,
    /// Too little free on the devices, or in too small pieces.
    Device,
    /// A spread or affinity rule.
    Rule,
}

/// Number of causes, [`Cause::None`] included.
pub const CAUSES: usize = 15;

impl Cause {
    /// All causes in order.
    pub const ALL: [Self; CAUSES] = [
        Self::None,
        Self::NotReady,
        Self::Starting,
        Self::Cordoned,
        Self::Taint,
        Self::Selector,
        Self::Overcommitted,
        Self::Model,
        Self::Cpu,
        Self::Memory,
        Self::Ephemeral,
        Self::PodSlots,
        Self::Extended,
        Self::Device,
        Self::Rule,
    ];
}

/// Nodes per cause for one shape.
pub type CauseCounts = [u32; CAUSES];

/// A set of causes that an event may have removed somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Help(u32);

impl Help {
    /// Nothing helps.
    pub const NONE: Self = Self(0);
    /// Anything may have become better.
    pub const ALL: Self = Self(u32::MAX);
    /// Quota was given back.
    pub const QUOTA: Self = Self(1 << 31);
    /// Something was placed: a search that does not try everything may choose otherwise and succeed.
    pub const HELD: Self = Self(1 << 30);
    /// A node came or changed: that may help whatever the cause, also where there was no node at all.
    pub const NODES: Self = Self(1 << 29);
    /// Anything that frees something.
    pub const FREED: Self = Self(!(1 << 30));

    /// As plain data.
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    /// From plain data.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits as u32)
    }

    /// What helps against one cause.
    pub fn against(cause: Cause) -> Self {
        Self(1 << cause as u8)
    }

    /// Whether any of the two sets' causes is in both.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What could help a shape that no node can take: the causes it is refused for.
    pub fn wanted(counts: &CauseCounts) -> Self {
        let mut help = Self::NODES;
        for cause in Cause::ALL {
            if cause != Cause::None && counts[cause as usize] > 0 {
                help |= Self::against(cause);
            }
        }
        help
    }

    /// What a new holding can help against: rules that want counted pods, if it is counted.
    pub(crate) fn of_hold(record: &HoldingRecord) -> Self {
        match record.counts_into.is_empty() {
            true => Self::HELD,
            false => Self::HELD | Self::against(Cause::Rule),
        }
    }

    /// What a freed holding can help against: any amount it held, over-commitment, and rules if counted.
    pub(crate) fn of_release(record: &HoldingRecord) -> Self {
        let amounts = [
            (record.amounts.cpu_milli, Cause::Cpu),
            (record.amounts.memory_bytes, Cause::Memory),
            (record.amounts.ephemeral_bytes, Cause::Ephemeral),
            (record.amounts.pod_slots, Cause::PodSlots),
            (record.amounts.extended.len() as i64, Cause::Extended),
            (record.devices.len() as i64, Cause::Device),
            (record.counts_into.len() as i64, Cause::Rule),
        ];
        let mut help = Self::against(Cause::Overcommitted);
        help |= Self::QUOTA;
        for (amount, cause) in amounts {
            if amount != 0 {
                help |= Self::against(cause);
            }
        }
        help
    }
}

impl std::ops::BitOrAssign for Help {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl std::ops::BitOr for Help {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
