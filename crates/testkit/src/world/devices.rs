//! Random worlds of devices (dynamic resource allocation): what drivers publish, what claims have,
//! and pods that wait with claims of their own.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::device_variety::add_variety;
use super::random::Draw;

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";
/// The attribute that devices of both drivers have.
const NUMA: &str = "topology.example.com/numa";
/// The resource of extended requests.
const RESOURCE: &str = "example.com/gpu";
/// Keys of taints.
const KEYS: [&str; 2] = ["broken", "reserved"];
/// Classes that claims ask for, as often as they stand here; the last one does not exist.
const CLASSES: [&str; 9] = ["gpu", "gpu", "gpu", "large", "nic", "nic", "any", "careless", "none"];

/// A random world of 2 to 5 nodes with devices, and 6 pending pods with claims. Each world has some
/// of the features of dynamic resource allocation; all worlds together have those of Kubernetes
/// 1.37 that are on by default.
pub fn generate_devices(seed: u64) -> GeneratedCluster {
    let mut draw = Draw::new(seed ^ 0xd0_0d);
    let mut scene = DeviceScene {
        draw: &mut draw,
        world: GeneratedCluster::default(),
        free: Vec::new(),
        made: 0,
    };
    scene.classes();
    for number in 0..2 + scene.draw.below(4) {
        scene.node(number);
    }
    scene.pool_of_network();
    scene.taint_rules();
    scene.held();
    for number in 0..6 {
        scene.pending(number);
    }
    let mut world = scene.world;
    add_variety(seed ^ 0x7a_41, &mut world);
    world
}

struct DeviceScene<'d> {
    draw: &'d mut Draw,
    world: GeneratedCluster,
    /// Devices that nobody has, by node: driver, pool and name. Those with counters are not among
    /// them but for one of each pool.
    free: Vec<(String, [String; 3])>,
    /// Claims that were made.
    made: usize,
}

