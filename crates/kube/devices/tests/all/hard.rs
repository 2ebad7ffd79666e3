//! The claims of `dra_cases/hard.csv`, which upstream's allocator answers after seconds or not at
//! all, on A100s in the shape in which NVIDIA's driver offers them with dynamic MIG.

use std::io::Write as _;

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::{AllocatedDevice, Allocation, Labels, ResourceClaim};
use serde_json::{Value, json};

/// Name, compute slices, memory slices, and where it may start (NVIDIA's table for A100-40GB).
const PROFILES: [(&str, usize, usize, &[usize]); 5] = [
    ("1g.5gb", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("2g.10gb", 2, 2, &[0, 2, 4]),
    ("3g.20gb", 3, 4, &[0, 4]),
    ("4g.20gb", 4, 4, &[0]),
    ("7g.40gb", 7, 8, &[0]),
];
const STEPS: u64 = 10_000;

#[test]
fn claims_that_upstream_gives_up_are_answered() {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else {
        let line = "skipped: claims_that_upstream_gives_up_are_answered: set DOVETAIL_TRACES";
        writeln!(std::io::stderr().lock(), "{line}").ok();
        return;
    };
    let path = std::path::Path::new(&folder).join("dra_cases/hard.csv");
    let text = std::fs::read_to_string(path).expect("the claims are there");
    let mut right = 0;
    for line in text.lines().skip(1) {
        let mut columns = line.split(',').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        let (world, gpus, truth) = (next(), next().parse().expect("a number"), next());
        let answer = match answer(world, gpus) {
            AllocationOutcome::Fits(_) => "fits",
            AllocationOutcome::No(_) => "does not fit",
            AllocationOutcome::Undecided => "undecided",
            AllocationOutcome::Error(problem) => panic!("{world}: {problem}"),
        };
        assert_eq!(answer, truth, "{world}");
        right += 1;
    }
    assert_eq!(right, 10);
}

/// What a claim of the file gets on so many GPUs.
fn answer(world: &str, gpus: usize) -> AllocationOutcome {
    let mut catalog = Catalog::new(Features::ALL);
    let selector = json!([{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]);
    let class = json!({"metadata": {"name": "mig"}, "spec": {"selectors": selector}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    for slice in slices(gpus) {
        catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    }
    let whole = match world {
        _ if world.contains("8 GPUs are all held whole") => 8,
        _ if world.contains("4 of 8 GPUs are held whole") => 4,
        _ => 0,
    };
    let held_device = |gpu: usize| AllocatedDevice {
        driver: "gpu.nvidia.com".into(),
        pool: "node".into(),
        device: format!("gpu-{gpu}").into(),
        ..AllocatedDevice::default()
    };
    let mut held = ClaimedDevices::default();
    let devices = (0..whole).map(held_device).collect();
    held.add(&Allocation { devices, ..Allocation::default() });
    let labels = Labels::default();
    allocate(
        &catalog,
        &held,
        CandidateNode { node: "node", labels: &labels },
        &[&claim(world)],
        STEPS,
    )
}

/// `9x1g.5gb + 3x4g.20gb` as requests, with the constraint that the text names.
fn claim(world: &str) -> ResourceClaim {
    let asked = world.split(" + ").filter_map(|part| {
        let (count, profile) = part.split(' ').next()?.split_once('x')?;
        let is_it = format!("device.attributes['gpu.nvidia.com'].profile == '{profile}'");
        let exactly = json!({"deviceClassName": "mig", "count": count.parse::<i64>().ok()?,
            "selectors": [{"cel": {"expression": is_it}}]});
        Some(json!({"name": format!("r{profile}").replace('.', "-"), "exactly": exactly}))
    });
    let constraints = match world.contains("matchAttribute") {
        true => json!([{"matchAttribute": "gpu.nvidia.com/parentUUID"}]),
        false => json!([]),
    };
    let devices = json!({"requests": asked.collect::<Vec<_>>(), "constraints": constraints});
    let claim = json!({"metadata": {"name": "claim"}, "spec": {"devices": devices}});
    serde_json::from_value(claim).expect("a claim")
}

/// One slice with the counters of all GPUs, and one with their devices.
fn slices(gpus: usize) -> [Value; 2] {
    let slice = |name: &str, rest: Value| {
        let pool = json!({"name": "node", "generation": 1, "resourceSliceCount": 2});
        let mut spec = json!({"driver": "gpu.nvidia.com", "nodeName": "node", "pool": pool});
        spec.as_object_mut().expect("a map").extend(rest.as_object().cloned().unwrap_or_default());
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let counters = |compute: usize, memory: std::ops::Range<usize>| {
        let mut counters = json!({"multiprocessors": {"value": (14 * compute).to_string()}});
        for at in memory {
            counters[format!("memory-slice-{at}")] = json!({"value": "1"});
        }
        counters
    };
    let mut devices = Vec::new();
    for gpu in 0..gpus {
        let draws = |compute, memory| json!([{"counterSet": format!("gpu-{gpu}"), "counters": counters(compute, memory)}]);
        let uuid = json!({"string": format!("GPU-{gpu}")});
        let whole = json!({"uuid": uuid, "type": {"string": "gpu"}, "profile": {"string": ""}});
        devices.push(json!({"name": format!("gpu-{gpu}"), "attributes": whole,
            "consumesCounters": draws(7, 0..8)}));
        for (profile, compute, memory, starts) in PROFILES {
            for start in starts {
                let name = format!("gpu-{gpu}-mig-{profile}-{start}").replace('.', "-");
                let attributes = json!({"parentUUID": uuid, "profile": {"string": profile},
                    "type": {"string": "mig"}});
                devices.push(json!({"name": name, "attributes": attributes,
                    "consumesCounters": draws(compute, *start..start + memory)}));
            }
        }
    }
    let set = |gpu| json!({"name": format!("gpu-{gpu}"), "counters": counters(7, 0..8)});
    let sets: Vec<Value> = (0..gpus).map(set).collect();
    [slice("a", json!({"sharedCounters": sets})), slice("b", json!({"devices": devices}))]
}
