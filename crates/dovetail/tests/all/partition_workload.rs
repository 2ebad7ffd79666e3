//! `dovetail partition apply --workload` on a real API server with its controllers and
//! kube-scheduler, under the rights of deploy/sharing, with latency in a real Prometheus.

use std::collections::BTreeSet;

use dovetail_testkit::{PrometheusServer, cluster};
use serde_json::{Value, json};

use crate::partition_apply::{Setting, policy};
use crate::partition_guard::{HOUR_MS, HOURS, events, has, now_ms, samples, step};

/// What `--workload` alone takes of `apps`; every run lists both kinds.
pub(crate) const RIGHTS: [(&str, &str); 4] = [
    ("deployments", "get"),
    ("deployments", "patch"),
    ("statefulsets", "get"),
    ("statefulsets", "patch"),
];
const SLICE: &str = "nvidia.com/mig-1g.10gb";
const RECORD: &str = "dovetail.dev/former-requests";

fn setting(nodes: &[&str], gpus: &[Vec<(&str, u32)>], first: (&str, u32)) -> Setting {
    let options =
        cluster::Options { scheduler: true, controller_manager: true, ..Default::default() };
    let setting = Setting::with(nodes, gpus, first, options);
    setting.set_up();
    setting
}

/// A workload whose container `c` has these limits.
fn workload(kind: &str, name: &str, replicas: u32, limits: &Value) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i",
                "resources": {"limits": limits}}]}}}})
}

fn whole(name: &str, replicas: u32) -> Value {
    workload("Deployment", name, replicas, &json!({"nvidia.com/gpu": "1"}))
}

/// Exit code and rows of a call.
fn apply(setting: &Setting, more: &str) -> (Option<i32>, Value) {
    let call = format!(
        "partition apply --settle 0s --config-delay 2s --output json --kubeconfig {} {more}",
        setting.kubeconfig
    );
    let done = setting.folder.call(&call);
    let document = serde_json::from_str(&done.out);
    (done.code, document.unwrap_or_else(|error| panic!("{error}: {done:?}")))
}

/// The row of the one workload that is asked to change.
fn ask(setting: &Setting, name: &str, resource: &str, more: &str) -> (Option<i32>, Value) {
    let name = if name.contains('/') { name.to_owned() } else { format!("Deployment/{name}") };
    // Nodes do not change for its new pods in the same call.
    let flags = "--pending-for 1h --prometheus none";
    let (code, document) =
        apply(setting, &format!("{flags} --workload default/{name}={resource} {more}"));
    (code, row(&document, &format!("default/{name}")).clone())
}

fn row<'v>(document: &'v Value, workload: &str) -> &'v Value {
    let rows = document["workloads"].as_array().expect("workloads").iter();
    let mut rows = rows.filter(|row| row["workload"] == workload);
    let row = rows.next().unwrap_or_else(|| panic!("no row of {workload}: {document}"));
    assert!(rows.next().is_none(), "{document}");
    row
}

fn limits(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
}

fn record(object: &Value) -> Value {
    let text = object["metadata"]["annotations"][RECORD].as_str().expect("a record");
    serde_json::from_str(text).expect("JSON")
}

fn rolls(setting: &Setting, name: &str) {
    setting.kubectl(&["rollout", "status", &format!("deployment/{name}"), "--timeout=120s"]);
}

fn pods(setting: &Setting, name: &str) -> Vec<Value> {
    let pods = setting.get(&["pods", "-l", &format!("app={name}")]);
    pods["items"].as_array().expect("pods").clone()
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

fn told<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_default()
}

