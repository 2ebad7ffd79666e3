//! Amounts of devices that several claims share, by the policies of the devices.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::{AllocatedDevice, Allocation, Labels, ResourceClaim};
use serde_json::{Value, json};

/// A device with a policy by which amounts are counted, and one without.
fn devices() -> Value {
    let range = json!({"min": "2", "max": "4", "step": "2"});
    let policy = json!({"default": "2", "validRange": range});
    let capacity = json!({"memory": {"value": "4", "requestPolicy": policy}});
    let large = json!({"memory": {"value": "36893488147419103232"}});
    json!([
        {"name": "a", "capacity": capacity, "allowMultipleAllocations": true},
        {"name": "b", "capacity": large, "allowMultipleAllocations": true},
    ])
}

/// What one request gets of devices that nobody has.
fn answer(devices: &Value, request: Value) -> AllocationOutcome {
    answer_beside(&ClaimedDevices::default(), devices, request)
}

/// The same beside what others have.
fn answer_beside(held: &ClaimedDevices, devices: &Value, mut request: Value) -> AllocationOutcome {
    let mut catalog = Catalog::new(Features::ALL);
    let class = json!({"metadata": {"name": "shared"}, "spec": {}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "d", "nodeName": "n", "pool": pool, "devices": devices});
    let slice = json!({"metadata": {"name": "s"}, "spec": spec});
    catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    request["deviceClassName"] = json!("shared");
    let requests = json!([{"name": "r", "exactly": request}]);
    let spec = json!({"devices": {"requests": requests}});
    let claim = json!({"metadata": {"name": "c"}, "spec": spec});
    let claim: ResourceClaim = serde_json::from_value(claim).expect("a claim");
    let labels = Labels::default();
    let place = CandidateNode { node: "n", labels: &labels };
    allocate(&catalog, held, place, &[&claim], 100)
}

fn asked(amount: &str) -> Value {
    json!({"capacity": {"requests": {"memory": amount}}})
}

#[test]
fn amounts_above_63_bits_are_read_and_given() {
    let large = json!([devices()[1]]);
    for amount in ["10E", "18446744073709551616", "36893488147419103232"] {
        let AllocationOutcome::Fits(given) = answer(&large, asked(amount)) else {
            panic!("{amount} does not fit");
        };
        assert_eq!(given[0].devices[0].consumed["memory"].to_string(), amount);
    }
    let outcome = answer(&large, asked("36893488147419103233"));
    assert!(matches!(outcome, AllocationOutcome::No(_)), "{outcome:?}");
}

#[test]
fn an_amount_that_a_policy_cannot_represent_is_an_error_unless_enough_devices_come_before() {
    let problem = "capacity \"memory\": capacity request cannot be represented in the device's \
                   range arithmetic: request 18446744073709551616 is not a representable milli \
                   value";
    let amount = asked("18446744073709551616");
    let first = answer(&devices(), amount.clone());
    let of = "claim c, request r: checking capacity for device";
    assert_eq!(first, AllocationOutcome::Error(format!("{of} d/p/a: {problem}")));
    let mut all = amount.clone();
    all["allocationMode"] = json!("All");
    let of_all = answer(&devices(), all);
    assert_eq!(of_all, AllocationOutcome::Error(format!("{of} a: {problem}")));
    let mut reversed = devices();
    reversed.as_array_mut().expect("devices").reverse();
    let last = answer(&reversed, amount);
    assert!(matches!(last, AllocationOutcome::Fits(_)), "{last:?}");
}

#[test]
fn a_device_that_another_claim_has_is_skipped_before_its_policy_is_asked() {
    let mut held = ClaimedDevices::default();
    let (driver, pool, device) = ("d".into(), "p".into(), "a".into());
    let devices_held = vec![AllocatedDevice { driver, pool, device, ..AllocatedDevice::default() }];
    held.add(&Allocation { devices: devices_held, ..Allocation::default() });
    let outcome = answer_beside(&held, &devices(), asked("18446744073709551616"));
    let AllocationOutcome::Fits(given) = outcome else { panic!("the other device is free") };
    assert_eq!(&*given[0].devices[0].device.as_ref().expect("a device").device, "b");
}
