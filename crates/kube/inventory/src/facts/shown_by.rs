//! Which command shows what is not known of a waiting pod.

use dovetail_objects::Kind;
use dovetail_translate::NotYet;

/// What its own scheduler and others said of it.
pub const POD: &str = "kubectl describe pod -n NAMESPACE POD";
/// Classes of devices that were not read.
pub(super) const DEVICE_CLASSES: &str = "kubectl get deviceclasses -o json";
/// Claims of devices that were not read.
pub(super) const DEVICE_CLAIMS: &str =
    "kubectl get resourceclaims,resourceclaimtemplates -A -o json";
/// Why controllers could not make pods.
pub(super) const EVENTS: &str =
    "kubectl get events -n NAMESPACE --field-selector reason=FailedCreate";
const VOLUMES: &str = "kubectl get persistentvolumeclaims,persistentvolumes -A -o json";
const STORAGE_CLASSES: &str = "kubectl get storageclasses -o json";

/// The group of pods that a pod belongs to was not read: its kind.
pub(super) fn not_read(refused: &NotYet, was_read: impl Fn(Kind) -> bool) -> Option<Kind> {
    let missing = match refused {
        NotYet::GroupMissing { group } => group,
        NotYet::WorkloadMissing { workload } => workload,
        _ => return None,
    };
    // Messages name it as manifests do, in small letters: `podgroup.scheduling.run.ai blue/train`.
    let (kind, _) = missing.split_once(' ')?;
    let kind = Kind::ALL.into_iter().find(|of| of.name().to_lowercase() == kind)?;
    (!was_read(kind)).then_some(kind)
}

/// What shows why a pod can be held against no node.
pub(super) fn of(refused: &NotYet) -> &'static str {
    match refused {
        NotYet::ClaimMissing { .. }
        | NotYet::EphemeralClaimMissing { .. }
        | NotYet::ClaimOfAnother { .. }
        | NotYet::ClaimLost { .. }
        | NotYet::ClaimDeleting { .. }
        | NotYet::ClaimUnbound { .. }
        | NotYet::VolumeMissing { .. }
        | NotYet::StaticVolume { .. }
        | NotYet::InTreeVolume { .. } => VOLUMES,
        NotYet::ClassWithoutBindingMode { .. } => STORAGE_CLASSES,
        NotYet::ResourceClaims
        | NotYet::DeviceClaimMissing { .. }
        | NotYet::DeviceClaimNotMade { .. }
        | NotYet::DeviceClaimDeleting { .. }
        | NotYet::DeviceClaimOfAnother { .. }
        | NotYet::DeviceClaimNotUnderstood { .. }
        | NotYet::NoDevices { .. }
        | NotYet::DeviceClaimLeft { .. }
        | NotYet::DeviceFailed { .. }
        | NotYet::DeviceNotReady { .. }
        | NotYet::DevicesTaken { .. }
        | NotYet::DevicesElsewhere { .. } => DEVICE_CLAIMS,
        NotYet::ResourceByClass { .. } => DEVICE_CLASSES,
        _ => POD,
    }
}
