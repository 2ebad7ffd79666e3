//! Mode amd-partition of a SharingPolicy on a real API server, beside an AMD GPU Operator that is
//! played, under the rights of deploy/sharing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dovetail_sharing::{AmdDevices, Component, Partition, Record, Side};
use dovetail_testkit::binaries::Program;
use dovetail_testkit::gpu_operator::{AmdNode, AmdOperator, Fault};
use dovetail_testkit::{ControlPlane, FreshControlPlane};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::partition_apply::{create, get, policy, tainted};
use crate::program::Folder;
use crate::serve_rights::{asked, granted, kubectl, noting};

/// A server with nodes of eight whole GPUs, each with a pod of the operator.
struct Setting {
    // First: it asks the server until it is dropped.
    operator: AmdOperator,
    _runtime: Runtime,
    control_plane: FreshControlPlane,
    folder: Folder,
    kubeconfig: String,
}

impl Setting {
    fn new(nodes: &[&str]) -> Self {
        let folder = Folder::new();
        let control_plane = noting();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let client = runtime.block_on(control_plane.client()).expect("a client");
        runtime.block_on(AmdOperator::install(&client)).expect("the operator");
        grant(&control_plane);
        for name in nodes {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name,
                "labels": {"kubernetes.io/hostname": name,
                    "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}}});
            create(&control_plane, &node);
            let amounts = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
            let status = json!({"status": {"capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}]}});
            let patch = ["patch", "node", name, "--subresource=status", "--type=merge", "-p"];
            kubectl(&control_plane, &[&patch[..], &[&status.to_string()]].concat());
            create(&control_plane, &operand(name));
        }
        let amd = |name: &&str| {
            let mut amd = AmdNode::new(8, "spx_nps1", false, None);
            amd.delay_ms = 100;
            ((*name).to_owned(), amd)
        };
        let amd: BTreeMap<String, AmdNode> = nodes.iter().map(amd).collect();
        let mount = Duration::from_millis(500);
        let operator = runtime.block_on(async { AmdOperator::start(client, amd, mount) });
        let kubeconfig = control_plane.cluster().kubeconfig_of("sharer").display().to_string();
        let setting = Self { operator, _runtime: runtime, control_plane, folder, kubeconfig };
        for name in nodes {
            let node = format!("node/{name}");
            setting.waits_for(&node, "{.status.allocatable.amd\\.com/gpu}=8");
            let untainted = r#"{"spec":{"taints":null}}"#;
            setting.kubectl(&["patch", &node, "--type=merge", "-p", untainted]);
        }
        setting
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&self.control_plane, arguments)
    }

    fn waits_for(&self, object: &str, path: &str) {
        self.kubectl(&["wait", object, &format!("--for=jsonpath={path}"), "--timeout=120s"]);
    }

    fn get(&self, object: &[&str]) -> Value {
        get(&self.control_plane, object)
    }

    fn call(&self, command: &str) -> Value {
        let waits = "--settle 0s --config-delay 2s";
        self.folder.json(&format!("partition {command} {waits} --kubeconfig {}", self.kubeconfig))
    }

    fn admin(&self, command: &str) -> String {
        let admin = self.control_plane.kubeconfig().display().to_string();
        format!("partition {command} --kubeconfig {admin}")
    }

    /// A running pod on a node, with these fields in its spec.
    fn run(&self, name: &str, node: &str, limits: &Value) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [
                {"name": "c", "image": "i", "resources": {"limits": limits}}]}});
        create(&self.control_plane, &pod);
        self.waits_for(&format!("pod/{name}"), "{.status.phase}=Running");
    }

    /// The node has this partition and so many devices, and no taint.
    fn has(&self, node: &str, partition: &str, devices: &str) {
        let object = self.get(&["node", node]);
        assert!(!tainted(&object) && object["spec"]["taints"].is_null(), "{object}");
        assert_eq!(object["status"]["allocatable"]["amd.com/gpu"], devices, "{object}");
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["amd.com/compute-memory-partition"], partition, "{object}");
        let gpus = self.operator.with(node, |amd| amd.partitions().to_vec()).expect("a node");
        assert_eq!(gpus, vec![partition.to_owned(); 8]);
    }

    fn pods(&self) -> BTreeSet<String> {
        let pods = self.get(&["pods", "-A"]);
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        pods["items"].as_array().expect("pods").iter().map(name).collect()
    }
}

