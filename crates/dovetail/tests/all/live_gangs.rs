//! What `dovetail why` tells of gangs of which some pods run, against a server in miniature.

use serde_json::{Value, json};

use crate::live::{cluster, connected, pod, with};

/// Pods of a gang of at least two; those with a node run.
fn gang(name: &str, nodes: &[Option<&str>], annotations: Value) -> Vec<Value> {
    let member = |(at, node): (usize, &Option<&str>)| {
        let mut pod = pod(&format!("{name}-{at}"), 1);
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": name});
        pod["metadata"]["annotations"] = annotations.clone();
        match node {
            Some(node) => with(pod, "nodeName", json!(node)),
            None => pod,
        }
    };
    nodes.iter().enumerate().map(member).collect()
}

#[test]
fn the_table_of_a_gang_says_of_each_pod_what_the_answer_says() {
    let two = json!({"dovetail.dev/min-members": "2"});
    let at_most_two = json!({"dovetail.dev/min-members": "2", "dovetail.dev/max-members": "2"});
    let nodes = [Some("n0"), Some("n1"), None];
    let mut held = gang("held", &nodes, two.clone());
    held[2] = with(held[2].clone(), "schedulingGates", json!([{"name": "example.com/g"}]));
    let full = gang("full", &nodes, at_most_two);
    let mut claims = gang("claims", &nodes, two);
    let missing = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]);
    claims[2] = with(claims[2].clone(), "volumes", missing);
    let api = cluster(&[held, full, claims].concat());
    let folder = connected(&api);
    let told = |name: &str| {
        let why = folder.json(&format!("why {name} --kubeconfig kubeconfig"));
        let last = &why["gang"]["members"][2];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&why["state"]), text(&why["message"]), text(&last["state"]))
    };
    let text = str::to_owned;
    let has_enough =
        "2 of the 3 pods of gang team/held have a node, and scheduling gates block the other one";
    assert_eq!(told("held"), (text("placed"), text(has_enough), text("waits")));
    for name in ["full", "full-2"] {
        let (state, message, of_pod) = told(name);
        assert!(message.contains("gang team/full"), "{message}");
        assert_eq!((&*state, &*of_pod), ("waits", "waits"), "{message}");
    }
    for name in ["claims", "claims-2"] {
        let (state, message, of_pod) = told(name);
        assert!(message.contains("missing"), "{message}");
        assert_eq!((&*state, &*of_pod), ("not_started", "not_started"), "{message}");
    }
}

/// Its owner has not made them anew: how many there are, and what comes of it, by what its owner
/// wants.
#[test]
fn a_running_gang_that_is_short_says_by_how_many() {
    let of_four = |on_lost: &str| {
        let annotations = json!({"dovetail.dev/min-members": "4", "dovetail.dev/decision": "0-1/4",
            "dovetail.dev/on-lost-member": on_lost});
        gang(on_lost, &[Some("n0"), Some("n1")], annotations)
    };
    let api = cluster(&[of_four("wait"), of_four("restart")].concat());
    let folder = connected(&api);
    for (name, then) in [
        ("wait", "the gang keeps waiting"),
        ("restart", "its pods are deleted after it has been too small for 60 s"),
    ] {
        let why = folder.json(&format!("why {name} --kubeconfig kubeconfig"));
        let expected = format!(
            "all 2 pods of gang team/{name} have a node, 2 fewer than start together: the missing pods have not been \
             recreated. A running scheduler reserves capacity for lost pods, for 30 s each, unless \
             they were preempted; no object records when the reservation started; {then}"
        );
        assert_eq!((&why["message"], &why["gang"]["lacks_pods"]), (&json!(expected), &json!(2)));
    }
}
/// Gangs of other schedulers are theirs: what they lack nobody knows here.
#[test]
fn a_gang_of_another_scheduler_is_not_ours() {
    let member = |name: &str| {
        let mut pod = with(pod(name, 1), "schedulerName", json!("default-scheduler"));
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": "theirs"});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
        pod
    };
    let api = cluster(&[member("a"), member("b")]);
    let folder = connected(&api);
    let why = folder.json("why theirs --kubeconfig kubeconfig");
    assert_eq!(why["state"], "not_ours", "{why:#}");
    assert_eq!(folder.json("queue --kubeconfig kubeconfig")["not_in_line"], json!([]));
}
