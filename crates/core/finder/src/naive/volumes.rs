//! Limits on attached volumes, by listing what is attached.

use std::collections::BTreeSet;

use dovetail_model::{Attachment, NodeId, Requirement};

use dovetail_state::State;

/// Whether the pod's volumes would exceed a limit of the node that they add to.
pub(super) fn exceed(state: &State, requirement: &Requirement, slot: NodeId) -> bool {
    let mut held: BTreeSet<&Attachment> = BTreeSet::new();
    for (_, record) in state.holdings.iter().filter(|(_, record)| record.node == slot) {
        held.extend(record.attachments.iter().map(|number| state.names.attachments.get(*number)));
    }
    let limits = &state.nodes.cold(slot).node.attach_limits;
    limits.iter().any(|(limit, most)| {
        let of_limit = |attachment: &&&Attachment| attachment.limit == *limit;
        let before = held.iter().filter(of_limit).count() as i64;
        let mut after = held.clone();
        after.extend(&requirement.attachments);
        let after = after.iter().filter(of_limit).count() as i64;
        after > before && after > *most
    })
}
