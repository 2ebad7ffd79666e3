//! Patches of random clusters, judged by a second reading of taints, labels and amounts: no first
//! part of the list takes a pod's last node, and nearly all harmless changes are written.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_audit::{Finding, audit};
use dovetail_facts::{ObjectRef, device_states};
use dovetail_inventory::facts::Gathered;
use dovetail_patches::{FactsByOwner, Form, Patch, patches};
use dovetail_trials::{SafePatch, safe_patches};
use serde_json::{Map, Value, json};

use crate::facts::gathered_whole;

const GPU: &str = "nvidia.com/gpu";
/// How many clusters; `make soak` and people set more.
const WORLDS: &str = "DOVETAIL_WORLDS";

/// Numbers that look random and are the same every time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        // Steele, Lea and Flood 2014, SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Objects by kind, namespace and name, and for each pod its owner.
#[derive(Clone, Default)]
struct Cluster {
    objects: BTreeMap<(String, String), Value>,
}

fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

const KEYS: [&str; 3] = [GPU, "gpu", "team"];

impl Cluster {
    fn add(&mut self, object: Value) {
        let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
        self.objects.insert(key, object);
    }

    fn of_kind<'c>(&'c self, kind: &'c str) -> impl Iterator<Item = &'c Value> {
        self.objects.iter().filter(move |((of, _), _)| of == kind).map(|(_, object)| object)
    }

