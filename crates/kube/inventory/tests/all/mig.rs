//! MIG: every way to cut every GPU whose placements the tables state, as a node offers it. The
//! oracle places instances one by one and knows nothing of how the reader counts.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::device_states;
use dovetail_model::MigTable;
use serde_json::{Value, json};

use crate::facts::{gathered, node, pod, states};

const GPU: &str = "nvidia.com/gpu";

/// Instances on one GPU, each with the memory slice at which it starts.
type Placed = Vec<(usize, u8)>;

fn fits(table: &MigTable, placed: &[(usize, u8)]) -> bool {
    let mut taken = [0; 8];
    let (mut compute, mut media) = (0, 0);
    for (profile, start) in placed {
        let profile = &table.profiles[*profile];
        compute += profile.compute_slices;
        media += usize::from(profile.name.ends_with("+me"));
        for slice in *start..*start + profile.memory_slices {
            taken[usize::from(slice)] += 1;
        }
    }
    compute <= table.compute_slices && media <= 1 && taken.iter().all(|count| *count <= 1)
}

/// Each instance that could be added, with what is then there.
fn with_one_more(table: &MigTable, placed: &Placed) -> Vec<Placed> {
    let starts = table
        .profiles
        .iter()
        .enumerate()
        .flat_map(|(place, profile)| profile.starts.iter().map(move |start| (place, *start)));
    let more = starts.map(|one| {
        let mut more = placed.clone();
        more.push(one);
        more.sort_unstable();
        more
    });
    more.filter(|more| fits(table, more)).collect()
}

fn all_placements(table: &MigTable) -> BTreeSet<Placed> {
    let mut all = BTreeSet::from([Placed::new()]);
    let mut open = vec![Placed::new()];
    while let Some(placed) = open.pop() {
        open.extend(with_one_more(table, &placed).into_iter().filter(|p| all.insert(p.clone())));
    }
    all
}

fn compute(table: &MigTable, placed: &Placed) -> i64 {
    placed.iter().map(|(profile, _)| i64::from(table.profiles[*profile].compute_slices)).sum()
}

/// Layouts by number of instances, each with the least compute that more instances could take.
fn left_over(table: &MigTable) -> BTreeMap<Vec<usize>, i64> {
    let all = all_placements(table);
    let mut room: BTreeMap<&Placed, i64> = BTreeMap::new();
    let mut by_size: Vec<&Placed> = all.iter().collect();
    by_size.sort_by_key(|placed| std::cmp::Reverse(placed.len()));
    for placed in by_size {
        let more = with_one_more(table, placed);
        let more =
            more.iter().map(|more| compute(table, more) - compute(table, placed) + room[more]);
        room.insert(placed, more.max().unwrap_or(0));
    }
    let mut least: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
    for (placed, room) in room {
        let layout = placed.iter().map(|(profile, _)| *profile).collect();
        let known = least.entry(layout).or_insert(room);
        *known = room.min(*known);
    }
    least
}

/// A node with so many GPUs, each cut into these instances.
fn cut(
    table: &MigTable,
    name: &str,
    layout: &[usize],
    (gpus, single): (usize, Option<&str>),
) -> Value {
    let mut offered: BTreeMap<String, usize> = BTreeMap::new();
    for profile in layout {
        let of_profile = table.profiles[*profile].name.replace('+', ".");
        let resource =
            if single.is_some() { GPU.to_owned() } else { format!("nvidia.com/mig-{of_profile}") };
        *offered.entry(resource).or_default() += gpus;
    }
    let mut made = node(name, 0);
    for field in ["capacity", "allocatable"] {
        made["status"][field] = json!({"cpu": "96", "memory": "2000Gi", "pods": "110"});
        for (resource, count) in &offered {
            made["status"][field][resource] = json!(count.to_string());
        }
    }
    let labels = &mut made["metadata"]["labels"];
    match single {
        Some(profile) => {
            labels["nvidia.com/gpu.product"] =
                json!(format!("NVIDIA-{}-MIG-{profile}", table.name));
            // Discovery counts instances here.
            labels["nvidia.com/gpu.count"] = json!((layout.len() * gpus).to_string());
        }
        None => {
            labels["nvidia.com/gpu.product"] = json!(format!("NVIDIA-{}", table.name));
            if gpus > 1 {
                labels["nvidia.com/gpu.count"] = json!(gpus.to_string());
            }
        }
    }
    made
}