impl DeviceScene<'_> {
    fn classes(&mut self) {
        let class = |name: &str, expressions: &[&str]| {
            let selectors: Vec<Value> =
                expressions.iter().map(|one| json!({"cel": {"expression": one}})).collect();
            json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})
        };
        let of_gpu = "device.driver == \"gpu.example.com\"";
        let large =
            "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0";
        let mut gpu = class("gpu", &[of_gpu]);
        if self.draw.chance(50) {
            gpu["spec"]["extendedResourceName"] = json!(RESOURCE);
        }
        self.world.device_classes = vec![
            gpu,
            class("nic", &["device.driver == \"nic.example.com\""]),
            class("large", &[&format!("{of_gpu} && {large}")]),
            class("any", &[]),
            // Of a device of the other driver this cannot be said.
            class("careless", &["device.attributes[\"gpu.example.com\"].index >= 0"]),
        ];
    }

    fn node(&mut self, number: usize) {
        let name = format!("node-{number}");
        let zone = self.draw.pick(&["a", "b"]);
        let room = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
        self.world.nodes.push(json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"),
                "labels": {"kubernetes.io/hostname": name, "zone": zone}},
            "spec": {}, "status": {"allocatable": room, "capacity": room},
        }));
        self.pool(GPU, &name);
        if self.draw.chance(60) {
            self.pool(NIC, &name);
        }
    }

    fn pool(&mut self, driver: &str, node: &str) {
        let pool = format!("{}-{node}", &driver[..3]);
        let is_split = driver == GPU && self.draw.chance(25);
        let count = 1 + self.draw.below(4);
        let devices: Vec<Value> =
            (0..count).map(|index| self.device(driver, index, is_split)).collect();
        for device in devices.iter().take(if is_split { 1 } else { count }) {
            let name = device["name"].as_str().unwrap_or_default();
            if device["allowMultipleAllocations"] != true {
                let key = [driver, &pool, name].map(str::to_owned);
                self.free.push((node.to_owned(), key));
            }
        }
        let lacks_one = self.draw.chance(5);
        let slices = 1 + usize::from(is_split) + usize::from(lacks_one);
        let slice = |name: String, generation: usize, rest: Value| {
            let mut spec = json!({"driver": driver, "nodeName": node, "pool": {"name": pool,
                "generation": generation, "resourceSliceCount": slices}});
            if let (Value::Object(spec), Value::Object(rest)) = (&mut spec, rest) {
                spec.extend(rest);
            }
            json!({"metadata": {"name": name}, "spec": spec})
        };
        let slices = &mut self.world.resource_slices;
        slices.push(slice(format!("{pool}-0"), 2, json!({"devices": devices})));
        if is_split {
            let counters = json!({"slices": {"value": "4"}, "memory": {"value": "40Gi"}});
            let sets = json!([{"name": "whole", "counters": counters}]);
            slices.push(slice(format!("{pool}-1"), 2, json!({"sharedCounters": sets})));
        }
        if self.draw.chance(10) {
            let old = json!({"devices": [{"name": "gone"}]});
            slices.push(slice(format!("{pool}-old"), 1, old));
        }
    }

    fn device(&mut self, driver: &str, index: usize, is_split: bool) -> Value {
        let draw = &mut *self.draw;
        let model = draw.pick(&["A100", "T4"]);
        let memory = draw.pick(&["80Gi", "16Gi"]);
        let mut device = json!({"name": format!("d{index}"),
            "attributes": {"index": {"int": index}, "model": {"string": model},
                NUMA: {"int": draw.below(2)}},
            "capacity": {"memory": {"value": memory}}});
        if draw.chance(15) {
            device["attributes"].as_object_mut().and_then(|of| of.remove(NUMA));
        }
        if is_split {
            let take = draw.pick(&["1", "2", "3"]);
            let memory = draw.pick(&["10Gi", "20Gi"]);
            device["consumesCounters"] = json!([{"counterSet": "whole",
                "counters": {"slices": {"value": take}, "memory": {"value": memory}}}]);
        } else if driver == GPU && draw.chance(15) {
            device["allowMultipleAllocations"] = json!(true);
            let policy = draw.pick(&["range", "values", "none"]);
            device["capacity"]["memory"]["requestPolicy"] = match policy {
                "range" => json!({"default": "10Gi",
                    "validRange": {"min": "5Gi", "max": "40Gi", "step": "5Gi"}}),
                "values" => json!({"default": "16Gi", "validValues": ["8Gi", "16Gi"]}),
                _ => Value::Null,
            };
        }
        if draw.chance(12) {
            device["taints"] = json!([taint(&KEYS, draw)]);
        }
        device
    }

    /// Devices that several nodes reach, each in its own way or all in one.
    fn pool_of_network(&mut self) {
        if !self.draw.chance(40) {
            return;
        }
        let zone = json!({"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["a"]}]}]});
        let ways =
            [("allNodes", json!(true)), ("nodeSelector", zone), ("nodeName", json!("node-1"))];
        let mut device = |index: usize| {
            json!({"name": format!("d{index}"), "attributes": {"index": {"int": index},
                NUMA: {"int": self.draw.below(2)}}})
        };
        let mut devices: Vec<Value> = (0..3).map(&mut device).collect();
        let mut spec = json!({"driver": NIC,
            "pool": {"name": "network", "generation": 1, "resourceSliceCount": 1}});
        if self.draw.chance(50) {
            spec["perDeviceNodeSelection"] = json!(true);
            for device in &mut devices {
                let (field, value) = self.draw.one(&ways);
                device[*field] = value.clone();
            }
        } else {
            let (field, value) = self.draw.one(&ways[..2]);
            spec[*field] = value.clone();
        }
        spec["devices"] = Value::Array(devices);
        let slice = json!({"metadata": {"name": "network-0"}, "spec": spec});
        self.world.resource_slices.push(slice);
    }

    fn taint_rules(&mut self) {
        if self.draw.chance(20) {
            let selected = self.draw.pick(&["driver", "pool", "device"]);
            let selector = match selected {
                "driver" => json!({"driver": NIC}),
                "pool" => json!({"pool": "gpu-node-0"}),
                _ => json!({"driver": GPU, "device": "d0"}),
            };
            let taint = taint(&KEYS, self.draw);
            self.world.device_taint_rules.push(json!({"metadata": {"name": "rule"},
                "spec": {"deviceSelector": selector, "taint": taint}}));
        }
    }

    /// Claims of pods that run.
    fn held(&mut self) {
        for number in 0..self.draw.below(6) {
            if self.free.is_empty() {
                return;
            }
            let at = self.draw.below(self.free.len());
            let (node, device) = self.free.swap_remove(at);
            let pod = format!("running-{number}");
            let claim = self.claim(json!({"exactly": {"deviceClassName": "any",
                "allocationMode": "ExactCount", "count": 1}}));
            self.allocate(&node, &device, &pod);
            self.world.pods.push(json!({
                "metadata": {"namespace": "default", "name": pod, "uid": format!("uid-{pod}")},
                "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}],
                    "resourceClaims": [{"name": "held", "resourceClaimName": claim}]},
                "status": {"phase": "Running"},
            }));
        }
    }

    /// Gives a device to the claim that was made last.
    fn allocate(&mut self, node: &str, [driver, pool, device]: &[String; 3], pod: &str) {
        let Some(claim) = self.world.resource_claims.last_mut() else { return };
        let at = json!({"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]});
        claim["status"] = json!({
            "allocation": {"devices": {"results": [{"request": "r0", "driver": driver,
                "pool": pool, "device": device}]}, "nodeSelector": at},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": format!("uid-{pod}")}],
        });
    }

    /// Makes a claim with one request, and gives its name.
    fn claim(&mut self, mut request: Value) -> String {
        request["name"] = json!("r0");
        self.claim_of(json!({"requests": [request]}))
    }

    fn claim_of(&mut self, devices: Value) -> String {
        let name = format!("claim-{}", self.made);
        self.made += 1;
        self.world.resource_claims.push(json!({
            "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}")},
            "spec": {"devices": devices},
        }));
        name
    }

    fn pending(&mut self, number: usize) {
        let pod = format!("waiting-{number}");
        let mut container = json!({"name": "main", "image": "i"});
        let mut claims = Vec::new();
        match self.draw.below(12) {
            0 => {
                let count = json!((1 + self.draw.below(3)).to_string());
                let amounts = json!({RESOURCE: count});
                container["resources"] = json!({"requests": amounts, "limits": amounts});
            }
            1 => claims.push(self.shared()),
            2 if self.draw.chance(30) => claims.push("missing".to_owned()),
            _ => {
                for _ in 0..self.draw.pick(&[1, 1, 1, 2]) {
                    claims.push(self.wanted());
                }
            }
        }
        // kube-scheduler refuses a device to a claim after it has shown it to an admin's.
        let admin = claims.iter().position(|name| {
            let mut claims = self.world.resource_claims.iter();
            let claim = claims.find(|claim| claim["metadata"]["name"] == name.as_str());
            claim.is_some_and(|claim| claim.to_string().contains("adminAccess"))
        });
        if let Some(admin) = admin {
            claims = vec![claims.swap_remove(admin)];
        }
        let entries: Vec<Value> = claims
            .iter()
            .enumerate()
            .map(|(at, claim)| json!({"name": format!("c{at}"), "resourceClaimName": claim}))
            .collect();
        self.world.pending.push(json!({
            "metadata": {"namespace": "default", "name": pod, "uid": format!("uid-{pod}")},
            "spec": {"containers": [container], "resourceClaims": entries,
                "schedulerName": "default-scheduler"},
            "status": {"phase": "Pending"},
        }));
    }

    /// A claim that others have already, or one that nobody has.
    fn shared(&mut self) -> String {
        let claims = &self.world.resource_claims;
        match claims.is_empty() {
            true => self.wanted(),
            false => {
                let at = self.draw.below(claims.len());
                claims[at]["metadata"]["name"].as_str().unwrap_or_default().to_owned()
            }
        }
    }

    /// A claim of its own, to be allocated.
    fn wanted(&mut self) -> String {
        let count = self.draw.pick(&[1, 1, 1, 2]);
        let mut requests: Vec<Value> = (0..count).map(|_| request(&CLASSES, self.draw)).collect();
        for (at, request) in requests.iter_mut().enumerate() {
            request["name"] = json!(format!("r{at}"));
        }
        let mut devices = json!({"requests": requests});
        if self.draw.chance(30) {
            let kind = self.draw.pick(&["matchAttribute", "matchAttribute", "distinctAttribute"]);
            let mut constraint = json!({});
            constraint[kind] = json!(self.draw.pick(&[NUMA, "gpu.example.com/model"]));
            if self.draw.chance(30) {
                constraint["requests"] = json!(["r0"]);
            }
            devices["constraints"] = json!([constraint]);
        }
        self.claim_of(devices)
    }
}

