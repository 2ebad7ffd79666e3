//! `dovetail serve` under the rights that its manifests give it, on a real server that notes every
//! request.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use dovetail_testkit::binaries::Program;
use dovetail_testkit::{ControlPlane, FreshControlPlane, cluster};
use serde_json::{Value, json};

use crate::fake_prometheus::{FakePrometheus, Made, Query, two_gpus as series};
use crate::program::Folder;
use crate::serve::{READ, Served};

const ACCOUNT: &str = "system:serviceaccount:dovetail:dovetail-serve";

/// Groups of kinds that the server of this test does not have.
const ABSENT: [&str; 9] = [
    "kyverno.io",
    "jobset.x-k8s.io",
    "kueue.x-k8s.io",
    "leaderworkerset.x-k8s.io",
    "kubeflow.org",
    "trainer.kubeflow.org",
    "ray.io",
    "argoproj.io",
    "serving.kserve.io",
];

/// API group, resource, verb.
pub(crate) type Right = (String, String, String);

/// A control plane that notes every request of the users whose rights are tested, and knows others
/// besides.
pub(crate) fn noting() -> FreshControlPlane {
    noting_beside(cluster::Options::default())
}

/// The same with the components of `options`.
pub(crate) fn noting_beside(options: cluster::Options) -> FreshControlPlane {
    let groups = vec!["system:serviceaccounts".to_owned()];
    let account = cluster::User { name: ACCOUNT.to_owned(), groups };
    let others = ["sharer", "viewer", "reader", "stranger"].map(cluster::User::named);
    let options = cluster::Options {
        users: [account].into_iter().chain(others).collect(),
        noted_users: [ACCOUNT, "sharer", "viewer"].map(str::to_owned).into(),
        ..options
    };
    ControlPlane::fresh_with(options).expect("a control plane")
}

pub(crate) fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> String {
    let program = control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    let output = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", control_plane.kubeconfig())
        .output()
        .expect("kubectl");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {told}");
    String::from_utf8(output.stdout).expect("text")
}

/// The token in a user's kubeconfig.
fn token(control_plane: &ControlPlane, user: &str) -> String {
    let path = control_plane.cluster().kubeconfig_of(user);
    let text = std::fs::read_to_string(path).expect("a kubeconfig");
    let config: Value = serde_json::from_str(&text).expect("JSON");
    config["users"][0]["user"]["token"].as_str().expect("a token").to_owned()
}

/// What the account asked for, and was refused.
pub(crate) fn asked(log: &str) -> (BTreeSet<Right>, Vec<String>) {
    let (mut rights, mut refused) = (BTreeSet::new(), Vec::new());
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("an audit event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if event["responseStatus"]["code"] == 403 {
            refused.push(format!("{} {}", text(&event["verb"]), text(&event["requestURI"])));
        }
        let object = &event["objectRef"];
        let Some(resource) = object["resource"].as_str() else { continue };
        rights.insert((text(&object["apiGroup"]), resource.to_owned(), text(&event["verb"])));
    }
    (rights, refused)
}

/// What a role lets do.
pub(crate) fn granted(role: &Value) -> BTreeSet<Right> {
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        list.map(str::to_owned).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter();
                rights.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    rights
}

#[test]
fn it_reads_with_every_right_of_its_manifest_and_no_other_and_writes_nothing() {
    let folder = Folder::new();
    let control_plane = noting();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/serve");
    let deploy = deploy.display().to_string();
    kubectl(&control_plane, &["apply", "--validate=strict", "-k", &deploy]);
    let role = "--clusterrole=dovetail-serve-reader";
    kubectl(&control_plane, &["create", "clusterrolebinding", "reads", role, "--user=reader"]);
    let server = FakePrometheus::start(series);
    let kubeconfig = control_plane.cluster().kubeconfig_of(ACCOUNT).display().to_string();
    let served = Served::start(
        &folder,
        &format!(
            "--kubeconfig {kubeconfig} --prometheus {} --store ledger.db --back 2h --every 1d \
             --accept-cluster-tokens",
            server.url
        ),
    );
    served.waits_for(READ);
    for (user, path, expected) in [
        ("reader", "/metrics", 200),
        ("reader", "/allocation?window=1d", 200),
        ("stranger", "/metrics", 403),
        ("stranger", "/healthz", 200),
    ] {
        let header = format!("Authorization: Bearer {}\r\n", token(&control_plane, user));
        let (status, text) = served.ask(path, &header);
        assert_eq!(status, expected, "{user} {path}: {text}");
    }
    assert_eq!(served.ask("/metrics", "").0, 401);
    assert_eq!(served.ask("/metrics", "Authorization: Bearer nobody-knows-it\r\n").0, 401);
    assert_eq!(served.end(), Some(0));

    let (used, refused) = asked(&control_plane.noted());
    assert!(refused.is_empty(), "{refused:?}");
    let text = kubectl(&control_plane, &["get", "clusterrole", "dovetail-serve", "-o", "json"]);
    let mut granted = granted(&serde_json::from_str(&text).expect("JSON"));
    granted.retain(|(group, _, _)| !ABSENT.contains(&group.as_str()));
    let used: BTreeSet<Right> =
        used.into_iter().filter(|(group, _, _)| !ABSENT.contains(&group.as_str())).collect();
    assert_eq!(used, granted);
    // Reviews are questions: the server keeps none of them.
    let writes = used.iter().filter(|(_, _, verb)| verb != "list" && verb != "get");
    let writes: Vec<&str> = writes.map(|(_, resource, _)| resource.as_str()).collect();
    assert_eq!(writes, ["tokenreviews", "subjectaccessreviews"]);
}

