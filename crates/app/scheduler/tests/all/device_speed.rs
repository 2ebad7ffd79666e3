//! How long it takes to decide pods with claims of devices: figures of
//! docs/reference/benchmarks/speed.md.

use std::io::Write as _;
use std::time::{Duration, Instant};

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::device_claims::{claim, run, slice, with_claim};
use crate::gangs::{Cluster, node, pod};
use crate::server::Server;

/// Name, compute slices, memory slices, and where it may start (NVIDIA's table for A100-40GB).
const PROFILES: [(&str, usize, usize, &[usize]); 6] = [
    ("1g.5gb", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("1g.5gb+me", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("2g.10gb", 2, 2, &[0, 2, 4]),
    ("3g.20gb", 3, 4, &[0, 4]),
    ("4g.20gb", 4, 4, &[0]),
    ("7g.40gb", 7, 8, &[0]),
];
/// GPUs of a node with MIG.
const GPUS: usize = 8;

fn print(line: &str) {
    writeln!(std::io::stderr().lock(), "{line}").expect("a line");
}

/// Numbers from the environment.
fn numbers(name: &str, otherwise: &str) -> (usize, usize) {
    let text = std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let (first, second) = text.split_once(',').expect("two numbers with a comma between");
    (first.parse().expect("a number"), second.parse().expect("a number"))
}

/// Prints how long it takes to place pods with a claim each; `DOVETAIL_CLAIMS=NODES,PODS`.
#[test]
#[ignore = "a figure of docs/reference/benchmarks/speed.md"]
fn speed_of_claims() {
    let (nodes, pods) = numbers("DOVETAIL_CLAIMS", "500,1000");
    let mut server = Server::default();
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    server.apply(Kind::DeviceClass, "", "gpu", json!({"spec": {"selectors": selectors}}));
    for at in 0..nodes {
        node(&mut server, at);
        slice(&mut server, at, 10);
    }
    let mut cluster = Cluster::over(server);
    for at in 0..pods {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(pod(0), &format!("c{at}")));
    }
    let began = Instant::now();
    assert_eq!(run(&mut cluster).len(), pods.min(10 * nodes));
    let took = began.elapsed();
    print(&format!("{pods} pods on {nodes} nodes of 10 devices: {took:.2?}"));
}

/// Prints how long each decision takes where nodes have MIG devices that draw from shared counters,
/// and 95 % of the GPUs are held; `DOVETAIL_SLICES=NODES,PODS`.
#[test]
#[ignore = "a figure of docs/reference/benchmarks/speed.md"]
fn speed_of_slices() {
    let (nodes, pods) = numbers("DOVETAIL_SLICES", "1000,600");
    let mut server = Server::default();
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]);
    server.apply(Kind::DeviceClass, "", "mig", json!({"spec": {"selectors": selectors}}));
    for at in 0..nodes {
        // A device plugin offers none of these GPUs: they would be offered twice.
        let allocatable = json!({"cpu": "96", "memory": "1Ti", "pods": "110"});
        let status = json!({"allocatable": allocatable});
        server.apply(Kind::Node, "", &format!("n{at}"), json!({"status": status}));
        offer(&mut server, at);
        hold(&mut server, at);
    }
    let mut cluster = Cluster::over(server);
    run(&mut cluster);
    let mut took: Vec<Duration> = Vec::new();
    let mut first: Vec<Duration> = Vec::new();
    for at in 0..pods {
        let profile = PROFILES[at % PROFILES.len()].0;
        let is_it = format!("device.attributes['gpu.nvidia.com'].profile == '{profile}'");
        let exactly =
            json!({"deviceClassName": "mig", "selectors": [{"cel": {"expression": is_it}}]});
        let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
        cluster.server.apply(Kind::DeviceClaim, "blue", &format!("c{at}"), json!({"spec": spec}));
        cluster.create(&format!("p{at}"), with_claim(pod(0), &format!("c{at}")));
        let began = Instant::now();
        let bound = run(&mut cluster);
        let name = format!("p{at}");
        assert_eq!(bound, [&*name], "{}", cluster.says(&name));
        let of = if at < PROFILES.len() { &mut first } else { &mut took };
        of.push(began.elapsed());
    }
    took.sort();
    let percentile = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1];
    print(&format!(
        "{nodes} nodes, {} devices, {pods} pods: p50 {:.2?}, p99 {:.2?}, most {:.2?}; the first of \
         each profile {first:.2?}",
        nodes * GPUS * 22,
        percentile(50),
        percentile(99),
        percentile(100),
    ));
}

