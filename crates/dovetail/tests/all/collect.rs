//! `dovetail collect`: what it writes is enough for an audit and a bill, and nothing else is in it.

use serde_json::{Value, json};

use crate::cost::{ended_pod, node, pod};
use crate::program::Folder;

const AT: &str = "--at 2026-11-20T12:00:00Z";

/// A cluster with findings, and secrets in every place that a secret may stand in.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut cordoned = node("g1", 8, "h100");
    cordoned["spec"]["unschedulable"] = json!(true);
    cordoned["spec"]["taints"] =
        json!([{"key": "node.kubernetes.io/unschedulable", "timeAdded": "2026-11-20T02:00:00Z"}]);
    cordoned["metadata"]["annotations"] = json!({"note": "canary-annotation"});
    cordoned["metadata"]["labels"]["nvidia.com/gpu.memory"] = json!("81559");
    let mut serve = pod("prod", "serve-0", 4, "g1");
    serve["metadata"]["labels"]["dovetail.dev/class"] = json!("inference");
    serve["spec"]["containers"][0]["image"] = json!("registry.corp/prod/vllm:1");
    serve["spec"]["containers"][0]["command"] = json!(["canary-command"]);
    serve["spec"]["containers"][0]["args"] =
        json!(["--model", "canary-model-8b", "--key=canary", "--tensor-parallel-size=4"]);
    serve["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "canary-secret"}}]);
    serve["spec"]["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["canary-probe"]}});
    serve["spec"]["containers"][0]["env"] = json!([
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "TOKEN", "value": "canary-env"}
    ]);
    serve["status"]["message"] = json!("canary-message");
    serve["metadata"]["managedFields"] = json!([{"manager": "canary-manager"}]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary-name", "namespace": "prod"},
        "data": {"k": "canary-data"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "prod"},
        "data": {"k": "canary-map"}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "prod"},
        "spec": {"suspend": true, "parallelism": 2, "template": pod("prod", "train-0", 16, "")}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "prod", "uid": "u1", "labels": {"team": "payroll"}}});
    let objects =
        [cordoned, node("g2", 8, "h100"), node("c1", 0, "web"), serve, secret, map, job, namespace];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder
}

