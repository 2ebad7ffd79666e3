//! Translation: what each part of an object becomes. The comparison with kube-scheduler's own
//! plugins tests that the whole agrees with it.

use dovetail_model::{
    Attachment, ConditionCause, DeviceRequest, NodeAvailability, Preferred, Requirement, RuleCause,
    RuleKind, TaintEffect,
};
use dovetail_objects::{CsiNode, Kind, Node, Object, Pod};
use dovetail_translate::counting::asked_by;
use dovetail_translate::{
    NodeSetting, NotYet, REPLICAS_AS_GPUS, ReferredObjects, Rules, held, node, pod, twice_offered,
};
use serde_json::{Value, json};

fn read(kind: Kind, value: &Value) -> Object {
    Object::read(kind, value.to_string().as_bytes())
}

fn a_pod(spec: Value) -> Pod {
    let value = json!({"metadata": {"namespace": "team", "name": "p", "uid": "u1",
        "labels": {"app": "web", "hash": "h1"}}, "spec": spec});
    match read(Kind::Pod, &value) {
        Object::Pod(pod) => Pod::clone(&pod),
        other => panic!("{other:?}"),
    }
}

fn required(spec: Value, facts: &ReferredObjects) -> Result<Requirement, NotYet> {
    pod(&a_pod(spec), facts, &Rules::default())
}

/// Facts from objects by kind.
fn facts(objects: &[(Kind, Value)]) -> ReferredObjects {
    let mut facts = ReferredObjects::default();
    for (kind, value) in objects {
        match read(*kind, value) {
            Object::Claim(claim) => drop(facts.set_claim(*claim)),
            Object::PersistentVolume(volume) => drop(facts.set_volume(*volume)),
            Object::StorageClass(class) => drop(facts.set_class(class)),
            Object::CsiDriver(driver) => drop(facts.set_driver(driver)),
            Object::StorageCapacity(room) => drop(facts.set_capacity(room)),
            Object::DeviceClass(class) => drop(facts.set_device_class(class)),
            other => panic!("{other:?}"),
        }
    }
    facts
}

fn claim(name: &str, spec: Value, annotations: Value) -> (Kind, Value) {
    let meta = json!({"namespace": "team", "name": name, "annotations": annotations});
    (Kind::Claim, json!({"metadata": meta, "spec": spec}))
}

fn bound(name: &str, volume: &str) -> (Kind, Value) {
    let done = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim(name, json!({"volumeName": volume}), done)
}

fn using(claim: &str) -> Value {
    json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]})
}

fn named(name: &str, mut value: Value) -> Value {
    value["metadata"]["name"] = json!(name);
    value
}

/// Conditions as `cause: key operator values & … | …`.
fn conditions(requirement: &Requirement) -> Vec<String> {
    let text = |condition: &dovetail_model::NodeCondition| {
        let alternatives = condition.any_of.iter().map(|terms| {
            let terms = terms
                .iter()
                .map(|term| format!("{} {:?} {}", term.key, term.operator, term.values.join(",")));
            terms.collect::<Vec<_>>().join(" & ")
        });
        let alternatives = alternatives.collect::<Vec<_>>().join(" | ");
        format!("{:?}: {alternatives}", condition.cause)
    };
    requirement.node_conditions.iter().map(text).collect()
}

