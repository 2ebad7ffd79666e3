//! Which classes may share the GPUs of a node, as an annotation that the scheduler reads.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_objects::labels::SHARED_CLASSES;
use dovetail_sharing::SharingPolicy;
use serde_json::json;

use super::policy_nodes::selected;
use crate::objects::Objects;
use crate::server::Server;

/// Writes on each node the classes that its policy names, and removes what earlier policies
/// wrote. Nodes of policies that are not followed now keep what they have. `is_all`: whether
/// there are no other policies, readable or not.
pub(super) async fn annotate_classes<'p>(
    server: &Server,
    policies: impl Iterator<Item = (&'p SharingPolicy, bool)>,
    is_all: bool,
    objects: &Objects,
) -> Result<()> {
    let mut wanted: BTreeMap<&str, Option<String>> = BTreeMap::new();
    if is_all {
        wanted.extend(objects.nodes.keys().map(|node| (&**node, None)));
    }
    for (policy, is_followed) in policies {
        let mut classes = policy.spec.classes.clone();
        classes.sort();
        let classes = Some(classes.join(",")).filter(|classes| !classes.is_empty());
        for (node, _) in selected(objects, &policy.spec) {
            match is_followed && policy.spec.apply {
                true => wanted.insert(node, classes.clone()),
                false => wanted.remove(&**node),
            };
        }
    }
    let mut failed = Ok(());
    for (node, wants) in wanted {
        let meta = &objects.nodes[node].node.meta;
        if meta.annotations.get(SHARED_CLASSES) != wants.as_deref() {
            let patch = json!({"metadata": {"uid": meta.uid,
                "annotations": {SHARED_CLASSES: wants}}});
            // One that is refused does not keep the others from being written.
            failed = server.patch_node(node, &patch).await.map(drop).and(failed);
        }
    }
    failed
}