fn taint(keys: &[&str], draw: &mut Draw) -> Value {
    let effect = draw.pick(&["NoSchedule", "NoSchedule", "NoExecute", "None"]);
    json!({"key": draw.pick(keys), "value": "x", "effect": effect})
}

fn request(classes: &[&str], draw: &mut Draw) -> Value {
    if draw.chance(15) {
        let mut alternatives: Vec<Value> = (0..2).map(|_| exactly(classes, draw)).collect();
        for (at, alternative) in alternatives.iter_mut().enumerate() {
            alternative["name"] = json!(format!("s{at}"));
            alternative.as_object_mut().and_then(|of| of.remove("adminAccess"));
        }
        return json!({"firstAvailable": alternatives});
    }
    json!({"exactly": exactly(classes, draw)})
}

fn exactly(classes: &[&str], draw: &mut Draw) -> Value {
    let class = draw.pick(classes);
    let class = if class == "none" && draw.chance(70) { "gpu" } else { class };
    let mut of = json!({"deviceClassName": class});
    match draw.below(6) {
        0 => of["allocationMode"] = json!("All"),
        _ => {
            of["allocationMode"] = json!("ExactCount");
            of["count"] = json!(draw.pick(&[1, 1, 1, 2, 3]));
        }
    }
    if draw.chance(20) {
        let expression = draw.pick(&[
            "device.attributes[\"gpu.example.com\"].?model.orValue(\"\") == \"A100\"",
            "device.attributes[\"gpu.example.com\"].index > 0",
            "device.allowMultipleAllocations",
        ]);
        of["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    // Of devices that several claims may have, or that share counters, kube-scheduler and dovetail
    // count what those with admin access take in different ways.
    if class == "nic" && draw.chance(35) {
        of["adminAccess"] = json!(true);
    }
    if draw.chance(25) {
        of["tolerations"] = match draw.pick(&["", "NoSchedule", "NoExecute"]) {
            "" => json!([{"operator": "Exists"}]),
            effect => json!([{"key": "broken", "operator": "Equal", "value": "x",
                "effect": effect}]),
        };
    }
    if draw.chance(20) {
        let amount = draw.pick(&["4Gi", "10Gi", "12Gi", "60Gi"]);
        of["capacity"] = json!({"requests": {"memory": amount}});
    }
    of
}