/// What `deploy/sharing` installs, with its roles for the user.
fn grant(control_plane: &ControlPlane) {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/sharing");
    let amd = deploy.join("amd.yaml").display().to_string();
    let deploy = deploy.display().to_string();
    kubectl(control_plane, &["create", "namespace", "gpu-operator"]);
    kubectl(control_plane, &["apply", "--validate=strict", "-k", &deploy]);
    kubectl(control_plane, &["apply", "--validate=strict", "-f", &amd]);
    let established =
        ["--for=condition=Established", "crd/sharingpolicies.dovetail.dev", "--timeout=120s"];
    kubectl(control_plane, &[&["wait"], &established[..]].concat());
    for role in ["dovetail-sharing", "dovetail-sharing-amd"] {
        let (name, role) = (format!("of-{role}"), format!("--clusterrole={role}"));
        kubectl(control_plane, &["create", "clusterrolebinding", &name, "--user=sharer", &role]);
    }
    let bind = ["create", "rolebinding", "sharer", "--user=sharer", "-n", "kube-amd-gpu"];
    kubectl(control_plane, &[&bind[..], &["--role=dovetail-sharing-amd"]].concat());
}

/// A pod of the operator's DaemonSet on a node.
fn operand(node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": format!("plugin-{node}"), "namespace": "kube-amd-gpu",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "plugin",
                "uid": "6d5c1f0e-0000-4000-8000-000000000001", "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn a_free_amd_node_is_partitioned_and_returned_and_a_busy_one_is_left_alone() {
    let setting = Setting::new(&["n0", "n1", "n2"]);
    let gpu = json!({"amd.com/gpu": "1"});
    setting.run("job", "n1", &gpu);
    setting.run("web", "n2", &json!({}));
    let spec = json!({"mode": "amd-partition", "partition": "cpx_nps4", "apply": true});
    create(&setting.control_plane, &policy("amd", spec));
    points_the_operator_at_our_profiles(&setting);

    let before = setting.pods();
    let applied = setting.call("apply");
    let rows: Vec<(&str, &str)> = applied["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|row| (row["node"].as_str().expect("a node"), row["outcome"].as_str().expect("one")))
        .collect();
    assert_eq!(rows, [("n1", "stays"), ("n2", "stays"), ("n0", "Done")], "{applied}");
    let why = |row: usize| applied["nodes"][row]["problem"].as_str().unwrap_or_default().to_owned();
    assert!(why(0).starts_with("pods use GPUs of the node"), "{applied}");
    let evicts = "pods would be evicted, because they do not tolerate the taint amd-dcm=up";
    assert!(why(1).starts_with(evicts) && why(1).contains(": default/web;"), "{applied}");
    setting.has("n0", "cpx_nps4", "64");
    for node in ["n1", "n2"] {
        setting.has(node, "spx_nps1", "8");
        let labels = setting.get(&["node", node])["metadata"]["labels"].clone();
        assert_eq!(labels["dcm.amd.com/gpu-config-profile"], Value::Null);
    }
    // Of all pods only the one of the operator had to leave.
    let after = setting.pods();
    let left: Vec<&String> = before.difference(&after).collect();
    assert_eq!(left, ["plugin-n0"]);
    let of = setting.get(&["sharingpolicy", "amd"]);
    let layouts = json!(["1 node: 8 × cpx_nps4", "2 nodes: 8 × spx_nps1"]);
    assert_eq!(of["status"]["layouts"], layouts, "{of}");
    let show = setting.folder.call(&setting.admin("show"));
    assert!(show.out.contains("cpx_nps4"), "{show:?}");

    // It fails once on the way back; the ConfigMap was deleted by somebody.
    setting.kubectl(&["delete", "configmap", "dovetail-amd", "-n", "kube-amd-gpu"]);
    setting.operator.with("n0", |amd| amd.faults.push_back(Some(Fault::Fails)));
    let returned = setting.call("rollback --node n0");
    assert_eq!(returned["nodes"][0]["outcome"], "Done", "{returned}");
    setting.has("n0", "spx_nps1", "8");
    let events = setting.get(&["events", "-n", "default"]).to_string();
    assert!(events.contains("RepartitionRetried"), "{events}");

    leaves_a_node_that_others_partition(&setting);
    let (used, refused) = asked(&setting.control_plane.noted());
    assert!(refused.is_empty(), "{refused:?}");
    let role = |kind: &[&str]| granted(&setting.get(kind));
    let mut all = role(&["clusterrole", "dovetail-sharing-amd"]);
    all.extend(role(&["role", "dovetail-sharing-amd", "-n", "kube-amd-gpu"]));
    // `setup` has written every profile, so none was added.
    assert!(all.remove(&(String::new(), "configmaps".to_owned(), "update".to_owned())));
    assert!(used.is_superset(&all), "{used:?}");
}

/// The annotation of a node whose change has only begun.
fn begun(by: Component, from: Side, to: Side) -> String {
    Record::begun(by, from, to, 0).text()
}

#[test]
fn what_fails_under_one_policy_or_on_one_node_does_not_keep_the_others() {
    let setting = Setting::new(&["n0", "n1", "n2"]);
    let spec = |pool: &str| {
        json!({"mode": "amd-partition", "partition": "cpx_nps4", "apply": true,
        "nodeSelector": {"kubernetes.io/hostname": pool}})
    };
    create(&setting.control_plane, &policy("amd", spec("n2")));
    points_the_operator_at_our_profiles(&setting);
    // The cluster has no operator of NVIDIA's, which a policy and a change under way need.
    let mig = json!({"mode": "mig", "apply": true, "nodeSelector": {"pool": "none"}});
    create(&setting.control_plane, &policy("a-mig", mig));
    let amd = |name: &str| {
        let partition = Partition::named(name).expect("a partition");
        Side::partitioned(8, AmdDevices { partition, is_named: false })
    };
    let stranded = begun(Component::MigManager, Side::whole(8, None), Side::whole(8, None));
    let goes_on = begun(Component::DeviceConfigManager, amd("spx_nps1"), amd("cpx_nps4"));
    for (node, record) in [("n0", stranded), ("n1", goes_on)] {
        let annotation = format!("dovetail.dev/partition={record}");
        setting.kubectl(&["annotate", "node", node, &annotation]);
    }
    let waits = "--settle 0s --config-delay 2s --output json";
    let done = setting
        .folder
        .call(&format!("partition apply {waits} --kubeconfig {}", setting.kubeconfig));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("no ClusterPolicy of NVIDIA's GPU Operator"), "{done:?}");
    assert_eq!(done.err.matches("no ClusterPolicy").count(), 1, "{done:?}");
    let applied: Value = serde_json::from_str(&done.out).expect("JSON");
    let rows: Vec<(&Value, &Value)> = applied["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|row| (&row["node"], &row["outcome"]))
        .collect();
    let expected = [("n0", "Tainted"), ("n1", "Done"), ("n2", "Done")];
    let expected = expected.map(|(node, outcome)| (json!(node), json!(outcome)));
    assert_eq!(rows, expected.each_ref().map(|(node, outcome)| (node, outcome)), "{applied}");
    let why = applied["nodes"][0]["problem"].as_str().unwrap_or_default();
    assert!(why.contains("no ClusterPolicy"), "{applied}");
    setting.has("n1", "cpx_nps4", "64");
    setting.has("n2", "cpx_nps4", "64");
    let ready = |name: &str| {
        let of = setting.get(&["sharingpolicy", name]);
        let condition = &of["status"]["conditions"][0];
        (condition["status"].clone(), condition["reason"].clone())
    };
    assert_eq!(ready("a-mig"), (json!("False"), json!("ApplyFailed")));
    assert_eq!(ready("amd"), (json!("True"), json!("Ready")));
}

/// Nothing changes before the operator reads dovetail's profiles; its own stay.
fn points_the_operator_at_our_profiles(setting: &Setting) {
    let refused =
        setting.folder.call(&format!("partition apply --kubeconfig {}", setting.kubeconfig));
    assert!(
        refused.code == Some(1) && refused.err.contains("dovetail partition setup"),
        "{refused:?}"
    );
    let printed = setting.folder.call(&setting.admin("setup")).out;
    assert!(!printed.contains("clusterpolicies"), "{printed}");
    setting.folder.write("setup.yaml", &printed);
    let file = setting.folder.path("setup.yaml").display().to_string();
    setting.kubectl(&["apply", "-f", &file]);
    let map = setting.get(&["configmap", "dovetail-amd", "-n", "kube-amd-gpu"]);
    let config = map["data"]["config.json"].as_str().expect("a text");
    let config: Value = serde_json::from_str(config).expect("JSON");
    assert!(config["gpu-config-profiles"]["spx-profile"].is_object(), "{config}");
    assert!(config["gpuClientSystemdServices"].is_object(), "{config}");
    let patches = setting.folder.json(&setting.admin("setup"))["device_configs"].clone();
    let patch = patches[0]["patch"].to_string();
    let patches = ["patch", "deviceconfigs.amd.com", "amd", "-n", "kube-amd-gpu"];
    setting.kubectl(&[&patches[..], &["--type=merge", "-p", &patch]].concat());
    // A partition that does not exist is refused by the server.
    let wrong = json!({"spec": {"partition": "cpx_nps3"}}).to_string();
    let program =
        setting.control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    let refused = Command::new(program)
        .args(["patch", "sharingpolicy", "amd", "--type=merge", "-p", &wrong])
        .env("KUBECONFIG", setting.control_plane.kubeconfig())
        .output()
        .expect("kubectl");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("spec.partition"), "{told}");
}

