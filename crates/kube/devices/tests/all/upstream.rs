//! The cases of Kubernetes' own allocator (v1.37.1, `dra_cases/allocator.jsonl`): whether claims
//! fit, are an error or do not fit; which alternatives they get; what their drivers are told.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use dovetail_devices::{
    AllocationOutcome, Allotment, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::{AllocatedDevice, Allocation, Meta, ResourceClaim, ResourceSlice};
use serde_json::Value;

/// States that are looked at.
const STEPS: u64 = 100_000;
/// Cases of the table.
const CASES: usize = 234;
/// Cases in which upstream is interrupted from outside: its caller gives up, or its time ends. Here
/// nothing is interrupted, only steps are counted, and the answer is that of case `interrupt/off`.
const INTERRUPTED: [&str; 3] = ["interrupt/cancel", "interrupt/deadline", "interrupt/timeout"];

#[test]
fn the_cases_of_upstream_have_its_answers() {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else {
        let line = "skipped: the_cases_of_upstream_have_its_answers: set DOVETAIL_TRACES";
        writeln!(std::io::stderr().lock(), "{line}").ok();
        return;
    };
    let path = std::path::Path::new(&folder).join("dra_cases/allocator.jsonl");
    let text = std::fs::read_to_string(path).expect("the cases are there");
    let mut differ: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let mut case: Value = serde_json::from_str(line).expect("a case");
        let name = case["name"].as_str().unwrap_or_default().to_owned();
        if INTERRUPTED.contains(&&*name) {
            case["error"] = Value::Null;
        }
        if let Err(why) = judge(&case) {
            differ.insert(name, why);
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(text.lines().count(), CASES);
}

/// Compares one case with what upstream says.
fn judge(case: &Value) -> Result<(), String> {
    let outcome = answer(case);
    let expected: Option<&Vec<Value>> = case["results"].as_array();
    match (&outcome, expected, case["error"].as_str()) {
        (AllocationOutcome::Fits(allotments), Some(expected), _) => {
            same(case, allotments, expected)
        }
        (AllocationOutcome::Error(problem), None, Some(error)) => {
            // What lies behind the object is in the words of its library.
            let head = |text: &str| text.split(": ").take(2).collect::<Vec<_>>().join(": ");
            match head(problem) == head(error) {
                true => Ok(()),
                false => Err(format!("error `{problem}` instead of `{error}`")),
            }
        }
        (AllocationOutcome::No(_), None, None) => Ok(()),
        (outcome, _, error) => {
            Err(format!("{outcome:?} instead of {}", error.unwrap_or("another answer")))
        }
    }
}

fn answer(case: &Value) -> AllocationOutcome {
    let has = |feature: &str| {
        let mut all = case["features"].as_array().into_iter().flatten();
        all.any(|one| one.as_str().is_some_and(|one| one.split('+').any(|part| part == feature)))
    };
    let mut catalog = Catalog::new(Features {
        admin_access: has("DRAAdminAccess"),
        binding_conditions: has("DRADeviceBindingConditions"),
        consumable_capacity: has("DRAConsumableCapacity"),
        device_taints: has("DRADeviceTaints"),
        fractional_ranges: has("DRAFractionalCapacityRange"),
        partitionable_devices: has("DRAPartitionableDevices"),
        prioritized_lists: has("DRAPrioritizedList"),
    });
    let read = |value: &Value| -> Result<ResourceClaim, String> {
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())
    };
    for class in case["deviceClasses"].as_array().into_iter().flatten() {
        catalog.put_class(serde_json::from_value(class.clone()).expect("a class"));
    }
    for (number, slice) in case["resourceSlices"].as_array().into_iter().flatten().enumerate() {
        let slice: ResourceSlice = match serde_json::from_value(slice.clone()) {
            Ok(slice) => slice,
            Err(error) => return AllocationOutcome::Error(error.to_string()),
        };
        // Some cases have several of one name.
        let name = format!("{} {number:03}", slice.meta.name).into();
        let meta = Meta { name, ..slice.meta };
        catalog.put_slice(ResourceSlice { meta, ..slice });
    }
    let claims = case["claims"].as_array().into_iter().flatten().map(read);
    let claims: Vec<ResourceClaim> = match claims.collect() {
        Ok(claims) => claims,
        Err(problem) => return AllocationOutcome::Error(problem),
    };
    let node: Meta = serde_json::from_value(case["node"]["metadata"].clone()).expect("a node");
    let place = CandidateNode { node: &node.name, labels: &node.labels };
    let claims: Vec<&ResourceClaim> = claims.iter().collect();
    match claims.is_empty() {
        true => AllocationOutcome::No(Vec::new()),
        false => allocate(&catalog, &held(case), place, &claims, STEPS),
    }
}