/// Pods that hold so many of every hundred instances of each resource of a node.
fn holders(node: &Value, percent: u64) -> Vec<Value> {
    let name = node["metadata"]["name"].as_str().unwrap();
    let offered = node["status"]["allocatable"].as_object().unwrap().iter();
    let gpus = offered.filter(|(resource, _)| resource.starts_with("nvidia.com/"));
    let mut pods = Vec::new();
    for (resource, count) in gpus {
        let count: u64 = count.as_str().unwrap().parse().unwrap();
        for number in 0..count * percent / 100 {
            let own = format!("{name}-{}-{number}", resource.replace('/', "-"));
            let mut held = pod(&own, "", 0, name);
            let amounts: BTreeMap<&String, &str> = BTreeMap::from([(resource, "1")]);
            held["spec"]["containers"][0]["resources"] =
                json!({"limits": amounts, "requests": amounts});
            pods.push(held);
        }
    }
    pods
}

/// What is held of each node and what its layouts leave over, in milli-GPU, after checking that
/// nothing is unavailable and nothing unknown, and how many GPUs each has.
fn held_and_rest(nodes: &[(Value, i64)], percent: u64) -> Vec<(i64, i64)> {
    let pods: Vec<Value> = nodes.iter().flat_map(|(node, _)| holders(node, percent)).collect();
    let count = pods.len();
    let objects: Vec<Value> =
        pods.into_iter().chain(nodes.iter().map(|(node, _)| node.clone())).collect();
    let mut found = gathered(&objects);
    assert_eq!(found.moment.held.len(), count);
    let states = device_states(&mut found.facts, &found.moment).expect("a legal world");
    let mut of_nodes: BTreeMap<&str, BTreeMap<String, i64>> = BTreeMap::new();
    for waste in &states.intervals {
        let node = &found.moment.nodes[states.node_of[waste.device as usize]];
        let of_node = of_nodes.entry(&node.node).or_default();
        *of_node.entry(waste.interval.state.name()).or_default() += waste.interval.gpu_milli;
    }
    let of_node = |(node, gpus): &(Value, i64)| {
        let states = &of_nodes[node["metadata"]["name"].as_str().unwrap()];
        let of = |state: &str| states.get(state).copied().unwrap_or(0);
        let known = of("unknown") + of("free_no_demand") + of("free_layout_rest");
        assert_eq!(known, 1000 * gpus, "{states:?} {node}");
        assert_eq!(states.values().sum::<i64>(), 1000 * gpus, "{states:?} {node}");
        (of("unknown"), of("free_layout_rest"))
    };
    nodes.iter().map(of_node).collect()
}

/// How a node is cut, and what that comes to.
struct Case {
    layout: Vec<usize>,
    gpus: i64,
    room: i64,
}

#[test]
fn every_layout_of_every_gpu_is_all_of_it_and_nothing_is_unavailable() {
    for table in MigTable::all() {
        let compute = |profile: usize| i64::from(table.profiles[profile].compute_slices);
        let mut cases = Vec::new();
        for (layout, room) in left_over(&table).into_iter().filter(|(layout, _)| !layout.is_empty())
        {
            // What leaves something over, of one GPU of each form: the others differ in names.
            if room > 0 && !["A100-40GB", "A30"].contains(&table.name.as_str()) {
                continue;
            }
            // Two GPUs with half as many of the smallest instances as fill one are read as one that
            // is full, and one without any.
            let slices = usize::from(table.compute_slices);
            if layout.iter().all(|profile| *profile == 0) && 2 * layout.len() == slices {
                continue;
            }
            // A GPU alone is counted by its instances, where they need all of one.
            for gpus in if room == 0 { 1..=2 } else { 2..=2 } {
                cases.push(Case { layout: layout.clone(), gpus, room });
            }
        }
        let full = cases.iter().filter(|case| case.room == 0 && case.gpus == 1).count();
        assert!(full >= if table.compute_slices == 7 { 38 } else { 4 }, "{}: {full}", table.name);
        let nodes = cases.iter().enumerate().map(|(number, case)| {
            let gpus = usize::try_from(case.gpus).unwrap();
            (cut(&table, &format!("m{number}"), &case.layout, (gpus, None)), case.gpus)
        });
        let nodes: Vec<(Value, i64)> = nodes.collect();
        for percent in [0, 50, 100] {
            for (case, (held, rest)) in cases.iter().zip(held_and_rest(&nodes, percent)) {
                let Case { layout, gpus, room } = case;
                let all = layout.iter().map(|profile| compute(*profile)).sum::<i64>() + room;
                assert!((rest - 1000 * gpus * room / all).abs() <= *gpus, "{layout:?} {rest}");
                let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
                layout.iter().for_each(|profile| *counts.entry(*profile).or_default() += gpus);
                let slices = counts.iter().map(|(profile, count)| {
                    count * i64::try_from(percent).unwrap() / 100 * compute(*profile)
                });
                let expected = 1000 * slices.sum::<i64>() / all;
                let most = layout.len() as i64 * gpus;
                assert!((held - expected).abs() <= most, "{layout:?} {held} {expected}");
                if percent == 100 {
                    assert_eq!(held + rest, 1000 * gpus, "{layout:?}");
                }
            }
        }
    }
}