#[test]
fn a_workload_gets_a_slice_that_is_made_for_it_and_its_gpu_back() {
    let nodes = ["n0", "n1", "n2"];
    let setting = setting(&nodes, &[vec![], vec![]], ("nvidia\\.com/gpu", 2));
    let spec =
        json!({"mode": "mig", "profiles": ["1g.10gb"], "allowModeChange": true, "apply": true});
    setting.create(&policy("shared", spec));
    setting.create(&whole("chat", 1));
    rolls(&setting, "chat");
    what_cannot_be_changed_is_refused_with_the_reason(&setting);
    manifests_in_git_are_printed_and_not_changed(&setting);

    let before = setting.get(&["deployment", "chat"]);
    let (code, planned) = ask(&setting, "chat", SLICE, "--dry-run");
    assert_eq!((code, &planned["outcome"]), (Some(0), &json!("planned")), "{planned}");
    assert_eq!(limits(&setting.get(&["deployment", "chat"])), limits(&before));
    let (code, changed) = ask(&setting, "chat", SLICE, "");
    assert_eq!((code, &changed["outcome"]), (Some(0), &json!("Changed")), "{changed}");
    assert!(told(&changed, "manifest").contains("nvidia.com/mig-1g.10gb: 1"), "{changed}");
    let chat = setting.get(&["deployment", "chat"]);
    assert_eq!(*limits(&chat), json!({"nvidia.com/gpu": "0", SLICE: "1"}));
    let known = record(&chat);
    assert_eq!(
        (&known["from"], &known["to"], &known["container"], &known["policy"]),
        (&json!("nvidia.com/gpu"), &json!(SLICE), &json!("c"), &json!("shared"))
    );
    let told_by = events(&setting, "Deployment", "chat");
    assert!(has(&told_by, "RequestsChanged", "instead of nvidia.com/gpu"), "{told_by:?}");
    assert!(has(&events(&setting, "SharingPolicy", "shared"), "RequestsChanged", "chat"));

    // The new pod is pending, which is how the planner learns what to create.
    setting.waits_for("deployment/chat", "{.status.unavailableReplicas}=1");
    let (_, cut) = apply(&setting, "--pending-for 0s --prometheus none");
    let nodes = cut["nodes"].as_array().expect("nodes").iter();
    let done: Vec<&Value> = nodes.filter(|row| row["outcome"] == "Done").collect();
    assert_eq!(done.len(), 1, "{cut}");
    rolls(&setting, "chat");
    setting.waits_for("deployment/chat", "{.status.replicas}=1");
    asking_again_changes_nothing(&setting);

    let back = setting.call("rollback --workload default/Deployment/chat");
    assert_eq!(row(&back, "default/Deployment/chat")["outcome"], "Returned", "{back}");
    let chat = setting.get(&["deployment", "chat"]);
    assert_eq!(*limits(&chat), json!({"nvidia.com/gpu": "1"}));
    let again = setting.call("rollback --workload default/Deployment/chat");
    assert_eq!(row(&again, "default/Deployment/chat")["outcome"], "unchanged", "{again}");
    rolls(&setting, "chat");
    // The slice is free once the last pod of the slice has ended.
    setting.waits_for("deployment/chat", "{.status.replicas}=1");
    a_stateful_set_changes_where_its_slices_are_free(&setting);
    let used = setting.used();
    for (resource, verb) in RIGHTS {
        let right = ("apps".to_owned(), resource.to_owned(), verb.to_owned());
        assert!(used.contains(&right), "{right:?}");
    }
    assert_eq!(setting.refused(), BTreeSet::new());
}

fn what_cannot_be_changed_is_refused_with_the_reason(setting: &Setting) {
    let mut recreated = whole("recreated", 1);
    recreated["spec"]["strategy"] = json!({"type": "Recreate"});
    let mut several = whole("several", 0);
    let mut other = several["spec"]["template"]["spec"]["containers"][0].clone();
    other["name"] = json!("d");
    several["spec"]["template"]["spec"]["containers"].as_array_mut().expect("a list").push(other);
    let db = workload("StatefulSet", "db", 1, &json!({"nvidia.com/gpu": "1"}));
    let two = workload("Deployment", "two", 0, &json!({"nvidia.com/gpu": "2"}));
    let none = workload("Deployment", "none", 0, &json!({"cpu": "1"}));
    let mut elsewhere = whole("elsewhere", 0);
    elsewhere["spec"]["template"]["spec"]["nodeSelector"] = json!({"pool": "other"});
    for object in [&recreated, &several, &db, &two, &none, &elsewhere] {
        setting.create(object);
    }
    for (name, resource, words) in [
        ("recreated", SLICE, "Recreate terminates all pods first, and only 0 of 1"),
        (
            "StatefulSet/db",
            SLICE,
            "a StatefulSet terminates each pod before it starts the replacement",
        ),
        ("several", SLICE, "containers c, d request GPUs"),
        ("two", SLICE, "container c requests 2 × nvidia.com/gpu"),
        ("none", SLICE, "no container of its pod template requests a GPU"),
        ("elsewhere", SLICE, "none of its nodes takes the pods"),
        ("absent", SLICE, "the cluster has no such workload"),
        ("Job/train", SLICE, "only a Deployment or a StatefulSet can be changed, not a Job"),
        ("chat", "nvidia.com/mig-2g.20gb", "list 2g.20gb in the `profiles`"),
        ("chat", "nvidia.com/gpu.shared", "mode time-slicing or mps"),
        ("chat", "cpu", "cpu is not a resource that a SharingPolicy provides"),
    ] {
        let (code, row) = ask(setting, name, resource, "");
        assert_eq!((code, &row["outcome"]), (Some(1), &json!("refused")), "{name}: {row}");
        assert!(told(&row, "problem").contains(words), "{name}: {row}");
    }
    let back = "partition rollback --workload default/Deployment/chat --kubeconfig";
    let refused = setting.folder.call(&format!("{back} {}", setting.kubeconfig));
    assert!(refused.out.contains("dovetail has not changed its requests"), "{refused:?}");
    setting.kubectl(&["delete", "deployment", "recreated"]);
}