fn audit(folder: &Folder, file: &str) -> Value {
    let done = folder.call(&format!("audit --from {file} {AT} --fail-on never --output json"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    let mut document: Value = serde_json::from_str(&done.out).expect("JSON");
    document["sources"] = json!([]);
    document
}

fn collect(folder: &Folder, flags: &str) {
    let done = folder.call(&format!("collect --from dump.json {AT} {flags}"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.is_empty(), "{}", done.out);
}

#[test]
fn a_collection_is_enough_for_an_audit_and_holds_no_secret() {
    let folder = folder();
    collect(&folder, "--output kept.json");
    let kept = folder.read("kept.json");
    assert!(!kept.contains("canary"), "{kept}");
    // An argument that counts processes is named, without its number.
    assert!(kept.contains("\"--tensor-parallel-size\""), "{kept}");
    let full = audit(&folder, "dump.json");
    assert_eq!(audit(&folder, "kept.json"), full);
    // Of the model's name its size is known, and nothing else.
    let mut findings = full["findings"].as_array().expect("findings").iter();
    assert!(findings.any(|finding| finding["id"] == "MOD-02"), "{full:#}");
    let bill = |file: &str| {
        let mut bill = folder.json(&format!("cost --from {file} {AT} --by team,job,cause"));
        bill["sources"] = json!([]);
        bill
    };
    assert_eq!(bill("kept.json"), bill("dump.json"));
    // It knows its moment, and twice is the same.
    let done = folder.call("audit --from kept.json --fail-on never --output json");
    assert!(done.out.contains("\"taken_at\":\"2026-11-20T12:00:00Z\""), "{}", done.out);
    collect(&folder, "--to kept2.json.gz");
    assert_eq!(audit(&folder, "kept2.json.gz"), audit(&folder, "dump.json"));
}

#[test]
fn an_anonymous_collection_costs_the_same_and_is_translated_back() {
    let folder = folder();
    collect(&folder, "--to anon.json --anonymise --names names.json");
    let kept = folder.read("anon.json");
    for name in
        ["canary", "payroll", "\"prod\"", "serve", "\"g1\"", "i-g1", "h100\"", "corp", "train"]
    {
        assert!(!kept.contains(name), "{name}: {kept}");
    }
    let (anonymous, full) = (audit(&folder, "anon.json"), audit(&folder, "dump.json"));
    for part in ["headline", "states", "ladder", "prices"] {
        assert_eq!(anonymous[part], full[part], "{part}");
    }
    let ids = |document: &Value| -> Vec<(String, Value)> {
        let findings = document["findings"].as_array().expect("findings").iter();
        let mut ids: Vec<(String, Value)> = findings
            .map(|finding| (finding["id"].to_string(), finding["usd_micros_per_month"].clone()))
            .collect();
        ids.sort_by_key(|(id, _)| id.clone());
        ids
    };
    assert_eq!(ids(&anonymous), ids(&full));
    let report = folder.call(&format!("audit --from anon.json {AT} --all-findings")).out;
    assert!(report.contains("NodePool anon-") && !report.contains("g1"), "{report}");
    folder.write("report.txt", &report);
    let told = folder.call("collect --translate report.txt --names names.json");
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(
        told.out.contains("cordoned: g1 for 10 h") && !told.out.contains("anon-"),
        "{}",
        told.out
    );
    // The same key gives the same names again.
    collect(&folder, "--to again.json --anonymise --names names.json");
    assert_eq!(folder.read("again.json"), kept);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            std::fs::metadata(folder.path("names.json")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn what_cannot_be_collected_is_told() {
    let folder = folder();
    let told = |flags: &str, code: i32, text: &str| {
        let done = folder.call(&format!("collect {flags}"));
        assert_eq!(done.code, Some(code), "{flags}: {}", done.err);
        assert!(done.err.contains(text) && done.out.is_empty(), "{flags}: {}", done.err);
    };
    told("--to kept.json", 1, "no kubeconfig: ");
    told("--from dump.json", 2, "--to <FILE>");
    told("--to x.json --translate dump.json --names names.json", 2, "cannot be used with");
    let help = folder.call("collect --help").out;
    assert!(help.contains("collect [OPTIONS] <--to <FILE>|--translate <REPORT>>"), "{help}");
    told("--from dump.json --to kept.json --anonymise", 2, "--names <FILE>");
    told("--from dump.json --to x.json --anonymise --names x.json", 2, "both name x.json");
    told("--from dump.json --to x.json --anonymise --names dump.json", 3, "not a table of names");
    told("--translate dump.json --names nowhere.json", 1, "--names nowhere.json: cannot read");
    folder.write("cut.json", "{\"kind\": \"List\", \"items\": [{\"ki");
    told("--from cut.json --to kept.json", 3, "cut.json:1:");
    assert!(!folder.has("kept.json"), "nothing half is left");
}

/// Of what it cannot read nobody learns from the collection: so it says so, and keeps that a field
/// was no object.
#[test]
fn what_has_another_shape_than_it_should_is_left_out_aloud_or_stays_strange() {
    let folder = folder();
    let pod = |name: &str, spec: &str| {
        format!(
            r#"{{"kind": "Pod", "apiVersion": "v1", "metadata": {{"name": "{name}", "namespace": "prod"}}, "spec": {spec}}}"#
        )
    };
    let large =
        pod("large", r#"{"nodeName": "g2", "containers": [{"name": "main"}], "unused": 1e999}"#);
    let lines = [large, pod("strange", "\"secret\""), pod("stranger", r#"{"containers": 5}"#)];
    folder.write("more.json", &lines.join("\n"));
    let done =
        folder.call(&format!("collect --from dump.json --from more.json {AT} --to kept.json"));
    let (told, kept) = (&done.err, folder.read("kept.json"));
    assert!(told.contains("skipped ") && told.contains("Pod prod/large"), "{told}");
    assert!(done.code == Some(0) && !kept.contains("secret"), "{told}");
    let skipped = |file: &str| {
        let found = audit(&folder, file);
        let notes = found["skipped_objects"].clone();
        notes.as_u64().unwrap_or_else(|| panic!("{found:#}"))
    };
    assert_eq!((skipped("kept.json"), skipped("more.json")), (2, 2));
}

/// From a server, and from the file that was collected there: the same findings.
#[test]
fn a_server_is_read_as_its_dump_is() {
    let api = dovetail_testkit::FakeApi::start().expect("a free port");
    let shape = "8xH100".parse::<dovetail_testkit::MachineShape>().expect("a shape");
    api.create("nodes", "", &shape.node("n0")).expect("a new node");
    api.create("namespaces", "", &json!({"metadata": {"name": "prod"}})).expect("a new namespace");
    let mut serve = pod("prod", "serve-0", 4, "n0");
    serve["spec"]["containers"][0]["env"] = json!([{"name": "TOKEN", "value": "canary-env"}]);
    api.create("pods", "prod", &serve).expect("a new pod");
    let folder = crate::live::connected(&api);
    let revision = api.revision();
    let done = folder.call("collect --kubeconfig kubeconfig --to kept.json");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!folder.read("kept.json").contains("canary"));
    let findings = |source: &str| {
        let done = folder.call(&format!("audit {source} --fail-on never --output json"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        let mut document: Value = serde_json::from_str(&done.out).expect("JSON");
        // A moment later more time has gone by.
        for rows in ["states", "findings"] {
            for row in document[rows].as_array_mut().expect("rows") {
                let row = row.as_object_mut().expect("a row");
                row.remove("gpu_hours_so_far");
                row.remove("formula");
            }
        }
        [document["findings"].clone(), document["states"].clone(), document["unseen"].clone()]
    };
    assert_eq!(findings("--kubeconfig kubeconfig"), findings("--from kept.json"));
    assert_eq!(api.revision(), revision, "nothing is written");
    let bill = folder
        .json("cost --kubeconfig kubeconfig --by namespace --gpu-price *=2 --gpu-price H100=2");
    assert_eq!(bill["total"]["gpu_hours"], json!(8.0 * 720.0));
}

/// Eight GPUs on a node, all of them waited for by what has no pods yet: replicas that a quota
/// refuses, a suspended set, a suspended job that Kueue keeps back, a Ray job, replicas beyond what
/// a quota has left; and eight on another node.
fn waited_for() -> Folder {
    let template = || {
        json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "train",
            "resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]}})
    };
    let object = |api_version: &str, kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": api_version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": "secret-team", "uid": name}})
    };
    let replicas = || json!({"replicas": 2, "template": template()});
    let mut refused = object("apps/v1", "ReplicaSet", "serve", replicas());
    refused["status"] = json!({"replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True",
        "reason": "FailedCreate", "message": "exceeded quota: canary-quota"}]});
    let mut short = object("apps/v1", "StatefulSet", "book", replicas());
    short["status"] = json!({"replicas": 1});
    let of_class = json!({"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["canary-class"]}]});
    let amounts = json!({"requests.nvidia.com/gpu": "1"});
    let quota_spec = json!({"hard": amounts, "scopeSelector": of_class});
    let mut quota = object("v1", "ResourceQuota", "canary-quota", quota_spec);
    quota["status"] = json!({"hard": amounts, "used": amounts});
    let job = json!({"name": "work", "replicas": 2,
        "template": {"spec": {"parallelism": 1, "template": template()}}});
    let set = json!({"suspend": true, "replicatedJobs": [job]});
    let set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "set", set);
    let made = json!({"suspend": true, "parallelism": 1, "template": template()});
    let mut made = object("batch/v1", "Job", "set-work-0", made);
    made["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/replicatedjob-name": "work"});
    made["metadata"]["ownerReferences"] =
        json!([{"kind": "JobSet", "name": "set", "uid": "set", "controller": true}]);
    let roles = json!({"Worker": {"replicas": 2, "template": template()}});
    let train = json!({"runPolicy": {"suspend": true}, "pytorchReplicaSpecs": roles});
    let train = object("kubeflow.org/v1", "PyTorchJob", "train", train);
    let pod_sets = json!([{"name": "worker", "count": 2, "template": template()}]);
    let spec = json!({"queueName": "q", "podSets": pod_sets});
    let mut workload = object("kueue.x-k8s.io/v1beta2", "Workload", "pytorchjob-train", spec);
    workload["metadata"]["ownerReferences"] =
        json!([{"kind": "PyTorchJob", "name": "train", "uid": "train", "controller": true}]);
    workload["status"] = json!({"conditions": [{"type": "QuotaReserved", "status": "False",
        "reason": "Pending", "message": "insufficient unused quota in canary-flavor"}]});
    let group = json!({"groupName": "w", "replicas": 1, "template": template()});
    let ray = json!({"suspend": true, "rayClusterSpec": {"workerGroupSpecs": [group]}});
    let ray = object("ray.io/v1", "RayJob", "ray", ray);
    // What is over waits for nobody, though it is suspended; and a quota for other pods keeps none
    // of these.
    let over = |object: &Value, name: &str, status: Value| {
        let mut over = object.clone();
        over["metadata"]["name"] = json!(name);
        over["status"] = status;
        over
    };
    let ended = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}]});
    let all_over = [
        over(&train, "trained", ended("Succeeded")),
        over(&set, "was-set", ended("Completed")),
        over(&ray, "was-ray", json!({"jobDeploymentStatus": "Complete"})),
    ];
    let none = json!({"pods": "0"});
    let mut of_others =
        object("v1", "ResourceQuota", "others", json!({"hard": none, "scopes": ["Terminating"]}));
    of_others["status"] = json!({"hard": none, "used": none});
    let nodes = [node("g1", 8, "h100"), node("g2", 8, "h100")];
    let waiting = [ended_pod(), refused, short, quota, set, made, train, workload, ray, of_others];
    let objects: Vec<Value> = nodes.into_iter().chain(waiting).chain(all_over).collect();
    let folder = Folder::new();
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder
}

