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
    let mut objects = vec![node("g1", 4), node("g2", 4), source.object.clone()];
    for name in ["run-0", "run-1"] {
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
        assert_ne!(expected, of(&without), "{}", source.object);
        // A third pod is missing: nothing is reserved.
        assert_eq!(expected.get("free_reserved"), None, "{expected:?} {}", source.object);
        assert_eq!(expected, of(&kept(&dump)), "{}", source.object);
        assert_eq!(expected, of(&anonymous), "{}", source.object);
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
