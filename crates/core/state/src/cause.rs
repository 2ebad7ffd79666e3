//! Why a node cannot take a pod, and what kind of event could change that.

use serde::{Deserialize, Serialize};

use crate::holdings::HoldingRecord;

/// The first thing that keeps a pod off a node, in the order in which things are looked at: the
/// order of kube-scheduler's default filters, with what it does not know put where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// Nothing does.
    None = 0,
    NotReady,
    /// The node is coming up.
    Starting,
    /// The node is cordoned or draining.
    Cordoned,
    /// The pod may use other nodes only, by name.
    NodeName,
    /// The node is marked unschedulable, and that is not tolerated.
    Unschedulable,
    Taint,
    /// The pod's node selector or node affinity does not match.
    NodeAffinity,
    /// A host port is in use.
    HostPort,
    /// More is held of the node's devices than there is: they are given to nobody until that has
    /// healed.
    Overcommitted,
    /// No device of an allowed model, or with enough memory.
    Model,
    /// No pod slot free.
    PodSlots,
    /// Too little CPU free.
    Cpu,
    /// Too little memory free.
    Memory,
    /// Too little ephemeral storage free.
    Ephemeral,
    /// Too little of an extended resource free.
    Extended,
    /// Too little free on the devices, or in too small pieces.
    Device,
    /// A disk is in use on the node.
    DiskConflict,
    /// A claim for one pod only is in use.
    ReadWriteOncePod,
    /// The driver of a volume is not there.
    VolumeDriver,
    /// Too many volumes would be attached.
    VolumeLimit,
    /// A volume cannot be reached from the node.
    VolumeNodeAffinity,
    /// A volume could not be made for the node.
    StorageTopology,
    /// Too little storage is left for a volume.
    StorageCapacity,
    /// A volume is in another zone.
    VolumeZone,
    /// The label of a spread constraint is missing.
    SpreadLabel,
    Spread,
    /// An affinity of the pod to others.
    Affinity,
    /// An anti-affinity of the pod to others.
    AntiAffinity,
    /// An anti-affinity of others to the pod.
    ExistingAntiAffinity,
    /// Devices that the pod's claims ask for are not there, or not free.
    DeviceClaims,
    /// A feature that the node does not declare.
    DeclaredFeatures,
    /// GPUs that pods of another class or namespace share, or that do not admit the pod's class.
    SharedGpus,
}

/// Number of causes, [`Cause::None`] included.
pub const CAUSES: usize = 33;

impl Cause {
    /// Whether it keeps a pod off a node whoever leaves it.
    pub const fn outlasts_everybody(self) -> bool {
        matches!(
            self,
            Self::NotReady
                | Self::Starting
                | Self::Cordoned
                | Self::NodeName
                | Self::Unschedulable
                | Self::Taint
                | Self::NodeAffinity
                | Self::Model
        )
    }

    /// All causes in order.
    pub const ALL: [Self; CAUSES] = [
        Self::None,
        Self::NotReady,
        Self::Starting,
        Self::Cordoned,
        Self::NodeName,
        Self::Unschedulable,
        Self::Taint,
        Self::NodeAffinity,
        Self::HostPort,
        Self::Overcommitted,
        Self::Model,
        Self::PodSlots,
        Self::Cpu,
        Self::Memory,
        Self::Ephemeral,
        Self::Extended,
        Self::Device,
        Self::DiskConflict,
        Self::ReadWriteOncePod,
        Self::VolumeDriver,
        Self::VolumeLimit,
        Self::VolumeNodeAffinity,
        Self::StorageTopology,
        Self::StorageCapacity,
        Self::VolumeZone,
        Self::SpreadLabel,
        Self::Spread,
        Self::Affinity,
        Self::AntiAffinity,
        Self::ExistingAntiAffinity,
        Self::DeviceClaims,
        Self::DeclaredFeatures,
        Self::SharedGpus,
    ];

    /// [`Option::None`] for [`Cause::None`].
    #[inline]
    pub fn into_option(self) -> Option<Self> {
        (self != Self::None).then_some(self)
    }
}

