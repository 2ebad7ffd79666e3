//! What the server tells about itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kind::Kinds;

pub(crate) fn version(minor: u32) -> Value {
    json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0"),
        "gitTreeState": "clean", "platform": "linux/amd64",
    })
}

pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`.
pub(crate) fn groups(kinds: &Kinds) -> Value {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        let of_group = versions.entry(&kind.group).or_default();
        if !of_group.contains(&kind.version.as_str()) {
            of_group.push(&kind.version);
        }
    }
    let groups: Vec<Value> = versions.iter().map(|(name, all)| group_of(name, all)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub(crate) fn group(kinds: &Kinds, group: &str) -> Option<Value> {
    let all = groups(kinds);
    let mut found = all["groups"].as_array()?.iter().find(|one| one["name"] == group)?.clone();
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

/// The stable version first, as servers prefer it.
fn group_of(name: &str, versions: &[&str]) -> Value {
    let mut versions = versions.to_vec();
    versions.sort_by_key(|version| (version.contains("alpha"), version.contains("beta"), *version));
    let named =
        |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let listed: Vec<Value> = versions.iter().map(named).collect();
    json!({"name": name, "versions": listed, "preferredVersion": listed.first()})
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    const VERBS: [&str; 8] =
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut resources = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group == group && kind.version == version) {
        let mut entry = |name: String, kind_name: &str, verbs: &[&str]| {
            resources.push(json!({
                "name": name, "singularName": "", "namespaced": kind.namespaced,
                "kind": kind_name, "verbs": verbs,
            }));
        };
        entry(kind.plural.clone(), &kind.kind, &VERBS);
        if kind.has_status {
            entry(format!("{}/status", kind.plural), &kind.kind, &["get", "patch", "update"]);
        }
        if group.is_empty() && kind.plural == "pods" {
            entry("pods/binding".to_owned(), "Binding", &["create"]);
            entry("pods/eviction".to_owned(), "Eviction", &["create"]);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    }))
}