/// What others have.
fn held(case: &Value) -> ClaimedDevices {
    let device = |text: &str| {
        let mut parts = text.split('/').map(Box::from);
        let mut next = || parts.next().unwrap_or_default();
        AllocatedDevice { driver: next(), pool: next(), device: next(), ..Default::default() }
    };
    let texts = |field: &str| {
        let all = case[field].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(device).collect::<Vec<_>>()
    };
    let mut devices = texts("allocatedDevices");
    let amounts = case["allocatedCapacity"].as_object();
    let amounts: BTreeMap<&str, &Value> =
        amounts.into_iter().flatten().map(|(name, of)| (&**name, of)).collect();
    for (name, of) in &amounts {
        let amount = |(name, text): (&String, &Value)| {
            (name.as_str().into(), text.as_str().unwrap_or_default().parse().expect("an amount"))
        };
        let consumed = of.as_object().into_iter().flatten().map(amount).collect();
        devices.push(AllocatedDevice { consumed, is_share: true, ..device(name) });
    }
    for shared in texts("allocatedSharedDevices") {
        let name = format!("{}/{}/{}", shared.driver, shared.pool, shared.device);
        if !amounts.contains_key(&*name) {
            devices.push(AllocatedDevice { is_share: true, ..shared });
        }
    }
    let mut held = ClaimedDevices::default();
    held.add(&Allocation { devices, ..Allocation::default() });
    held
}

/// Whether claims get the same alternatives with as many devices each, none of them twice, and the
/// same is told to drivers.
fn same(case: &Value, allotments: &[Allotment], expected: &[Value]) -> Result<(), String> {
    let mut given = BTreeSet::new();
    for (allotment, expected) in allotments.iter().zip(expected) {
        let ours = allotment.to_json("uid");
        let requests = |of: &Value| {
            let results = of["devices"]["results"].as_array().into_iter().flatten();
            let fields = results.map(|one| {
                [&one["request"], &one["driver"], &one["adminAccess"], &one["tolerations"]]
                    .map(Value::to_string)
                    .join(" ")
            });
            let mut fields: Vec<String> = fields.collect();
            fields.sort();
            fields
        };
        if requests(&ours) != requests(expected) {
            return Err(format!("{:?} instead of {:?}", requests(&ours), requests(expected)));
        }
        if ours["devices"]["config"] != expected["devices"]["config"] {
            let (ours, theirs) = (&ours["devices"]["config"], &expected["devices"]["config"]);
            return Err(format!("config {ours} instead of {theirs}"));
        }
        if ours["nodeSelector"].is_null() != expected["nodeSelector"].is_null() {
            return Err(format!("{ours} instead of {expected}"));
        }
        for device in allotment.devices.iter().filter(|one| !one.is_admin && !one.is_share) {
            if !given.insert(device.device.clone()) || is_allocated(case, device) {
                return Err(format!("{:?} is given away twice", device.device));
            }
        }
    }
    Ok(())
}

fn is_allocated(case: &Value, given: &dovetail_devices::GivenDevice) -> bool {
    let Some(key) = &given.device else { return true };
    let name = format!("{}/{}/{}", key.driver, key.pool, key.device);
    let mut taken = case["allocatedDevices"].as_array().into_iter().flatten();
    taken.any(|one| one.as_str() == Some(&*name))
}