/// What counted pods can be the reason of.
const RULES: [Cause; 9] = [
    Cause::HostPort,
    Cause::DiskConflict,
    Cause::ReadWriteOncePod,
    Cause::Spread,
    Cause::Affinity,
    Cause::AntiAffinity,
    Cause::ExistingAntiAffinity,
    Cause::DeviceClaims,
    Cause::SharedGpus,
];

/// Nodes per cause for one shape.
pub type CauseCounts = [u32; CAUSES];

/// A set of causes that an event may have removed somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Help(u64);

impl Help {
    /// Nothing helps.
    pub const NONE: Self = Self(0);
    /// Anything may have become better.
    pub const ALL: Self = Self(!(1 << 60));
    /// Quota was given back.
    pub const QUOTA: Self = Self(1 << 63);
    /// Something was placed: a search that does not try everything may choose otherwise and
    /// succeed.
    pub const HELD: Self = Self(1 << 62);
    /// A node came or changed: that may help whatever the cause, also where there was no node at
    /// all.
    pub const NODES: Self = Self(1 << 61);
    /// The last cycle did not search for all who might stop others.
    pub const SEARCH: Self = Self(1 << 60);
    /// What is reserved for others may be lent until later. No class sleeps for that alone: those
    /// that room can be lent to are asked.
    pub const LENT: Self = Self(1 << 59);
    /// A job started in room that was kept for it until others had left: who counted on the same
    /// room may have to preempt others now, on any node.
    pub const CLAIM_USED: Self = Self(1 << 58);
    /// Anything that frees something.
    pub const FREED: Self = Self(!(1 << 62 | 1 << 60));

    /// As plain data.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From plain data.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What helps against one cause.
    pub fn against(cause: Cause) -> Self {
        Self(1 << cause as u8)
    }

    /// What helps against every cause that rests on counted pods.
    pub fn against_rules() -> Self {
        RULES.into_iter().fold(Self::NONE, |help, cause| help | Self::against(cause))
    }

    /// What somebody who leaves a node could help against.
    const BY_LEAVING: Self = {
        let (mut bits, mut at) = (0, 0);
        while at < CAUSES {
            let cause = Cause::ALL[at];
            if !matches!(cause, Cause::None) && !cause.outlasts_everybody() {
                bits |= 1 << cause as u8;
            }
            at += 1;
        }
        Self(bits)
    };

    /// Whether somebody who leaves a node could help.
    pub fn is_given_by_leaving(self) -> bool {
        self.meets(Self::BY_LEAVING)
    }

    /// The same once others may have taken what was freed, or once less was freed than is lacking:
    /// whatever somebody holds may be in the way by now. Nothing more where nobody who leaves could
    /// help.
    #[must_use]
    pub fn with_others(self) -> Self {
        match self.is_given_by_leaving() {
            true => self | Self::BY_LEAVING,
            false => self,
        }
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

    /// What a new holding can help against: if it is counted, rules that want counted pods; if it
    /// attached volumes beyond the limit, those volumes are there for others.
    pub fn of_hold(record: &HoldingRecord) -> Self {
        let mut help = Self::HELD;
        if !record.counts_into.is_empty() {
            help |= Self::against(Cause::Spread) | Self::against(Cause::Affinity);
        }
        if !record.attachments.is_empty() {
            help |= Self::against(Cause::VolumeLimit);
        }
        help
    }

    /// What a freed holding can help against: any amount it held, over-commitment, and rules if
    /// counted.
    pub fn of_release(record: &HoldingRecord) -> Self {
        let amounts = [
            (record.amounts.cpu_milli, Cause::Cpu),
            (record.amounts.memory_bytes, Cause::Memory),
            (record.amounts.ephemeral_bytes, Cause::Ephemeral),
            (record.amounts.pod_slots, Cause::PodSlots),
            (record.amounts.extended.len() as i64, Cause::Extended),
            (record.devices.len() as i64, Cause::Device),
            (record.attachments.len() as i64, Cause::VolumeLimit),
        ];
        let mut help = Self::against(Cause::Overcommitted);
        help |= Self::QUOTA;
        for (amount, cause) in amounts {
            if amount != 0 {
                help |= Self::against(cause);
            }
        }
        if !record.counts_into.is_empty() {
            help |= Self::against_rules();
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
