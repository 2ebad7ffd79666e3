//! Questions about a cluster under the rights that `deploy/viewer.yaml` gives, on a real server
//! that notes every request.

use std::collections::BTreeSet;
use std::path::Path;

use dovetail_testkit::{ControlPlane, MachineShape, cluster};
use serde_json::{Value, json};

use crate::program::Folder;
use crate::serve_rights::{Right, asked, granted, kubectl, noting};

fn pod(name: &str, gpus: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default",
        "labels": {"dovetail.dev/queue": "vision"}},
        "spec": {"schedulerName": "dovetail", "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]}})
}

/// A node of eight GPUs, a queue, a pod of it that runs and one that waits.
fn create_objects(control_plane: &ControlPlane, folder: &Folder) {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for file in ["queue-definition.yaml", "reservation-definition.yaml", "viewer.yaml"] {
        let file = deploy.join(file).display().to_string();
        kubectl(control_plane, &["apply", "--validate=strict", "-f", &file]);
    }
    for definition in ["crd/queues.dovetail.dev", "crd/reservations.dovetail.dev"] {
        let established = ["--for=condition=Established", definition, "--timeout=120s"];
        kubectl(control_plane, &[&["wait"], &established[..]].concat());
    }
    let role = "--clusterrole=dovetail-viewer";
    kubectl(control_plane, &["create", "clusterrolebinding", "asks", role, "--user=viewer"]);
    let mut node = "8xH100".parse::<MachineShape>().expect("a shape").node("n0");
    (node["apiVersion"], node["kind"]) = (json!("v1"), json!("Node"));
    let queue = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue",
        "metadata": {"name": "vision"}, "spec": {"namespaceSelector": {}}});
    let mut runs = pod("runs", 6);
    runs["spec"]["nodeName"] = json!("n0");
    let all =
        json!({"apiVersion": "v1", "kind": "List", "items": [node, queue, runs, pod("waits", 4)]});
    folder.write("objects.json", &all.to_string());
    let file = folder.path("objects.json").display().to_string();
    kubectl(control_plane, &["create", "-f", &file]);
}

#[test]
fn people_ask_with_every_right_of_the_viewers_manifest_and_no_other() {
    let folder = Folder::new();
    let control_plane = noting();
    let test = "people_ask_with_every_right_of_the_viewers_manifest_and_no_other";
    if !control_plane.has_gangs(test) {
        return;
    }
    create_objects(&control_plane, &folder);
    let of = |user: &str| control_plane.cluster().kubeconfig_of(user).display().to_string();
    let (viewer, stranger) = (of("viewer"), of("stranger"));
    let why = folder.json(&format!("why waits -n default --kubeconfig {viewer}"));
    assert_eq!((&why["state"], &why["in_line"]["queue"]), (&json!("waits"), &json!("vision")));
    let queue = folder.json(&format!("queue --kubeconfig {viewer}"));
    let vision = &queue["queues"][0];
    assert_eq!((&vision["name"], &vision["gpu_milli"]), (&json!("vision"), &json!(6_000)));
    assert_eq!(queue["waiting"][0]["job"], "default/waits");
    let top = folder.json(&format!("top --kubeconfig {viewer}"));
    let holder = json!([{"pod": "default/runs", "gpus": 6, "is_ending": false}]);
    assert_eq!(top["nodes"][0]["holders"], holder);
    let refused = folder.call(&format!("top --kubeconfig {stranger} --color never"));
    assert!(
        refused.code != Some(0) && refused.err.contains("deploy/viewer.yaml"),
        "{}",
        refused.err
    );

    let (mut used, refused) = asked(&control_plane.noted());
    assert!(refused.is_empty(), "{refused:?}");
    // What `why` reads of the pod itself.
    assert!(used.remove(&(String::new(), "pods".to_owned(), "list".to_owned())));
    let text = kubectl(&control_plane, &["get", "clusterrole", "dovetail-viewer", "-o", "json"]);
    let granted = granted(&serde_json::from_str(&text).expect("JSON"));
    let to = |wanted: &str, rights: &BTreeSet<Right>| -> BTreeSet<(String, String)> {
        let all = rights.iter().filter(|(_, _, verb)| verb == wanted);
        all.map(|(group, resource, _)| (group.clone(), resource.clone())).collect()
    };
    // Lists stream on this server; older ones are listed, whatever is watched.
    let mut listed = to("list", &granted);
    // Read once, and only for pods that request slices.
    assert!(listed.remove(&("dovetail.dev".to_owned(), "sharingpolicies".to_owned())));
    assert_eq!(listed, to("watch", &granted));
    let here = |(group, _, verb): &&Right| {
        matches!(verb.as_str(), "watch" | "get")
            && !cluster::ABSENT_GROUPS.contains(&group.as_str())
    };
    let granted: BTreeSet<&Right> = granted.iter().filter(here).collect();
    assert_eq!(used.iter().collect::<BTreeSet<&Right>>(), granted);
}
