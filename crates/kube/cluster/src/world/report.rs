//! What people should know about the objects.

use std::fmt::Write as _;

use dovetail_objects::{Kind, Strange};
use thiserror::Error;

use super::key::{ClaimKey, PodKey};
use super::missing_queue::MissingQueue;
use dovetail_translate::NotYet;

/// How much of a gang is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Its pods that have a node or could take one.
    pub present: u32,
    /// Its smallest size.
    pub min: u32,
    /// Its pods that scheduling gates hold.
    pub gated: u32,
    /// Its pods that are left untouched.
    pub refused: u32,
    /// Its pods that were to start, could not, and are tried again.
    pub retried: u32,
}

/// What a gang that is not gathered says: how many of the pods that start together are there,
/// and why others do not count.
pub fn waits_for_members(gang: &str, gathering: Gathering) -> String {
    let Gathering { present, min, gated, refused, retried } = gathering;
    let mut there =
        format!("{gang} has {present} of the {} pods that start together", how_many(min));
    let some_of_its_pods = |pods: u32| match pods {
        1 => "one of its pods".to_owned(),
        _ => format!("{pods} of its pods"),
    };
    if gated > 0 {
        let _ = write!(there, ", and scheduling gates block {}", some_of_its_pods(gated));
    }
    let be_and_their = |pods: u32| if pods == 1 { ("is", "its") } else { ("are", "their") };
    if refused > 0 {
        let ((be, their), pods) = (be_and_their(refused), some_of_its_pods(refused));
        let _ = write!(there, ", and {pods} {be} ignored: {their} events give the reason");
    }
    if retried > 0 {
        let ((be, their), pods) = (be_and_their(retried), some_of_its_pods(retried));
        let _ = write!(
            there,
            ", and {pods} could not start and {be} retried: {their} events give the reason"
        );
    }
    there
}

/// What a pod says whose claims get their volumes before it starts.
pub fn waits_for_volumes(claims: &[String], node: &str) -> String {
    let (its, have) = match claims.len() {
        1 => ("its claim", "has its volume"),
        _ => ("its claims", "have their volumes"),
    };
    let shown = first_of(claims);
    format!("capacity is reserved for it on {node} until {its} {shown} {have} there")
}

/// What a pod says whose devices become ready before it starts.
pub fn waits_for_devices(devices: &[String], node: &str) -> String {
    let (device, are) = match devices.len() {
        1 => ("device", "is"),
        _ => ("devices", "are"),
    };
    let shown = first_of(devices);
    format!("capacity is reserved for it on {node} until {device} {shown} {are} ready")
}

/// What a pod without such claims says that starts with others that have some.
pub fn waits_for_volumes_of_others(claims: &[String], node: &str) -> String {
    format!("capacity is reserved for it on {node} until {}", volumes_of_a_gang(claims))
}

/// Until when a gang waits whose claims get their volumes.
fn volumes_of_a_gang(claims: &[String]) -> String {
    let (claim, have) = match claims.len() {
        1 => ("claim", "has its volume"),
        _ => ("claims", "have their volumes"),
    };
    format!("{claim} {} of its gang {have}", first_of(claims))
}

/// What a native group says whose pods wait for volumes.
pub fn group_waits_for_volumes(claims: &[String]) -> String {
    format!("capacity is reserved for its pods until {}", volumes_of_a_gang(claims))
}

