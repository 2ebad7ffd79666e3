//! `dovetail partition apply` and `rollback` on a real API server, beside a GPU Operator that is
//! played, under the rights of deploy/sharing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use dovetail_testkit::gpu_operator::{Fault, GpuOperator, MigNode};
use dovetail_testkit::{ControlPlane, FreshControlPlane, cluster};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::program::Folder;
use crate::serve_rights::{Right, asked, granted, kubectl, noting_beside};

/// A server with nodes of two whole GPUs, their operator, and what `deploy/sharing` installs.
pub(crate) struct Setting {
    // First: it asks the server until it is dropped.
    operator: GpuOperator,
    _runtime: Runtime,
    control_plane: FreshControlPlane,
    pub(crate) folder: Folder,
    pub(crate) kubeconfig: String,
}

impl Setting {
    pub(crate) fn new(nodes: &[&str]) -> Self {
        Self::with(nodes, &[vec![], vec![]], ("nvidia\\.com/gpu", 2), cluster::Options::default())
    }

    /// The same with other GPUs, of which the API server has so many of a resource, and with the
    /// components of `options`.
    pub(crate) fn with(
        nodes: &[&str],
        gpus: &[Vec<(&str, u32)>],
        (resource, count): (&str, u32),
        options: cluster::Options,
    ) -> Self {
        let folder = Folder::new();
        let control_plane = noting_beside(options);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let client = runtime.block_on(control_plane.client()).expect("a client");
        runtime.block_on(GpuOperator::install(&client)).expect("the operator");
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/sharing");
        let deploy = deploy.display().to_string();
        kubectl(&control_plane, &["apply", "--validate=strict", "-k", &deploy]);
        let established =
            ["--for=condition=Established", "crd/sharingpolicies.dovetail.dev", "--timeout=120s"];
        kubectl(&control_plane, &[&["wait"], &established[..]].concat());
        let bind = ["create", "clusterrolebinding", "sharer", "--user=sharer"];
        kubectl(&control_plane, &[&bind[..], &["--clusterrole=dovetail-sharing"]].concat());
        let bind = ["create", "rolebinding", "sharer", "--user=sharer", "-n", "gpu-operator"];
        kubectl(&control_plane, &[&bind[..], &["--role=dovetail-sharing"]].concat());
        for name in nodes {
            create_node(&control_plane, name);
        }
        let gpus = |name: &&str| {
            let mut gpus = MigNode::new(gpus, None);
            gpus.delay_ms = 100;
            ((*name).to_owned(), gpus)
        };
        let gpus: BTreeMap<String, MigNode> = nodes.iter().map(gpus).collect();
        let mount = Duration::from_millis(500);
        let operator = runtime.block_on(async { GpuOperator::start(client, gpus, mount) });
        let kubeconfig = control_plane.cluster().kubeconfig_of("sharer").display().to_string();
        let setting = Self { operator, _runtime: runtime, control_plane, folder, kubeconfig };
        for name in nodes {
            let node = format!("node/{name}");
            setting.waits_for(&node, &format!("{{.status.allocatable.{resource}}}={count}"));
            // New nodes are tainted until kube-controller-manager, of which there is none, says
            // more.
            let untainted = r#"{"spec":{"taints":null}}"#;
            setting.kubectl(&["patch", &node, "--type=merge", "-p", untainted]);
        }
        setting
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&self.control_plane, arguments)
    }

    /// The devices of each GPU of a node, by resource, with the pod that uses each.
    pub(crate) fn devices_of(&self, node: &str) -> Vec<Vec<(String, Option<String>)>> {
        self.operator.with(node, |mig| mig.used()).expect("a node")
    }

    pub(crate) fn waits_for(&self, object: &str, path: &str) {
        self.kubectl(&["wait", object, &format!("--for=jsonpath={path}"), "--timeout=120s"]);
    }

    pub(crate) fn call(&self, command: &str) -> Value {
        self.folder.json(&format!("partition {command} --kubeconfig {}", self.kubeconfig))
    }

    pub(crate) fn apply(&self, more: &str) -> Value {
        self.call(&format!("apply --settle 0s --config-delay 2s --pending-for 0s {more}"))
    }

    /// What is planned, with all rights: a plan reads more than a change needs.
    pub(crate) fn plan(&self, more: &str) -> Value {
        let admin = self.control_plane.kubeconfig().display().to_string();
        let call = format!("partition plan --pending-for 0s --kubeconfig {admin} {more}");
        self.folder.json(&call)
    }

    pub(crate) fn create(&self, object: &Value) {
        create(&self.control_plane, object);
    }

    pub(crate) fn get(&self, object: &[&str]) -> Value {
        get(&self.control_plane, object)
    }

    fn node(&self) -> Value {
        self.get(&["node", "n0"])
    }

    /// Binds a pod and waits until it runs.
    pub(crate) fn bind(&self, pod: &str, node: &str) {
        let bind = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        self.folder.write("bind.json", &bind.to_string());
        let file = self.folder.path("bind.json").display().to_string();
        let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
        self.kubectl(&["create", "--raw", &path, "-f", &file]);
        self.waits_for(&format!("pod/{pod}"), "{.status.phase}=Running");
    }

    /// What `partition setup` prints, with all rights.
    pub(crate) fn setup(&self) -> Value {
        let admin = self.control_plane.kubeconfig().display().to_string();
        self.folder.json(&format!("partition setup --kubeconfig {admin}"))
    }

    /// Applies what `partition setup` prints, its patch included.
    pub(crate) fn set_up(&self) {
        let admin = self.control_plane.kubeconfig().display().to_string();
        let call = format!("partition setup --kubeconfig {admin}");
        let patch = self.setup()["patch"].to_string();
        self.folder.write("setup.yaml", &self.folder.call(&call).out);
        let file = self.folder.path("setup.yaml").display().to_string();
        self.kubectl(&["apply", "-f", &file]);
        let object = "clusterpolicies.nvidia.com/cluster-policy";
        self.kubectl(&["patch", object, "--type=merge", "-p", &patch]);
    }

    /// What the program asked for.
    pub(crate) fn used(&self) -> BTreeSet<Right> {
        asked(&self.control_plane.noted()).0
    }

    /// Requests of the program that were refused.
    pub(crate) fn refused(&self) -> BTreeSet<String> {
        let (_, refused) = asked(&self.control_plane.noted());
        refused.into_iter().map(|one| format!("{one:?}")).collect()
    }

    fn events(&self) -> BTreeSet<String> {
        let events = self.get(&["events", "-n", "default"]);
        let events = events["items"].as_array().expect("events").iter();
        let of_node = events.filter(|event| event["involvedObject"]["name"] == "n0");
        of_node.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// A node with two GPUs.
fn create_node(control_plane: &ControlPlane, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "2", "nvidia.com/mig.capable": "true"}}});
    create(control_plane, &node);
    let amounts = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    let status = json!({"status": {"capacity": amounts, "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let patch = ["patch", "node", name, "--subresource=status", "--type=merge", "-p"];
    kubectl(control_plane, &[&patch[..], &[&status.to_string()]].concat());
}

pub(crate) fn create(control_plane: &ControlPlane, object: &Value) {
    control_plane.create(object).expect("a new object");
}

/// What `kubectl get -o json` has of these; where it can, without the process.
pub(crate) fn get(control_plane: &ControlPlane, object: &[&str]) -> Value {
    if let Some(path) = path_of(object) {
        return control_plane.object(&path).unwrap_or_else(|| panic!("no {path}"));
    }
    let text = kubectl(control_plane, &[&["get", "-o", "json"], object].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// The path of one object, or of the objects of a kind in a namespace; `None` for what only kubectl
/// knows.
fn path_of(object: &[&str]) -> Option<String> {
    let (kind, rest) = object.split_first()?;
    let (root, kinds) = match *kind {
        "node" => ("/api/v1", "nodes"),
        "sharingpolicy" => ("/apis/dovetail.dev/v1alpha1", "sharingpolicies"),
        "pod" | "pods" => ("/api/v1/namespaces/default", "pods"),
        "events" => ("/api/v1/namespaces/default", "events"),
        "deployment" => ("/apis/apps/v1/namespaces/default", "deployments"),
        "replicaset" => ("/apis/apps/v1/namespaces/default", "replicasets"),
        _ => return None,
    };
    match rest {
        [] | ["-n", "default"] => Some(format!("{root}/{kinds}")),
        ["-l", label] => {
            Some(format!("{root}/{kinds}?labelSelector={}", label.replace('=', "%3D")))
        }
        [name] if !name.starts_with('-') => Some(format!("{root}/{kinds}/{name}")),
        _ => None,
    }
}

pub(crate) fn policy(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": name}, "spec": spec})
}

fn pod(name: &str, profile: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {format!("nvidia.com/mig-{profile}"): "1"}}}]}})
}