fn manifests_in_git_are_printed_and_not_changed(setting: &Setting) {
    let mut argo = whole("argo", 0);
    argo["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:default/argo"});
    setting.create(&argo);
    setting.folder.write("fleet.json", &whole("fleet", 0).to_string());
    let file = setting.folder.path("fleet.json").display().to_string();
    setting.kubectl(&["create", "--field-manager=fleetagent", "-f", &file]);
    for (name, words) in [("argo", "Argo CD application shop"), ("fleet", "manager fleetagent")] {
        let before = setting.get(&["deployment", name]);
        let (code, row) = ask(setting, name, SLICE, "");
        assert_eq!((code, &row["outcome"]), (Some(0), &json!("manifest")), "{row}");
        assert!(told(&row, "problem").contains(words), "{row}");
        let after = setting.get(&["deployment", name]);
        assert_eq!(after["spec"], before["spec"]);
        assert!(after["metadata"]["annotations"][RECORD].is_null(), "{after}");
        // The server takes the lines as they are printed.
        setting.folder.write("lines.yaml", told(&row, "manifest"));
        let lines = setting.folder.path("lines.yaml").display().to_string();
        let patch = ["patch", "deployment", name, "--dry-run=server", "-o", "json"];
        let patched = setting.kubectl(&[&patch[..], &["--patch-file", &lines]].concat());
        let patched: Value = serde_json::from_str(&patched).expect("JSON");
        assert_eq!(limits(&patched)[SLICE], "1", "{patched}");
    }
}

fn asking_again_changes_nothing(setting: &Setting) {
    let before = setting.get(&["deployment", "chat"]);
    let (code, again) = ask(setting, "chat", SLICE, "");
    assert_eq!((code, &again["outcome"]), (Some(0), &json!("unchanged")), "{again}");
    let after = setting.get(&["deployment", "chat"]);
    assert_eq!(version(&after), version(&before));
}

/// No pod of it could start while there was no slice.
fn a_stateful_set_changes_where_its_slices_are_free(setting: &Setting) {
    let names: Vec<String> = pods(setting, "chat")
        .iter()
        .filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
        .map(|pod| format!("pod/{}", told(&pod["metadata"], "name")))
        .collect();
    for name in names {
        setting.kubectl(&["wait", &name, "--for=delete", "--timeout=120s"]);
    }
    let (code, row) = ask(setting, "StatefulSet/db", SLICE, "");
    assert_eq!((code, &row["outcome"]), (Some(0), &json!("Changed")), "{row}");
    setting.kubectl(&["rollout", "status", "statefulset/db", "--timeout=120s"]);
    let of_db = pods(setting, "db");
    let asked = &of_db[0]["spec"]["containers"][0]["resources"]["limits"][SLICE];
    assert_eq!(asked, "1", "{of_db:?}");
}

/// A service that is 12% slower since `changed_ms`.
fn prometheus(setting: &Setting, changed_ms: u64) -> PrometheusServer {
    let mut lines = vec!["# TYPE vllm:e2e_request_latency_seconds_bucket gauge".to_owned()];
    samples(&mut lines, "chat-4d-zzzzz", 6.0, changed_ms - 24 * HOUR_MS);
    samples(&mut lines, "chat-5f-bbbbb", 6.0 * 1.12, changed_ms);
    lines.push("# EOF\n".to_owned());
    setting.folder.write("history.txt", &lines.join("\n"));
    let folder = setting.folder.path(".");
    PrometheusServer::write_blocks(&folder, &setting.folder.path("history.txt"));
    PrometheusServer::start(&folder, "scrape_configs: []\n")
}

