//! Which pod templates have a node that they could use: by selectors, required affinity, taints and
//! what a node offers in all, as the API documentation says it.

use std::collections::BTreeSet;

use dovetail_model::Quantity;
use serde_json::Value;

use super::completed::key;

/// Templates, by the object and their place in it, that some node could take. Pods that have a node
/// are judged by it.
pub(super) fn usable(objects: &[Value]) -> BTreeSet<String> {
    let nodes: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Node").collect();
    let mut usable = BTreeSet::new();
    for object in
        objects.iter().filter(|object| !object["metadata"]["deletionTimestamp"].is_string())
    {
        for (path, spec) in specs(&object["spec"], String::new()) {
            let name = format!("{}{path}", key(object).join("/"));
            usable.insert(format!("? {name}"));
            if nodes.iter().any(|node| could_use(node, spec)) {
                usable.insert(name);
            }
        }
    }
    usable
}

/// Whether a template is there and has no node; one whose object is gone has lost nothing.
pub(super) fn has_lost(now: &BTreeSet<String>, name: &str) -> bool {
    now.contains(&format!("? {name}")) && !now.contains(name)
}

/// Everything that has containers, with the way to it.
fn specs(value: &Value, path: String) -> Vec<(String, &Value)> {
    match value {
        Value::Object(fields) if fields.get("containers").is_some_and(Value::is_array) => {
            vec![(path, value)]
        }
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(field, value)| specs(value, format!("{path}.{field}")))
            .collect(),
        Value::Array(items) => {
            let places = items.iter().enumerate();
            places.flat_map(|(place, item)| specs(item, format!("{path}[{place}]"))).collect()
        }
        _ => Vec::new(),
    }
}

fn could_use(node: &Value, spec: &Value) -> bool {
    selects(node, spec) && tolerates(node, spec) && offers(node, spec)
}

fn selects(node: &Value, spec: &Value) -> bool {
    let label = |key: &str| node["metadata"]["labels"][key].as_str();
    let plain = spec["nodeSelector"].as_object().into_iter().flatten();
    let mut plain = plain.map(|(key, value)| label(key) == value.as_str());
    let matches = |term: &Value| {
        let expressions = term["matchExpressions"].as_array().into_iter().flatten();
        let fields = term["matchFields"].as_array().into_iter().flatten();
        expressions.chain(fields).all(|expression| {
            let key = expression["key"].as_str().unwrap_or_default();
            let is_name = key == "metadata.name";
            let own = if is_name { node["metadata"]["name"].as_str() } else { label(key) };
            let values = expression["values"].as_array().into_iter().flatten();
            let is_named = values.filter_map(Value::as_str).any(|value| own == Some(value));
            match expression["operator"].as_str() {
                Some("In") => is_named,
                Some("NotIn") => !is_named,
                Some("Exists") => own.is_some(),
                Some("DoesNotExist") => own.is_none(),
                operator => panic!("{operator:?} is in no dump"),
            }
        })
    };
    let path = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/\
                nodeSelectorTerms";
    let terms = spec.pointer(path).and_then(Value::as_array);
    plain.all(|is_equal| is_equal) && terms.is_none_or(|terms| terms.iter().any(matches))
}

fn tolerates(node: &Value, spec: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    // Those of a cordon and of states come and go.
    let mut lasting = taints.filter(|taint| {
        let key = taint["key"].as_str().unwrap_or_default();
        taint["effect"] != "PreferNoSchedule" && !key.starts_with("node.kubernetes.io/")
    });
    lasting.all(|taint| {
        let mut tolerations = spec["tolerations"].as_array().into_iter().flatten();
        tolerations.any(|toleration| {
            let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
            let key = text(&toleration["key"]);
            let exists = toleration["operator"] == "Exists";
            let is_effect =
                text(&toleration["effect"]).is_empty() || toleration["effect"] == taint["effect"];
            let is_key = key.is_empty() && exists || key == text(&taint["key"]);
            let is_value = exists || text(&toleration["value"]) == text(&taint["value"]);
            is_effect && is_key && is_value
        })
    })
}

/// Whether an empty node has what the containers request together.
fn offers(node: &Value, spec: &Value) -> bool {
    let milli = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse::<Quantity>().unwrap_or_else(|error| panic!("{text}: {error}")).to_milli()
    };
    let containers = spec["containers"].as_array().into_iter().flatten();
    let mut asked: std::collections::BTreeMap<&str, i64> = Default::default();
    for container in containers {
        let resources = &container["resources"];
        let mut own: std::collections::BTreeMap<&str, i64> = Default::default();
        for list in ["limits", "requests"] {
            let amounts = resources[list].as_object().into_iter().flatten();
            own.extend(amounts.map(|(name, amount)| (name.as_str(), milli(amount))));
        }
        for (name, amount) in own {
            *asked.entry(name).or_default() += amount;
        }
    }
    let offered = &node["status"]["allocatable"];
    asked.iter().all(|(name, amount)| {
        let all = offered.get(name).map_or(0, &milli);
        *amount <= all
    })
}