pub(crate) fn tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.into_iter().any(|taint| taint["key"] == "dovetail.dev/repartition")
}

fn conditions(policy: &Value) -> (String, String, String) {
    let ready = &policy["status"]["conditions"][0];
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

const ROLLBACK: &str = "rollback --node n0 --settle 0s --config-delay 2s";

#[test]
fn a_node_is_cut_for_pending_pods_and_returned_under_the_rights_of_its_manifest() {
    let setting = Setting::new(&["n0"]);
    for (name, profile) in [("a", "3g.40gb"), ("b", "3g.40gb"), ("c", "7g.80gb")] {
        setting.create(&pod(name, profile));
    }
    let spec = json!({"mode": "mig", "allowModeChange": true});
    setting.create(&policy("shared", spec));

    points_the_operator_at_our_layouts(&setting);
    reports_without_apply_and_where_policies_overlap(&setting);
    cuts_the_node(&setting);
    keeps_a_node_in_use(&setting);

    // mig-manager fails once; the ConfigMap was deleted by somebody.
    setting.kubectl(&["delete", "configmap", "dovetail-mig", "-n", "gpu-operator"]);
    setting.operator.with("n0", |mig| mig.faults.push_back(Some(Fault::Fails)));
    let returned = setting.call(ROLLBACK);
    assert_eq!(returned["nodes"][0]["outcome"], "Done", "{returned}");
    let node = setting.node();
    assert!(!tainted(&node), "{node}");
    assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "2", "{node}");
    assert!(setting.events().contains("RepartitionRetried"));

    let (used, refused) = asked(&setting.control_plane.noted());
    assert!(refused.is_empty(), "{refused:?}");
    let role = |kind: &[&str]| granted(&setting.get(kind));
    let mut all = role(&["clusterrole", "dovetail-sharing"]);
    all.extend(role(&["role", "dovetail-sharing", "-n", "gpu-operator"]));
    // The log names a status under its object.
    let whole = |(group, resource, verb): Right| {
        let resource = resource.split('/').next().unwrap_or_default().to_owned();
        (group, resource, verb)
    };
    let mut all: BTreeSet<Right> = all.into_iter().map(whole).collect();
    // Only guards need the first (partition_guard.rs), only moves the others (partition_moves.rs).
    assert!(all.remove(&("apps".to_owned(), "replicasets".to_owned(), "get".to_owned())));
    assert!(all.remove(&(String::new(), "pods".to_owned(), "create".to_owned())));
    let autoscalers = ("autoscaling", "horizontalpodautoscalers", "list");
    let (group, resource, verb) = autoscalers;
    assert!(all.remove(&(group.to_owned(), resource.to_owned(), verb.to_owned())));
    // Only `--workload` needs these (partition_workload.rs).
    for (resource, verb) in crate::partition_workload::RIGHTS {
        assert!(all.remove(&("apps".to_owned(), resource.to_owned(), verb.to_owned())));
    }
    assert_eq!(used, all);
    tells_of_a_stuck_node(&setting);
}