/// The server refuses to take the slice away again: as if the program died before it asks.
fn refuse_the_way_back(setting: &Setting) {
    let version = "admissionregistration.k8s.io/v1";
    let expression = format!(
        "request.userInfo.username != 'sharer' || \
         '{SLICE}' in object.spec.template.spec.containers[0].resources.limits"
    );
    setting.create(&json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "back"},
        "spec": {"validations": [{"expression": expression}], "matchConstraints":
            {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["deployments"]}]}}}));
    setting.create(&json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "back"},
        "spec": {"policyName": "back", "validationActions": ["Deny"]}}));
}

/// The workload as if its pods had been replaced at a time.
fn changed_at(setting: &Setting, name: &str, changed_ms: u64) {
    let mut known = record(&setting.get(&["deployment", name]));
    known["startedMs"] = json!(changed_ms - 60_000);
    known["sinceMs"] = json!(changed_ms);
    let patch = json!({"metadata": {"annotations": {RECORD: known.to_string()}}}).to_string();
    setting.kubectl(&["patch", "deployment", name, "--type=merge", "-p", &patch]);
}

#[test]
fn a_slower_workload_gets_its_gpu_back_and_no_other_changes() {
    if !PrometheusServer::is_there() {
        return;
    }
    let gpus = [vec![("1g.10gb", 7)], vec![]];
    let setting = setting(&["n0"], &gpus, ("nvidia\\.com/gpu", 1));
    refuse_the_way_back(&setting);
    let spec = json!({"mode": "mig", "profiles": ["1g.10gb"], "apply": true, "guard": {}});
    setting.create(&policy("shared", spec));
    setting.create(&whole("chat", 1));
    setting.create(&whole("second", 0));
    rolls(&setting, "chat");
    let (_, dry) = apply(&setting, &format!("--prometheus none --dry-run {}", ask_both()));
    assert_eq!(row(&dry, "default/Deployment/chat")["outcome"], "planned", "{dry}");
    let of_second = row(&dry, "default/Deployment/second");
    assert_eq!(of_second["outcome"], "waits", "{dry}");
    let because = "waiting for the latency check of workload default/Deployment/chat";
    assert_eq!(told(of_second, "problem"), because);
    let (_, changed) = ask(&setting, "chat", SLICE, "");
    assert_eq!(changed["outcome"], "Rolling", "{changed}");
    let waits = |words: &str| {
        let (code, row) = ask(&setting, "second", SLICE, "");
        assert_eq!((code, &row["outcome"]), (Some(0), &json!("waits")), "{row}");
        assert!(told(&row, "problem").contains(words), "{row}");
    };
    waits(because);
    // No GPU is free beside the old pod: kube-scheduler takes 0 as not asked for.
    rolls(&setting, "chat");
    let (_, watched) = apply(&setting, "--prometheus none");
    let of_chat = row(&watched, "default/Deployment/chat");
    assert_eq!((&of_chat["outcome"], &of_chat["latency"]), (&json!("Changed"), &json!("waiting")));
    assert_eq!(step(&setting), "Watching");
    waits(because);

    let changed_ms = now_ms() / 60_000 * 60_000 - (HOURS + 2) * HOUR_MS;
    let server = prometheus(&setting, changed_ms);
    changed_at(&setting, "chat", changed_ms);
    let flag = format!("--prometheus {}", server.url);
    a_verdict_is_kept_if_the_way_back_is_cut_off(&setting, &flag);
    let chat = setting.get(&["deployment", "chat"]);
    assert_eq!(*limits(&chat), json!({"nvidia.com/gpu": "1"}));
    let known = record(&chat);
    assert_eq!(known["watch"]["outcome"], "Worse", "{known}");
    for (kind, name) in [("Deployment", "chat"), ("SharingPolicy", "shared")] {
        let told = events(&setting, kind, name);
        assert!(has(&told, "LatencyWorse", "default/chat (vLLM): p50 +1"), "{told:?}");
        assert!(has(&told, "RequestsReturned", "latency got worse"), "{told:?}");
        assert_eq!(told.iter().filter(|(reason, _)| reason == "LatencyWorse").count(), 1);
    }
    rolls(&setting, "chat");
    waits("latency of workload default/Deployment/chat is worse");
    assert_eq!(step(&setting), "Stopped");
    assert_eq!(setting.refused(), BTreeSet::new());
}