#[test]
fn node_selector_and_affinity_become_conditions() {
    let spec = json!({"nodeSelector": {"gpu": "h100", "disk": "fast"}, "affinity": {"nodeAffinity":
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
        {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}]},
        {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["many"]}]},
        {},
    ]}}}});
    let found = required(spec, &ReferredObjects::default()).unwrap();
    assert_eq!(
        conditions(&found),
        [
            "NodeAffinity: disk In fast & gpu In h100",
            "NodeAffinity: zone NotIn a & metadata.name In n1 | cores Gt 8",
        ]
    );
    let nowhere = json!({"affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}});
    assert_eq!(
        conditions(&required(nowhere, &ReferredObjects::default()).unwrap()),
        ["NodeAffinity: "]
    );
}

#[test]
fn tolerations_that_tolerate_nothing_are_left_out() {
    let spec = json!({"tolerations": [
        {"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"},
        {"key": "a", "operator": "Gt", "value": "1"}, {"key": "a", "effect": "Later"}]});
    let found = required(spec, &ReferredObjects::default()).unwrap().tolerations;
    assert_eq!(found.len(), 2);
    assert!(found[0].any_value && found[0].key.is_empty() && found[0].effect.is_none());
    assert_eq!((found[1].value.as_str(), found[1].effect), ("b", Some(TaintEffect::NoExecute)));
}

#[test]
fn spread_and_affinity_become_rules_over_named_counters() {
    let web = json!({"matchLabels": {"app": "web"}});
    let zone = "topology.kubernetes.io/zone";
    let spec = json!({
        "topologySpreadConstraints": [
            {"maxSkew": 2, "minDomains": 3, "topologyKey": zone, "labelSelector": web,
                "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash", "absent"],
                "nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore"},
            {"maxSkew": 1, "topologyKey": zone, "labelSelector": web,
                "whenUnsatisfiable": "ScheduleAnyway"}],
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": zone, "labelSelector": web, "namespaces": ["b", "a"]},
                {"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {}}]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "host", "labelSelector": web}]}}});
    let found = required(spec, &ReferredObjects::default()).unwrap();
    let rules: Vec<(&str, &str, RuleKind)> =
        found.rules.iter().map(|rule| (&*rule.selector, &*rule.label, rule.kind.clone())).collect();
    let together = "in [everything]: everything and in a,b: app=web";
    let spread = RuleKind::Spread { max_skew: 2, min_domains: Some(3) };
    assert_eq!(
        rules,
        [
            ("staying in team: app=web,hash=h1", zone, spread),
            (together, "host", RuleKind::Affinity),
            (together, zone, RuleKind::Affinity),
            ("in team: app=web", "host", RuleKind::AntiAffinity),
        ]
    );
    let carried = "against in team: app=web per host".to_owned();
    assert_eq!(found.counts_into.iter().cloned().collect::<Vec<_>>(), [carried]);
}

#[test]
fn ports_and_disks_keep_off_those_they_conflict_with() {
    let spec = |address: &str, read_only: bool| {
        json!({"containers": [{"ports": [{"hostPort": 80, "hostIP": address}]}],
            "volumes": [{"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}]})
    };
    let every = required(spec("", false), &ReferredObjects::default()).unwrap();
    let one = required(spec("10.0.0.1", true), &ReferredObjects::default()).unwrap();
    let other = required(spec("10.0.0.2", true), &ReferredObjects::default()).unwrap();
    let conflict = |a: &Requirement, b: &Requirement, cause| {
        let of_cause = b.rules.iter().filter(|rule| rule.cause == cause);
        of_cause.into_iter().any(|rule| a.counts_into.contains(&rule.selector))
    };
    let table = [
        (&every, &every, true, true),
        (&every, &one, true, true),
        (&one, &every, true, true),
        (&one, &one, true, false),
        (&one, &other, false, false),
    ];
    for (there, new, port, disk) in table {
        assert_eq!(conflict(there, new, RuleCause::HostPort), port);
        assert_eq!(conflict(there, new, RuleCause::DiskConflict), disk);
    }
}

#[test]
fn bound_volumes_ask_for_their_nodes_and_zones() {
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions":
        [{"key": "host", "operator": "In", "values": ["n1"]}]}]}});
    let volume = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "a__b"}},
        "spec": {"nodeAffinity": affinity, "csi": {"driver": "d", "volumeHandle": "h"}}});
    let driver = json!({"spec": {"preventPodSchedulingIfMissing": true}});
    let facts = facts(&[
        bound("c", "v"),
        (Kind::PersistentVolume, named("v", volume)),
        (Kind::CsiDriver, named("d", driver)),
    ]);
    let found = required(using("c"), &facts).unwrap();
    let absent = [
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    ]
    .map(|label| format!("{label} DoesNotExist "))
    .join(" & ");
    assert_eq!(
        conditions(&found),
        [
            "VolumeNodeAffinity: host In n1".to_owned(),
            format!("VolumeZone: {absent} | topology.kubernetes.io/zone In a,b"),
            "VolumeDriver: dovetail.dev/csi-driver:d Exists ".to_owned(),
        ]
    );
    let attached = Attachment { limit: "d".to_owned(), volume: "h".to_owned() };
    assert_eq!(found.attachments.into_iter().collect::<Vec<_>>(), [attached]);
}