#[test]
fn what_waits_without_pods_is_sold_by_nobody_and_is_kept_by_a_collection() {
    let folder = waited_for();
    collect(&folder, "--to kept.json");
    collect(&folder, "--to anon.json --anonymise --names names.json");
    let done = folder.call("collect --from kept.json --to again.json");
    assert_eq!(done.code, Some(0), "{}", done.err);
    for file in ["kept.json", "anon.json"] {
        assert!(!folder.read(file).contains(" canary"), "{}", folder.read(file));
    }
    let anonymous = folder.read("anon.json");
    for name in ["canary", "secret", "serve\"", "book", "set-work", "\"work\"", "train\""] {
        assert!(!anonymous.contains(name), "{name}: {anonymous}");
    }
    // A month of a GPU at the list price is 6.88 × 720 dollars: two refused replicas, one beyond
    // the quota and two of Kueue's for quota, two of the set and one of Ray, eight for nobody.
    let month = |gpus: i64| json!(gpus * 6_880_000 * 720);
    for file in ["dump.json", "kept.json", "again.json", "anon.json"] {
        let bill = folder.json(&format!("cost --from {file} {AT} --by cause"));
        let rows = bill["rows"].as_array().expect("rows").iter();
        let mut free: Vec<(&str, &Value)> = rows
            .map(|row| (row["key"]["cause"].as_str().expect("a cause"), &row["cost_usd_micros"]))
            .collect();
        free.sort_by_key(|(cause, _)| *cause);
        let expected = [
            ("free_no_demand", &month(8)),
            ("free_quota", &month(5)),
            ("free_reserved", &month(3)),
        ];
        assert_eq!(free, expected, "{file}");
        // Who asks for a node that can go sells what nobody waits for, and nothing else.
        let document = audit(&folder, file);
        let findings = document["findings"].as_array().expect("findings").iter();
        let empty = findings.filter(|finding| finding["id"] == "AUT-03");
        let sold: i64 = empty.filter_map(|finding| finding["usd_micros_per_month"].as_i64()).sum();
        assert_eq!(json!(sold), month(8), "{file}: {document:#}");
    }
}
