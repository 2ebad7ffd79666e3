//! Why a pod is left untouched.

use thiserror::Error;

/// Why a pod of ours is not placed whatever the nodes have: an object it refers to is missing or
/// not ready, or it asks for something that dovetail does not do.
///
/// The text is for the pod's owner; the words for claims are kube-scheduler's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotYet {
    #[error("persistentvolumeclaim \"{claim}\" not found: create it")]
    ClaimMissing { claim: String },
    /// The claim of an ephemeral volume is not made yet.
    #[error(
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{claim}\""
    )]
    EphemeralClaimMissing { claim: String },
    /// The claim of an ephemeral volume belongs to something else.
    #[error(
        "PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner): \
         delete the claim or rename the volume"
    )]
    ClaimOfAnother {
        /// Namespace of both.
        namespace: String,
        claim: String,
        pod: String,
    },
    /// The volume of a claim is gone for good.
    #[error(
        "persistentvolumeclaim \"{claim}\" bound to non-existent persistentvolume \"{volume}\": \
         create a new claim"
    )]
    ClaimLost { claim: String, volume: String },
    /// A claim is being deleted.
    #[error(
        "persistentvolumeclaim \"{claim}\" is being deleted: the pod then waits for a new one with \
         this name"
    )]
    ClaimDeleting { claim: String },
    /// A claim that must be bound before its pod is placed is not.
    #[error("pod has unbound immediate PersistentVolumeClaims: {claim} waits for its volume")]
    ClaimUnbound { claim: String },
    /// A claim is bound to a volume that does not exist.
    #[error("persistentvolume \"{volume}\" not found: claim {claim} is bound to it")]
    VolumeMissing { claim: String, volume: String },
    /// A storage class does not say when its volumes are bound.
    #[error("VolumeBindingMode not set for StorageClass \"{class}\": set it")]
    ClassWithoutBindingMode { class: String },
    /// A claim could be bound to a volume that is already there.
    #[error(
        "claim {claim} may take the existing volume {volume}, and dovetail does not yet choose \
         volumes: bind the claim by setting spec.volumeName, or use a StorageClass that provisions \
         volumes"
    )]
    StaticVolume {
        claim: String,
        /// A volume that would do.
        volume: String,
    },
    /// A volume of a plugin that a CSI driver took over, with a topology of its own.
    #[error(
        "volume {volume} of claim {claim} uses the removed in-tree plugin {plugin} and is bound to \
         a zone; dovetail supports such volumes only through the CSI driver"
    )]
    InTreeVolume { claim: String, volume: String, plugin: &'static str },
    /// The provisioner gave up making the volume of a claim where its pod was to go.
    #[error(
        "claim {claim} got no volume on node {node}: provisioner {provisioner} rejected the node, \
         and events of the claim show why; dovetail retries"
    )]
    NotProvisioned {
        claim: String,
        /// The node that was chosen.
        node: String,
        /// Who was to make the volume.
        provisioner: String,
    },
    /// The volume of a claim did not come in time.
    #[error(
        "claim {claim} got no volume on node {node} within {within_s} s: check that provisioner \
         {provisioner} runs, and check the events of the claim; dovetail retries"
    )]
    ProvisionedLate {
        claim: String,
        /// The node that was chosen.
        node: String,
        /// Who is to make the volume.
        provisioner: String,
        /// How long it was waited for, in seconds.
        within_s: u64,
    },
    /// Somebody else chose a node for a claim.
    #[error("claim {claim} gets its volume on node {other}, not on {node}; dovetail retries")]
    ClaimElsewhere {
        claim: String,
        /// The node that was chosen for the pod.
        node: String,
        /// The node that was chosen for the claim.
        other: String,
    },
    /// The server does not take the choice of a node for a claim.
    #[error("node {node} cannot be selected for claim {claim}: {problem}; dovetail retries")]
    ClaimNotWritten {
        claim: String,
        /// The node that was chosen.
        node: String,
        /// What the server says and what to do.
        problem: String,
    },
    /// The server does not bind it.
    #[error(
        "the API server refused to bind the pod to node {node} ({code}): {message}; dovetail \
         retries"
    )]
    NotBound {
        /// The node that was chosen.
        node: String,
        code: u16,
        /// What the server says.
        message: String,
    },
    /// A resource claim does not exist.
    #[error("resourceclaim \"{claim}\" not found: create it")]
    DeviceClaimMissing { claim: String },
    /// The resource claim that is made from a template is not there yet.
    #[error("waiting for the resource claim controller to create the resourceclaim for {name}")]
    DeviceClaimNotMade {
        /// Its name in the pod.
        name: String,
    },
    /// A resource claim is being deleted.
    #[error(
        "resourceclaim \"{claim}\" is being deleted: the pod then waits for a new one with this \
         name"
    )]
    DeviceClaimDeleting { claim: String },
    /// The claim that is to be made from a template belongs to something else.
    #[error(
        "resourceclaim \"{claim}\" was not created for pod {pod} (pod is not owner): delete the claim"
    )]
    DeviceClaimOfAnother { claim: String, pod: String },
    /// What a claim asks for, or a driver offers, is not understood.
    #[error("the pod is not placed: {problem}")]
    DeviceClaimNotUnderstood {
        /// The field, or the words of the allocator.
        problem: String,
    },
    #[error("cannot allocate all claims: {problem}")]
    NoDevices {
        /// For each request what excludes how many devices.
        problem: String,
    },
    /// Devices for all claims of a pod, or of its gang, were not free together.
    #[error(
        "node {node} did not have enough free devices for resourceclaim \"{claim}\" of pod {pod} \
         and the other claims of the pod and its gang at the same time; dovetail retries; if a \
         gang keeps this message, use one ResourceClaimTemplate for its pods, or pod \
         anti-affinity that keeps them on different nodes"
    )]
    DevicesTaken {
        /// The first pod that got no devices.
        pod: String,
        claim: String,
        /// The node that was chosen for it.
        node: String,
    },
    /// A claim for its extended resources is left of an attempt to start it.
    #[error(
        "resourceclaim \"{claim}\" is left over from an attempt to start the pod; dovetail deletes it, then \
         retries the pod"
    )]
    DeviceClaimLeft { claim: String },
    /// A device of a claim says that it will not be ready.
    #[error(
        "device {device} of resourceclaim \"{claim}\" is not ready ({condition}): check what its \
         driver reports; dovetail \
         deallocates the claim and retries the pod"
    )]
    DeviceFailed {
        claim: String,
        /// As `driver/pool/device`.
        device: String,
        /// The condition that says so, with what it says.
        condition: String,
    },
    /// A device of a claim was not ready in time.
    #[error(
        "device {device} of resourceclaim \"{claim}\" was not ready on node {node} within \
         {within_s} s: check that its driver runs; dovetail deallocates the claim and retries the \
         pod"
    )]
    DeviceNotReady {
        claim: String,
        /// As `driver/pool/device`.
        device: String,
        /// The node that was chosen.
        node: String,
        /// How long it was waited for, in seconds.
        within_s: u64,
    },
    /// A claim has devices that the chosen node does not reach.
    #[error(
        "resourceclaim \"{claim}\" has devices that are not accessible from node {node}; dovetail retries the pod"
    )]
    DevicesElsewhere {
        claim: String,
        /// The node that was chosen.
        node: String,
    },
    /// It refers to resource claims.
    #[error(
        "the pod requests devices through ResourceClaims (dynamic resource allocation), which this \
         check does not evaluate"
    )]
    ResourceClaims,
    /// An extended resource that only DRA can give.
    #[error(
        "resource {resource} is offered by no node's device plugin, and device class {class} maps \
         it to dynamic resource allocation, which this check does not evaluate"
    )]
    ResourceByClass { resource: String, class: String },
    /// It asks another system for a part of a device.
    #[error(
        "the pod requests a part of a device through {by}, which dovetail does not support yet: \
         request whole devices"
    )]
    Fraction {
        /// The annotation or resource.
        by: String,
    },
    /// It asks for more devices than are counted on a node.
    #[error(
        "the pod requests {asked} {resource}, more than any node can have (at most {most} are \
         counted): request less per pod, and use more pods"
    )]
    TooManyDevices {
        /// The resource of whole devices.
        resource: String,
        asked: i64,
        /// The most that a node may have.
        most: i64,
    },
    /// The queue it names is not there.
    #[error("queue {queue} does not exist: create it, or set another in label dovetail.dev/queue")]
    QueueMissing { queue: String },
    /// Something is wrong with its queue.
    #[error("queue {queue} is not ready: {problem}")]
    QueueNotReady {
        queue: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Its queue does not take pods of its namespace.
    #[error("queue {queue} accepts no pods of namespace {namespace}: {rule}")]
    QueueClosed {
        queue: String,
        namespace: String,
        /// The rule that keeps it out.
        rule: String,
    },
    #[error("the pod belongs to {one} and to {other}: remove it from one of them")]
    TwoGangs {
        one: String,
        /// The second.
        other: String,
    },
    /// It says on what terms a gang starts, and belongs to none.
    #[error(
        "annotation {annotation} defines how pods start together, but the pod belongs to no gang: \
         name one in label \
         dovetail.dev/gang, or remove the annotation"
    )]
    NoGang { annotation: &'static str },
    /// The group it belongs to is not there.
    #[error("{group} does not exist: create it")]
    GroupMissing { group: String },
    /// The workload that its labels name is not there.
    #[error(
        "{workload} does not exist, and only it defines how many pods start together: create it, \
         or remove its name from the pod's labels"
    )]
    WorkloadMissing { workload: String },
    /// The workload it belongs to is suspended, by its owner or by a queueing system.
    #[error("{workload} is suspended: its pods wait until it is resumed")]
    WorkloadSuspended { workload: String },
    /// The pods of its gang do not fit together.
    #[error("the pods of {gang} differ in {what}: {one}, {other}; give all of them the same value")]
    MembersDiffer {
        gang: String,
        what: String,
        /// A pod and what it has.
        one: String,
        /// Another and what that has.
        other: String,
    },
    /// What its gang asks for cannot be.
    #[error("{gang}: {problem}")]
    Gang {
        gang: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Its gang has all the pods it may have.
    #[error("{gang} already runs its maximum of {max} pods; this pod waits for one to finish")]
    GangFull { gang: String, max: u32 },
    /// A field that means nothing dovetail knows.
    #[error("field {field} is not supported: {problem}")]
    Unreadable { field: &'static str, problem: String },
}

impl NotYet {
    /// Whether the owner of the pod, or a queueing system, holds it back on purpose: then nothing
    /// is wrong.
    pub fn is_held_back(&self) -> bool {
        matches!(self, Self::WorkloadSuspended { .. })
    }

    /// Whether nothing is wrong and it goes on by itself: it is its turn when another one of its
    /// gang is over.
    pub fn is_for_its_turn(&self) -> bool {
        matches!(self, Self::GangFull { .. })
    }

    /// Whether it was to start and could not, or waits for a claim that comes, or goes, by the
    /// doing of others: it is tried again by itself.
    pub fn is_tried_again(&self) -> bool {
        matches!(
            self,
            Self::ClaimMissing { .. }
                | Self::EphemeralClaimMissing { .. }
                | Self::ClaimDeleting { .. }
                | Self::NotProvisioned { .. }
                | Self::ProvisionedLate { .. }
                | Self::ClaimElsewhere { .. }
                | Self::ClaimNotWritten { .. }
                | Self::DeviceClaimMissing { .. }
                | Self::DeviceClaimNotMade { .. }
                | Self::DeviceClaimDeleting { .. }
                | Self::DevicesTaken { .. }
                | Self::DeviceClaimLeft { .. }
                | Self::DeviceFailed { .. }
                | Self::DeviceNotReady { .. }
                | Self::DevicesElsewhere { .. }
                | Self::NotBound { .. }
        )
    }
}