/// The policies follow each other in the order of their names.
#[test]
fn a_pending_pod_is_served_under_one_of_two_policies() {
    let setting = Setting::new(&["n0", "n1"]);
    setting.set_up();
    setting.create(&pod("a", "3g.40gb"));
    for (name, node) in [("second", "n0"), ("first", "n1")] {
        let selector = json!({"kubernetes.io/hostname": node});
        let spec = json!({"mode": "mig", "allowModeChange": true, "apply": true,
            "nodeSelector": selector});
        setting.create(&policy(name, spec));
    }
    let changed = |document: &Value| -> Vec<String> {
        let nodes = document["nodes"].as_array().expect("nodes").iter();
        nodes.map(|row| format!("{}: {}", row["node"], row["outcome"])).collect()
    };
    assert_eq!(changed(&setting.apply("--dry-run")), [r#""n1": "planned""#]);
    assert_eq!(changed(&setting.apply("")), [r#""n1": "Done""#]);
}

/// Each run names a node that has no layout, until somebody repairs it.
fn tells_of_a_stuck_node(setting: &Setting) {
    let node = setting.node();
    let text =
        node["metadata"]["annotations"]["dovetail.dev/partition"].as_str().expect("a record");
    let mut record: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(record["step"], "Done", "{record}");
    record["step"] = json!("Stuck");
    record["problem"] = json!("mig-manager reported `failed`");
    let annotation = format!("dovetail.dev/partition={record}");
    setting.kubectl(&["annotate", "--overwrite", "node", "n0", &annotation]);
    let kubeconfig = &setting.kubeconfig;
    for flag in ["", "--dry-run"] {
        let call = format!("partition apply --pending-for 0s {flag} --kubeconfig {kubeconfig}");
        let told = setting.folder.call(&call);
        assert_eq!(told.code, Some(1), "{told:?}");
        let text = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("node n0: mig-manager reported `failed`"), "{told:?}");
        assert!(text.contains("`dovetail partition rollback --node n0`"), "{told:?}");
    }
    // A record that cannot be read is named, too.
    setting.kubectl(&["annotate", "--overwrite", "node", "n0", "dovetail.dev/partition=garbage"]);
    for flag in ["", "--dry-run"] {
        let row = &setting.apply(flag)["nodes"][0];
        let why = row["problem"].as_str().unwrap_or_default();
        assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("stays")), "{row}");
        assert!(why.contains("annotation dovetail.dev/partition is invalid"), "{why}");
        assert!(why.contains("remove it"), "{why}");
    }
}

/// The operator reads another ConfigMap at first: nothing is changed, and the way out is named.
fn points_the_operator_at_our_layouts(setting: &Setting) {
    let kubeconfig = &setting.kubeconfig;
    let refused = ["", "--dry-run"].map(|flag| {
        setting.folder.call(&format!("partition apply {flag} --kubeconfig {kubeconfig}"))
    });
    for one in &refused {
        assert!(one.code == Some(1) && one.err.contains("dovetail partition setup"), "{one:?}");
    }
    assert_eq!(refused[0].err, refused[1].err);
    let admin = setting.control_plane.kubeconfig().display().to_string();
    let manifest = setting.folder.call(&format!("partition setup --kubeconfig {admin}")).out;
    assert!(
        manifest.contains("kubectl patch clusterpolicies.nvidia.com cluster-policy"),
        "{manifest}"
    );
    assert!(manifest.contains("all-balanced"), "a standard name is missing: {manifest}");
    keeps_layouts_that_mig_manager_reads_already(setting);
    // Pods of the plugin that do not tolerate the taint of a change would not come back in it.
    let object = ["patch", "clusterpolicies.nvidia.com/cluster-policy", "--type=merge", "-p"];
    let tolerations = setting.setup()["patch"]["spec"]["daemonsets"]["tolerations"].clone();
    let keys = |list: &Value| -> Vec<Value> {
        list.as_array().into_iter().flatten().map(|one| one["key"].clone()).collect()
    };
    assert_eq!(keys(&tolerations), ["nvidia.com/gpu", "dovetail.dev/repartition"]);
    let theirs = json!({"spec": {"daemonsets": {"tolerations": [tolerations[0]]}}});
    setting.kubectl(&[&object[..], &[&theirs.to_string()]].concat());
    let call = |flag: &str| {
        setting.folder.call(&format!("partition apply {flag} --kubeconfig {kubeconfig}"))
    };
    let (refused, dry) = (call(""), call("--dry-run"));
    let says = "spec.daemonsets.tolerations does not tolerate the taint dovetail.dev/repartition";
    assert!(refused.code == Some(1) && refused.err.contains(says), "{refused:?}");
    assert!(dry.code == Some(1) && dry.err.contains(says), "{dry:?}");
    setting.set_up();
}

/// A layout as mig-manager reads it: so many instances on each GPU.
fn all(count: u32) -> Value {
    json!([{"devices": "all", "mig-enabled": true, "mig-devices": {"1g.10gb": count}}])
}

/// mig-manager reads a ConfigMap of its owner's: its names stay, and mean what they meant.
fn keeps_layouts_that_mig_manager_reads_already(setting: &Setting) {
    let configs = json!({"team-layout": all(3), "all-balanced": all(6)});
    let config = json!({"version": "v1", "mig-configs": configs}).to_string();
    setting.create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "custom-mig", "namespace": "gpu-operator"},
        "data": {"config.yaml": config}}));
    let custom = json!({"spec": {"migManager": {"config": {"name": "custom-mig"}}}});
    let object = ["patch", "clusterpolicies.nvidia.com/cluster-policy", "--type=merge", "-p"];
    setting.kubectl(&[&object[..], &[&custom.to_string()]].concat());
    setting.set_up();
    let map = setting.get(&["configmap", "dovetail-mig", "-n", "gpu-operator"]);
    let layouts = map["data"]["config.yaml"].as_str().expect("a text");
    assert!(layouts.contains("team-layout:"), "{layouts}");
    // Names are in order.
    let (_, balanced) = layouts.split_once("all-balanced:").expect("a standard name");
    let (balanced, _) = balanced.split_once("all-disabled:").expect("a standard name");
    assert!(balanced.contains(": 6") && !balanced.contains("2g.20gb"), "{layouts}");
}