/// A GPU that a pod of `train` holds and that does nothing, and one that a pod of `done` used until
/// an hour ago.
fn idle_series(query: &Query) -> Vec<Made> {
    let now_s = jiff::Timestamp::now().as_second() as f64;
    let moments = query.moments.clone();
    let of = |name: &str, more: Value, value: Box<dyn Fn(usize) -> Option<f64>>| -> Made {
        let mut labels = json!({"pod": format!("{name}-0"), "namespace": "vision"});
        labels.as_object_mut().expect("labels").extend(more.as_object().expect("labels").clone());
        (labels, value)
    };
    let ended = move |place: usize| (moments[place] < now_s - 3600.0).then_some(1.0);
    if query.text.contains("GR_ENGINE_ACTIVE[") {
        let gpu = |uuid: &str| json!({"UUID": uuid, "Hostname": "n1", "modelName": "NVIDIA H100"});
        return vec![
            of("train", gpu("a"), Box::new(|_| Some(0.0))),
            of("done", gpu("b"), Box::new(ended)),
        ];
    }
    if query.text.contains("kube_pod_info") {
        let owner = |kind: &str, name: &str| json!({"uid": name, "node": "n1", "created_by_kind": kind, "created_by_name": name});
        return vec![
            of("train", owner("StatefulSet", "train"), Box::new(|_| Some(1.0))),
            of("done", owner("Job", "done"), Box::new(|_| Some(1.0))),
        ];
    }
    Vec::new()
}

const OWNER: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}},
  {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "train", "namespace": "vision"},
   "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "train"}}, "serviceName": "train",
    "template": {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [
     {"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}},
  {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "done", "namespace": "vision"},
   "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
     {"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}]}"#;

#[test]
fn owners_are_told_once_of_idle_gpus_and_ended_jobs_and_nothing_else_is_written() {
    let folder = Folder::new();
    let control_plane = noting();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/serve");
    kubectl(&control_plane, &["apply", "--validate=strict", "-k", &deploy.display().to_string()]);
    let rights = deploy.join("notices.yaml").display().to_string();
    kubectl(&control_plane, &["apply", "--validate=strict", "-f", &rights]);
    folder.write("owner.json", OWNER);
    kubectl(&control_plane, &["apply", "-f", &folder.path("owner.json").display().to_string()]);
    folder.write("dovetail.toml", "[notices]\nidle_events = true\nreceipts = true\n");
    let server = FakePrometheus::start(idle_series);
    let kubeconfig = control_plane.cluster().kubeconfig_of(ACCOUNT).display().to_string();
    let flags = format!(
        "--kubeconfig {kubeconfig} --prometheus {} --store ledger.db --back 2h --every 10s \
         --gpu-price H100=6",
        server.url
    );
    // Two rounds, and one of a program that begins anew.
    for rounds in [2, 1] {
        let served = Served::start(&folder, &flags);
        for _ in 0..rounds {
            served.waits_for(READ);
        }
        assert_eq!(served.end(), Some(0));
    }
    let events = kubectl(&control_plane, &["get", "events", "-A", "-o", "json"]);
    let events: Value = serde_json::from_str(&events).expect("JSON");
    let mut events: Vec<&Value> = events["items"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["reportingComponent"] == "dovetail.dev/serve")
        .collect();
    events.sort_by_key(|event| event["reason"].to_string());
    let [receipt, event] = events.as_slice() else { panic!("{events:#?}") };
    let about = &receipt["involvedObject"];
    assert_eq!((&about["kind"], &about["name"]), (&json!("Job"), &json!("done")));
    assert_eq!(receipt["reason"], "GpuReceipt");
    let text = receipt["message"].as_str().expect("a text");
    assert!(text.starts_with("Receipt for Job vision/done: "), "{text}");
    assert!(text.contains("GPU-hours, active 100%, waited unknown, cost $"), "{text}");
    let uid = ["get", "statefulset", "train", "-n", "vision", "-o", "jsonpath={.metadata.uid}"];
    let uid = kubectl(&control_plane, &uid);
    let about = &event["involvedObject"];
    assert_eq!((&about["kind"], &about["name"]), (&json!("StatefulSet"), &json!("train")));
    assert_eq!((&about["apiVersion"], &about["uid"]), (&json!("apps/v1"), &json!(uid)));
    assert_eq!((&event["reason"], &event["type"]), (&json!("GpusIdle"), &json!("Normal")));
    let text = event["message"].as_str().expect("a text");
    // Two hours back to the begin of an hour.
    let idle = ["at least 2", "at least 3"];
    assert!(idle.iter().any(|idle| text.starts_with(idle)), "{text}");
    assert!(text.contains(" h idle, $1"), "{text}");
    assert!(text.contains("1 GPU allocated"), "{text}");
    assert!(text.contains("nothing was changed"), "{text}");

    let (used, refused) = asked(&control_plane.noted());
    assert!(refused.is_empty(), "{refused:?}");
    let writes: Vec<&Right> =
        used.iter().filter(|(_, _, verb)| verb != "list" && verb != "get").collect();
    let only = ("events.k8s.io".to_owned(), "events".to_owned(), "create".to_owned());
    assert_eq!(writes, [&only]);
}

const EXPORTER: &str = r#"{"apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "dcgm-a", "namespace": "gpu-operator", "labels": {"app": "nvidia-dcgm-exporter"}},
  "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i",
    "ports": [{"name": "metrics", "containerPort": 9400}]}]}}"#;