/// The GPUs of a node in the shape in which NVIDIA's driver offers them with dynamic MIG: a slice
/// with the counters of all, and one for each with its devices.
fn offer(server: &mut Server, at: usize) {
    let node = format!("n{at}");
    let slice = |name: String, rest: Value| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1 + GPUS});
        let mut spec = json!({"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool});
        spec.as_object_mut().expect("a map").extend(rest.as_object().cloned().unwrap_or_default());
        (name, json!({"spec": spec}))
    };
    let counters = |compute: usize, memory: std::ops::Range<usize>| {
        let mut counters = json!({"multiprocessors": {"value": (14 * compute).to_string()}});
        memory.for_each(|at| counters[format!("memory-slice-{at}")] = json!({"value": "1"}));
        counters
    };
    let sets: Vec<Value> = (0..GPUS)
        .map(|gpu| json!({"name": format!("gpu-{gpu}"), "counters": counters(7, 0..8)}))
        .collect();
    let mut slices = vec![slice(format!("{node}-counters"), json!({"sharedCounters": sets}))];
    for gpu in 0..GPUS {
        let draws = |compute, memory| json!([{"counterSet": format!("gpu-{gpu}"), "counters": counters(compute, memory)}]);
        let whole = json!({"type": {"string": "gpu"}, "profile": {"string": ""}});
        let mut devices = vec![json!({"name": format!("gpu-{gpu}"), "attributes": whole,
            "consumesCounters": draws(7, 0..8)})];
        for (profile, compute, memory, starts) in PROFILES {
            for start in starts {
                let attributes = json!({"type": {"string": "mig"}, "profile": {"string": profile}});
                devices
                    .push(json!({"name": device(gpu, profile, *start), "attributes": attributes,
                    "consumesCounters": draws(compute, *start..start + memory)}));
            }
        }
        slices.push(slice(format!("{node}-{gpu}"), json!({"devices": devices})));
    }
    for (name, slice) in slices {
        server.apply(Kind::ResourceSlice, "", &name, slice);
    }
}

fn device(gpu: usize, profile: &str, start: usize) -> String {
    format!("gpu-{gpu}-mig-{profile}-{start}").replace(['.', '+'], "-")
}

/// All GPUs of a node are held but each twentieth of the cluster: whole, as two instances, or as
/// seven.
fn hold(server: &mut Server, at: usize) {
    for gpu in 0..GPUS {
        let number = at * GPUS + gpu;
        let devices: Vec<String> = match number % 3 {
            _ if number.is_multiple_of(20) => continue,
            0 => vec![format!("gpu-{gpu}")],
            1 => vec![device(gpu, "4g.20gb", 0), device(gpu, "3g.20gb", 4)],
            _ => (0..7).map(|start| device(gpu, "1g.5gb", start)).collect(),
        };
        let result = |device: &String| {
            json!({"request": "r", "driver": "gpu.nvidia.com", "pool": format!("n{at}"),
                "device": device})
        };
        let results: Vec<Value> = devices.iter().map(result).collect();
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "mig"}}]);
        let claim = json!({"spec": {"devices": {"requests": requests}},
            "status": {"allocation": {"devices": {"results": results}}}});
        server.apply(Kind::DeviceClaim, "other", &format!("h{number}"), claim);
    }
}
