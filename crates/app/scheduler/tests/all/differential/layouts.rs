//! Layouts of MIG instances, against Kubernetes' own allocator of devices: a GPU is a set of
//! counters, and each instance at each of its starts a device that draws from them, as NVIDIA's
//! driver publishes them. All layouts follow from the empty one, instance by instance: in a world
//! with a node for each layout, whose claim has its devices, and with a pod for each device.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dovetail_model::{Layout, MigProfile, MigTable};
use dovetail_testkit::dra_driver::{DraGpu, published_slices};
use dovetail_testkit::world::{GeneratedCluster, Oracle, PodAnswer, Release};
use serde_json::{Value, json};

const DRIVER: &str = "gpu.nvidia.com";

/// Devices of each layout, and the devices that fit beside them.
type Layouts = BTreeMap<Vec<usize>, Vec<usize>>;

/// Compute slices, memory slices and starts of each profile: tables that have them in common
/// differ in names only.
type Shape = Vec<(u8, u8, Vec<u8>)>;

/// A GPU as devices. Instances with media engines are left out, as in the published counts.
struct CutGpu {
    table: MigTable,
    /// Profile and start of each device.
    places: Vec<(usize, u8)>,
    /// The GPU that NVIDIA's driver publishes with the counters of all engines; `None`: there are
    /// counters of compute and memory slices only.
    driver: Option<DraGpu>,
}

impl CutGpu {
    fn new(table: MigTable, driver: Option<DraGpu>) -> Self {
        let numbered = table.profiles.iter().enumerate().filter(|(_, of)| !of.has_media());
        let places: Vec<(usize, u8)> = numbered
            .flat_map(|(number, of)| of.starts.iter().map(move |start| (number, *start)))
            .collect();
        Self { table, places, driver }
    }

    fn shape(&self) -> Shape {
        let plain = self.table.profiles.iter().filter(|of| !of.has_media());
        plain.map(|of| (of.compute_slices, of.memory_slices, of.starts.clone())).collect()
    }

    fn profile(&self, place: usize) -> &MigProfile {
        &self.table.profiles[self.places[place].0]
    }

    /// How many instances of each profile these devices are.
    fn counts(&self, devices: &[usize]) -> Layout {
        let mut counts = vec![0; self.table.profiles.len()];
        devices.iter().for_each(|place| counts[self.places[*place].0] += 1);
        counts
    }

    /// What is published for a node that has it.
    fn slices(&self, node: &str) -> Vec<Value> {
        match self.driver {
            Some(gpu) => self.slices_of_driver(gpu, node),
            None => self.slices_of_table(node),
        }
    }

    fn slices_of_driver(&self, gpu: DraGpu, node: &str) -> Vec<Value> {
        let mut slices = published_slices(node, &[gpu]);
        for device in slices[1]["spec"]["devices"].as_array_mut().expect("devices") {
            let name = device["name"].as_str().expect("a name");
            let start: Option<u8> = name.rsplit('-').next().and_then(|start| start.parse().ok());
            let profile = device.pointer("/attributes/profile/string").and_then(Value::as_str);
            let is_it = |(number, at): &(usize, u8)| {
                Some(*at) == start && Some(&*self.table.profiles[*number].name) == profile
            };
            if let Some(place) = self.places.iter().position(is_it) {
                device["attributes"]["place"] = json!({"int": place});
                device["name"] = json!(device_name(place));
            }
        }
        slices
    }

