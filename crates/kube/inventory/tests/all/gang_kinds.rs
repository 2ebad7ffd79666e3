//! Gangs and queues of every scheduler in a dump: recognized by group and kind, and told alike by
//! what `kubectl` writes and by what `collect` keeps of it.

use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use crate::facts::{expect, gathered, node, pod, states};

/// A group object, and what binds pods to it: labels and annotations.
struct Source {
    object: Value,
    labels: Value,
    annotations: Value,
}

/// One for each kind of group that the scheduler reads.
fn sources() -> Vec<Source> {
    let object = |api_version: &str, kind: &str, spec: Value| {
        json!({"apiVersion": api_version, "kind": kind, "spec": spec,
            "metadata": {"name": "run", "namespace": "research", "uid": "run"}})
    };
    let group = |api_version: &str, spec: Value, labels: Value, annotations: Value| Source {
        object: object(api_version, "PodGroup", spec),
        labels,
        annotations,
    };
    let three = json!({"minMember": 3});
    vec![
        group(
            "scheduling.x-k8s.io/v1alpha1",
            three.clone(),
            json!({"scheduling.x-k8s.io/pod-group": "run"}),
            json!({}),
        ),
        group(
            "scheduling.volcano.sh/v1beta1",
            three.clone(),
            json!({}),
            json!({"scheduling.k8s.io/group-name": "run"}),
        ),
        group("scheduling.run.ai/v2alpha2", three, json!({}), json!({"pod-group-name": "run"})),
    ]
}

/// Two nodes of four GPUs, two pods of four that wait, and a group that says that three start
/// together: nothing can start, though both would fit. Without the group both would, and their GPUs
/// were kept for them.
fn objects(source: &Source) -> Vec<Value> {
    with_pods(source, &["run-0", "run-1"])
}

/// The same with these pods.
fn with_pods(source: &Source, pods: &[&str]) -> Vec<Value> {
    let mut objects = vec![node("g1", 4), node("g2", 4), source.object.clone()];
    for name in pods {
        let mut waits = pod(name, "", 4, "");
        for (key, value) in source.labels.as_object().unwrap() {
            waits["metadata"]["labels"][key] = value.clone();
        }
        waits["metadata"]["annotations"] = source.annotations.clone();
        objects.push(waits);
    }
    objects
}

fn kept(objects: &[Value]) -> Vec<Value> {
    let keeper = Keeper::default();
    let keep = |object: &Value| {
        let text = |field: &str| object[field].as_str().unwrap();
        keeper.keep(text("kind"), text("apiVersion"), object)
    };
    objects.iter().filter_map(keep).collect()
}

#[test]
fn every_kind_of_group_counts_in_a_dump_in_a_collection_and_in_an_anonymised_one() {
    for source in sources() {
        let dump = objects(&source);
        let without: Vec<Value> =
            dump.iter().filter(|object| object["kind"] != "PodGroup").cloned().collect();
        let mut names = Pseudonyms::new([7; 32]);
        let anonymous: Vec<Value> = kept(&dump).iter().map(|one| names.replace(one)).collect();
        let of = |objects: &[Value]| states(gathered(objects));
        let expected = of(&dump);
        let is_short = |objects: &[Value]| {
            let unjudged = gathered(objects).unjudged;
            !unjudged.is_empty() && unjudged.iter().all(|of| of.reason.ends_with("has 2 of 3 pods"))
        };
        for objects in [&dump, &kept(&dump), &anonymous] {
            assert!(is_short(objects), "{:?} {}", gathered(objects).unjudged, source.object);
        }
        assert!(!is_short(&without), "{}", source.object);
        // A third pod is missing: what the two would take is not known.
        assert_eq!(expected.get("free_reserved"), None, "{expected:?} {}", source.object);
        assert_eq!(expected, of(&kept(&dump)), "{}", source.object);
        assert_eq!(expected, of(&anonymous), "{}", source.object);
    }
}

/// Findings name the group by its API group, with the pods that wait.
#[test]
fn a_gang_that_waits_has_its_object_and_its_pods() {
    for source in sources() {
        let found = gathered(&with_pods(&source, &["run-0", "run-1", "run-2"]));
        let gangs = found.moment.demand.iter().flat_map(|demand| demand.gangs.values());
        let gangs: Vec<_> = gangs.collect();
        let [gang] = gangs[..] else { panic!("{}", source.object) };
        let version = source.object["apiVersion"].as_str().unwrap();
        let group = version.split('/').next().unwrap();
        let object = gang.object.as_ref().unwrap();
        assert_eq!(object.kind, format!("PodGroup.{group}"));
        assert_eq!((&*object.namespace, &*object.name), ("research", "run"));
        assert_eq!(gang.resource, format!("podgroups.{group}"));
        let mut pods = gang.pods.clone();
        pods.sort();
        assert_eq!(pods, ["run-0", "run-1", "run-2"]);
        assert!(gang.size.starts_with("minMember"), "{}", gang.size);
    }
}