/// The flags that ask for both workloads to change.
fn ask_both() -> String {
    ["chat", "second"].map(|name| format!("--workload default/Deployment/{name}={SLICE}")).join(" ")
}

/// The way back is reported, whether or not the workload is asked to change again.
fn a_dry_run_reports_the_way_back(setting: &Setting, flags: &str) {
    for asked in [String::new(), ask_both()] {
        let (_, dry) = apply(setting, &format!("{flags} --dry-run {asked}"));
        let of_chat = row(&dry, "default/Deployment/chat");
        assert_eq!((&of_chat["outcome"], &of_chat["from"]), (&json!("planned"), &json!(SLICE)));
        assert!(told(of_chat, "latency").starts_with("worse: "), "{of_chat}");
        if !asked.is_empty() {
            let because = "latency of workload default/Deployment/chat is worse";
            let of_second = row(&dry, "default/Deployment/second");
            assert_eq!(of_second["outcome"], "waits", "{of_second}");
            assert!(told(of_second, "problem").starts_with(because), "{of_second}");
        }
    }
}

fn a_verdict_is_kept_if_the_way_back_is_cut_off(setting: &Setting, flag: &str) {
    a_dry_run_reports_the_way_back(setting, flag);
    // It has written neither the way back nor the verdict.
    assert_eq!(record(&setting.get(&["deployment", "chat"]))["watch"]["outcome"], "Waiting");
    let call = format!("partition apply --output json --kubeconfig {} {flag}", setting.kubeconfig);
    let cut_off = setting.folder.call(&call);
    assert!(cut_off.code == Some(1) && cut_off.err.contains("back"), "{cut_off:?}");
    let chat = setting.get(&["deployment", "chat"]);
    assert_eq!(limits(&chat)[SLICE], "1");
    assert_eq!(record(&chat)["watch"]["outcome"], "Worse");
    a_dry_run_reports_the_way_back(setting, "--prometheus none");
    setting.kubectl(&["delete", "validatingadmissionpolicybinding", "back"]);
    // The server takes a while to forget it.
    let returned = (0..100).map(|_| setting.folder.call(&call)).find(|done| done.code == Some(0));
    let returned = returned.expect("the server takes the former request");
    let document: Value = serde_json::from_str(&returned.out).expect("JSON");
    let row = row(&document, "default/Deployment/chat");
    assert_eq!(row["outcome"], "Returned", "{row}");
    assert!(told(row, "latency").starts_with("worse: "), "{row}");
}

#[test]
fn without_the_right_to_list_workloads_nodes_are_followed_and_a_guard_lets_none_change() {
    let setting = setting(&["n0"], &[vec![], vec![]], ("nvidia\\.com/gpu", 2));
    let role = setting.get(&["clusterrole", "dovetail-sharing"]);
    let rules = role["rules"].as_array().expect("rules").iter();
    let is_of_workloads =
        |rule: &&Value| rule["resources"] == json!(["deployments", "statefulsets"]);
    let mut rules: Vec<Value> = rules.cloned().collect();
    let rule = rules.iter_mut().find(|rule| is_of_workloads(&&**rule)).expect("the rule");
    rule["verbs"] = json!(["get", "patch"]);
    let patch = json!({"rules": rules}).to_string();
    setting.kubectl(&["patch", "clusterrole", "dovetail-sharing", "--type=merge", "-p", &patch]);
    setting.create(&policy("shared", json!({"mode": "mig", "apply": true, "guard": {}})));
    setting.create(&whole("chat", 0));
    let call = format!(
        "partition apply --prometheus none --output json --kubeconfig {} \
         --workload default/Deployment/chat={SLICE}",
        setting.kubeconfig
    );
    let words = "the credentials are not allowed to list deployments.apps and statefulsets.apps";
    // Authorization follows the role after a while; a dry run changes nothing until then.
    let noted = (0..100)
        .map(|_| setting.folder.call(&format!("{call} --dry-run")))
        .find(|done| done.err.contains(words));
    noted.expect("a note");
    let refused = setting.folder.call(&call);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.out.contains("whether another change is being watched is unknown"),
        "{refused:?}"
    );
    assert!(limits(&setting.get(&["deployment", "chat"]))[SLICE].is_null());
    assert_eq!(step(&setting), "Idle");
}
