//! StatefulSets that delete the volumes of a replica which a smaller number of replicas removes.

use dovetail_facts::{ObjectRef, Workload};
use serde_json::Value;

use super::inventory::Inventory;
use super::owners_by_text::owners_that_say;

/// Notes which workloads have such a StatefulSet as their owner, at the top or below.
pub(super) fn note_deleted_volumes(inventory: &Inventory, workloads: &mut [Workload]) {
    // The API server writes the policy into every StatefulSet, and most retain their claims.
    let may_delete = |of: &ObjectRef, text: &str| {
        of.kind == "StatefulSet" && text.contains("\"whenScaled\"") && text.contains("\"Delete\"")
    };
    let deletes = |_: &ObjectRef, value: &Value| {
        let policy = &value["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"];
        policy.as_str() == Some("Delete")
    };
    let owners = owners_that_say(inventory, may_delete, deletes);
    for workload in workloads {
        workload.scale_down_deletes_volumes = owners.contains(&workload.owner);
    }
}