#[test]
fn with_the_strategy_single_as_many_gpus_count_as_the_instances_need() {
    for table in MigTable::all() {
        let rooms = left_over(&table);
        let profiles = table.profiles.iter().enumerate();
        let cases = profiles.map(|(number, profile)| {
            let alike = rooms.keys().filter(|layout| layout.iter().all(|p| *p == number));
            let layout = alike.max_by_key(|layout| layout.len()).unwrap();
            let name = format!("s{number}");
            let node = cut(&table, &name, layout, (3, Some(&profile.name)));
            let compute = i64::from(profile.compute_slices);
            (layout.len() as i64, compute, rooms[layout], (node, 3))
        });
        let cases: Vec<_> = cases.collect();
        for percent in [0, 50, 100] {
            // Together they would be nodes of one resource with units of many sizes.
            for (instances, compute, room, node) in &cases {
                let (held, rest) = held_and_rest(std::slice::from_ref(node), percent)[0];
                let all = instances * compute + room;
                assert!((rest - 3000 * room / all).abs() <= 3, "{} {rest}", node.0);
                let taken = 3 * instances * i64::try_from(percent).unwrap() / 100;
                assert!((held - 1000 * taken * compute / all).abs() <= taken, "{} {held}", node.0);
            }
        }
    }
}

