//! The worlds of Kubernetes' documentation: what its pages say about where a pod may go.
//!
//! Pages: “Assigning Pods to Nodes”, “Taints and Tolerations”, “Pod Topology Spread Constraints”
//! and the API reference of `minDomains` and `maxSkew`. Where a page draws a cluster, it is this
//! one; where it only shows a manifest, the nodes are the fewest that tell yes from no.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::node::{HOSTNAME, ZONE};

/// A world and what the documentation says about its one pending pod.
#[derive(Clone, Debug)]
pub struct DocumentedWorld {
    /// What is shown, as a sentence.
    pub name: &'static str,
    pub world: GeneratedCluster,
    /// The nodes on which the pod may run, by name.
    pub feasible: Vec<&'static str>,
}

/// Every documented world.
pub fn documented() -> Vec<DocumentedWorld> {
    let mut worlds = node_choice();
    worlds.extend(taints());
    worlds.extend(pod_affinity());
    worlds.extend(spread());
    worlds.extend(skew());
    worlds
}

fn shown(
    name: &'static str,
    nodes: Vec<Value>,
    pods: Vec<Value>,
    pending: Value,
    feasible: &[&'static str],
) -> DocumentedWorld {
    let namespaces = ["default", "team-a", "team-b"]
        .map(|namespace| json!({"metadata": {"name": namespace, "labels": {"team": namespace}}}));
    let world = GeneratedCluster {
        nodes,
        pods,
        pending: vec![pending],
        namespaces: namespaces.to_vec(),
        ..GeneratedCluster::default()
    };
    DocumentedWorld { name, world, feasible: feasible.to_vec() }
}

fn node(name: &str, zone: &str, labels: Value) -> Value {
    let mut node = json!({
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone, "node": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    });
    for (key, value) in labels.as_object().into_iter().flatten() {
        node["metadata"]["labels"][key] = value.clone();
    }
    node
}

fn plain(names: &[(&str, &str)]) -> Vec<Value> {
    names.iter().map(|(name, zone)| node(name, zone, json!({}))).collect()
}

fn pod(name: &str, labels: Value, spec: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": spec,
        "status": {},
    });
    pod["spec"]["containers"] = json!([{"name": "main", "image": "registry.k8s.io/pause:3.8"}]);
    pod
}

fn running(nodes: &[&str], labels: &Value) -> Vec<Value> {
    let on = |(number, node): (usize, &&str)| {
        let label = labels.as_object().and_then(|labels| labels.values().next()?.as_str());
        let name = format!("{}-{number}-{node}", label.unwrap_or("running").to_lowercase());
        pod(&name, labels.clone(), json!({"nodeName": node}))
    };
    nodes.iter().enumerate().map(on).collect()
}

fn node_choice() -> Vec<DocumentedWorld> {
    let zones = [("east", "antarctica-east1"), ("west", "antarctica-west1"), ("north", "arctic-1")];
    let required = |terms: Value| {
        json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    };
    let in_antarctica = json!({"key": ZONE, "operator": "In",
        "values": ["antarctica-east1", "antarctica-west1"]});
    let disks =
        || vec![node("fast", "z", json!({"disktype": "ssd"})), node("slow", "z", json!({}))];
    let selecting = json!({"nodeSelector": {"disktype": "ssd"}});
    let both = json!([{"matchExpressions": [in_antarctica, {"key": "node", "operator": "NotIn", "values": ["east"]}]}]);
    let either = json!([{"matchExpressions": [in_antarctica]},
        {"matchExpressions": [{"key": "node", "operator": "In", "values": ["north"]}]}]);
    let target =
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["west"]}]}]);
    vec![
        shown(
            "a node selector wants every label",
            disks(),
            vec![],
            pod("nginx", json!({}), selecting),
            &["fast"],
        ),
        shown(
            "node affinity wants one of the values",
            plain(&zones),
            vec![],
            pod(
                "with-node-affinity",
                json!({}),
                required(json!([{"matchExpressions": [in_antarctica]}])),
            ),
            &["east", "west"],
        ),
        shown(
            "expressions of one term all hold",
            plain(&zones),
            vec![],
            pod("and", json!({}), required(both)),
            &["west"],
        ),
        shown(
            "one of several terms holds",
            plain(&zones),
            vec![],
            pod("or", json!({}), required(either)),
            &["east", "north", "west"],
        ),
        shown(
            "a daemon's pod names its node by field",
            plain(&zones),
            vec![],
            pod("daemon", json!({}), required(target)),
            &["west"],
        ),
    ]
}

