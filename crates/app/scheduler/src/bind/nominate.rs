//! The node that is freed for a pod, and what the pod says of it, in one write: people never read of two nodes.

use dovetail_cluster::world::PodKey;
use kube::Client;
use serde_json::{Value, json};

use dovetail_apiserver::pods::{get, patch_status, send_patch};
use dovetail_control::announce::{Condition, condition_patch};
use dovetail_control::answer::Answered;

/// Sets the node that is freed for a pod, or takes it back if that is empty, if it is still this pod. `says` is
/// written with it: to the version of the pod that was seen waiting, else to the one that is there, if that has no
/// node. If others go on writing to the pod, the node is written alone.
pub(super) async fn nominate(
    client: &Client,
    pod: &PodKey,
    node: &str,
    says: Option<&Condition>,
) -> Answered {
    let node = json!((!node.is_empty()).then_some(node));
    let alone = json!({"nominatedNodeName": node});
    let Some(says) = says else { return patch_status(client, pod, &alone).await };
    let answered = send_patch(client, pod, &both(&node, says)).await;
    if !is_conflict(&answered) {
        return answered;
    }
    let read = get(client, &pod.namespace, &pod.name).await?;
    if read.0 != 200 {
        return Ok(read);
    }
    let Some(resource_version) = version_that_waits(&read.2, pod) else { return answered };
    let says = Condition { resource_version, ..says.clone() };
    let answered = send_patch(client, pod, &both(&node, &says)).await;
    match is_conflict(&answered) {
        true => patch_status(client, pod, &alone).await,
        false => answered,
    }
}

/// A patch of both.
fn both(node: &Value, says: &Condition) -> Value {
    let mut patch = condition_patch(says);
    patch["status"]["nominatedNodeName"] = node.clone();
    patch
}

fn is_conflict(answered: &Answered) -> bool {
    matches!(answered, Ok((409, ..)))
}

/// The version of a pod as it was read, if it is this one and has no node.
fn version_that_waits(read: &[u8], pod: &PodKey) -> Option<String> {
    let read: Value = serde_json::from_slice(read).ok()?;
    let has_node = read["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let waits = read["metadata"]["uid"] == *pod.uid && !has_node;
    read["metadata"]["resourceVersion"].as_str().filter(|_| waits).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use dovetail_control::announce::PodIdentity;
    use dovetail_control::status::Waiting;
    use dovetail_model::PendingReason;

    use super::*;

    #[test]
    fn one_patch_names_the_node_and_says_so_to_one_version_of_the_pod() {
        let text = str::to_owned;
        let waiting = Waiting::pending(PendingReason::WaitingForReservation, text("kept on n1"));
        let pod = PodIdentity { namespace: text("n"), name: text("p"), uid: text("u") };
        let says = Condition { pod, resource_version: text("7"), waiting, since_ms: Some(0) };
        let condition = json!({"type": "PodScheduled", "status": "False",
            "reason": "WaitingForReservation", "message": "kept on n1",
            "lastTransitionTime": "1970-01-01T00:00:00Z"});
        let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {"conditions": [condition], "nominatedNodeName": "n1"}});
        assert_eq!(both(&json!("n1"), &says), expected);
        let key = PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() };
        let version = |uid: &str, node: &str| {
            let pod = json!({"metadata": {"uid": uid, "resourceVersion": "9"},
                "spec": {"nodeName": node}});
            version_that_waits(pod.to_string().as_bytes(), &key)
        };
        let versions = [version("u", ""), version("u", "n0"), version("other", "")];
        assert_eq!(versions, [Some(text("9")), None, None]);
    }
}