/// The published tables: names, slices and starts of every GPU whose placements they state.
#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say why")]
fn the_tables_say_what_is_published() {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else {
        eprintln!("skipped: the_tables_say_what_is_published: set DOVETAIL_TRACES");
        return;
    };
    let path = std::path::Path::new(&folder).join("gpu/mig_profiles.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut seen = 0;
    for gpu in file["gpus"].as_array().unwrap() {
        let name = gpu["gpu"].as_str().unwrap();
        let name = name.replace("-Blackwell", "").replace("80GB-SXM5", "SXM5-80GB");
        let table = MigTable::of_model(&format!("NVIDIA-{name}"));
        let table = table.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(gpu["compute_slices"], table.compute_slices, "{name}");
        assert_eq!(gpu["memory_slices"], table.memory_slices, "{name}");
        let published: BTreeMap<String, Value> = gpu["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|profile| {
                let places = profile["placements"].as_array().unwrap();
                let starts: Vec<&Value> = places.iter().map(|place| &place["start"]).collect();
                let slices = json!([profile["compute_slices"], profile["memory_slices"], starts]);
                (profile["name"].as_str().unwrap().to_owned(), slices)
            })
            .collect();
        let own = table.profiles.iter().map(|profile| {
            let starts = &profile.starts;
            let slices = json!([profile.compute_slices, profile.memory_slices, starts]);
            (profile.name.clone(), slices)
        });
        assert_eq!(published, own.collect(), "{name}");
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}

/// Who counts is told where somebody says another number.
#[test]
fn a_count_that_others_contradict_is_told_with_its_source() {
    let told = |amounts: u32, labels: &[(&str, &str)]| {
        let mut made = node("n", amounts);
        for (label, value) in labels {
            made["metadata"]["labels"][*label] = json!(value);
        }
        let found = gathered(&[made]);
        let gpus = found.moment.nodes[0].gpus;
        let counts = found.gpu_counts.into_iter().map(|(_, count)| {
            let others = count.others.iter().map(|(by, said)| format!("{by}: {said}"));
            (count.by.to_string(), others.collect::<Vec<_>>())
        });
        (gpus, counts.collect::<Vec<_>>())
    };
    let g5 = [("node.kubernetes.io/instance-type", "g5.12xlarge")];
    let by_type =
        ("instance type g5.12xlarge".to_owned(), vec!["the device plugin: 16".to_owned()]);
    assert_eq!(told(16, &g5), (4, vec![by_type]));
    let both = [g5[0], ("nvidia.com/gpu.count", "8")];
    // No label counts more GPUs than the machine has.
    let (gpus, counts) = told(8, &both);
    assert_eq!((gpus, &*counts[0].0), (4, "instance type g5.12xlarge"));
    assert_eq!(counts[0].1, ["nvidia.com/gpu.count: 8", "the device plugin: 8"]);
    let fewer = [g5[0], ("nvidia.com/gpu.count", "3")];
    let (gpus, counts) = told(3, &fewer);
    assert_eq!((gpus, &*counts[0].0), (4, "instance type g5.12xlarge"));
    assert_eq!(counts[0].1, ["nvidia.com/gpu.count: 3"]);
    // Sixteen replicas are not as many of each of three GPUs.
    let (gpus, counts) = told(16, &fewer);
    assert_eq!((gpus, &*counts[0].0), (4, "instance type g5.12xlarge"));
    assert_eq!(counts[0].1, ["nvidia.com/gpu.count: 3", "the device plugin: 16"]);
    assert_eq!(told(4, &g5), (4, vec![]));
    // One GPU of the machine is lost.
    assert_eq!(told(3, &g5), (4, vec![]));
    let sliced = [("nvidia.com/gpu.count", "4"), ("nvidia.com/gpu.replicas", "4")];
    assert_eq!(told(16, &sliced), (4, vec![]));
    // On GKE GPUs are cut and shared without GPU Feature Discovery.
    let gke = [
        ("nvidia.com/gpu.product", ""),
        ("cloud.google.com/gke-accelerator", "nvidia-tesla-a100"),
        ("cloud.google.com/gke-accelerator-count", "2"),
        ("cloud.google.com/gke-gpu-partition-size", "3g.20gb"),
    ];
    let mut partitioned = node("n", 4);
    partitioned["metadata"]["labels"] = json!(BTreeMap::from(gke));
    let found = gathered(&[partitioned]);
    let read = &found.moment.nodes[0];
    assert_eq!(
        (read.gpus, read.units[0].parts.milli(0, 1), read.units[0].is_shared),
        (2, 500, false)
    );
}

/// Replicas under names of their own, of which no label says how many each GPU has.
#[test]
fn renamed_replicas_are_parts_of_the_gpus_that_the_machine_has() {
    let gpus = |offers: &[(&str, u32)], labels: &[(&str, &str)]| {
        let mut made = node("n", 0);
        for (label, value) in labels {
            made["metadata"]["labels"][*label] = json!(value);
        }
        for field in ["capacity", "allocatable"] {
            for (resource, count) in offers {
                made["status"][field][*resource] = json!(count.to_string());
            }
        }
        gathered(&[made]).moment.nodes[0].gpus
    };
    let shared = "nvidia.com/gpu.shared";
    let of_type = |name| [("node.kubernetes.io/instance-type", name)];
    assert_eq!(gpus(&[(shared, 16)], &of_type("g5.12xlarge")), 4);
    assert_eq!(gpus(&[(shared, 16)], &[("karpenter.k8s.aws/instance-gpu-count", "4")]), 4);
    assert_eq!(gpus(&[(shared, 8)], &[("cloud.google.com/gke-accelerator-count", "2")]), 2);
    // Three are whole, one is shared.
    let both = [("nvidia.com/gpu", 3), (shared, 4)];
    assert_eq!(gpus(&both, &[("nvidia.com/gpu.count", "4")]), 4);
    let mig = [("nvidia.com/mig-3g.20gb.shared", 64)];
    let a100 = [of_type("p4d.24xlarge")[0], ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB")];
    assert_eq!(gpus(&mig, &a100), 8);
}

/// GPUs on which no instance lies, beside GPUs that are full or whole: pods can request nothing of
/// them, as if the plugin did not report them.
#[test]
fn gpus_without_instances_are_unavailable_and_no_rest_of_a_layout() {
    let of_model = |model: &str, gpus: i64, amounts: &[(&str, i64)]| {
        let mut made = node("m", 0);
        made["metadata"]["labels"]["nvidia.com/gpu.product"] = json!(model);
        made["metadata"]["labels"]["nvidia.com/gpu.count"] = json!(gpus.to_string());
        for field in ["capacity", "allocatable"] {
            made["status"][field] = json!({"cpu": "96", "memory": "2000Gi", "pods": "110"});
            for (resource, count) in amounts {
                made["status"][field][*resource] = json!(count.to_string());
            }
        }
        let found = gathered(&[made]);
        let read = &found.facts.nodes[0];
        let (uncounted, rest) = (read.uncounted_gpus, read.layout_rest_milli);
        let states = states(found);
        (uncounted, rest, states.get("unavailable").copied().unwrap_or(0))
    };
    let of = |gpus, amounts: &[(&str, i64)]| of_model("NVIDIA-A100-SXM4-80GB", gpus, amounts);
    assert_eq!(of(8, &[("nvidia.com/mig-7g.80gb", 5)]), (3, 0, 3_000));
    assert_eq!(of(2, &[("nvidia.com/mig-1g.10gb", 7)]), (1, 0, 1_000));
    // Four slices are an A30, also where two on each of the two would be possible.
    assert_eq!(of_model("NVIDIA-A30", 2, &[("nvidia.com/mig-1g.6gb", 4)]), (1, 0, 1_000));
    assert_eq!(of(8, &[("nvidia.com/mig-7g.80gb", 3), (GPU, 2)]), (3, 0, 3_000));
    assert_eq!(of(1, &[("nvidia.com/mig-1g.10gb", 0)]), (1, 0, 1_000));
    // These may lie on all GPUs.
    let (uncounted, rest, unavailable) = of(2, &[("nvidia.com/mig-3g.40gb", 2)]);
    assert_eq!((uncounted, unavailable), (0, 0));
    assert!(rest > 0);
}

/// Without labels the instance type names the GPU, else the profiles do; else what instances leave
/// over is unknown, and never free.
#[test]
fn gpus_without_labels_are_cut_by_their_instance_type_or_by_their_profiles() {
    let of = |instance_type: &str, amounts: &[(&str, u32)]| {
        let mut made = node("m", 0);
        let labels = json!({"node.kubernetes.io/instance-type": instance_type});
        made["metadata"]["labels"] = labels;
        for field in ["capacity", "allocatable"] {
            made["status"][field] = json!({"cpu": "96", "memory": "2000Gi", "pods": "110"});
            for (profile, count) in amounts {
                made["status"][field][format!("nvidia.com/mig-{profile}")] =
                    json!(count.to_string());
            }
        }
        let pods = holders(&made, 100);
        states(gathered(&[pods, vec![made]].concat()))
    };
    let all_held = |gpus: i64| BTreeMap::from([("unknown".to_owned(), 1000 * gpus)]);
    // Four of them are an H100, though they have four of its seven compute slices.
    assert_eq!(of("p5.48xlarge", &[("1g.20gb", 32)]), all_held(8));
    assert_eq!(of("p5e.48xlarge", &[("3g.71gb", 16)]), all_held(8));
    assert_eq!(of("Standard_NC24ads_A100_v4", &[("1g.10gb", 7)]), all_held(1));
    // Nothing but the profiles tells what these are.
    assert_eq!(of("of-ones-own", &[("1g.20gb", 32)]), all_held(8));
    assert_eq!(of("of-ones-own", &[("3g.20gb", 2), ("2g.10gb", 4)]), all_held(2));
    // 80 GB in seven, or 40 GB in four.
    assert_eq!(of("of-ones-own", &[("1g.10gb", 14)]), all_held(2));
    let unknown = of("of-ones-own", &[("1g.10gb", 4)]);
    assert_eq!(unknown, all_held(1), "three of seven slices may be there or not");
    // Type and profile contradict each other.
    assert_eq!(of("p4d.24xlarge", &[("1g.18gb", 14)]).keys().collect::<Vec<_>>(), ["unknown"]);
}