fn taints() -> Vec<DocumentedWorld> {
    let tainted = |taints: Value| {
        let mut node = node("node1", "z", json!({}));
        node["spec"]["taints"] = taints;
        vec![node, super::documented::node("free", "z", json!({}))]
    };
    let equal = |key: &str, effect: &str| json!({"key": key, "operator": "Equal", "value": "value1", "effect": effect});
    let one = json!([{"key": "key1", "value": "value1", "effect": "NoSchedule"}]);
    let three = json!([
        {"key": "key1", "value": "value1", "effect": "NoSchedule"},
        {"key": "key1", "value": "value1", "effect": "NoExecute"},
        {"key": "key2", "value": "value2", "effect": "NoSchedule"},
    ]);
    let tolerating =
        |tolerations: Value| pod("nginx", json!({}), json!({"tolerations": tolerations}));
    let two = json!([equal("key1", "NoSchedule"), equal("key1", "NoExecute")]);
    vec![
        shown(
            "a taint keeps pods away",
            tainted(one.clone()),
            vec![],
            tolerating(json!([])),
            &["free"],
        ),
        shown(
            "an equal toleration matches the taint",
            tainted(one.clone()),
            vec![],
            tolerating(json!([equal("key1", "NoSchedule")])),
            &["free", "node1"],
        ),
        shown(
            "a toleration of the key alone matches the taint",
            tainted(one),
            vec![],
            tolerating(json!([{"key": "key1", "operator": "Exists", "effect": "NoSchedule"}])),
            &["free", "node1"],
        ),
        shown(
            "the third taint is the only one not tolerated",
            tainted(three.clone()),
            vec![],
            tolerating(two),
            &["free"],
        ),
        shown(
            "an empty key with Exists tolerates everything",
            tainted(three),
            vec![],
            tolerating(json!([{"operator": "Exists"}])),
            &["free", "node1"],
        ),
    ]
}

fn pod_affinity() -> Vec<DocumentedWorld> {
    let zoned = [("v1", "V"), ("v2", "V"), ("r1", "R")];
    let hosts = [("node-1", "z"), ("node-2", "z"), ("node-3", "z")];
    let term = |label: &str, value: &str, key: &str| {
        json!([{"labelSelector": {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]},
            "topologyKey": key}])
    };
    let needs = |kind: &str, terms: Value| json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    let security = |level: &str| json!({"security": level});
    let near_s1 = json!({"affinity": needs("podAffinity", term("security", "S1", ZONE))});
    let far_from_s2 = json!({"affinity": needs("podAntiAffinity", term("security", "S2", ZONE))});
    let far_from_store = needs("podAntiAffinity", term("app", "store", HOSTNAME));
    let mut web = needs("podAntiAffinity", term("app", "web-store", HOSTNAME));
    web["podAffinity"] =
        needs("podAffinity", term("app", "store", HOSTNAME))["podAffinity"].clone();
    let web_store = || pod("web", json!({"app": "web-store"}), json!({"affinity": web.clone()}));
    let store = || pod("store", json!({"app": "store"}), json!({"affinity": far_from_store}));
    let stores = |nodes: &[&str]| {
        let mut pods = running(nodes, &json!({"app": "store"}));
        for pod in &mut pods {
            pod["spec"]["affinity"] = far_from_store.clone();
        }
        pods
    };
    let mut web_runs = stores(&["node-1", "node-2"]);
    web_runs.extend(running(&["node-1"], &json!({"app": "web-store"})));
    vec![
        shown(
            "affinity wants a zone that has such a pod",
            plain(&zoned),
            running(&["v1"], &security("S1")),
            pod("with-pod-affinity", json!({}), near_s1),
            &["v1", "v2"],
        ),
        shown(
            "anti-affinity keeps out of a zone that has such a pod",
            plain(&zoned),
            running(&["r1"], &security("S2")),
            pod("with-anti-affinity", json!({}), far_from_s2),
            &["v1", "v2"],
        ),
        shown(
            "the stores run on different nodes",
            plain(&hosts),
            stores(&["node-1", "node-2"]),
            store(),
            &["node-3"],
        ),
        shown(
            "each web server runs beside a store, alone",
            plain(&hosts),
            web_runs,
            web_store(),
            &["node-2"],
        ),
        shown(
            "the first of a group that wants itself may run anywhere",
            plain(&hosts),
            vec![],
            pod(
                "first",
                json!({"app": "ring"}),
                json!({"affinity": needs("podAffinity", term("app", "ring", HOSTNAME))}),
            ),
            &["node-1", "node-2", "node-3"],
        ),
    ]
}