#[test]
fn unbound_claims_ask_for_topology_and_room() {
    let class = json!({"provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]});
    let spec = json!({"storageClassName": "s", "resources": {"requests": {"storage": "10Gi"}}});
    let room = |name: &str, size: &str, zone: &str| {
        let room = json!({"storageClassName": "s", "capacity": size,
            "nodeTopology": {"matchLabels": {"zone": zone}}});
        (Kind::StorageCapacity, named(name, room))
    };
    let mut objects = vec![
        (Kind::StorageClass, named("s", class)),
        (Kind::CsiDriver, named("d", json!({"spec": {"storageCapacity": true}}))),
        claim("c", spec.clone(), json!(null)),
        room("r1", "9Gi", "a"),
        room("r2", "10Gi", "b"),
    ];
    let found = required(using("c"), &facts(&objects)).unwrap();
    let expected = ["StorageTopology: zone In a,b", "StorageCapacity: zone In b"];
    assert_eq!(conditions(&found), expected);
    let chosen = json!({"volume.kubernetes.io/selected-node": "n7"});
    objects[2] = claim("c", spec, chosen);
    let found = required(using("c"), &facts(&objects)).unwrap();
    assert_eq!(conditions(&found)[0], "StorageTopology: metadata.name In n7");
}

#[test]
fn what_cannot_be_placed_says_why() {
    let waits = json!({"provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"});
    let free = json!({"spec": {"storageClassName": "s", "capacity": {"storage": "20Gi"},
        "accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Available"}});
    let unbound = json!({"storageClassName": "s", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}}});
    let facts = facts(&[
        (Kind::StorageClass, named("s", waits)),
        (Kind::PersistentVolume, named("v", free)),
        (Kind::DeviceClass, named("gpu", json!({"spec": {"extendedResourceName": "x.com/gpu"}}))),
        claim("static", unbound, json!(null)),
        claim("immediate", json!({"storageClassName": ""}), json!(null)),
        bound("broken", "gone"),
    ]);
    let asking =
        |resource: &str| json!({"containers": [{"resources": {"requests": {resource: "1"}}}]});
    let ephemeral = json!({"volumes": [{"name": "tmp", "ephemeral": {}}]});
    let odd = json!({"affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector":
            {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]}}});
    let table = [
        (using("none"), "persistentvolumeclaim \"none\" not found"),
        (
            ephemeral,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-tmp\"",
        ),
        (using("immediate"), "pod has unbound immediate PersistentVolumeClaims"),
        (using("broken"), "persistentvolume \"gone\" not found: claim broken"),
        (using("static"), "claim static may take the existing volume v"),
        (json!({"resourceClaims": [{}]}), "the pod requests devices through ResourceClaims"),
        (
            asking("volcano.sh/vgpu-number"),
            "the pod requests a part of a device through resource volcano.sh",
        ),
        (
            asking("volcano.sh/gpu-memory"),
            "the pod requests a part of a device through resource volcano.sh/gpu-memory",
        ),
        (asking("x.com/gpu"), "resource x.com/gpu is offered by no node's device plugin"),
        (odd, "field affinity is not supported: `a Near` has an unknown operator"),
    ];
    for (spec, start) in table {
        let reason = required(spec, &facts).unwrap_err().to_string();
        assert!(reason.starts_with(start), "{reason}");
    }
}

#[test]
fn wishes_become_points() {
    let like = |weight: i32, value: &str| {
        json!({"weight": weight, "preference":
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}})
    };
    let mut spec = json!({
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "web"}}, "whenUnsatisfiable": "ScheduleAnyway"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            like(30, "ssd"), like(10, "nvme"), {"weight": 50, "preference": {}}]}}});
    let points = |spec: &Value| {
        let found = required(spec.clone(), &ReferredObjects::default()).unwrap();
        let preferences = found.preferences.into_iter();
        preferences.map(|p| (p.points, p.to)).collect::<Vec<(i64, Preferred)>>()
    };
    let found = points(&spec);
    let all: Vec<i64> = found.iter().map(|(points, _)| *points).collect();
    assert_eq!(all, [150, 50, -150, -20]);
    assert!(matches!(&found[0].1, Preferred::Nodes(terms) if terms[0].values == ["ssd"]));
    assert_eq!(found[2].1, Preferred::SoftTaints);
    let Preferred::Counted { selector, label, .. } = &found[3].1 else { panic!("{found:?}") };
    assert_eq!((&**selector, &**label), ("staying in team: app=web", "zone"));
    spec["nodeName"] = json!("n");
    assert_eq!(points(&spec).len(), 1, "who has a node wishes for none");
}