/// A label or a taint that others have set is reported, and the node stays as it is.
fn leaves_a_node_that_others_partition(setting: &Setting) {
    let label = "dcm.amd.com/gpu-config-profile=spx-profile";
    setting.kubectl(&["label", "node", "n0", "--overwrite", label]);
    setting.kubectl(&["delete", "pod", "web", "--force", "--grace-period=0"]);
    // Its plugin has not left yet: without it, the node would show no GPUs.
    setting.operator.with("n2", |amd| amd.delay_ms = 3_600_000);
    setting.kubectl(&["taint", "node", "n2", "amd-dcm=up:NoExecute"]);
    let applied = setting.call("apply");
    let why = |node: &str| {
        let mut rows = applied["nodes"].as_array().expect("nodes").iter();
        let row = rows.find(|row| row["node"] == node).expect("a row");
        assert_eq!(row["outcome"], "stays", "{applied}");
        row["problem"].as_str().unwrap_or_default().to_owned()
    };
    assert!(
        why("n0").contains("another client changed dcm.amd.com/gpu-config-profile"),
        "{applied}"
    );
    assert!(why("n2").contains("another client tainted the node with amd-dcm=up"), "{applied}");
    let taints = setting.get(&["node", "n2"])["spec"]["taints"].clone();
    assert!(taints.to_string().contains("amd-dcm"), "{taints}");
}