    fn slices_of_table(&self, node: &str) -> Vec<Value> {
        let device = |(place, (_, start)): (usize, &(usize, u8))| {
            let profile = self.profile(place);
            let memory = *start..*start + profile.memory_slices;
            let draws = counters(profile.compute_slices, memory);
            json!({"name": device_name(place),
                "attributes": {"place": {"int": place}, "profile": {"string": profile.name}},
                "consumesCounters": [{"counterSet": "gpu-0", "counters": draws}]})
        };
        let devices: Vec<Value> = self.places.iter().enumerate().map(device).collect();
        let all = counters(self.table.compute_slices, 0..self.table.memory_slices);
        let slice = |part: &str, field: &str, content: Value| {
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 2});
            let mut spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool});
            spec[field] = content;
            json!({"metadata": {"name": format!("{node}-{part}")}, "spec": spec})
        };
        vec![
            slice("counters", "sharedCounters", json!([{"name": "gpu-0", "counters": all}])),
            slice("devices", "devices", Value::Array(devices)),
        ]
    }

    /// A node for each layout, and a pod for each list of requests.
    fn world(&self, layouts: &[Vec<usize>], asked: &[Vec<Value>]) -> GeneratedCluster {
        let room = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
        let mut world = GeneratedCluster {
            device_classes: vec![json!({"metadata": {"name": "any"}, "spec": {}})],
            ..GeneratedCluster::default()
        };
        for (number, devices) in layouts.iter().enumerate() {
            let node = format!("layout-{number:04}");
            world.nodes.push(json!({"metadata": {"name": node, "uid": node}, "spec": {},
                "status": {"allocatable": room, "capacity": room}}));
            world.resource_slices.extend(self.slices(&node));
            if devices.is_empty() {
                continue;
            }
            let given = |place: &usize| {
                json!({"request": "r", "driver": DRIVER, "pool": node,
                    "device": device_name(*place)})
            };
            let results: Vec<Value> = devices.iter().map(given).collect();
            let mut held = claim(&node, &[request("r", "true", results.len())]);
            held["status"] = json!({"allocation": {"devices": {"results": results}}});
            world.resource_claims.push(held);
        }
        for (number, requests) in asked.iter().enumerate() {
            let name = format!("asks-{number}");
            world.resource_claims.push(claim(&name, requests));
            world.pending.push(json!({
                "metadata": {"namespace": "default", "name": name, "uid": name},
                "spec": {"containers": [{"name": "main", "image": "i"}],
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                    "schedulerName": "default-scheduler"},
                "status": {"phase": "Pending"},
            }));
        }
        world
    }

    /// All layouts that upstream's allocator lets a GPU have.
    fn layouts(&self, oracle: &mut Oracle) -> Layouts {
        let of_place = |place: usize| {
            let only = format!("device.attributes[\"{DRIVER}\"].?place.orValue(-1) == {place}");
            vec![request("r", &only, 1)]
        };
        let asked: Vec<Vec<Value>> = (0..self.places.len()).map(of_place).collect();
        let (mut known, mut open) = (Layouts::new(), BTreeSet::from([Vec::new()]));
        while !open.is_empty() {
            let layouts: Vec<Vec<usize>> = std::mem::take(&mut open).into_iter().collect();
            let fits = judged(oracle, &self.world(&layouts, &asked));
            for (number, devices) in layouts.into_iter().enumerate() {
                let fitting: Vec<usize> =
                    (0..asked.len()).filter(|place| fits[*place][number]).collect();
                open.extend(fitting.iter().map(|place| with(&devices, *place)));
                known.insert(devices, fitting);
            }
        }
        known
    }

    /// The layouts beside which nothing fits, by their instances, once for each way in which they
    /// lie; `counts`: the profiles that there are.
    fn full(&self, known: &Layouts, counts: impl Fn(&MigProfile) -> bool) -> Vec<Layout> {
        let is_there = |place: &usize| counts(self.profile(*place));
        let is_full = |(devices, fitting): &(&Vec<usize>, &Vec<usize>)| {
            devices.iter().all(&is_there) && !fitting.iter().any(&is_there)
        };
        known.iter().filter(is_full).map(|(devices, _)| self.counts(devices)).collect()
    }

    /// Compares upstream's layouts with the published counts, with the legal layouts of the table,
    /// and with what each of these leaves over.
    fn compare(&self, known: &Layouts) {
        let name = &self.table.name;
        let counted = |of: Vec<Layout>| (of.len(), of.into_iter().collect::<BTreeSet<_>>().len());
        let all = counted(self.full(known, |_| true));
        // Without those of one compute slice and two memory slices.
        let single = |of: &MigProfile| of.compute_slices > 1 || of.memory_slices == 1;
        let without_double = counted(self.full(known, single));
        let published = match self.table.compute_slices {
            7 => (723, (78, 38), (19, 14)),
            _ => (26, (5, 4), (5, 4)),
        };
        assert_eq!((known.len(), all, without_double), published, "{name}");
        let left_over = self.left_over(known);
        let theirs: BTreeSet<Layout> = left_over.keys().cloned().collect();
        assert_eq!(legal_layouts(&self.table), theirs, "{name}");
        for (layout, left) in left_over {
            assert_eq!(self.table.left_over(&layout), Some(left), "{name} {layout:?}");
        }
    }

    /// The most compute slices that fit beside each layout, at the least over the ways in which its
    /// instances lie.
    fn left_over(&self, known: &Layouts) -> BTreeMap<Layout, u8> {
        let mut largest_first: Vec<(&Vec<usize>, &Vec<usize>)> = known.iter().collect();
        largest_first.sort_by_key(|(devices, _)| Reverse(devices.len()));
        let mut rooms: BTreeMap<Vec<usize>, u8> = BTreeMap::new();
        let mut least: BTreeMap<Layout, u8> = BTreeMap::new();
        for (devices, fitting) in largest_first {
            let room =
                |place: &usize| self.profile(*place).compute_slices + rooms[&with(devices, *place)];
            let room = fitting.iter().map(room).max().unwrap_or(0);
            rooms.insert(devices.clone(), room);
            let least = least.entry(self.counts(devices)).or_insert(room);
            *least = room.min(*least);
        }
        least
    }

    /// Asks for all instances of a layout in one claim, on an empty GPU: full layouts are served,
    /// and with one instance more those only that are legal in another way.
    fn compare_claims(&self, oracle: &mut Oracle, known: &Layouts) {
        let full: BTreeSet<Layout> = self.full(known, |_| true).into_iter().collect();
        let mut asked = full.clone();
        for (number, _) in &self.places {
            asked.extend(full.iter().map(|layout| with_one_more(layout, *number)));
        }
        let asked: Vec<Layout> = asked.into_iter().collect();
        let requests = |layout: &Layout| -> Vec<Value> {
            let wanted = self.table.profiles.iter().zip(layout).filter(|(_, count)| **count > 0);
            let numbered = wanted.enumerate().map(|(at, (profile, count))| {
                let of = &profile.name;
                let only = format!("device.attributes[\"{DRIVER}\"].?profile.orValue(\"\")");
                request(&format!("r{at}"), &format!("{only} == \"{of}\""), usize::from(*count))
            });
            numbered.collect()
        };
        let of_pods: Vec<Vec<Value>> = asked.iter().map(requests).collect();
        let fits = judged(oracle, &self.world(&[Vec::new()], &of_pods));
        let mut served = 0;
        for (layout, fits) in asked.iter().zip(fits) {
            assert_eq!(fits, [self.table.is_legal(layout)], "{} {layout:?}", self.table.name);
            served += usize::from(fits[0]);
        }
        assert!(served >= full.len() && served < asked.len(), "{served} of {}", asked.len());
    }
}