#[test]
fn images_of_containers_and_volumes_are_looked_for_by_full_name() {
    let mut spec = json!({
        "initContainers": [{"image": "registry:5000/fetch"}],
        "containers": [{"image": "trainer:2"}, {"image": "trainer:2"}, {"name": "none"}],
        "volumes": [{"name": "weights", "image": {"reference": "weights@sha256:9b0a"}},
            {"name": "scratch", "emptyDir": {}}]});
    let wish = |spec: &Value| {
        let found = required(spec.clone(), &ReferredObjects::default()).unwrap().preferences;
        found.into_iter().rev().find_map(|preference| match preference.to {
            Preferred::Images(names) => Some((preference.points, names)),
            _ => None,
        })
    };
    let names = ["registry:5000/fetch:latest", "trainer:2", "trainer:2", "weights@sha256:9b0a"];
    assert_eq!(wish(&spec), Some((100, names.map(str::to_owned).to_vec())));
    spec["nodeName"] = json!("n");
    assert_eq!(wish(&spec), None);
    let value = json!({"metadata": {"name": "n"}, "status": {"images": [
        {"names": ["trainer:2", "trainer@sha256:0a"], "sizeBytes": 9_000}, {"names": null}]}});
    let object: Node = serde_json::from_value(value).unwrap();
    let images = node(&object, &NodeSetting::default(), &Rules::default()).images;
    let found: Vec<(&str, i64)> = images.iter().map(|(name, bytes)| (&**name, bytes)).collect();
    assert_eq!(found, [("trainer:2", 9_000), ("trainer@sha256:0a", 9_000)]);
}

#[test]
fn gpus_of_a_device_plugin_are_counted_devices() {
    let value = json!({"metadata": {"name": "n", "labels": {
            "nvidia.com/gpu.product": "H100", "nvidia.com/gpu.memory": "81559"}},
        "spec": {"unschedulable": true, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "3", "pods": "5"},
            "capacity": {"nvidia.com/gpu": "8"}, "declaredFeatures": ["F"]}});
    let Object::Node(object) = read(Kind::Node, &value) else { panic!("a plain node") };
    let csi: CsiNode =
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"drivers": [
        {"name": "d", "allocatable": {"count": 2}}, {"name": "e"}]}}))
        .unwrap();
    let setting = NodeSetting { csi: Some(&csi), ..NodeSetting::default() };
    let made = node(&object, &setting, &Rules::default());
    let healthy = made.devices.iter().filter(|device| device.healthy).count();
    assert_eq!((made.devices.len(), healthy), (8, 7));
    assert_eq!((&*made.devices[0].model, made.devices[0].memory_bytes), ("H100", 81559 << 20));
    assert_eq!(made.allocatable.extended.len(), 1, "MIG slices are plain counts");
    assert_eq!(made.attach_limits.into_iter().collect::<Vec<_>>(), [("d".to_owned(), 2)]);
    assert!(made.labels.contains_key("dovetail.dev/csi-driver:e"));
    assert!(made.labels.contains_key("dovetail.dev/feature:F"));
    let taints: Vec<&str> = made.taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(taints, ["gpu"]);
    assert!(made.unschedulable);
    let spec = json!({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]});
    let asked = required(spec.clone(), &ReferredObjects::default()).unwrap();
    assert_eq!(asked.device, DeviceRequest::Whole { count: 2, same_island: false });
    assert!(asked.resources.extended.is_empty());
    assert_eq!(held(&a_pod(spec), &ReferredObjects::default(), &Rules::default()).devices, 2);
}

