//! What NodePools and pods say of the removal of empty nodes.

use dovetail_facts::{ObjectRef, RemovalRule, ZeroBudget};
use dovetail_inventory::dump::Keeper;
use serde_json::{Value, json};

use crate::facts::{gathered_whole, node, pod};

fn pool(disruption: &Value) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "h100", "uid": "h100"},
        "spec": {"disruption": disruption, "template": {"spec": {}}}})
}

fn rule(disruption: &Value) -> Option<RemovalRule> {
    let written = pool(disruption);
    let kept = Keeper::default().keep("NodePool", "karpenter.sh/v1", &written).expect("a pool");
    // A collection says the same.
    assert_eq!(kept["spec"]["disruption"], *disruption);
    let found = gathered_whole(&[node("n1", 8), written]);
    found.facts.removal_rules.get(&ObjectRef::new("NodePool", "", "h100")).cloned()
}

#[test]
fn a_node_pool_says_when_its_empty_nodes_are_removed() {
    let after = |policy: &str, after: &str| {
        let rule = rule(&json!({"consolidationPolicy": policy, "consolidateAfter": after}));
        rule.expect("settings").removes_empty_after_ms
    };
    assert_eq!(after("WhenEmptyOrUnderutilized", "1m"), Some(60_000));
    assert_eq!(after("WhenEmpty", "1h30m"), Some(5_400_000));
    assert_eq!(after("WhenEmpty", "Never"), None);
    let old = rule(&json!({"consolidationPolicy": "WhenUnderutilized"}));
    assert_eq!(old.expect("settings").removes_empty_after_ms, Some(0));
    assert_eq!(rule(&json!({})), None);
}

#[test]
fn budgets_of_zero_nodes_are_named_as_written() {
    let budgets = |budgets: Value| {
        let disruption = json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m",
            "budgets": budgets});
        rule(&disruption).expect("settings").zero_budgets
    };
    let budget = |words: &str, is_always| ZeroBudget { words: words.to_owned(), is_always };
    assert_eq!(budgets(json!([{"nodes": "10%"}])), []);
    assert_eq!(budgets(json!([{"nodes": "0", "reasons": ["Drifted"]}])), []);
    assert_eq!(budgets(json!([{"nodes": "0"}])), [budget("nodes: \"0\"", true)]);
    let by_day = json!([{"nodes": "10%"},
        {"nodes": "0%", "schedule": "0 9 * * mon-fri", "duration": "8h"}]);
    let words = "nodes: \"0%\", schedule: \"0 9 * * mon-fri\", duration: \"8h\"";
    assert_eq!(budgets(by_day), [budget(words, false)]);
}

#[test]
fn a_cluster_autoscaler_is_known_by_image_label_or_owner() {
    let runs = |image: &str, app: &str, owner: &str| {
        let mut scaler = pod("scaler", owner, 0, "n1");
        scaler["spec"]["containers"][0]["image"] = json!(image);
        scaler["metadata"]["labels"] = json!({"app.kubernetes.io/name": app});
        gathered_whole(&[node("n1", 8), scaler]).facts.has_cluster_autoscaler
    };
    assert!(runs("registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0", "a", "Job/a"));
    assert!(runs("mirror/ca:1", "aws-cluster-autoscaler", "Job/a"));
    assert!(runs("mirror/ca:1", "a", "ReplicaSet/cluster-autoscaler-5d7f"));
    assert!(!runs(
        "public.ecr.aws/karpenter/controller:1.8",
        "karpenter",
        "ReplicaSet/karpenter-1"
    ));
}