/// Without `apply: true` it only reports.
fn reports_without_apply_and_where_policies_overlap(setting: &Setting) {
    let reported = setting.apply("");
    assert_eq!(reported["nodes"][0]["outcome"], "planned", "{reported}");
    let dry = setting.apply("--dry-run");
    assert_eq!(dry["nodes"][0]["problem"], "the policy does not set `apply: true`", "{dry}");
    assert_eq!(dry["nodes"][0]["problem"], reported["nodes"][0]["problem"]);
    assert!(!tainted(&setting.node()));
    let shared = setting.get(&["sharingpolicy", "shared"]);
    assert_eq!(shared["status"]["next"]["node"], "n0", "{shared}");
    assert_eq!(conditions(&shared).0, "True");
    // Two policies for one node: neither is followed, and both name the other.
    let apply = json!({"mode": "mig", "allowModeChange": true, "apply": true});
    setting.create(&policy("also", apply.clone()));
    let both = setting.apply("");
    assert_eq!(both["nodes"], json!([]), "{both}");
    for name in ["also", "shared"] {
        let of = setting.get(&["sharingpolicy", name]);
        let (status, reason, message) = conditions(&of);
        assert_eq!((&*status, &*reason), ("False", "Overlap"), "{of}");
        assert!(message.starts_with("policies also and shared both select node n0"), "{message}");
    }
    setting.kubectl(&["delete", "sharingpolicy", "shared"]);
    let dry = setting.apply("--dry-run");
    assert_eq!(dry["nodes"][0]["outcome"], "planned", "{dry}");
    assert_eq!(setting.events(), BTreeSet::new());
}