    /// A cluster of a few pools and workloads.
    fn drawn(draws: &mut Draws) -> Self {
        let mut cluster = Self::default();
        let pools = 2 + draws.below(3);
        for pool in 0..pools {
            cluster.add_pool(pool, draws);
        }
        cluster.add(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}));
        for number in 0..2 + draws.below(5) {
            cluster.add_workload(number, pools, draws);
        }
        cluster
    }

    fn add_pool(&mut self, pool: u64, draws: &mut Draws) {
        let name = format!("pool-{pool}");
        let gpus = if draws.one_in(3) { 0 } else { [4, 8][draws.below(2) as usize] };
        let taints: Vec<Value> = KEYS.into_iter().filter(|_| draws.one_in(4)).map(taint).collect();
        let by = draws.below(3);
        for number in 0..1 + draws.below(3) {
            let mut labels =
                json!({"pool": name, "kubernetes.io/hostname": format!("{name}-{number}")});
            if gpus > 0 {
                labels["nvidia.com/gpu.product"] = json!("NVIDIA-H100-80GB-HBM3");
            }
            match by {
                0 => labels["karpenter.sh/nodepool"] = json!(name),
                1 => labels["eks.amazonaws.com/nodegroup"] = json!(name),
                _ => {}
            }
            let cordoned = draws.one_in(6);
            let mut taints = taints.clone();
            if cordoned {
                taints.push(
                    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
                    "timeAdded": "2026-11-19T00:00:00Z"}),
                );
            }
            let ready = if draws.one_in(8) { "False" } else { "True" };
            let mut offers = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
            if gpus > 0 {
                offers[GPU] = json!(gpus.to_string());
            }
            self.add(json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("{name}-{number}"), "labels": labels,
                    "creationTimestamp": "2026-11-01T00:00:00Z"},
                "spec": {"taints": taints, "unschedulable": cordoned},
                "status": {"capacity": offers, "allocatable": offers, "conditions": [{"type": "Ready",
                    "status": ready, "lastTransitionTime": "2026-11-18T00:00:00Z"}]}}));
        }
        if by == 0 {
            self.add(json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
                "metadata": {"name": name, "resourceVersion": "1"},
                "spec": {"template": {"spec": {"taints": taints}}}}));
        }
    }

    fn add_workload(&mut self, number: u64, pools: u64, draws: &mut Draws) {
        let name = format!("work-{number}");
        let kind = ["StatefulSet", "DaemonSet", "PyTorchJob"][draws.below(3) as usize];
        let mut tolerations: Vec<Value> = KEYS
            .into_iter()
            .filter(|_| draws.one_in(2))
            .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}))
            .collect();
        if draws.one_in(8) {
            tolerations = vec![json!({"operator": "Exists"})];
        }
        let gpus = match kind {
            "DaemonSet" => 0,
            _ => [0, 1, 2, 8, 16][draws.below(5) as usize],
        };
        let mut resources =
            json!({"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "8Gi"}});
        if gpus > 0 {
            resources["requests"][GPU] = json!(gpus.to_string());
            resources["limits"][GPU] = json!(gpus.to_string());
        }
        let mut spec = json!({"tolerations": tolerations,
            "containers": [{"name": "main", "image": "i", "resources": resources}]});
        if draws.one_in(3) {
            spec["nodeSelector"] = json!({"pool": format!("pool-{}", draws.below(pools))});
        }
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
        let (version, place) = match kind {
            "PyTorchJob" => (
                "kubeflow.org/v1",
                json!({"pytorchReplicaSpecs": {"Worker": {"replicas": 2,
                "template": template}}}),
            ),
            _ => ("apps/v1", json!({"replicas": 2, "template": template})),
        };
        self.add(json!({"apiVersion": version, "kind": kind, "spec": place,
            "metadata": {"name": name, "namespace": "prod", "uid": name, "resourceVersion": "1"}}));
        let nodes: Vec<Value> = self.of_kind("Node").cloned().collect();
        match kind {
            "DaemonSet" => {
                for node in &nodes {
                    let pod = pod_of(&name, kind, &spec, &text(&node["metadata"]["name"]), "");
                    if fits(&pod, node) {
                        let node = text(&node["metadata"]["name"]);
                        self.add(pod_of(&name, kind, &spec, &node, &node));
                    }
                }
            }
            _ => {
                for index in 0..1 + draws.below(2) {
                    let pod = pod_of(&name, kind, &spec, &index.to_string(), "");
                    let fitting: Vec<&Value> =
                        nodes.iter().filter(|node| fits(&pod, node)).collect();
                    let node = match fitting.len() {
                        0 => String::new(),
                        count => {
                            text(&fitting[draws.below(count as u64) as usize]["metadata"]["name"])
                        }
                    };
                    self.add(pod_of(&name, kind, &spec, &index.to_string(), &node));
                }
            }
        }
    }

    /// Pods that some node would take, if it were empty: among all nodes, and among those that
    /// accept pods.
    fn schedulable(&self) -> BTreeSet<(String, bool)> {
        let mut found = BTreeSet::new();
        for pod in self.of_kind("Pod") {
            for node in self.of_kind("Node") {
                if fits(pod, node) {
                    let name = text(&pod["metadata"]["name"]);
                    found.insert((name.clone(), false));
                    if is_open(node)
                        || text(&pod["metadata"]["ownerReferences"][0]["kind"]) == "DaemonSet"
                    {
                        found.insert((name, true));
                    }
                }
            }
        }
        found
    }

    /// Applies a patch as a server, a cloud provider and controllers would.
    fn apply(&mut self, patch: &Patch) {
        if let Form::Command(words) = &patch.form {
            return self.run(words, &patch.object);
        }
        let Some(fragment) = &patch.fragment else { return };
        let fragment: Value = serde_json::from_str(&fragment.to_line()).expect("JSON");
        let key = (patch.object.kind.clone(), patch.object.name.clone());
        let Some(object) = self.objects.get_mut(&key) else { return };
        let before = object.clone();
        merge(object, &fragment);
        let after = object.clone();
        match patch.object.kind.as_str() {
            "NodePool" => {
                let path = "/spec/template/spec/taints";
                let taints =
                    |pool: &Value| pool.pointer(path).cloned().unwrap_or_else(|| json!([]));
                let (old, new) = (taints(&before), taints(&after));
                for node in self.nodes_with("karpenter.sh/nodepool", &patch.object.name) {
                    let own = node["spec"]["taints"].as_array_mut().expect("taints");
                    own.retain(|taint| !old.as_array().expect("a list").contains(taint));
                    own.extend(new.as_array().expect("a list").iter().cloned());
                }
            }
            kind => {
                let path = match kind {
                    "PyTorchJob" => "/spec/pytorchReplicaSpecs/Worker/template/spec",
                    _ => "/spec/template/spec",
                };
                let Some(spec) = after.pointer(path).cloned() else { return };
                self.replace_pods(&patch.object, &spec);
            }
        }
    }

    /// Pods of an owner are made again from its template, where they are.
    fn replace_pods(&mut self, owner: &ObjectRef, spec: &Value) {
        let of_owner = |pod: &&Value| {
            let by = &pod["metadata"]["ownerReferences"][0];
            (by["kind"].as_str(), by["name"].as_str()) == (Some(&*owner.kind), Some(&*owner.name))
        };
        let old: Vec<Value> = self.of_kind("Pod").filter(of_owner).cloned().collect();
        for pod in old {
            let name = text(&pod["metadata"]["name"]);
            let suffix = name.strip_prefix(&format!("{}-", owner.name)).unwrap_or_default();
            let node = text(&pod["spec"]["nodeName"]);
            self.add(pod_of(&owner.name, &owner.kind, spec, suffix, &node));
        }
    }

    fn nodes_with<'c>(
        &'c mut self,
        label: &'c str,
        value: &'c str,
    ) -> impl Iterator<Item = &'c mut Value> {
        let nodes = self.objects.iter_mut().filter(|((kind, _), _)| kind == "Node");
        nodes.map(|(_, node)| node).filter(move |node| node["metadata"]["labels"][label] == value)
    }

    fn run(&mut self, words: &[String], object: &ObjectRef) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["kubectl", "uncordon", names @ ..] => self.each(names, |node| {
                node["spec"]["unschedulable"] = json!(false);
                let taints = node["spec"]["taints"].as_array_mut().expect("taints");
                taints.retain(|taint| taint["key"] != "node.kubernetes.io/unschedulable");
            }),
            ["kubectl", "drain", names @ ..] => {
                self.each(names, |node| node["spec"]["unschedulable"] = json!(true));
            }
            ["kubectl", "taint", "nodes", names @ .., written] => {
                let (key, effect) = written.split_once(':').expect("key:effect");
                let (key, value) = key.split_once('=').unwrap_or((key, ""));
                let new = json!({"key": key, "value": value, "effect": effect});
                self.each(names, |node| {
                    node["spec"]["taints"].as_array_mut().expect("taints").push(new.clone());
                });
            }
            ["aws", .., "--taints", written] => {
                let part = |name: &str| {
                    let after = written.split_once(&format!("{name}=")).expect("a field").1;
                    after.split([',', '}']).next().unwrap_or_default().to_owned()
                };
                let new =
                    json!({"key": part("key"), "value": part("value"), "effect": "NoSchedule"});
                for node in self.nodes_with("eks.amazonaws.com/nodegroup", &object.name) {
                    node["spec"]["taints"].as_array_mut().expect("taints").push(new.clone());
                }
            }
            // What removes empty nodes, or an annotation of nodes, moves no pod.
            _ => {}
        }
    }

    fn each(&mut self, names: &[&str], change: impl Fn(&mut Value)) {
        for name in names {
            if let Some(node) = self.objects.get_mut(&("Node".to_owned(), (*name).to_owned())) {
                change(node);
            }
        }
    }

    fn gathered(&self) -> Gathered {
        gathered_whole(&self.objects.values().cloned().collect::<Vec<_>>())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A pod of an owner; DaemonSets give theirs a node and tolerations for its states.
fn pod_of(owner: &str, kind: &str, spec: &Value, suffix: &str, node: &str) -> Value {
    let mut spec = spec.clone();
    if kind == "DaemonSet" {
        let own = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [suffix]}]}]);
        spec["affinity"] = json!({"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}});
        let states = ["unschedulable", "not-ready", "unreachable"].map(
            |state| json!({"key": format!("node.kubernetes.io/{state}"), "operator": "Exists"}),
        );
        spec["tolerations"].as_array_mut().expect("tolerations").extend(states);
    }
    let mut status = json!({"phase": "Pending"});
    if !node.is_empty() {
        spec["nodeName"] = json!(node);
        status = json!({"phase": "Running", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-19T00:00:00Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-19T00:01:00Z"}]});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status,
        "metadata": {"name": format!("{owner}-{suffix}"), "namespace": "prod", "labels": {"app": owner},
            "creationTimestamp": "2026-11-19T00:00:00Z",
            "ownerReferences": [{"kind": kind, "name": owner, "uid": owner, "controller": true}]}})
}

fn is_open(node: &Value) -> bool {
    node["spec"]["unschedulable"] != json!(true)
        && node["status"]["conditions"][0]["status"] == "True"
}

/// Whether an empty node that accepts pods would take a pod, by the rules of kube-scheduler's
/// filters TaintToleration, NodeAffinity and NodeResourcesFit.
fn fits(pod: &Value, node: &Value) -> bool {
    let spec = &pod["spec"];
    let labels = &node["metadata"]["labels"];
    let selected = spec["nodeSelector"].as_object().into_iter().flatten();
    if selected.into_iter().any(|(key, value)| labels[key] != *value) {
        return false;
    }
    let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    let holds = |term: &Value| {
        let fields = term["matchFields"].as_array().into_iter().flatten();
        let by_name = fields.into_iter().all(|field| {
            field["values"].as_array().expect("values").contains(&node["metadata"]["name"])
        });
        let expressions = term["matchExpressions"].as_array().into_iter().flatten();
        let by_label = expressions.into_iter().all(|expression| {
            let label = &labels[text(&expression["key"])];
            let listed = expression["values"].as_array().is_some_and(|all| all.contains(label));
            match expression["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => !label.is_null(),
                Some("DoesNotExist") => label.is_null(),
                other => panic!("{other:?} is in no patch"),
            }
        });
        by_name && by_label
    };
    if terms.as_array().is_some_and(|terms| !terms.iter().any(holds)) {
        return false;
    }
    let tolerated = |taint: &Value| {
        // States of the node are judged by whether it accepts pods.
        let key = text(&taint["key"]);
        key.starts_with("node.kubernetes.io/")
            || spec["tolerations"].as_array().into_iter().flatten().any(|toleration| {
                let is_for = |field: &str| {
                    let written = text(&toleration[field]);
                    written.is_empty() || written == text(&taint[field])
                };
                let exists = toleration["operator"] == "Exists";
                let value = exists || text(&toleration["value"]) == text(&taint["value"]);
                is_for("effect")
                    && is_for("key")
                    && (exists || toleration["key"] == taint["key"])
                    && value
            })
    };
    if !node["spec"]["taints"].as_array().into_iter().flatten().all(tolerated) {
        return false;
    }
    let asked = &spec["containers"][0]["resources"];
    let number = |value: &Value| text(value).trim_end_matches("Gi").parse::<f64>().unwrap_or(0.0);
    let offered = &node["status"]["allocatable"];
    let cpu = text(&asked["requests"]["cpu"]);
    let cpu = match cpu.strip_suffix('m') {
        Some(milli) => milli.parse::<f64>().expect("a number") / 1000.0,
        None => cpu.parse().unwrap_or(0.0),
    };
    let memory = |of: &Value| match text(of) {
        of if of.ends_with("Mi") => of.trim_end_matches("Mi").parse::<f64>().expect("Mi") / 1024.0,
        of if of.ends_with("Gi") => of.trim_end_matches("Gi").parse().expect("Gi"),
        of => of.parse::<f64>().unwrap_or(0.0) / f64::from(1_u32 << 30),
    };
    cpu <= number(&offered["cpu"])
        && memory(&asked["requests"]["memory"]) <= memory(&offered["memory"])
        && number(&asked["limits"][GPU]) <= number(&offered[GPU])
}

/// Merges a change: `null` removes, items of lists with names are merged by name.
fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                match value {
                    Value::Null => drop(into.remove(key)),
                    value => merge(into.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (into @ Value::Null, Value::Object(_)) => {
            *into = Value::Object(Map::new());
            merge(into, change);
        }
        (Value::Array(into), Value::Array(change))
            if change.iter().all(|item| item["name"].is_string()) && !change.is_empty() =>
        {
            for item in change {
                match into.iter_mut().find(|known| known["name"] == item["name"]) {
                    Some(known) => merge(known, item),
                    None => into.push(item.clone()),
                }
            }
        }
        (into, change) => *into = change.clone(),
    }
}

/// What became of the changes of one cluster: harmless ones, of these written, harmful ones.
#[derive(Default)]
struct Counts {
    harmless: usize,
    written: usize,
    harmful: usize,
    withheld: usize,
}

fn judge(seed: u64, counts: &mut Counts) {
    let cluster = Cluster::drawn(&mut Draws(seed));
    let mut found = cluster.gathered();
    device_states(&mut found.facts, &found.moment).expect("an engine that takes the cluster");
    let findings: Vec<Finding> = audit(&found.facts);
    let findings: Vec<&Finding> = findings.iter().collect();
    let source_of = |object: &ObjectRef| found.sources.source(object);
    let safe = safe_patches(&found.facts, &found.reach, &findings, &source_of);
    counts.withheld += safe.withheld.len();
    let before = cluster.schedulable();
    let mut patched = cluster.clone();
    for (place, written) in safe.written.iter().enumerate() {
        patched.apply(&written.patch);
        let after = patched.schedulable();
        let lost: Vec<_> = before.difference(&after).collect();
        assert!(
            lost.is_empty(),
            "seed {seed}: after patch {} of {}: {lost:?}: {:#?}",
            place + 1,
            safe.written.len(),
            written.patch
        );
    }
    for (place, finding) in findings.iter().enumerate() {
        let source = source_of(&finding.object);
        for patch in patches(&FactsByOwner::of(&found.facts), &[finding], source.as_ref()) {
            let mut alone = cluster.clone();
            alone.apply(&patch);
            if before.difference(&alone.schedulable()).next().is_some() {
                counts.harmful += 1;
                continue;
            }
            counts.harmless += 1;
            let is_it = |safe: &SafePatch| {
                safe.findings.contains(&place) && safe.patch.object == patch.object
            };
            counts.written += usize::from(safe.written.iter().any(is_it));
        }
    }
}

#[test]
fn no_first_part_of_the_patches_takes_the_last_node_of_a_pod() {
    let worlds = std::env::var(WORLDS).ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let mut counts = Counts::default();
    (0..worlds).for_each(|seed| judge(seed, &mut counts));
    let Counts { harmless, written, harmful, withheld } = counts;
    // Without the check the harmful ones would be written.
    assert!(harmful > 20 && withheld > 20, "{harmful} harmful, {withheld} withheld");
    assert!(written * 100 >= harmless * 95, "{written} of {harmless} harmless patches are written");
}

#[test]
fn a_field_manager_that_writes_from_a_repository_is_named() {
    let advice = |writer: &str| {
        let metadata = json!({"managedFields": [{"manager": "kubectl"}, {"manager": writer}]});
        dovetail_inventory::facts::manager(&metadata).map(|manager| manager.advice())
    };
    let fleet = advice("fleetagent").expect("it is known");
    assert!(fleet.starts_with("Field manager fleetagent manages this object"), "{fleet}");
    assert_eq!(advice("kubectl-edit"), None);
}