fn device_name(place: usize) -> String {
    format!("place-{place}")
}

fn counters(compute: u8, memory: Range<u8>) -> Value {
    let mut counters = json!({"multiprocessors": {"value": compute.to_string()}});
    for slice in memory {
        counters[format!("memory-slice-{slice}")] = json!({"value": "1"});
    }
    counters
}

fn request(name: &str, selector: &str, count: usize) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount",
        "count": count, "selectors": [{"cel": {"expression": selector}}]}})
}

fn claim(name: &str, requests: &[Value]) -> Value {
    json!({"metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"devices": {"requests": requests}}})
}

fn with(devices: &[usize], place: usize) -> Vec<usize> {
    let mut more = devices.to_vec();
    more.push(place);
    more.sort_unstable();
    more
}

fn with_one_more(layout: &[u16], profile: usize) -> Layout {
    let mut more = layout.to_vec();
    more[profile] += 1;
    more
}

/// All layouts that are legal by a table, without media engines.
fn legal_layouts(table: &MigTable) -> BTreeSet<Layout> {
    let mut legal = BTreeSet::new();
    let mut open: Vec<Layout> = vec![vec![0; table.profiles.len()]];
    while let Some(layout) = open.pop() {
        let plain = (0..layout.len()).filter(|number| !table.profiles[*number].has_media());
        let more = plain.map(|number| with_one_more(&layout, number));
        let more: Vec<Layout> = more.filter(|more| table.is_legal(more)).collect();
        open.extend(more.into_iter().filter(|more| !legal.contains(more)));
        legal.insert(layout);
    }
    legal
}

/// For each pod whether it fits on each node.
fn judged(oracle: &mut Oracle, world: &GeneratedCluster) -> Vec<Vec<bool>> {
    let answer = oracle.judge(world).unwrap();
    let of_pod = |pod: &PodAnswer| -> Vec<bool> {
        assert!(pod.gated.is_empty() && pod.pre_filter.is_none(), "{pod:?}");
        let nodes = pod.nodes.iter().inspect(|node| {
            assert!(node.rejects.iter().all(|of| of.code != "Error"), "{}: {node:?}", pod.pod);
        });
        nodes.map(|node| node.rejects.is_empty()).collect()
    };
    answer.pods.iter().map(of_pod).collect()
}

#[test]
fn the_layouts_of_every_table_are_those_of_kubernetes_allocator() {
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    let mut known: BTreeMap<Shape, Layouts> = BTreeMap::new();
    for table in MigTable::all() {
        let gpu = CutGpu::new(table, None);
        let layouts = known.entry(gpu.shape()).or_insert_with(|| {
            let layouts = gpu.layouts(&mut oracle);
            gpu.compare_claims(&mut oracle, &layouts);
            layouts
        });
        gpu.compare(layouts);
    }
    assert_eq!(known.len(), 2, "GPUs with seven compute slices, and with four");
}

/// The engines of instances restrict nothing that their slices do not.
#[test]
fn gpus_as_nvidias_driver_publishes_them_have_the_same_layouts() {
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    for (model, gpu) in [("A100-40GB", DraGpu::A100_40GB), ("H100", DraGpu::H100)] {
        let gpu = CutGpu::new(MigTable::of_model(model).expect(model), Some(gpu));
        let layouts = gpu.layouts(&mut oracle);
        gpu.compare(&layouts);
        gpu.compare_claims(&mut oracle, &layouts);
    }
}
