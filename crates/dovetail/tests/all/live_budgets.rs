//! Which disruption budgets keep a pod pending, as `why` tells it.

use serde_json::json;

use crate::live::{cluster, connected, pod, with};

#[test]
fn why_names_the_budget_that_keeps_the_victims_of_a_pod() {
    let mut large = with(pod("large", 8), "nodeName", json!("n0"));
    large["metadata"]["labels"] = json!({"app": "calm"});
    let foreign = with(pod("foreign", 4), "schedulerName", json!("default-scheduler"));
    let foreign = with(foreign, "nodeName", json!("n1"));
    let api = cluster(&[large, foreign, with(pod("first", 8), "priority", json!(5))]);
    let budget = json!({"metadata": {"name": "calm"},
        "spec": {"selector": {"matchLabels": {"app": "calm"}}}});
    api.create("poddisruptionbudgets", "team", &budget).expect("a new budget");
    let status = json!({"status": {"disruptionsAllowed": 0}});
    api.merge("poddisruptionbudgets", "team", "calm", "status", &status).expect("a budget");
    let folder = connected(&api);
    folder.write("dovetail.toml", "[scheduler]\nrespect_pdb = true\n");
    let message = folder.json("why first --kubeconfig kubeconfig")["message"].clone();
    let message = message.as_str().expect("a message");
    let why = " It would start if pods of queue default were evicted, which PodDisruptionBudget \
               team/calm does not allow now: team/large.";
    assert!(message.starts_with("0/2 nodes are available") && message.ends_with(why), "{message}");
}
