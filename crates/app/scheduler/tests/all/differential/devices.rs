//! Claims of devices, against kube-scheduler's own plugin `DynamicResources`.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_check::check_claims;
use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, Reached,
};
use dovetail_objects::{Node, ResourceClaim};
use dovetail_testkit::world::{
    Coverage, GeneratedCluster, NodeAnswer, OracleAnswer, Release, generate_devices,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::asked::{Asked, Verdict};
use super::{judged, worlds};

/// A feature of dynamic resource allocation, and the world without it.
struct Feature {
    name: &'static str,
    take_out: fn(&mut GeneratedCluster),
}

const FEATURES: [Feature; 23] = [
    Feature {
        name: "templates",
        take_out: |world| each(&mut world.pending, "resourceClaimStatuses"),
    },
    Feature { name: "claims shared by pods", take_out: claims_of_their_own },
    Feature { name: "incomplete pools", take_out: complete_pools },
    Feature { name: "invalid pools", take_out: rename_twins },
    Feature { name: "binding conditions", take_out: ready_devices },
    Feature { name: "alternatives", take_out: first_alternatives },
    Feature { name: "held devices", take_out: |world| each(&mut world.resource_claims, "status") },
    Feature { name: "device taints", take_out: |world| each(&mut world.resource_slices, "taints") },
    Feature { name: "device taint rules", take_out: |world| world.device_taint_rules.clear() },
    Feature { name: "tolerations", take_out: |world| wishes(world, "tolerations") },
    Feature {
        name: "counters",
        take_out: |world| each(&mut world.resource_slices, "consumesCounters"),
    },
    Feature {
        name: "several allocations",
        take_out: |world| each(&mut world.resource_slices, "allowMultipleAllocations"),
    },
    Feature {
        name: "request policies",
        take_out: |world| each(&mut world.resource_slices, "requestPolicy"),
    },
    Feature { name: "requested capacity", take_out: |world| wishes(world, "capacity") },
    Feature {
        name: "attributes that match",
        take_out: |world| constraints(world, "matchAttribute"),
    },
    Feature {
        name: "attributes that are distinct",
        take_out: |world| constraints(world, "distinctAttribute"),
    },
    Feature { name: "selectors of requests", take_out: |world| wishes(world, "selectors") },
    Feature {
        name: "selectors of classes",
        take_out: |world| each(&mut world.device_classes, "selectors"),
    },
    Feature { name: "admin access", take_out: |world| wishes(world, "adminAccess") },
    Feature { name: "all devices", take_out: |world| wishes(world, "allocationMode") },
    Feature { name: "number of devices", take_out: |world| wishes(world, "count") },
    Feature {
        name: "extended resources",
        take_out: |world| each(&mut world.device_classes, "extendedResourceName"),
    },
    Feature {
        name: "nodes of single devices",
        take_out: |world| each(&mut world.resource_slices, "perDeviceNodeSelection"),
    },
];

/// Of each request with alternatives the first is left.
fn first_alternatives(world: &mut GeneratedCluster) {
    for claim in &mut world.resource_claims {
        let requests = claim["spec"]["devices"]["requests"].as_array_mut();
        for request in requests.into_iter().flatten() {
            if let Some(mut first) = request.pointer_mut("/firstAvailable/0").map(Value::take) {
                first.as_object_mut().and_then(|of| of.remove("name"));
                *request = json!({"name": request["name"], "exactly": first});
            }
        }
    }
}

/// Each pending pod has a claim of its own in place of one that others have.
fn claims_of_their_own(world: &mut GeneratedCluster) {
    for pod in &mut world.pending {
        let of_pod = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let entries = pod.pointer_mut("/spec/resourceClaims").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            let named = |claim: &&Value| claim["metadata"]["name"] == entry["resourceClaimName"];
            let claim = world.resource_claims.iter().find(named);
            let Some(claim) = claim.filter(|claim| !claim["status"].is_null()) else { continue };
            let mut own = claim.clone();
            own.as_object_mut().and_then(|of| of.remove("status"));
            let name = own["metadata"]["name"].as_str().expect("a name");
            let name = format!("{name}-of-{of_pod}");
            own["metadata"]["uid"] = json!(format!("uid-{name}"));
            own["metadata"]["name"] = json!(name);
            entry["resourceClaimName"] = json!(name);
            world.resource_claims.push(own);
        }
    }
}

