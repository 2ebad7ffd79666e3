//! StatefulSets that delete the volumes of a replica which a smaller number of replicas removes.

use std::collections::BTreeSet;

use dovetail_audit::{ObjectRef, Workload};
use serde_json::Value;

use super::inventory::Inventory;

/// Notes which workloads have such a StatefulSet as their owner, at the top or below.
pub(super) fn note_deleted_volumes(inventory: &Inventory, workloads: &mut [Workload]) {
    let objects = inventory.sources.texts().chain(inventory.sources.controlled());
    // The API server writes the policy into every StatefulSet, and most retain their claims.
    let may_delete = |text: &str| text.contains("\"whenScaled\"") && text.contains("\"Delete\"");
    let sets = objects.filter(|(of, text)| of.kind == "StatefulSet" && may_delete(text));
    let mut owners: BTreeSet<ObjectRef> = BTreeSet::new();
    for (object, text) in sets {
        let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
        let policy = &value["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"];
        if policy.as_str() == Some("Delete") {
            owners.extend(inventory.owners.chain(object, None).pop());
        }
    }
    for workload in workloads {
        workload.scale_down_deletes_volumes = owners.contains(&workload.owner);
    }
}
