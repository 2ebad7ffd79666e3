//! `dovetail audit` and `cost` where no server keeps series: exporters are asked themselves.

use dovetail_testkit::{FakeApi, FakeExporter};
use serde_json::{Value, json};

use crate::cost::{node, pod};
use crate::live::connected;
use crate::program::Folder;

/// One GPU works for a pod, one is held by another that does nothing, and `rest`.
pub(crate) fn page(rest: &str) -> String {
    let device = |place: u32, pod: &str, busy: f64| {
        format!(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu=\"{place}\",UUID=\"GPU-{place}\",namespace=\"vision\",\
             pod=\"{pod}\"}} {busy}\n"
        )
    };
    device(0, "train-0", 0.9) + &device(1, "debug-0", 0.0) + rest
}

fn gpus(document: &Value, state: &str) -> f64 {
    let mut states = document["states"].as_array().expect("states").iter();
    states.find(|of| of["state"] == state).map_or(0.0, |of| of["gpus"].as_f64().expect("a number"))
}

const LOOK: &str = "--look-for 2s --look-every 1s --gpu-price *=6 --all-findings";

fn assert_measured(found: &Value) {
    assert_eq!(
        (gpus(found, "active_not_separable"), gpus(found, "idle")),
        (1.0, 1.0),
        "{:#}",
        found["states"]
    );
    // All was measured, and two seconds say nothing of a month.
    let head = &found["headline"];
    assert_eq!((&head["blind_share"], &head["too_recent_share"]), (&json!(0.0), &json!(1.0)));
    assert_eq!(found["measured"]["step_s"], 1.0);
}

fn dump() -> Folder {
    let folder = Folder::new();
    let objects = [
        node("n1", 2, "h100"),
        pod("vision", "train-0", 1, "n1"),
        pod("vision", "debug-0", 1, "n1"),
    ];
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder
}

#[test]
fn one_that_is_named_is_asked_and_its_address_stands_for_the_node() {
    let exporter = FakeExporter::start(vec![page("DCGM_FI_DEV_GPU_UTIL{broken} 1\n")]);
    let call =
        format!("audit --from dump.json --exporter http://{}/metrics {LOOK}", exporter.address);
    let folder = dump();
    assert_measured(&folder.json(&call));
    let told = folder.call(&call).err;
    assert!(
        told.contains("2 lines of exporter output skipped: line 3 of 127.0.0.1 has labels that"),
        "{told}"
    );
}

/// Whose GPUs they are now nobody says; who had them an hour ago says nothing of it.
#[test]
fn what_exporters_say_long_after_the_objects_were_read_is_left_out() {
    let exporter = FakeExporter::start(vec![page("")]);
    let call = format!("--from dump.json --exporter http://{} {LOOK}", exporter.address);
    let hour_ago = jiff::Timestamp::now().checked_sub(jiff::SignedDuration::from_hours(1));
    let hour_ago = hour_ago.expect("a time").to_string();
    let folder = dump();
    let audit = folder.json(&format!("audit {call} --at {hour_ago}"));
    assert_eq!(
        (gpus(&audit, "unknown"), gpus(&audit, "idle")),
        (2.0, 0.0),
        "{:#}",
        audit["states"]
    );
    let call = call.replace("--all-findings", "--by cause");
    let bill = folder.json(&format!("cost {call} --at {hour_ago}"));
    let told = "1 exporter: ignored measurements of 2 pods such as vision/debug-0, from more than \
                5 minutes after";
    for document in [audit, bill] {
        assert!(document["notes"].to_string().contains(told), "{:#}", document["notes"]);
    }
}

/// A pod with its status, which a server takes apart from the rest.
fn create(api: &FakeApi, pod: &Value) {
    let text = |name: &str| pod["metadata"][name].as_str().expect("text");
    let (namespace, name) = (text("namespace"), text("name"));
    api.create("pods", namespace, pod).expect("a pod");
    let status = json!({"status": pod["status"]});
    api.merge("pods", namespace, name, "status", &status).expect("its status");
}