/// A mixed layout, whose name is new in the ConfigMap.
fn cuts_the_node(setting: &Setting) {
    let applied = setting.apply("");
    assert_eq!(applied["nodes"][0]["outcome"], "Done", "{applied}");
    let node = setting.node();
    assert!(!tainted(&node), "{node}");
    let offered = &node["status"]["allocatable"];
    assert_eq!(offered["nvidia.com/mig-3g.40gb"], "2", "{offered}");
    assert_eq!(offered["nvidia.com/mig-7g.80gb"], "1", "{offered}");
    assert_eq!(offered["nvidia.com/gpu"], "0", "{offered}");
    assert_eq!(node["metadata"]["labels"]["nvidia.com/mig.config.state"], "success");
    let told: BTreeSet<String> =
        ["RepartitionStarted", "Repartitioned"].map(str::to_owned).into_iter().collect();
    assert_eq!(setting.events(), told);
    let also = setting.get(&["sharingpolicy", "also"]);
    assert_eq!(also["status"]["receipts"][0]["outcome"], "Done", "{also}");
    let columns = setting.kubectl(&["get", "sharingpolicies"]);
    assert!(columns.starts_with("NAME   MODE   APPLY   NODES"), "{columns}");
    let admin = setting.control_plane.kubeconfig().display().to_string();
    let show = setting.folder.call(&format!("partition show --kubeconfig {admin}"));
    assert!(show.out.contains("[3g][3g]") && show.out.contains("[7g]"), "{show:?}");
}

/// A pod that uses an instance keeps its node as it is.
fn keeps_a_node_in_use(setting: &Setting) {
    setting.bind("a", "n0");
    let call = format!("partition {ROLLBACK} --kubeconfig {}", setting.kubeconfig);
    let in_use = setting.folder.call(&call);
    assert!(in_use.code == Some(1) && in_use.err.contains("default/a use its GPUs"), "{in_use:?}");
    setting.kubectl(&["delete", "pod", "a", "--force", "--grace-period=0"]);
}