/// All slices of each pool are there.
fn complete_pools(world: &mut GeneratedCluster) {
    let pool = |slice: &Value| {
        let of = &slice["spec"]["pool"];
        format!("{} {} {}", slice["spec"]["driver"], of["name"], of["generation"])
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for slice in &world.resource_slices {
        *counts.entry(pool(slice)).or_default() += 1;
    }
    for slice in &mut world.resource_slices {
        let count = counts[&pool(slice)];
        slice["spec"]["pool"]["resourceSliceCount"] = json!(count);
    }
}

/// No two devices of a slice have the same name.
fn rename_twins(world: &mut GeneratedCluster) {
    for slice in &mut world.resource_slices {
        let mut names = BTreeSet::new();
        let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            let name = device["name"].as_str().expect("a name").to_owned();
            if !names.insert(name.clone()) {
                device["name"] = json!(format!("{name}-twin"));
            }
        }
    }
}

/// Only the devices that are ready without conditions.
fn ready_devices(world: &mut GeneratedCluster) {
    for slice in &mut world.resource_slices {
        let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        if let Some(devices) = devices {
            devices.retain(|device| device["bindingConditions"].is_null());
        }
    }
}

/// Without constraints of this kind.
fn constraints(world: &mut GeneratedCluster, kind: &str) {
    for claim in &mut world.resource_claims {
        let all = claim.pointer_mut("/spec/devices/constraints").and_then(Value::as_array_mut);
        if let Some(all) = all {
            all.retain(|one| one[kind].is_null());
        }
    }
}

fn wishes(world: &mut GeneratedCluster, field: &str) {
    each(&mut world.resource_claims, field);
}

/// Takes a field out of objects, wherever it is in them.
fn each(objects: &mut [Value], field: &str) {
    for object in objects {
        match object {
            Value::Object(fields) => {
                fields.remove(field);
                fields.values_mut().for_each(|inner| each(std::slice::from_mut(inner), field));
            }
            Value::Array(items) => each(items, field),
            _ => {}
        }
    }
}

/// Pairs of a pod and a node that each feature must decide.
const PAIRS: usize = 100;

/// Pairs of a pod and a node on which only one of the two lets the pod run. Why is not compared:
/// dovetail says for each request what excludes how many devices.
fn disputed(answer: &OracleAnswer, world: &GeneratedCluster) -> Vec<(String, String)> {
    let ours = Asked::about(world).answers(None);
    assert_eq!(answer.pods.len(), ours.len(), "both answer about every pod");
    let mut disputed = Vec::new();
    for (kube, said) in answer.pods.iter().zip(&ours) {
        let fits = |node: &str| match &said.verdict {
            Verdict::Judged { nodes, .. } => nodes[node].reasons.is_empty(),
            Verdict::Gated | Verdict::Left(_) => false,
        };
        for node in &kube.nodes {
            let theirs = node.rejects.is_empty() && kube.gated.is_empty();
            if theirs != fits(&node.node) && !ends_in_an_error(node) {
                disputed.push((kube.pod.clone(), node.node.clone()));
            }
        }
    }
    disputed
}

/// Whether kube-scheduler gave up on a node where dovetail may go on: at the first device of which
/// a selector cannot be evaluated, or at the first alternative whose devices break a constraint.
fn ends_in_an_error(node: &NodeAnswer) -> bool {
    let is_error = |reason: &String| {
        reason.contains("CEL runtime error") || reason.contains("would not be satisfied")
    };
    node.rejects.iter().flat_map(|rejection| &rejection.reasons).any(is_error)
}

/// States that a search looks at for the claims of one pod on one node.
const STEPS: u64 = 20_000;

fn read<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).expect("an object of the API")
}

