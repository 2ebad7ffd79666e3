//! What can be wrong with a plan, with everything needed to see it by hand.

use dovetail_model::{Axis, ConditionCause, JobId, NodeAvailability, NodeName, PodId, QueueName};
use thiserror::Error;

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// An action speaks of a job that was never submitted or is over.
    #[error("job {job} is not known")]
    UnknownJob { job: JobId },
    /// A pod of a job that already runs, or was told to wait after it started.
    #[error("job {job} is not pending: its pods must start in one plan")]
    NotWaiting { job: JobId },
    /// The job has no such pod set.
    #[error("pod {pod}: its job has only {pod_sets} pod sets")]
    UnknownPodSet {
        pod: PodId,
        /// Pod sets of the job.
        pod_sets: usize,
    },
    /// A job that runs, or that must not stop others, stops some.
    #[error("job {job} preempts others, but already runs or must not preempt")]
    MustNotPreempt { job: JobId },
    /// Room that is kept for others is taken by a job that must not.
    #[error(
        "job {job} takes the reservation {name}, which is not for a lower priority, or the job may \
         not take reservations"
    )]
    RoomTaken {
        job: JobId,
        /// Under which name the room was held.
        name: String,
    },
    /// Room that is kept for others is given up for a job that starts without it as well, at the
    /// same places.
    #[error("job {job} takes the reservation {name} but does not need it")]
    RoomNotNeeded {
        job: JobId,
        /// Under which name the room was held.
        name: String,
    },
    /// A pod is stopped that must not be.
    #[error("pod {pod} is preempted for job {job}: {problem:?}")]
    Victim {
        /// For whom.
        job: JobId,
        pod: PodId,
        problem: VictimProblem,
    },
    /// Pods are stopped for a job that does not start by that.
    #[error("pods are preempted for job {job} without effect: {problem}")]
    InVain {
        /// For whom.
        job: JobId,
        /// What still speaks against it.
        problem: String,
    },
    /// A pod takes what is kept for a job of its priority or a higher one.
    #[error("pod {pod} takes {axis} of node {node} that are reserved for others")]
    TakesWhatIsKept { pod: PodId, node: NodeName, axis: String },
    /// What is reserved for a job that is next will not be there, or is more than it may be.
    #[error("the reservation of job {job}: {problem}")]
    Reservation {
        /// For whom.
        job: JobId,
        problem: String,
    },
    /// What is booked will not be there at its time, is used by others, or is lent too far.
    #[error("booking {name}: {problem}")]
    Booking { name: String, problem: String },
    /// A job takes of its queue what is kept for one of its priority or a higher one.
    #[error(
        "job {job} raises queue {queue} to {used} {axis}, with {kept} more reserved for others: it may use {most}"
    )]
    TakesKeptQuota {
        job: JobId,
        /// The queue: the job's own or one above.
        queue: QueueName,
        axis: Axis,
        /// Held with the job, in the unit of the axis.
        used: i64,
        /// Kept beyond that for others.
        kept: i64,
        /// The most it may hold.
        most: i64,
    },
    /// The same pod twice.
    #[error("pod {pod} is bound or allocated twice, last on node {node}")]
    HeldTwice {
        pod: PodId,
        /// The second node.
        node: NodeName,
    },
    #[error("pod {pod} is bound to node {node}, which does not exist")]
    UnknownNode { pod: PodId, node: NodeName },
    /// The node takes nothing new.
    #[error("pod {pod} is bound to node {node}, which is {condition:?} or in its drain window")]
    Closed { pod: PodId, node: NodeName, condition: NodeAvailability },
    /// A taint the pod does not tolerate.
    #[error("pod {pod} is bound to node {node} and does not tolerate its taint {taint}")]
    Taint { pod: PodId, node: NodeName, taint: String },
    /// The name does not match.
    #[error("pod {pod} is bound to node {node}, which its node names exclude")]
    Selector { pod: PodId, node: NodeName },
    /// Labels or name do not satisfy a condition.
    #[error("pod {pod} is bound to node {node}, which a condition of its {cause:?} excludes")]
    Condition { pod: PodId, node: NodeName, cause: ConditionCause },
    /// Too many volumes are attached.
    #[error(
        "with pod {pod} node {node} has {after} volumes attached that count for {limit}, and {most} are allowed"
    )]
    Volumes {
        pod: PodId,
        node: NodeName,
        limit: String,
        /// Volumes with the pod.
        after: i64,
        /// The limit.
        most: i64,
    },
    /// More was already held of the devices than there is: they are given to nobody until that has
    /// healed.
    #[error("pod {pod} is bound to node {node}, which is over-committed in {axis}: {free} is free")]
    Overcommitted {
        pod: PodId,
        node: NodeName,
        /// What it has too little of.
        axis: String,
        /// What is free, in the unit of the axis.
        free: i64,
    },
    /// Too little is free on the node.
    #[error("pod {pod} on node {node} requests {asked} of {axis}, but {free} is free")]
    Amount {
        pod: PodId,
        node: NodeName,
        axis: String,
        /// Asked, in the unit of the axis.
        asked: i64,
        /// Free before.
        free: i64,
    },
    /// Too little is free on a device.
    #[error(
        "pod {pod} on device {index} of node {node} requests {asked} of {axis}, but {free} is free"
    )]
    DeviceAmount {
        pod: PodId,
        node: NodeName,
        /// The device, 0 for the pool of a node with counted devices.
        index: u16,
        axis: String,
        /// Asked, in the unit of the axis.
        asked: i64,
        /// Free before.
        free: i64,
    },
    /// A device that the pod cannot have, or in a way it cannot be had.
    #[error("pod {pod} gets device {index} of node {node}: {problem}")]
    Device { pod: PodId, node: NodeName, index: u16, problem: DeviceProblem },
    /// Not as many devices as asked for.
    #[error("pod {pod} gets {got} devices of node {node} but requests {asked}")]
    DeviceCount {
        pod: PodId,
        node: NodeName,
        /// Devices in the action.
        got: usize,
        asked: usize,
    },
    /// A spread or affinity rule.
    #[error("pod {pod} on node {node} breaks rule {rule}: {counts}")]
    Rule {
        pod: PodId,
        node: NodeName,
        rule: String,
        /// The counts it was judged by.
        counts: String,
    },
    /// A job started with too few or too many pods.
    #[error("job {job} starts with {pods} pods in set {pod_set}, which takes {min} to {max}")]
    GangSize {
        job: JobId,
        pod_set: usize,
        /// Pods started.
        pods: usize,
        min: u32,
        max: u32,
    },
    /// Pods of a set are not numbered from 0 without gaps.
    #[error("job {job} starts pod set {pod_set} with the ordinals {ordinals:?}")]
    Ordinals { job: JobId, pod_set: usize, ordinals: Vec<u32> },
    /// Pods that must share a domain do not.
    #[error("job {job} must be in one domain of level {level} and is in {domains:?}")]
    Level {
        job: JobId,
        level: String,
        /// Domains its pods are in; a node without the labels has an empty name.
        domains: Vec<Vec<String>>,
    },
    /// A queue holds more than it may.
    #[error("job {job} raises queue {queue} to {used} {axis}, but it may use {most}")]
    Quota {
        job: JobId,
        /// The queue at fault: the job's own or one above.
        queue: QueueName,
        axis: Axis,
        /// Held with the job, in the unit of the axis.
        used: i64,
        /// The most it may hold.
        most: i64,
    },
    /// A node is gone and a job that ran there was not given up.
    #[error("job {job} ran on a node that is gone but is not reported as lost")]
    NotGivenUp { job: JobId },
    /// A job was given up without a reason.
    #[error("job {job} is reported as lost but lost no node")]
    GivenUpWrongly { job: JobId },
    /// Something is held that nobody can hold.
    #[error("{holder} has an allocation on node {node}: {problem}")]
    Stray { holder: String, node: NodeName, problem: &'static str },
    /// A job says it has other pods than it holds.
    #[error("job {job} has {present} pods in set {pod_set} but {held} allocated")]
    Present {
        job: JobId,
        pod_set: usize,
        /// Pods it says it has.
        present: u32,
        /// Pods that hold something.
        held: usize,
    },
    /// Two accounts of the same thing differ.
    #[error("{what} differs: recorded {books}, found {found}")]
    Differs {
        what: String,
        /// By the judge's books.
        books: String,
        /// By the other account.
        found: String,
    },
}

/// What is wrong with a device for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeviceProblem {
    /// The node has no device of this index.
    #[error("there is no such device")]
    Missing,
    #[error("the device is lost")]
    Lost,
    /// The pod got it twice.
    #[error("the pod has it already")]
    Twice,
    /// Another model, or too little memory.
    #[error("its model or its memory is not one the pod may use")]
    Kind,
    /// The amount is not what the pod asks for.
    #[error("the amount is not what the pod requests of such a device")]
    Amount,
    /// The device is in use in another way, or not empty where it must be.
    #[error("the device is in use in a mode that excludes this pod")]
    Mode,
    /// No start of the profile on this device.
    #[error("the slice starts at a position that its profile does not allow")]
    SliceStart,
    /// A slice lies over another.
    #[error("the slice overlaps another one")]
    SliceOverlap,
    /// Not all devices of the pod are in one island.
    #[error("it is in another island than the pod's first device")]
    Island,
}

/// Why a pod must not be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimProblem {
    HoldsNothing,
    /// Its priority is not lower.
    Priority,
    Protected,
    EndsAnyway,
    /// Others of its gang go on, fewer than may.
    PartOfGang,
}