#[test]
fn a_node_whose_devices_two_systems_give_out_is_not_used() {
    let value =
        json!({"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}});
    let node_object: Node = serde_json::from_value(value).unwrap();
    let condition = |driver| {
        let setting = NodeSetting { device_drivers: [driver].into(), ..NodeSetting::default() };
        (
            twice_offered(&node_object, &setting).len(),
            node(&node_object, &setting, &Rules::default()).condition,
        )
    };
    assert_eq!(condition("gpu.nvidia.com"), (1, NodeAvailability::Cordoned));
    assert_eq!(condition("gpu.example.com"), (0, NodeAvailability::Ready));
}

#[test]
fn causes_are_those_of_the_plugins() {
    let spec = json!({"hostNetwork": true, "hostUsers": false});
    let found = required(spec, &ReferredObjects::default()).unwrap();
    assert_eq!(found.node_conditions[0].cause, ConditionCause::DeclaredFeatures);
    assert_eq!(
        conditions(&found),
        ["DeclaredFeatures: dovetail.dev/feature:UserNamespacesHostNetworkSupport Exists "]
    );
}

/// An audit asks where pods of any scheduler can go: others keep no classes apart.
#[test]
fn only_pods_that_dovetail_places_keep_classes_on_shared_gpus_apart() {
    let mut shares = a_pod(json!({}));
    shares.requests.extended.insert("nvidia.com/gpu.shared".to_owned(), 1);
    shares.meta.labels = [("dovetail.dev/class", "inference")].into_iter().collect();
    let facts = ReferredObjects::default();
    let of = |mixes_shared_gpus| {
        let rules = Rules { mixes_shared_gpus, ..Rules::default() };
        let found = pod(&shares, &facts, &rules).expect("a pod");
        (found.rules.len(), found.node_conditions.len())
    };
    assert_eq!((of(false), of(true)), ((2, 1), (0, 0)));
}

/// On other nodes, and where no node offers any, a whole GPU is nobody else's.
#[test]
fn pods_that_request_gpus_share_them_where_these_are_replicas() {
    let labels = |offers: Value, replicas: Value| -> Vec<String> {
        let object = json!({"metadata": {"name": "n", "labels": replicas,
                "annotations": {"dovetail.dev/shared-classes": "batch"}},
            "status": {"allocatable": offers, "capacity": offers}});
        let Object::Node(object) = read(Kind::Node, &object) else { panic!("a node") };
        let node = node(&object, &NodeSetting::default(), &Rules::default());
        let ours = node.labels.into_keys().filter(|key| key.starts_with("dovetail.dev/"));
        ours.collect()
    };
    let discovered = json!({"nvidia.com/gpu.replicas": "4"});
    let on_gke = json!({"cloud.google.com/gke-gpu-sharing-strategy": "mps",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "2"});
    let gpus = json!({"nvidia.com/gpu": "8"});
    let found = labels(gpus.clone(), discovered.clone());
    assert_eq!(
        found,
        [
            "dovetail.dev/gpus-shared-by:named-classes",
            "dovetail.dev/gpus-shared-by:time-slicing",
            "dovetail.dev/gpus-shared-class:batch"
        ]
    );
    assert!(labels(gpus.clone(), on_gke).contains(&"dovetail.dev/gpus-shared-by:mps".to_owned()));
    assert_eq!(labels(gpus, json!({"nvidia.com/gpu.replicas": "1"})), [""; 0]);
    // The label counts the replicas that have a name of their own.
    let renamed = labels(json!({"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "4"}), discovered);
    assert!(renamed.iter().all(|label| label.contains("/shared-")), "{renamed:?}");

    let mut asks = a_pod(json!({}));
    asks.requests.extended.insert("nvidia.com/gpu".to_owned(), 1);
    asks.meta.labels = [("dovetail.dev/class", "inference")].into_iter().collect();
    let mut facts = ReferredObjects::default();
    let of = |facts: &ReferredObjects, mixes_shared_gpus| {
        let rules = Rules { mixes_shared_gpus, ..Rules::default() };
        let found = pod(&asks, facts, &rules).expect("a pod");
        (found.rules.len(), found.node_conditions.len(), asked_by(&asks, facts, &rules).len())
    };
    assert_eq!(of(&facts, false), (0, 0, 0));
    facts.offers.add(REPLICAS_AS_GPUS);
    assert_eq!((of(&facts, false), of(&facts, true)), ((2, 1, 2), (0, 0, 0)));
}

#[test]
fn the_scheduler_s_own_node_selector_counts_as_if_each_pod_asked_for_it() {
    let labels = [("pool".to_owned(), "gpu".to_owned())];
    let rules = Rules { node_selector: labels.into(), ..Rules::default() };
    let facts = ReferredObjects::default();
    let plain = pod(&a_pod(json!({})), &facts, &rules).unwrap();
    assert_eq!(plain, required(json!({"nodeSelector": {"pool": "gpu"}}), &facts).unwrap());
    // It never widens what the pod itself asks for.
    let own = pod(&a_pod(json!({"nodeSelector": {"zone": "a"}})), &facts, &rules).unwrap();
    assert_eq!(own.node_conditions.len(), 2);
}