/// What an answer says: of a refusal how many devices each request wants and may have.
fn said(outcome: &AllocationOutcome) -> String {
    match outcome {
        AllocationOutcome::No(looks) => {
            let counts = looks.iter().map(|look| (look.wanted, look.left()));
            format!("No {:?}", counts.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

/// Devices that nodes give to the claims of pending pods: how many times, and for which pods and
/// nodes the judge of claims finds something wrong with them, or the answer is another where only
/// what is left is looked at.
fn judged_choices(world: &GeneratedCluster) -> (usize, Vec<String>) {
    let mut catalog = Catalog::new(Features::ALL);
    world.device_classes.iter().for_each(|class| catalog.put_class(read(class)));
    world.resource_slices.iter().for_each(|slice| catalog.put_slice(read(slice)));
    world.device_taint_rules.iter().for_each(|rule| catalog.put_taint_rule(read(rule)));
    let claims: Vec<ResourceClaim> = world.resource_claims.iter().map(read).collect();
    let mut held = ClaimedDevices::default();
    claims.iter().filter_map(|claim| claim.allocation.as_ref()).for_each(|has| held.add(has));
    let of_pods: Vec<(&Value, Vec<&ResourceClaim>)> =
        world.pending.iter().map(|pod| (pod, open_claims(pod, &claims))).collect();
    let (mut choices, mut wrong) = (0, Vec::new());
    for node in &world.nodes {
        let node: Node = read(node);
        let place = CandidateNode { node: &node.meta.name, labels: &node.meta.labels };
        let reached = Reached::of(&catalog, &held, place);
        let left = Reached::left_of(&catalog, &held, place);
        for (pod, claims) in of_pods.iter().filter(|(_, claims)| !claims.is_empty()) {
            let [whole, part] = [&reached, &left].map(|one| said(&one.allocate(claims, STEPS)));
            if whole != part {
                let name = &pod["metadata"]["name"];
                wrong.push(format!("{name} on {}: {whole}, but {part}", node.meta.name));
            }
            let Some((demand, choice)) = reached.choice(claims, STEPS) else { continue };
            choices += 1;
            let found = check_claims(reached.supply(), &demand, &choice);
            if !found.is_empty() {
                wrong.push(format!("{} on {}: {found:?}", pod["metadata"]["name"], node.meta.name));
            }
        }
    }
    (choices, wrong)
}

/// The claims of a pod that have no devices yet.
fn open_claims<'w>(pod: &Value, claims: &'w [ResourceClaim]) -> Vec<&'w ResourceClaim> {
    let names = pod["spec"]["resourceClaims"].as_array().into_iter().flatten();
    let named = names.filter_map(|of| {
        let name = of["resourceClaimName"].as_str()?;
        claims.iter().find(|claim| *claim.meta.name == *name)
    });
    named.filter(|claim| claim.allocation.is_none()).collect()
}

#[test]
#[allow(clippy::print_stderr, reason = "what was compared is worth a look: --nocapture shows it")]
fn the_devices_that_a_pod_may_have_are_those_of_kube_scheduler() {
    let mut coverage = Coverage::default();
    let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut failed, mut choices) = (0, 0);
    for (seed, world, answer) in judged(Release::V1_37, 2 * worlds(), generate_devices) {
        coverage.add(&answer);
        let found = disputed(&answer, &world);
        if !found.is_empty() {
            failed += 1;
            eprintln!("world {seed}: {found:?}\n  {answer:?}\n  {}", world.to_line());
        }
        let (judged, wrong) = judged_choices(&world);
        choices += judged;
        assert!(wrong.is_empty(), "world {seed}: {wrong:?}\n  {}", world.to_line());
        for feature in &FEATURES {
            let mut without = world.clone();
            (feature.take_out)(&mut without);
            let pairs = decided.entry(feature.name).or_default();
            if without != world && *pairs < PAIRS {
                *pairs += disputed(&answer, &without).iter().filter(|p| !found.contains(p)).count();
            }
        }
    }
    eprintln!("{coverage}decided by a feature, counted up to about {PAIRS}: {decided:?}");
    eprintln!("{choices} allocations judged");
    assert!(choices > PAIRS, "too few allocations: {choices}");
    assert_eq!(failed, 0, "worlds in which the two disagree, see above");
    let few: Vec<_> = decided.iter().filter(|(_, pairs)| **pairs < PAIRS).collect();
    assert!(few.is_empty(), "decided by too few pairs: {few:?}");
}
