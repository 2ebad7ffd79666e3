//! When Karpenter removes empty nodes: the disruption settings of its NodePools.

use std::collections::BTreeMap;

use dovetail_facts::{ObjectRef, RemovalRule, ZeroBudget};
use dovetail_units::duration::parse_duration;
use serde_json::Value;

use super::source::SourceTexts;

/// The settings of all NodePools that were read, by the pool of their nodes.
pub(super) fn removal_rules(sources: &SourceTexts) -> BTreeMap<ObjectRef, RemovalRule> {
    // Other NodePools are objects of a namespace.
    let is_pool = |object: &ObjectRef| object.kind == "NodePool" && object.namespace.is_empty();
    let pools = sources.texts().filter(|(object, _)| is_pool(object));
    pools.filter_map(|(object, text)| Some((object.clone(), rule(text)?))).collect()
}

fn rule(text: &str) -> Option<RemovalRule> {
    let pool: Value = serde_json::from_str(text).ok()?;
    let disruption = &pool["spec"]["disruption"];
    let after = disruption["consolidateAfter"].as_str();
    let removes_empty_after_ms = match disruption["consolidationPolicy"].as_str()? {
        "WhenEmpty" | "WhenEmptyOrUnderutilized" => after.and_then(|of| parse_duration(of).ok()),
        // The v1beta1 API does not allow a duration beside it.
        "WhenUnderutilized" if after.is_none() => Some(0),
        _ => None,
    };
    let budgets = disruption["budgets"].as_array().into_iter().flatten();
    let zero_budgets = budgets.filter(|budget| lets_no_empty_node_go(budget)).map(zero_budget);
    Some(RemovalRule { removes_empty_after_ms, zero_budgets: zero_budgets.collect() })
}

/// Without reasons it is about all of them.
fn lets_no_empty_node_go(budget: &Value) -> bool {
    let is_zero = match &budget["nodes"] {
        Value::String(nodes) => ["0", "0%"].contains(&nodes.as_str()),
        nodes => nodes.as_i64() == Some(0),
    };
    let reasons = budget["reasons"].as_array().filter(|reasons| !reasons.is_empty());
    let is_of_empty = |reason: &Value| reason.as_str() == Some("Empty");
    is_zero && reasons.is_none_or(|reasons| reasons.iter().any(is_of_empty))
}

fn zero_budget(budget: &Value) -> ZeroBudget {
    let fields = ["nodes", "reasons", "schedule", "duration"];
    let written = fields.iter().filter(|field| !budget[**field].is_null());
    let words: Vec<String> = written.map(|field| format!("{field}: {}", budget[*field])).collect();
    ZeroBudget { words: words.join(", "), is_always: budget["schedule"].is_null() }
}
