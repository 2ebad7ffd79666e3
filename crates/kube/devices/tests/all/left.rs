//! Questions that look only at the devices of a node that are left: they are as many as those, and
//! the answers are those about all devices.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, Reached,
};
use dovetail_objects::{AllocatedDevice, Allocation, Labels, ResourceClaim};
use serde_json::{Value, json};

/// Profile, compute slices, memory slices, and where it may start.
const PROFILES: [(&str, usize, usize, &[usize]); 3] =
    [("whole", 7, 8, &[0]), ("half", 3, 4, &[0, 4]), ("small", 1, 1, &[0, 1, 2, 3, 4, 5, 6])];
/// Devices of a GPU.
const OF_GPU: usize = 10;
/// States that a search looks at.
const STEPS: u64 = 10_000;

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn is_one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn counters(compute: usize, memory: std::ops::Range<usize>) -> Value {
    let mut counters = json!({"compute": {"value": compute.to_string()}});
    memory.for_each(|at| counters[format!("memory-{at}")] = json!({"value": "1"}));
    counters
}

/// All that a GPU can be divided into.
fn devices(gpu: usize) -> Vec<Value> {
    let mut devices = Vec::new();
    for (profile, compute, memory, starts) in PROFILES {
        for start in starts {
            let draws = counters(compute, *start..start + memory);
            let attributes = json!({"profile": {"string": profile}, "numa": {"int": gpu % 2}});
            devices.push(json!({"name": name(gpu, profile, *start), "attributes": attributes,
                "consumesCounters": [{"counterSet": format!("gpu-{gpu}"), "counters": draws}]}));
        }
    }
    devices
}

fn name(gpu: usize, profile: &str, start: usize) -> String {
    format!("gpu-{gpu}-{profile}-{start}")
}