/// The API server connects to no address of its own machine, so nobody answers; what counts is who
/// may ask.
#[test]
fn exporters_are_asked_with_the_rights_of_their_manifest_and_not_without() {
    let folder = Folder::new();
    let control_plane = noting();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/serve");
    kubectl(&control_plane, &["apply", "--validate=strict", "-k", &deploy.display().to_string()]);
    kubectl(&control_plane, &["create", "namespace", "gpu-operator"]);
    folder.write("exporter.json", EXPORTER);
    let exporter = folder.path("exporter.json").display().to_string();
    kubectl(&control_plane, &["apply", "--validate=strict", "-f", &exporter]);
    let status = r#"{"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}"#;
    let pod = ["patch", "pod", "dcgm-a", "-n", "gpu-operator", "--subresource=status"];
    kubectl(&control_plane, &[&pod[..], &["--type=merge", "-p", status]].concat());
    let rights = deploy.join("exporters.yaml").display().to_string();
    let kubeconfig = control_plane.cluster().kubeconfig_of(ACCOUNT).display().to_string();
    let flags = format!(
        "--kubeconfig {kubeconfig} --exporters-in gpu-operator --store ledger.db --every 1d --step 1s"
    );
    let mut read = 0;
    let mut asked_for = |is_granted: bool| {
        if is_granted {
            kubectl(&control_plane, &["apply", "--validate=strict", "-f", &rights]);
        }
        let served = Served::start(&folder, &flags);
        let told = served.waits_for("1 of 1 exporter did not answer");
        assert_eq!(told.contains("status 403"), !is_granted, "{told}");
        assert_eq!(served.end(), Some(0));
        let log = control_plane.noted().split_off(read);
        read += log.len();
        log
    };
    let (_, refused) = asked(&asked_for(false));
    assert!(!refused.is_empty(), "{refused:?}");
    for request in &refused {
        assert!(request.contains("/pods/dcgm-a:9400/proxy/metrics"), "{request}");
    }
    let (used, refused) = asked(&asked_for(true));
    assert!(refused.is_empty(), "{refused:?}");
    let proxied = (String::new(), "pods".to_owned(), "get".to_owned());
    assert!(used.contains(&proxied), "{used:?}");
    let writes = used.iter().filter(|(_, _, verb)| verb != "list" && verb != "get");
    assert_eq!(writes.count(), 0, "{used:?}");
}

#[test]
fn the_command_line_of_the_manifests_is_read() {
    let manifest = include_str!("../../../../deploy/serve/deployment.yaml");
    let (_, rest) = manifest.split_once("args:\n").expect("arguments");
    let words: Vec<&str> = rest.lines().map_while(|line| line.trim().strip_prefix("- ")).collect();
    assert_eq!(words.first(), Some(&"serve"));
    let folder = Folder::new();
    folder.write("dovetail.toml", &settings());
    let words = words.join(" ").replace("/etc/dovetail/dovetail.toml", "dovetail.toml");
    // It is understood as far as it can be where there is no pod.
    let done = folder.call(&words);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("this process does not run in a pod"), "{}", done.err);
}

/// The settings of the manifests, with what is commented out.
fn settings() -> String {
    let manifest = include_str!("../../../../deploy/serve/config.yaml");
    let (_, text) = manifest.split_once("dovetail.toml: |\n").expect("settings");
    text.lines().map(|line| line.trim().trim_start_matches("# ").to_owned() + "\n").collect()
}
