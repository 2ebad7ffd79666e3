//! How many GPUs a node has and a pod holds where resources are parts of GPUs, or one of several
//! names for them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_inventory::facts::Gathered;
use dovetail_model::{canonical_gpu_model, instance_type};
use serde_json::{Value, json};

use crate::facts::{expect, gathered, inventory, node, pod, states};

const GPU: &str = "nvidia.com/gpu";

#[test]
fn slices_and_replicas_are_parts_of_a_gpu() {
    let mut sliced = node("m1", 0);
    for amounts in ["capacity", "allocatable"] {
        sliced["status"][amounts] =
            json!({"cpu": "8", "pods": "110", "nvidia.com/mig-2g.20gb": "3"});
    }
    sliced["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("1");
    let mut holder = pod("p", "", 0, "m1");
    holder["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/mig-2g.20gb": 1},
        "requests": {"nvidia.com/mig-2g.20gb": 1}});
    // Two of seven slices each; the seventh belongs to nothing that pods can ask for, on a GPU that
    // the tables know. Of another GPU nobody knows what is left.
    let mut unlisted = sliced.clone();
    unlisted["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("NVIDIA-H999");
    let found = gathered(&[unlisted, holder.clone()]);
    expect(&states(found), &[("unknown", 429), ("free_no_demand", 571)]);
    let found = gathered(&[sliced, holder]);
    let expected = [("unknown", 286), ("free_no_demand", 571), ("free_layout_rest", 143)];
    expect(&states(found), &expected);
    let mut shared = node("s1", 8);
    shared["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("4");
    let found = gathered(&[shared, pod("q", "", 1, "s1")]);
    expect(&states(found), &[("unknown", 250), ("free_no_demand", 1750)]);
}

/// A node with these amounts in place of GPUs, and these labels beside its own.
fn with_amounts(name: &str, amounts: &[(&str, &str)], labels: &[(&str, &str)]) -> Value {
    let mut made = node(name, 0);
    for field in ["capacity", "allocatable"] {
        made["status"][field] = json!({"cpu": "190", "memory": "2000Gi", "pods": "110"});
        for (resource, amount) in amounts {
            made["status"][field][*resource] = json!(amount);
        }
    }
    for (label, value) in labels {
        made["metadata"]["labels"][*label] = json!(value);
    }
    made
}

/// A slice is no evidence that the rest of its GPU is lost, and a replica is no GPU.
#[test]
fn only_what_a_node_has_and_does_not_offer_is_unavailable() {
    let of = |amounts: &[(&str, &str)], labels: &[(&str, &str)]| {
        let mut node = with_amounts("n", amounts, labels);
        node["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("NVIDIA-A100-SXM4-80GB");
        let found = gathered(&[node]);
        (found.moment.nodes[0].gpus, states(found))
    };
    let eight = ("nvidia.com/gpu.count", "8");
    for (profile, count) in [("1g.20gb", "32"), ("3g.40gb", "16"), ("2g.20gb", "24")] {
        let resource = format!("nvidia.com/mig-{profile}");
        let (gpus, states) = of(&[(&resource, count)], &[eight]);
        assert_eq!((gpus, states.get("unavailable")), (8, None), "{profile}: {states:?}");
    }
    let (_, lost) = of(&[(GPU, "7")], &[eight]);
    expect(&lost, &[("free_no_demand", 7000), ("unavailable", 1000)]);
    // Time-slicing without GPU Feature Discovery.
    let labels = [
        ("node.kubernetes.io/instance-type", "g5.12xlarge"),
        ("karpenter.k8s.aws/instance-gpu-count", "4"),
        ("cloud.google.com/gke-accelerator-count", "4"),
    ];
    for label in labels {
        let (gpus, states) = of(&[(GPU, "16")], &[label]);
        assert_eq!(gpus, 4, "{label:?}");
        expect(&states, &[("free_no_demand", 4000)]);
    }
}

/// Whether a price of an instance type is known says nothing of its GPUs.
#[test]
fn replicas_are_no_gpus_on_instance_types_without_a_known_price() {
    let read = |name: &str| {
        let by_type = [("node.kubernetes.io/instance-type", name)];
        let mut node = with_amounts("n", &[(GPU, "80")], &by_type);
        node["metadata"]["labels"].as_object_mut().unwrap().remove("nvidia.com/gpu.product");
        let found = gathered(&[node]);
        let read = &found.moment.nodes[0];
        (read.gpus, read.model.clone().unwrap_or_default())
    };
    for (name, gpus, model) in [
        ("p5e.48xlarge", 8, "H200"),
        ("g7e.24xlarge", 4, "RTX-PRO-6000"),
        ("a3-ultragpu-8g", 8, "H200"),
        ("a4x-highgpu-4g", 4, "GB200"),
        ("Standard_NC24rs_v3", 4, "V100"),
        ("BM.GPU.H100.8", 8, "H100"),
    ] {
        assert_eq!(read(name), (gpus, model.to_owned()), "{name}");
    }
    // An eighth of a GPU is not taken for one: only the plugin counts.
    assert_eq!(read("g6f.xlarge"), (80, String::new()));
}

/// The published lists: model, memory and number of GPUs of every instance type with a price.
#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must say why")]
fn instance_types_have_the_gpus_that_are_published() {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else {
        eprintln!("skipped: instance_types_have_the_gpus_that_are_published: set DOVETAIL_TRACES");
        return;
    };
    let path = std::path::Path::new(&folder).join("prices/gpu_prices.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut seen = BTreeSet::new();
    for row in text.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [provider, name, gpu, memory_gb, gpus, ..] = cells[..] else { panic!("{row}") };
        let found = instance_type(name).unwrap_or_else(|| panic!("{name}"));
        let model = canonical_gpu_model(&format!("{gpu}-{memory_gb}GB"));
        assert_eq!((found.provider, found.gpu_model), (provider, &*model), "{name}");
        assert_eq!(found.gpus.to_string(), gpus, "{name}");
        seen.insert(name);
    }
    assert!(seen.len() >= 90, "{}", seen.len());
}

/// The label of GPU Feature Discovery and the plugin count the GPUs that work, and the bill is that
/// of the machine.
#[test]
fn a_gpu_that_label_and_plugin_both_lack_is_unavailable() {
    let of = |amounts: &[(&str, &str)], count: &str, more: &[(&str, &str)]| {
        let label = [("nvidia.com/gpu.count", count)];
        let found = gathered(&[with_amounts("n", amounts, &[more, &label[..]].concat())]);
        (found.moment.nodes[0].gpus, found.facts.nodes[0].uncounted_gpus, states(found))
    };
    let p5 = ("node.kubernetes.io/instance-type", "p5.48xlarge");
    for machine in [p5, ("karpenter.k8s.aws/instance-gpu-count", "8")] {
        let (gpus, uncounted, states) = of(&[(GPU, "7")], "7", &[machine]);
        assert_eq!((gpus, uncounted), (8, 1), "{machine:?}");
        expect(&states, &[("free_no_demand", 7000), ("unavailable", 1000)]);
    }
    // The label counts replicas, too: seven GPUs are there.
    let (gpus, _, lost) = of(&[(GPU, "28")], "7", &[p5, ("nvidia.com/gpu.replicas", "4")]);
    assert_eq!(gpus, 8);
    expect(&lost, &[("free_no_demand", 7000), ("unavailable", 1000)]);
    // Replicas that no label counts share the GPUs of the label, whatever their name is.
    for resource in [GPU, "nvidia.com/gpu.shared"] {
        let (gpus, uncounted, _) = of(&[(resource, "16")], "4", &[p5]);
        assert_eq!((gpus, uncounted), (4, 0), "{resource}");
    }
    // Three GPUs do not have as many of sixteen replicas each, so all of the machine are there.
    let g5 = ("node.kubernetes.io/instance-type", "g5.12xlarge");
    for resource in [GPU, "nvidia.com/gpu.shared"] {
        let (gpus, uncounted, states) = of(&[(resource, "16")], "3", &[g5]);
        assert_eq!((gpus, uncounted), (4, 0), "{resource}");
        expect(&states, &[("free_no_demand", 4000)]);
        assert_eq!(of(&[(resource, "15")], "3", &[g5]).0, 3, "{resource}");
    }
    // The number of GPUs of this type is no part of its name.
    let n1 = ("node.kubernetes.io/instance-type", "n1-standard-8");
    assert_eq!(of(&[(GPU, "1")], "1", &[n1]).0, 1);
}

/// By what the GPUs of a node are counted, and what else was said.
type CountedBy = (String, Vec<String>);

/// GPUs of the first node and whether units share them; by what the GPUs of each node are counted,
/// with what else was said; and the states of all GPUs.
fn counted(found: Gathered) -> ((i64, bool), Vec<CountedBy>, BTreeMap<String, i64>) {
    let read = &found.moment.nodes[0];
    let (gpus, is_shared) = (read.gpus, read.units[0].is_shared);
    let told = found.gpu_counts.iter().map(|(_, count)| {
        let others = count.others.iter().map(|(by, said)| format!("{said} by {by}"));
        (count.by.to_string(), others.collect())
    });
    let told = told.collect();
    ((gpus, is_shared), told, states(found))
}

/// Time-sliced instances may keep their names, and then labels may say nothing of replicas.
#[test]
fn more_instances_than_the_gpus_of_the_machine_have_are_replicas() {
    let of = |product: &str, amounts: &[(&str, &str)], more: &[(&str, &str)]| {
        let labels = [&[("nvidia.com/gpu.product", product)][..], more].concat();
        counted(gathered(&[with_amounts("m1", amounts, &labels)]))
    };
    let a100 = "NVIDIA-A100-SXM4-40GB";
    let p4d = ("node.kubernetes.io/instance-type", "p4d.24xlarge");
    let eight = ("nvidia.com/gpu.count", "8");
    let sevenths = "nvidia.com/mig-1g.5gb";
    let (gpus, told, by_state) = of(a100, &[(sevenths, "112")], &[eight]);
    assert_eq!(gpus, (8, true));
    let need = "16 by the minimum number of GPUs for its MIG instances".to_owned();
    assert_eq!(told, [("nvidia.com/gpu.count".to_owned(), vec![need])]);
    assert_eq!(by_state.values().sum::<i64>(), 8000);
    assert!(!by_state.contains_key("unavailable"), "{by_state:?}");
    // All are instances.
    assert_eq!(of(a100, &[(sevenths, "56")], &[eight]).0, (8, false));
    assert_eq!(of(a100, &[("nvidia.com/mig-3g.20gb", "32")], &[p4d]).0, (8, true));
    // The strategy `single`, and a model whose layouts no table has.
    let single = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED";
    assert_eq!(of(single, &[(GPU, "112")], &[p4d]).0, (8, true));
    assert_eq!(of("NVIDIA-H999", &[(sevenths, "112")], &[eight]).0, (8, true));
    // No layout of these is known: what it would leave over is no finding.
    let (gpus, _, by_state) = of(a100, &[(sevenths, "60")], &[eight]);
    assert_eq!(gpus, (8, true));
    assert!(!by_state.contains_key("free_layout_rest"), "{by_state:?}");
    // The label counts fewer GPUs than the machine has.
    let seven = ("nvidia.com/gpu.count", "7");
    let (gpus, _, by_state) = of(a100, &[(sevenths, "98")], &[seven, p4d]);
    assert_eq!((gpus, by_state["unavailable"]), ((8, true), 1000));
    // A label says that each instance is offered once.
    let once = ("nvidia.com/mig-1g.5gb.replicas", "1");
    assert_eq!(of(a100, &[(sevenths, "112")], &[eight, once]).0, (16, false));
}

/// A pod on a node that asks for these amounts.
fn holding(node: &str, amounts: &[(&str, &str)]) -> Value {
    let mut made = pod("p", "", 0, node);
    let amounts: BTreeMap<&str, &str> = amounts.iter().copied().collect();
    made["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    made
}

#[test]
fn slices_under_the_name_of_whole_gpus_are_parts_of_a_gpu() {
    let labels = [
        ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"),
        ("nvidia.com/mig.strategy", "single"),
        ("nvidia.com/gpu.count", "56"),
    ];
    let found =
        gathered(&[with_amounts("m1", &[(GPU, "56")], &labels), holding("m1", &[(GPU, "1")])]);
    let read = &found.moment.nodes[0];
    assert_eq!((read.gpus, read.model.as_deref()), (8, Some("NVIDIA-A100-SXM4-80GB")));
    assert_eq!(found.facts.nodes[0].uncounted_gpus, 0);
    // 1000 / 7.
    expect(&states(found), &[("unknown", 143), ("free_no_demand", 7857)]);
    // A slice of all seven is a GPU.
    let labels = [("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-7g.80gb")];
    let found =
        gathered(&[with_amounts("m7", &[(GPU, "8")], &labels), holding("m7", &[(GPU, "1")])]);
    expect(&states(found), &[("unknown", 1000), ("free_no_demand", 7000)]);
}

#[test]
fn gpus_that_hami_shares_out_are_held_by_their_cores() {
    let mut shared = with_amounts("h1", &[(GPU, "20")], &[("nvidia.com/gpu.count", "2")]);
    shared["metadata"]["annotations"]["hami.io/node-nvidia-register"] =
        json!("GPU-1,10,81559,100,NVIDIA-H100,0,true:GPU-2,10,81559,100,NVIDIA-H100,0,true:");
    let third = holding("h1", &[(GPU, "1"), ("nvidia.com/gpucores", "30")]);
    let found = gathered(&[shared.clone(), third]);
    assert_eq!(found.moment.nodes[0].gpus, 2);
    expect(&states(found), &[("unknown", 300), ("free_no_demand", 1700)]);
    // Who says nothing has one of ten parts.
    let found = gathered(&[shared, holding("h1", &[(GPU, "1")])]);
    expect(&states(found), &[("unknown", 100), ("free_no_demand", 1900)]);
}

#[test]
fn devices_under_several_names_count_once() {
    let amounts = [
        ("aws.amazon.com/neuron", "16"),
        ("aws.amazon.com/neuroncore", "32"),
        ("aws.amazon.com/neurondevice", "16"),
    ];
    // A core is half a chip.
    let cores = holding("t1", &[("aws.amazon.com/neuroncore", "3")]);
    let found = gathered(&[with_amounts("t1", &amounts, &[]), cores]);
    assert_eq!(found.moment.nodes[0].gpus, 16);
    expect(&states(found), &[("unknown", 1500), ("free_no_demand", 14_500)]);
    let amounts = [("gpu.intel.com/i915", "4"), ("gpu.intel.com/i915_monitoring", "1")];
    let found = gathered(&[with_amounts("i1", &amounts, &[])]);
    expect(&states(found), &[("free_no_demand", 4000)]);
}

/// Intel's plugin offers each GPU several times, and labels count the GPUs.
#[test]
fn units_that_share_an_intel_gpu_are_parts_of_it() {
    let i915 = "gpu.intel.com/i915";
    let device = ("gpu.intel.com/device-id.0380-0bda.count", "2");
    let of = |amounts: &[(&str, &str)], labels: &[(&str, &str)]| {
        let held = holding("i1", &[(amounts[0].0, "1")]);
        counted(gathered(&[with_amounts("i1", amounts, labels), held]))
    };
    let numbers = [("gpu.intel.com/gpu-numbers", "0.1")];
    let by_plugin = vec!["20 by the device plugin".to_owned()];
    let (gpus, told, by_state) = of(&[(i915, "20")], &numbers);
    assert_eq!(gpus, (2, true));
    assert_eq!(told, [("gpu.intel.com/gpu-numbers".to_owned(), by_plugin.clone())]);
    expect(&by_state, &[("unknown", 100), ("free_no_demand", 1900)]);
    let (gpus, told, _) = of(&[(i915, "20")], &[device]);
    assert_eq!(gpus, (2, true));
    assert_eq!(told, [("gpu.intel.com/device-id.*".to_owned(), by_plugin)]);
    // Two drivers offer one each, a list goes on in a second label, several kinds add up.
    let xe = ("gpu.intel.com/xe", "10");
    assert_eq!(of(&[(i915, "10"), xe], &[device]).0, (2, true));
    let cut = [("gpu.intel.com/gpu-numbers", "0.1.2.1"), ("gpu.intel.com/gpu-numbers2", "0.11")];
    assert_eq!(of(&[(i915, "10")], &cut).0, (5, true));
    let kinds = [device, ("gpu.intel.com/device-id.0300-56c0.count", "1")];
    assert_eq!(of(&[(i915, "9")], &kinds).0, (3, true));
    // The plugin leaves a GPU out, or shares none; what is no number counts nothing.
    for (amount, label) in [("1", device), ("2", device), ("4", (device.0, "many"))] {
        let (gpus, told, _) = of(&[(i915, amount)], &[label]);
        assert_eq!(gpus, (amount.parse::<i64>().unwrap(), false), "{label:?}");
        assert!(told.is_empty(), "{told:?}");
    }
    // Beside GPUs of another vendor the label counts Intel's alone.
    let (gpus, told, _) = of(&[(i915, "10"), (GPU, "8")], &[("nvidia.com/gpu.count", "8"), device]);
    assert_eq!(gpus, (10, true));
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_node_with_less_than_no_gpus_is_left_out_and_named() {
    let nodes = [with_amounts("bad", &[(GPU, "-8")], &[]), node("g1", 8)];
    let found = inventory(&nodes).facts(BTreeSet::new());
    let told: Vec<_> = found.skipped.iter().map(|s| (&*s.object, &*s.field, &*s.problem)).collect();
    let problem = "-8 GPUs: expected 0 or more";
    assert_eq!(told, [("Node bad", "status.capacity.nvidia.com/gpu", problem)]);
    assert_eq!((found.skipped_count, found.moment.nodes.len()), (1, 1));
}

/// A patch to fewer GPUs warns of it.
#[test]
fn the_argument_by_which_a_command_counts_processes_is_read() {
    let read = |args: Value| {
        let mut made = pod("p", "StatefulSet/p", 8, "g1");
        made["spec"]["containers"][0]["command"] = json!(["torchrun"]);
        made["spec"]["containers"][0]["args"] = args;
        let found = gathered(&[node("g1", 8), made]);
        found.facts.workloads[0].template.containers[0].processes_by
    };
    assert_eq!(read(json!(["--nproc_per_node=8", "train.py"])), Some("--nproc_per_node"));
    assert_eq!(read(json!(["train.py"])), None);
}

/// KAI and Run:ai: one pod takes the GPU off the device plugin, and those who share it pay for it.
#[test]
fn a_reserved_gpu_is_held_by_the_pods_that_share_it() {
    let shares = |name: &str, fraction: &str, group: &str| {
        let mut pod = pod(name, "", 0, "g1");
        pod["metadata"]["annotations"] = json!({"gpu-fraction": fraction});
        pod["metadata"]["labels"] = json!({"runai-gpu-group": group});
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        pod
    };
    let reserves = |name: &str, group: &str| {
        let mut pod = pod(name, "", 1, "g1");
        pod["metadata"]["labels"] = json!({"runai-gpu-group": group});
        pod
    };
    let objects = [
        node("g1", 8),
        reserves("r1", "one"),
        reserves("r2", "two"),
        shares("a", "0.25", "one"),
        shares("b", "0.5", "one"),
    ];
    let found = gathered(&objects);
    let held = found.moment.held.iter();
    let mut held: Vec<_> = held.map(|of| (&*of.pod, of.units, of.gpu_milli)).collect();
    held.sort_unstable();
    // Nobody shares the second.
    assert_eq!(held, [("a", 1, Some(333)), ("b", 0, Some(667)), ("r2", 1, None)]);
    let sharers = found.moment.sharers.values().flatten().map(|(_, pod)| &**pod);
    assert_eq!(sharers.collect::<Vec<_>>(), ["a", "b"]);
    expect(&states(found), &[("unknown", 2000), ("free_no_demand", 6000)]);
    let lives =
        inventory(&objects).facts_and_tenants(BTreeSet::new(), Some(&BTreeSet::new())).lives;
    let lives: Vec<_> = lives.iter().map(|life| (&*life.pod, life.gpu_milli)).collect();
    assert_eq!(lives, [("a", Some(250)), ("b", Some(500))]);
}

/// Some tools write pods without their containers: then any GPU of the node may be held.
#[test]
fn a_pod_without_containers_may_hold_every_gpu_of_its_node() {
    let mut bare = holding("g1", &[(GPU, "1")]);
    bare["spec"].as_object_mut().unwrap().remove("containers");
    let other = pod("other", "", 0, "g2");
    let read = |objects: &[Value]| inventory(objects).facts(BTreeSet::new());
    let found = read(&[node("g1", 8), node("g2", 8), bare.clone(), other.clone()]);
    let told: Vec<_> = found.skipped.iter().map(|s| (&*s.field, &*s.problem)).collect();
    assert_eq!(told, [("spec.containers", "it is missing")]);
    expect(&states(found), &[("unknown", 8000), ("free_no_demand", 8000)]);
    // One that is pending may ask for any of them, and one that ended holds none.
    bare["spec"].as_object_mut().unwrap().remove("nodeName");
    let found = read(&[node("g1", 8), bare.clone(), other.clone()]);
    expect(&states(found), &[("free_of_unknown_cause", 8000)]);
    bare["status"]["phase"] = json!("Succeeded");
    let found = read(&[node("g1", 8), bare, other]);
    expect(&states(found), &[("free_no_demand", 8000)]);
}
