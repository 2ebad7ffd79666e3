//! Who sets a label of a node, by the managers of its fields.

use std::collections::BTreeMap;

use dovetail_objects::harmless;
use serde_json::Value;

use crate::component::Component;
use crate::names::FIELD_MANAGER;

/// What the API server calls clients whose names it does not have: of one that does not name
/// itself, of fields older than the first apply, and of the oldest where a node has more than ten
/// (dovetail may be one of those).
const UNNAMED: [&str; 4] = ["", "unknown", "before-first-apply", "ancient-changes"];
/// It sets the labels of its flags when it creates its Node object, and not again.
const KUBELET: &str = "kubelet";
/// How kubectl names itself when a person sets one field with it.
const BY_HAND: [&str; 5] =
    ["kubectl-label", "kubectl-edit", "kubectl-patch", "kubectl-create", "kubectl-replace"];

/// The clients that set what components are asked for according to a manifest or by themselves, as
/// GitOps tools and controllers do, each in words. What people or dovetail set is not there.
/// `metadata`: of a node.
pub fn label_owners(metadata: &Value) -> BTreeMap<Component, String> {
    Component::ALL.into_iter().filter_map(|by| Some((by, owner(metadata, by)?))).collect()
}

/// The clients other than dovetail that have set what components are asked for, by the names that
/// they give themselves, whether or not they would set it again. `metadata`: of a node.
pub(crate) fn label_setters(metadata: &Value) -> BTreeMap<Component, String> {
    let setter = |by: Component| {
        let is_other =
            |name: &&str| !UNNAMED.contains(name) && ![FIELD_MANAGER, KUBELET].contains(name);
        let manager = managers(metadata, by).into_iter().find(is_other)?;
        Some((by, harmless(manager).to_string()))
    };
    Component::ALL.into_iter().filter_map(setter).collect()
}

/// Those who have set what a component is asked for; none where nothing is.
fn managers(metadata: &Value, by: Component) -> Vec<&str> {
    let key = by.label();
    if metadata["labels"][key].is_null() {
        return Vec::new();
    }
    let field = format!("f:{key}");
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    let sets = |entry: &&Value| entry["fieldsV1"]["f:metadata"]["f:labels"].get(&*field).is_some();
    entries.filter(sets).filter_map(|entry| entry["manager"].as_str()).collect()
}

fn owner(metadata: &Value, by: Component) -> Option<String> {
    // mig-manager reports when a layout that others asked for is there.
    if by == Component::MigManager {
        return None;
    }
    let is_other = |manager: &&str| {
        let sets_once = UNNAMED.contains(manager) || BY_HAND.contains(manager);
        !sets_once && ![FIELD_MANAGER, KUBELET].contains(manager)
    };
    let (key, manager) = (by.label(), managers(metadata, by).into_iter().find(is_other)?);
    Some(format!(
        "another client, {}, sets {key} (metadata.managedFields): to let dovetail manage the node, \
         remove the label there",
        harmless(manager)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_that_a_controller_sets_belongs_to_it() {
        let (plugin, amd) = (Component::DevicePlugin, Component::DeviceConfigManager);
        let node = |by: Component, key: &str, managers: &[&str]| {
            let entry = |manager: &&str| {
                json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {format!("f:{key}"): {}}}}})
            };
            let entries: Vec<Value> = managers.iter().map(entry).collect();
            json!({"name": "n", "labels": {by.label(): "x"}, "managedFields": entries})
        };
        for by in [plugin, amd] {
            let key = by.label();
            for nobody in ["dovetail", "unknown", "", "ancient-changes", "kubelet", "kubectl-label"]
            {
                assert_eq!(owner(&node(by, key, &[nobody]), by), None, "{nobody}");
            }
            for theirs in ["argocd-controller", "kustomize-controller", "kubectl", "karpenter"] {
                // Dovetail wrote the same value, too.
                let why = owner(&node(by, key, &["dovetail", theirs]), by).expect("an owner");
                assert!(
                    why.starts_with(&format!("another client, {theirs}, sets {key} (")),
                    "{why}"
                );
            }
            assert_eq!(owner(&node(by, "pool", &["argocd-controller"]), by), None);
            assert_eq!(owner(&json!({"labels": {key: "x"}}), by), None);
        }
        // A label that is gone belongs to nobody, and mig-manager reports what others ask for.
        let mut gone = node(plugin, plugin.label(), &["argocd-controller"]);
        gone["labels"] = json!({});
        assert_eq!(owner(&gone, plugin), None);
        let mig = Component::MigManager;
        assert_eq!(owner(&node(mig, mig.label(), &["argocd-controller"]), mig), None);
    }
}