/// A cluster with an exporter in namespace `gpu-operator` that answers, one that does not, and one
/// of somebody else that lies.
pub(crate) fn gpu_operator() -> (FakeApi, FakeExporter, FakeExporter) {
    let api = FakeApi::start().expect("a free port");
    for namespace in ["gpu-operator", "vision"] {
        api.create("namespaces", "", &json!({"metadata": {"name": namespace}}))
            .expect("a namespace");
    }
    api.create("nodes", "", &node("n1", 2, "h100")).expect("a node");
    for name in ["train-0", "debug-0"] {
        create(&api, &pod("vision", name, 1, "n1"));
    }
    let label = json!({"app": "nvidia-dcgm-exporter"});
    let exporter = |namespace: &str, name: &str| {
        json!({"metadata": {"namespace": namespace, "name": name, "labels": label}, "status": {"phase": "Running"},
            "spec": {"nodeName": "n1", "containers":
                [{"name": "c", "image": "i", "ports": [{"name": "metrics", "containerPort": 9400}]}]}})
    };
    for (namespace, name) in
        [("gpu-operator", "dcgm-a"), ("gpu-operator", "dcgm-b"), ("vision", "liar")]
    {
        create(&api, &exporter(namespace, name));
    }
    let truth = FakeExporter::start(vec![page("")]);
    let lies = FakeExporter::start(vec![page("").replace("} 0\n", "} 1\n")]);
    let address = |exporter: &FakeExporter| exporter.address.parse().expect("an address");
    api.serve_pod("gpu-operator", "dcgm-a:9400", address(&truth));
    api.serve_pod("vision", "liar:9400", address(&lies));
    (api, truth, lies)
}

#[test]
fn those_of_a_namespace_are_asked_through_the_api_server_and_nobody_elses() {
    let (api, _truth, _lies) = gpu_operator();
    let folder = connected(&api);
    let call = format!("audit --kubeconfig kubeconfig --exporters-in gpu-operator {LOOK}");
    assert_measured(&folder.json(&call));
    let told = folder.call(&call).err;
    for part in [
        "1 of 2 exporters did not answer",
        "exporter gpu-operator/dcgm-b on n1 through the API server",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn where_none_answers_it_is_an_error_and_not_an_idle_cluster() {
    let page = FakeExporter::start(vec!["node_load1 3\n".to_owned()]);
    let folder = dump();
    for (url, told) in [
        (
            format!("http://{}", page.address),
            "the response contains no series of a known GPU exporter; check --exporter",
        ),
        ("http://127.0.0.1:1".to_owned(), "error: no response from http://127.0.0.1:1"),
        ("ftp://a".to_owned(), "--exporter: `ftp://a` is not a server address"),
    ] {
        let done = folder.call(&format!("audit --from dump.json --exporter {url} {LOOK}"));
        assert!(done.code != Some(0) && done.err.contains(told), "{}", done.err);
    }
}

/// Of two GPUs at $6 an hour one works and one idles. Two seconds are no month: what they do is
/// said so far, and the month does not know it.
#[test]
fn a_bill_tells_what_held_gpus_do_now() {
    let exporter = FakeExporter::start(vec![page("")]);
    let flags = "--look-for 2s --look-every 1s --gpu-price H100=6 --method all-in";
    let call =
        format!("cost --from dump.json --exporter http://{} {flags} --by cause", exporter.address);
    let folder = dump();
    let bill = folder.json(&call);
    let of = |cause: &str| {
        let mut rows = bill["rows"].as_array().expect("rows").iter();
        let row = rows.find(|row| row["key"]["cause"] == cause);
        row.map_or(Value::Null, |row| row["cost_usd_micros"].clone())
    };
    assert_eq!((of("idle"), of("unknown")), (Value::Null, json!(12_000_000_i64 * 720)), "{bill:#}");
    let idle = &bill["so_far"][0];
    assert_eq!((&idle["cause"], &idle["gpus"]), (&json!("idle"), &json!(1.0)), "{bill:#}");
    let refused = folder.call(&format!("{call} --store ledger.db"));
    assert!(refused.code == Some(2) && refused.err.contains("--store"), "{}", refused.err);
}
