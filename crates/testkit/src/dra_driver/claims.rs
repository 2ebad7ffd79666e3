//! What a kubelet checks of the claims of a pod before it lets the driver prepare them, by the
//! published behaviour of the kubelet of Kubernetes 1.37. Unlike that, it looks at the node of an
//! allocation.

use serde_json::Value;

use super::books::ClaimedDevice;
use super::slices::DRIVER;

/// Names of the claims that a pod uses, in its namespace.
///
/// # Errors
/// When a claim of the pod is not made yet.
pub(super) fn claims_of(pod: &Value) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for entry in list(&pod["spec"]["resourceClaims"]) {
        if let Some(name) = entry["resourceClaimName"].as_str() {
            names.push(name.to_owned());
            continue;
        }
        let mut made = list(&pod["status"]["resourceClaimStatuses"]).iter();
        let made = made.find(|made| made["name"] == entry["name"]);
        let made = made.ok_or_else(|| {
            format!("the claim {} of the pod's template is not made", text(&entry["name"]))
        })?;
        // Without a name the pod needs none.
        names.extend(made["resourceClaimName"].as_str().map(str::to_owned));
    }
    let extended = &pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
    names.extend(extended.as_str().map(str::to_owned));
    Ok(names)
}

/// The devices of a claim that a pod on a node may use.
///
/// # Errors
/// Why it may not: the claim is another pod's, is not allocated or not to this node, is not
/// reserved for the pod, or has devices of a driver that the node has not.
pub(super) fn devices_of(
    claim: &Value,
    pod: &Value,
    node: &str,
) -> Result<Vec<ClaimedDevice>, String> {
    let uid = &pod["metadata"]["uid"];
    let mut owners = list(&claim["metadata"]["ownerReferences"]).iter();
    let owner = owners.find(|owner| owner["controller"] == true && owner["kind"] == "Pod");
    if let Some(other) = owner.filter(|owner| owner["uid"] != *uid) {
        return Err(format!("it belongs to pod {}", text(&other["name"])));
    }
    let status = &claim["status"];
    if status["allocation"].is_null() {
        return Err("it is not allocated".to_owned());
    }
    let reserved = list(&status["reservedFor"]);
    let is_pod = |one: &&Value| {
        let is_core = one["apiGroup"].as_str().is_none_or(str::is_empty);
        is_core && one["resource"] == "pods" && one["uid"] == *uid
    };
    let entry = reserved.iter().find(is_pod).ok_or("it is not reserved for the pod")?;
    if entry["name"] != pod["metadata"]["name"] {
        return Err(format!("it is reserved under the name {}", text(&entry["name"])));
    }
    if !is_for_node(&status["allocation"]["nodeSelector"], node) {
        return Err(format!("it is not allocated to node {node}"));
    }
    let mut devices = Vec::new();
    for result in list(&status["allocation"]["devices"]["results"]) {
        let [driver, pool, name] = ["driver", "pool", "device"].map(|key| text(&result[key]));
        if driver != DRIVER {
            return Err(format!("node {node} has no driver {driver}"));
        }
        if pool != node {
            return Err(format!("device {name} is on node {pool}"));
        }
        devices.push(ClaimedDevice { name, is_admin: result["adminAccess"] == true });
    }
    Ok(devices)
}

/// Whether an allocation is for a node. All devices of the driver are on one node, so that the
/// selector names it.
fn is_for_node(selector: &Value, node: &str) -> bool {
    let terms = list(&selector["nodeSelectorTerms"]).iter();
    let mut fields = terms.flat_map(|term| list(&term["matchFields"]));
    fields.any(|field| {
        let is_name = field["key"] == "metadata.name" && field["operator"] == "In";
        let mut names = list(&field["values"]).iter();
        is_name && names.any(|name| name == node)
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
