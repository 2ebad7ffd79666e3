//! Which command shows what is not known of a waiting pod.

use dovetail_cluster::translate::NotYet;

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
        NotYet::ResourceClaims => DEVICE_CLAIMS,
        NotYet::ResourceByClass { .. } => DEVICE_CLASSES,
        _ => POD,
    }
}
