//! Weights of the settings file have a part in what a scheduler decides.

use serde_json::json;

use crate::live::{Running, cluster, connected, pod, until, with};

/// Which pod gets the only free node: one of ten hours that was submitted two hours before one of
/// one hour, or that one.
fn first_to_start(settings: &str) -> String {
    let of = |name: &str, runtime: &str, hour: u32| {
        let mut pod = pod(name, 8);
        pod["metadata"]["annotations"] = json!({"dovetail.dev/runtime": runtime});
        (pod, format!("2020-01-01T{hour:02}:00:00Z"))
    };
    let waiting = [of("old", "10h", 0), of("short", "1h", 2)];
    let mut pods = vec![with(pod("large", 8), "nodeName", json!("n0"))];
    pods.extend(waiting.iter().map(|(pod, _)| pod.clone()));
    let api = cluster(&pods);
    for (pod, created) in &waiting {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        api.overwrite("pods", "team", name, |pod| {
            pod["metadata"]["creationTimestamp"] = json!(created);
        });
    }
    let folder = connected(&api);
    folder.write("dovetail.toml", settings);
    let flags = "--listen 127.0.0.1:0 --no-leader-election";
    let mut command = folder.command(&format!("scheduler --kubeconfig kubeconfig {flags}"));
    let scheduler = Running::start(&mut command);
    until(|| !api.bound().is_empty());
    scheduler.stop();
    let started: Vec<String> = api.bound().into_iter().map(|bound| bound.pod).collect();
    started.join(", ")
}

#[test]
fn weights_of_the_settings_file_decide_who_starts() {
    let order = "[scheduler]\norder = \"dovetail\"\n";
    assert_eq!(first_to_start(order), "old");
    let weights = "[scheduler.weights]\nsize = 1.0\nage = 0.01\n";
    assert_eq!(first_to_start(&format!("{order}{weights}")), "short");
}