/// A node with the counters of its GPUs in one slice, and with their devices in one slice each.
fn catalog(gpus: &[Vec<Value>]) -> Catalog {
    let mut catalog = Catalog::new(Features::ALL);
    let class = json!({"metadata": {"name": "any"}, "spec": {}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    let set = |gpu: usize| json!({"name": format!("gpu-{gpu}"), "counters": counters(7, 0..8)});
    let sets: Vec<Value> = (0..gpus.len()).map(set).collect();
    let mut slices = vec![json!({"sharedCounters": sets})];
    slices.extend(gpus.iter().map(|devices| json!({"devices": devices})));
    let count = slices.len();
    for (number, mut spec) in slices.into_iter().enumerate() {
        spec["driver"] = json!("d");
        spec["nodeName"] = json!("n");
        spec["pool"] = json!({"name": "p", "generation": 1, "resourceSliceCount": count});
        let slice = json!({"metadata": {"name": format!("s{number}")}, "spec": spec});
        catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    }
    catalog
}

fn hold(held: &mut ClaimedDevices, device: &str) {
    let (driver, pool, device) = ("d".into(), "p".into(), device.into());
    let device = AllocatedDevice { driver, pool, device, ..AllocatedDevice::default() };
    held.add(&Allocation { devices: vec![device], ..Allocation::default() });
}

#[test]
fn a_question_looks_at_the_devices_that_are_left_and_at_no_others() {
    let gpus: Vec<Vec<Value>> = (0..8).map(devices).collect();
    let catalog = catalog(&gpus);
    let labels = Labels::default();
    let place = CandidateNode { node: "n", labels: &labels };
    let looked_at =
        |held: &ClaimedDevices| Reached::left_of(&catalog, held, place).supply().devices.len();
    let mut held = ClaimedDevices::default();
    assert_eq!(looked_at(&held), 8 * OF_GPU);
    for gpu in 0..7 {
        match gpu % 3 {
            0 => hold(&mut held, &name(gpu, "whole", 0)),
            1 => [0, 4].iter().for_each(|start| hold(&mut held, &name(gpu, "half", *start))),
            _ => (0..7).for_each(|start| hold(&mut held, &name(gpu, "small", start))),
        }
    }
    assert_eq!(looked_at(&held), OF_GPU, "one GPU is free");
    hold(&mut held, &name(7, "small", 0));
    assert_eq!(looked_at(&held), 7, "six small ones and the other half");
    hold(&mut held, &name(7, "half", 4));
    assert_eq!(looked_at(&held), 3, "small ones beside the half");
    let all = Reached::of(&catalog, &held, place).supply().devices.len();
    assert_eq!(all, 8 * OF_GPU, "who explains looks at all of them");
}

/// Claims for all devices, and selectors that cannot be evaluated, ask about all of them.
#[test]
fn all_devices_of_a_node_are_numbered_once_for_all_questions() {
    let catalog = catalog(&[devices(0)]);
    let labels = Labels::default();
    let place = CandidateNode { node: "n", labels: &labels };
    let mut held = ClaimedDevices::default();
    hold(&mut held, &name(0, "small", 0));
    let left = Reached::left_of(&catalog, &held, place);
    let all = left.whole();
    assert!(left.supply().devices.len() < OF_GPU);
    assert_eq!(all.supply().devices.len(), OF_GPU);
    assert!(std::ptr::eq(left.whole(), all) && std::ptr::eq(all.whole(), all));
}

/// Devices of GPUs, some of which are odd.
fn odd_devices(random: &mut Random) -> Vec<Vec<Value>> {
    let mut gpus: Vec<Vec<Value>> = (0..1 + random.below(3)).map(devices).collect();
    for device in gpus.iter_mut().flatten() {
        if random.is_one_in(60)
            && let Some(attributes) = device["attributes"].as_object_mut()
        {
            // A selector that reads it cannot be evaluated.
            attributes.remove("profile");
        }
        if random.is_one_in(8) {
            device["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
        }
        if random.is_one_in(3) {
            device["capacity"] = json!({"memory": {"value": "4"}});
        }
        if random.is_one_in(12) {
            let range = json!({"min": "1", "max": "4", "step": "1"});
            let policy = json!({"default": "1", "validRange": range});
            device["capacity"] = json!({"memory": {"value": "4", "requestPolicy": policy}});
            device["allowMultipleAllocations"] = json!(random.is_one_in(2));
        }
    }
    gpus
}

/// What a request asks for, or an alternative of one.
fn asked(random: &mut Random) -> Value {
    let mut asked = json!({"deviceClassName": "any"});
    match random.is_one_in(10) {
        true => asked["allocationMode"] = json!("All"),
        false => asked["count"] = json!(1 + random.below(3)),
    }
    if !random.is_one_in(3) {
        let profile = random.one_of(&PROFILES).0;
        let is_it = format!("device.attributes['d'].profile == '{profile}'");
        asked["selectors"] = json!([{"cel": {"expression": is_it}}]);
    }
    if random.is_one_in(3) {
        asked["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
    }
    if random.is_one_in(10) {
        asked["capacity"] = json!({"requests": {"memory": (1 + random.below(5)).to_string()}});
    }
    asked
}

fn claim(number: usize, random: &mut Random) -> ResourceClaim {
    let request = |at: usize, random: &mut Random| {
        let name = format!("r{at}");
        if random.is_one_in(4) {
            let mut alternatives = [asked(random), asked(random)];
            for (at, one) in alternatives.iter_mut().enumerate() {
                one["name"] = json!(format!("a{at}"));
            }
            return json!({"name": name, "firstAvailable": alternatives});
        }
        let mut exactly = asked(random);
        if random.is_one_in(10) {
            exactly["adminAccess"] = json!(true);
        }
        json!({"name": name, "exactly": exactly})
    };
    let requests: Vec<Value> = (0..1 + random.below(2)).map(|at| request(at, random)).collect();
    let mut devices = json!({"requests": requests});
    if random.is_one_in(4) {
        let rule = *random.one_of(&["matchAttribute", "distinctAttribute"]);
        devices["constraints"] = json!([{rule: "d/numa"}]);
    }
    let claim = json!({"metadata": {"name": format!("c{number}")}, "spec": {"devices": devices}});
    serde_json::from_value(claim).expect("a claim")
}

/// What an outcome says: of a refusal how many devices each request wants and may have.
fn said(outcome: &AllocationOutcome) -> String {
    match outcome {
        AllocationOutcome::No(looks) => {
            let counts = looks.iter().map(|look| (&look.request, look.wanted, look.left()));
            format!("No {:?}", counts.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn what_is_left_answers_as_all_devices_do() {
    let (mut fits, mut refused, mut fewer) = (0, 0, 0);
    let labels = Labels::default();
    let place = CandidateNode { node: "n", labels: &labels };
    for seed in 0..600 {
        let random = &mut Random(seed);
        let gpus = odd_devices(random);
        let catalog = catalog(&gpus);
        let all: Vec<&Value> = gpus.iter().flatten().collect();
        let mut held = ClaimedDevices::default();
        for _ in 0..random.below(8) {
            hold(&mut held, random.one_of(&all)["name"].as_str().expect("a name"));
        }
        let claims: Vec<ResourceClaim> =
            (0..1 + random.below(2)).map(|number| claim(number, random)).collect();
        let claims: Vec<&ResourceClaim> = claims.iter().collect();
        let whole = Reached::of(&catalog, &held, place);
        let left = Reached::left_of(&catalog, &held, place);
        let expected = whole.allocate(&claims, STEPS);
        let answer = left.allocate(&claims, STEPS);
        assert_eq!(said(&answer), said(&expected), "seed {seed}: {claims:?}");
        let again = left.allocate(&claims, STEPS);
        assert_eq!(said(&again), said(&expected), "seed {seed}: {claims:?}");
        fits += usize::from(matches!(expected, AllocationOutcome::Fits(_)));
        refused += usize::from(matches!(expected, AllocationOutcome::No(_)));
        fewer += usize::from(left.supply().devices.len() < whole.supply().devices.len());
    }
    assert!(fits > 50 && refused > 50 && fewer > 300, "{fits}, {refused}, {fewer} of 600");
}
