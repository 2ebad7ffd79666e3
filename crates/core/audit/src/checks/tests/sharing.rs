//! Sharing GPUs: the worlds of its checks.

use std::collections::BTreeSet;

use dovetail_facts::{Facts, Gpus, WorkloadClass};

use super::{
    Case, GIB, GPU, HOUR_MS, NOW_MS, SERVE, TRAIN, audit, healthy, ids, label, main_of, requests,
    taint, used,
};

/// Offers the GPUs of the first node as parts of another name.
pub(super) fn offered_as(facts: &mut Facts, resource: &str) {
    let gpus = facts.nodes[0].gpus.remove(GPU).unwrap();
    facts.nodes[0].gpus.insert(resource.into(), gpus);
    facts.nodes[0].node.taints = vec![taint(resource)];
    for workload in [TRAIN, SERVE] {
        let container = main_of(facts, workload);
        let count = container.limits.remove(GPU).unwrap();
        container.limits.insert(resource.into(), count);
    }
    for namespace in &mut facts.namespaces {
        namespace.quota_resources = Some(BTreeSet::from([format!("requests.{resource}")]));
    }
}

/// Two workloads of these kinds whose pods share GPUs in turns.
pub(super) fn time_sliced(facts: &mut Facts, classes: [WorkloadClass; 2]) {
    facts.nodes.iter_mut().for_each(|node| node.time_slices = 4);
    offered_as(facts, "nvidia.com/gpu.shared");
    facts.workloads[SERVE].class = Some(classes[0]);
    facts.workloads[TRAIN].class = Some(classes[1]);
}

/// A notebook on a GPU with so much memory.
pub(super) fn notebook(facts: &mut Facts, gpu_memory_mib: &str) {
    facts.workloads[SERVE].class = Some(WorkloadClass::Interactive);
    label(facts, "nvidia.com/gpu.memory", gpu_memory_mib);
}

/// Two MIG instances that no pod has used for so many hours, beside GPUs in use.
pub(super) fn unused(facts: &mut Facts, hours: u64) {
    let model = facts.nodes[0].gpus[GPU].model.clone();
    let instances = Gpus { model, built_in: 2, allocatable: 2, ..Gpus::default() };
    facts.nodes[0].gpus.insert("nvidia.com/mig-2g.20gb".into(), instances);
    facts.nodes[0].free_since_ms = Some(NOW_MS - hours * HOUR_MS);
}

/// Two servers that share a GPU of 16,000 MiB and have used so much of it each.
pub(super) fn crowded(facts: &mut Facts, mib: u64) {
    label(facts, "nvidia.com/gpu.replicas", "4");
    label(facts, "nvidia.com/gpu.memory", "16000");
    offered_as(facts, "nvidia.com/gpu.shared");
    (facts.workloads[SERVE].class, facts.workloads[TRAIN].class) = (None, None);
    used(facts, SERVE, &[20 * HOUR_MS]);
    for pod in &mut facts.workloads[SERVE].pods {
        pod.uses[0].memory_peak_bytes = Some(mib << 20);
    }
}

pub(super) const SHARING: [Case; 10] = [
    (
        "SHR-01",
        |f| {
            f.nodes.iter_mut().for_each(|node| node.time_slices = 4);
            offered_as(f, "nvidia.com/gpu.shared");
            f.workloads[TRAIN].class = None;
        },
        |f| {
            f.nodes.iter_mut().for_each(|node| node.time_slices = 1);
            offered_as(f, "nvidia.com/gpu.shared");
            f.workloads[TRAIN].class = None;
        },
    ),
    ("SHR-02", |f| notebook(f, "40000"), |f| notebook(f, "39999")),
    (
        "SHR-03",
        |f| {
            label(f, "nvidia.com/gpu.replicas", "4");
            f.workloads[SERVE].class = None;
        },
        |f| {
            label(f, "nvidia.com/gpu.replicas", "4");
            offered_as(f, "nvidia.com/gpu.shared");
            (f.workloads[SERVE].class, f.workloads[TRAIN].class) = (None, None);
        },
    ),
    (
        "SHR-04",
        |f| label(f, "nvidia.com/mig.config.state", "failed"),
        |f| label(f, "nvidia.com/mig.config.state", "pending"),
    ),
    ("SHR-05", |f| crowded(f, 6_801), |f| crowded(f, 6_800)),
    (
        "SHR-06",
        |f| offered_as(f, "nvidia.com/mig-1g.10gb"),
        |f| {
            offered_as(f, "nvidia.com/mig-1g.10gb");
            let train = &mut f.workloads[TRAIN];
            (train.replicas, train.is_gang) = (1, false);
            train.pods.truncate(1);
            main_of(f, TRAIN).limits.insert("nvidia.com/mig-1g.10gb".into(), 1);
            requests(f, TRAIN, "cpu", 4_000);
            requests(f, TRAIN, "memory", 32 * GIB);
        },
    ),
    ("SHR-07", |f| f.nodes[0].layout_rest_milli = 143, |f| f.nodes[0].layout_rest_milli = 0),
    (
        "SHR-09",
        |f| {
            f.nodes[0].gpus.insert("nvidia.com/mig-1g.10gb".into(), Gpus::default());
            f.nodes[0].uncounted_gpus = 1;
        },
        |f| _ = f.nodes[0].gpus.insert("nvidia.com/mig-1g.10gb".into(), Gpus::default()),
    ),
    (
        "SHR-10",
        |f| time_sliced(f, [WorkloadClass::Interactive, WorkloadClass::Batch]),
        |f| time_sliced(f, [WorkloadClass::Batch, WorkloadClass::Batch]),
    ),
    (
        "SHR-11",
        |f| unused(f, 168),
        |f| {
            unused(f, 168);
            f.nodes[0].free_since_ms = None;
        },
    ),
];