/// What the documentation's spread constraints count.
fn counted() -> Value {
    json!({"foo": "bar"})
}

fn constraint(key: &str) -> Value {
    json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": counted()}})
}

/// “Pod Topology Spread Constraints”: the drawn clusters.
fn spread() -> Vec<DocumentedWorld> {
    let four = [("node1", "zoneA"), ("node2", "zoneA"), ("node3", "zoneB"), ("node4", "zoneB")];
    let five = [four.as_slice(), &[("node5", "zoneC")]].concat();
    let mypod = |spec: Value| pod("mypod", counted(), spec);
    let one = json!({"topologySpreadConstraints": [constraint(ZONE)]});
    let two = json!({"topologySpreadConstraints": [constraint(ZONE), constraint("node")]});
    let mut not_c = one.clone();
    not_c["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
        "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["zoneC"]}]}]});
    let three = || running(&["node1", "node2", "node3"], &counted());
    let skewed = || running(&["node1", "node1", "node2", "node3", "node3"], &counted());
    let zone_b = &["node3", "node4"];
    vec![
        shown(
            "one constraint fills the emptier zone",
            plain(&four),
            three(),
            mypod(one.clone()),
            zone_b,
        ),
        shown(
            "two constraints meet on one node",
            plain(&four),
            three(),
            mypod(two.clone()),
            &["node4"],
        ),
        shown(
            "two constraints may contradict each other",
            plain(&four[..3]),
            skewed(),
            mypod(two),
            &[],
        ),
        shown("the empty zone is the minimum", plain(&five), three(), mypod(one), &["node5"]),
        shown(
            "a zone that node affinity excludes does not count",
            plain(&five),
            three(),
            mypod(not_c),
            zone_b,
        ),
    ]
}

/// The API reference of `maxSkew` and `minDomains`: pods over three zones, 2/2/1 and 2/2/2.
fn skew() -> Vec<DocumentedWorld> {
    let zones = || plain(&[("a", "zone1"), ("b", "zone2"), ("c", "zone3")]);
    let full = ["a", "a", "b", "b", "c", "c"];
    let mypod = |max_skew: i32, min_domains: i32| {
        let mut constraint = constraint(ZONE);
        constraint["maxSkew"] = json!(max_skew);
        constraint["minDomains"] = json!(min_domains);
        pod("mypod", counted(), json!({"topologySpreadConstraints": [constraint]}))
    };
    let pods = |count: usize| running(&full[..count], &counted());
    vec![
        shown("2/2/1 leaves one zone at skew 1", zones(), pods(5), mypod(1, 1), &["c"]),
        shown("2/2/1 leaves every zone at skew 2", zones(), pods(5), mypod(2, 1), &["a", "b", "c"]),
        shown("2/2/2 leaves none below minDomains", zones(), pods(6), mypod(1, 5), &[]),
    ]
}