fn first_of(claims: &[String]) -> String {
    let shown = claims.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match claims.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A number of pods. The largest that is counted stands for all above it, which sums of what owners
/// write may be.
pub fn how_many(pods: u32) -> String {
    match pods {
        u32::MAX => "more than 4 billion".to_owned(),
        _ => pods.to_string(),
    }
}

/// Something about an object that people should know.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectReport {
    /// An object could not be read; as long as it is so it is not used.
    #[error("{0}: the object is ignored")]
    Strange(Box<Strange>),
    /// A node takes nothing new: two systems give out its devices.
    #[error(
        "dovetail places no pods on node {node}: resource {resource} of its device plugin and \
         driver {driver} offer the same devices; run only one of them"
    )]
    TwiceOffered {
        node: String,
        /// The resource of the device plugin.
        resource: String,
        /// The driver of dynamic resource allocation.
        driver: String,
    },
    /// None of the GPUs of a node is given out: another system gives them out.
    #[error(
        "dovetail places no pods that request GPUs on node {node}: HAMi or Volcano allocates its \
         GPUs ({by})"
    )]
    SharedByOthers {
        node: String,
        /// What shows that.
        by: String,
    },
    /// A node says that it has more devices than are counted.
    #[error(
        "node {node} reports {said} of {resource}; dovetail uses only {counted}; check what its \
         device plugin reports"
    )]
    TooManyDevices {
        node: String,
        /// The resource of whole devices.
        resource: String,
        /// How many it says it has.
        said: i64,
        counted: i64,
    },
    /// There are nodes, and the settings leave none of them.
    #[error(
        "no node has the labels that node_selector in dovetail.toml requires ({selector}): no pod is placed until a \
         node has them"
    )]
    NoNodeSelected {
        /// The labels, as kubectl writes them.
        selector: String,
    },
    /// A queue is not there, and pods run in it.
    #[error("{0}")]
    QueueMissing(Box<MissingQueue>),
    /// A node takes nothing new: a pod there could not be read.
    #[error(
        "dovetail places no pods on node {node}: the resources of pod {pod} there cannot be read"
    )]
    UnknownHolder {
        node: String,
        /// Namespace and name of the pod.
        pod: String,
    },
    /// A pod of ours waits for the other pods of its gang.
    #[error(
        "pod {pod} waits for members: {}", waits_for_members(.gang, *.gathering)
    )]
    WaitsForMembers {
        pod: PodKey,
        gang: String,
        /// How much of it is there.
        gathering: Gathering,
    },
    /// A node is decided for a pod of ours, and its claims get their volumes there before it
    /// starts.
    #[error("pod {pod} waits for volumes: {}", waits_for_volumes(.claims, .node))]
    WaitsForVolumes { pod: PodKey, claims: Vec<String>, node: String },
    /// The same of a pod without such claims: others of its gang have some, and they start
    /// together.
    #[error(
        "pod {pod} waits for volumes: {}", waits_for_volumes_of_others(.claims, .node)
    )]
    WaitsForVolumesOfOthers {
        pod: PodKey,
        /// Names of the claims of its gang.
        claims: Vec<String>,
        node: String,
    },
    /// Nodes are decided for the pods of a native group, and claims of some get their volumes
    /// before they start.
    #[error("podgroup {namespace}/{name} waits for volumes: {}", group_waits_for_volumes(.claims))]
    GroupWaitsForVolumes { namespace: String, name: String, claims: Vec<String> },
    /// A node is decided for a pod of ours, and devices of its claims, or of others of its gang,
    /// become ready before it starts.
    #[error("pod {pod} waits for devices: {}", waits_for_devices(.devices, .node))]
    WaitsForDevices {
        pod: PodKey,
        /// As `driver/pool/device`.
        devices: Vec<String>,
        node: String,
    },
    /// A native group waits for pods.
    #[error("podgroup {namespace}/{name} waits for members: {}", waits_for_members(.gang, *.gathering))]
    GroupWaits {
        namespace: String,
        name: String,
        gang: String,
        /// How much of it is there.
        gathering: Gathering,
    },
    /// A native group of pods has its size.
    #[error("podgroup {namespace}/{name} has all the pods that start together")]
    GroupHasItsSize { namespace: String, name: String },
    /// What describes a gang contradicts its pods or itself: they are left untouched.
    #[error("{} {about}: none of its pods is placed: {reason}", .kind.name())]
    Contradiction {
        /// What describes it.
        kind: Kind,
        /// Its namespace, name and identity.
        about: PodKey,
        reason: NotYet,
        /// Whether it was said of late with other pods' names: the words are new and the cause is
        /// not.
        is_repeat: bool,
    },
    /// How long a pod of ours runs, or what stopping it costs, cannot be read: it counts as absent.
    #[error("pod {pod}: {problem}: the annotation is ignored")]
    RunTimeUnreadable {
        pod: PodKey,
        /// What is wrong, with the name of the annotation.
        problem: String,
    },
    /// A pod of ours is left untouched.
    #[error("pod {pod} {}: {reason}", what_becomes_of_it(.reason))]
    Refused {
        pod: PodKey,
        reason: NotYet,
        /// Whether it was said of late with other pods' names: the words are new and the cause is
        /// not.
        is_repeat: bool,
    },
}

/// Names of claims of one namespace.
pub(crate) fn names_of(claims: &[ClaimKey]) -> Vec<String> {
    claims.iter().map(|claim| claim.name.to_string()).collect()
}

fn what_becomes_of_it(reason: &NotYet) -> &'static str {
    match reason {
        _ if reason.is_for_its_turn() => "is queued",
        _ if reason.is_tried_again() => "could not start",
        _ => "is skipped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_stands_for_more_is_said_in_words() {
        let of = |min| {
            waits_for_members(
                "gang a/b",
                Gathering { present: 2, min, gated: 0, refused: 0, retried: 0 },
            )
        };
        assert_eq!(of(3), "gang a/b has 2 of the 3 pods that start together");
        assert_eq!(
            of(u32::MAX),
            "gang a/b has 2 of the more than 4 billion pods that start together"
        );
        let some_left = Gathering { present: 2, min: 5, gated: 2, refused: 1, retried: 2 };
        assert_eq!(
            waits_for_members("gang a/b", some_left),
            "gang a/b has 2 of the 5 pods that start together, and scheduling gates block 2 of its \
             pods, and one of its pods is ignored: its events give the reason, and 2 of its pods \
             could not start and are retried: their events give the reason"
        );
    }
}