/// A Queue of Volcano is none of ours, whatever it says.
#[test]
fn kinds_of_one_name_are_told_apart_by_their_group() {
    let queue = |api_version: &str, spec: Value| {
        json!({"apiVersion": api_version, "kind": "Queue", "spec": spec,
            "metadata": {"name": "research", "uid": "q"}})
    };
    let strange = queue("scheduling.volcano.sh/v1beta1", json!({"weight": "much", "limit": 3}));
    let found = gathered(&[node("g1", 4), strange, pod("p", "", 4, "")]);
    expect(&states(found), &[("free_reserved", 4000)]);
}

/// Checks that a dump, a collection and an anonymised one come to the same states.
fn expect_in_every_form(dump: &[Value], expected: &[(&str, i64)]) {
    let mut names = Pseudonyms::new([7; 32]);
    let anonymous: Vec<Value> = kept(dump).iter().map(|one| names.replace(one)).collect();
    for objects in [dump, &kept(dump)[..], &anonymous[..]] {
        expect(&states(gathered(objects)), expected);
    }
}

/// One GPU node, on which one of two pods runs; the other one waits.
fn half_placed(owners: [&str; 2], labels: &Value, annotations: &Value) -> Vec<Value> {
    let pods = [pod("run-0", owners[0], 4, "g1"), pod("run-0-1", owners[1], 4, "")];
    let marked = pods.into_iter().zip(["0", "1"]).map(|(mut pod, index)| {
        pod["metadata"]["labels"] = labels.clone();
        pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = json!(index);
        pod["metadata"]["annotations"] = annotations.clone();
        pod
    });
    [node("g1", 4)].into_iter().chain(marked).collect()
}

#[test]
fn pods_of_a_group_of_kueue_wait_for_the_others() {
    let labels =
        json!({"kueue.x-k8s.io/pod-group-name": "run", "kueue.x-k8s.io/queue-name": "research"});
    let of = |total: &str, serving: &str| {
        let annotations = json!({"kueue.x-k8s.io/pod-group-total-count": total,
            "kueue.x-k8s.io/pod-group-serving": serving});
        half_placed(["", ""], &labels, &annotations)
    };
    expect_in_every_form(&of("2", "false"), &[("gang_wait", 4000)]);
    expect_in_every_form(&of("1", "false"), &[("unknown", 4000)]);
    // Replicas of a server do not wait for each other.
    expect_in_every_form(&of("2", "true"), &[("unknown", 4000)]);
}

/// The set, and what its controllers make: the leader controls the StatefulSet of its workers.
fn leader_worker_set(size: u32, annotations: &Value) -> Vec<Value> {
    let labels = json!({"leaderworkerset.sigs.k8s.io/name": "run",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/group-key": "689ce1b5"});
    let stateful_set = |name: &str, kind: &str, by: &str| {
        let owners = json!([{"apiVersion": "x/v1", "kind": kind, "name": by, "uid": by,
            "controller": true}]);
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 1},
            "metadata": {"name": name, "namespace": "research", "uid": name,
                "ownerReferences": owners}})
    };
    let template = json!({"spec": {"containers": [{"name": "main"}]}});
    let mut objects = half_placed(["StatefulSet/run", "StatefulSet/run-0"], &labels, annotations);
    objects.extend([
        json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "run", "namespace": "research", "uid": "run"},
            "spec": {"replicas": 1,
                "leaderWorkerTemplate": {"size": size, "workerTemplate": template}}}),
        stateful_set("run", "LeaderWorkerSet", "run"),
        stateful_set("run-0", "Pod", "run-0"),
    ]);
    objects
}

#[test]
fn pods_of_a_leader_worker_set_wait_for_the_others_of_their_group() {
    let waits = [("gang_wait", 4000)];
    expect_in_every_form(&leader_worker_set(2, &json!({})), &waits);
    expect_in_every_form(&leader_worker_set(1, &json!({})), &[("unknown", 4000)]);
    // While the set is changed, pods say the size of their own group.
    let said = json!({"leaderworkerset.sigs.k8s.io/size": "2"});
    expect_in_every_form(&leader_worker_set(1, &said), &waits);
}

#[test]
fn workers_belong_to_the_set_of_their_leader() {
    let found = gathered(&leader_worker_set(2, &json!({})));
    let [set] = &found.facts.workloads[..] else { panic!("{:?}", found.facts.workloads) };
    assert_eq!((&*set.owner.kind, &*set.owner.name), ("LeaderWorkerSet", "run"));
    assert_eq!((set.replicas, set.pods.len()), (2, 2));
}

/// The native group is a field of the pod.
#[test]
fn a_collection_keeps_the_native_group_of_a_pod() {
    let mut waits = pod("p", "", 4, "");
    waits["spec"]["schedulingGroup"] = json!({"podGroupName": "run"});
    let kept = kept(&[waits]);
    assert_eq!(kept[0]["spec"]["schedulingGroup"]["podGroupName"], "run");
}