/// Nothing is beside the GPUs: that they are in MIG mode, the layout says.
#[test]
fn a_node_none_of_whose_gpus_has_an_instance_is_found_by_its_layout() {
    for (layout, id) in [("all-1g.10gb", "SHR-09"), ("all-disabled", "CAP-05")] {
        let mut facts = healthy();
        label(&mut facts, "nvidia.com/mig.config", layout);
        label(&mut facts, "nvidia.com/mig.config.state", "success");
        facts.nodes[0].uncounted_gpus = 8;
        assert_eq!(ids(&facts), [id], "{layout}");
    }
}

/// Two kinds of work by classes of one's own, which only the label tells.
#[test]
fn classes_of_any_name_are_mixed_on_time_slices() {
    let told = |classes: [&str; 2]| {
        let mut facts = healthy();
        facts.nodes.iter_mut().for_each(|node| node.time_slices = 4);
        offered_as(&mut facts, "nvidia.com/gpu.shared");
        for (workload, class) in [SERVE, TRAIN].into_iter().zip(classes) {
            facts.workloads[workload].class = None;
            let labels = &mut facts.workloads[workload].template.labels;
            labels.insert("dovetail.dev/class".into(), class.into());
        }
        let found = audit(&facts);
        let evidence = found.iter().flat_map(|finding| &finding.evidence);
        evidence.map(|of| of.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(["team-a", "team-b"]), ["team-a (serve), team-b (train) on g1"]);
    assert_eq!(told(["team-a", "team-a"]), [""; 0]);
}

#[test]
fn classes_are_mixed_on_replicas_of_either_name() {
    for resource in [GPU, "nvidia.com/gpu.shared"] {
        let mut facts = healthy();
        facts.nodes.iter_mut().for_each(|node| node.time_slices = 4);
        if resource != GPU {
            offered_as(&mut facts, resource);
        }
        facts.workloads[SERVE].class = Some(WorkloadClass::Interactive);
        facts.workloads[TRAIN].class = Some(WorkloadClass::Batch);
        assert!(ids(&facts).contains(&"SHR-10"), "{resource}");
    }
}

/// No plugin offers GPUs while their layout changes, and none after a change that failed.
#[test]
fn no_device_plugin_is_blamed_for_a_layout_that_is_not_there() {
    let found = |state: &str, instances: bool| {
        let mut facts = healthy();
        label(&mut facts, "nvidia.com/mig.config", "all-1g.10gb");
        label(&mut facts, "nvidia.com/mig.config.state", state);
        facts.nodes[0].uncounted_gpus = 8;
        if instances {
            let none = Gpus::default();
            facts.nodes[0].gpus.insert("nvidia.com/mig-1g.10gb".into(), none);
        }
        ids(&facts)
    };
    for instances in [false, true] {
        for state in ["pending", "rebooting"] {
            assert_eq!(found(state, instances), [""; 0], "{state}");
        }
        assert_eq!(found("failed", instances), ["SHR-04"]);
        assert_eq!(found("success", instances), ["SHR-09"]);
    }
}

/// Neither layout came: mig-manager may say nothing about it, as it does of replicas.
#[test]
fn a_node_whose_change_is_stuck_is_found_with_its_time_and_the_way_out() {
    let mut facts = healthy();
    facts.nodes[0].stuck_since_ms = Some(NOW_MS - 3 * HOUR_MS);
    let found = audit(&facts);
    assert_eq!(ids(&facts), ["SHR-04"]);
    assert_eq!(found[0].since_ms, Some(NOW_MS - 3 * HOUR_MS));
    let said: Vec<_> = found[0].evidence.iter().map(|one| (one.what, &*one.value)).collect();
    assert_eq!(said, [("change stuck", "g1 for 3 h")]);
    assert!(found[0].fix_example().contains("rollback --node g1"), "{}", found[0].fix_example());
    label(&mut facts, "nvidia.com/mig.config.state", "failed");
    let found = audit(&facts);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].evidence.len(), 3);
}
