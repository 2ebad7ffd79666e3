//! Which slice is named for work that needs a part of its GPU.

use super::*;

/// The slice that is named for the servers, if one is.
fn slice(facts: &Facts) -> Option<String> {
    let found = audit(facts);
    let finding = found.iter().find(|finding| finding.check.id == "REQ-06")?;
    let mut evidence = finding.evidence.iter();
    let named = evidence.find(|of| of.what == "smallest slice that fits").expect("it is told");
    let resource = format!("nvidia.com/mig-{}: 1", named.value);
    let example = finding.fix_example();
    assert!(example.contains(&resource), "{example}");
    Some(named.value.clone())
}

/// Servers on GPUs with this label that use so many percent of them and so many GiB at most.
fn servers(model: &str, busy_percent: u32, memory_gib: i64) -> Facts {
    let mut facts = healthy();
    let gpus = facts.nodes[0].gpus.get_mut(GPU).expect("it has GPUs");
    gpus.model = Some(model.to_owned());
    small(&mut facts, busy_percent * 1_000_000, memory_gib * GIB);
    facts
}

/// Profiles by NVIDIA's Multi-Instance GPU user guide.
#[test]
fn the_slice_is_one_that_the_model_has() {
    for (model, named) in [
        ("NVIDIA-GH200-480GB", Some("1g.12gb")),
        ("NVIDIA-H200", Some("1g.18gb")),
        ("NVIDIA-H100-NVL", Some("1g.12gb")),
        ("NVIDIA-H100-80GB-HBM3", Some("1g.10gb")),
        ("NVIDIA-A100-SXM4-80GB", Some("1g.10gb")),
        ("NVIDIA-A30", Some("1g.6gb")),
        ("NVIDIA-B200", Some("1g.23gb")),
        ("NVIDIA-B300-SXM6-AC", Some("1g.34gb")),
        ("NVIDIA-GB300", Some("1g.35gb")),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", Some("1g.24gb")),
        // They cannot be cut, or nobody knows how.
        ("NVIDIA-L4", None),
        ("NVIDIA-A100X", None),
        ("NVIDIA-H100-SXM6", None),
    ] {
        assert_eq!(slice(&servers(model, 8, 6)).as_deref(), named, "{model}");
    }
}

#[test]
fn the_slice_is_the_smallest_with_enough_compute_and_memory() {
    for (model, busy_percent, memory_gib, named) in [
        // A quarter of the memory, and one seventh of the compute.
        ("NVIDIA-A100-PCIE-40GB", 8, 6, Some("1g.10gb")),
        ("NVIDIA-A100-SXM4-40GB", 8, 6, Some("1g.10gb")),
        ("NVIDIA-H100-80GB-HBM3", 8, 12, Some("1g.20gb")),
        ("NVIDIA-H100-80GB-HBM3", 20, 6, Some("2g.20gb")),
        ("NVIDIA-H100-80GB-HBM3", 20, 30, Some("3g.40gb")),
        // A GPU has one `4g.40gb` at most.
        ("NVIDIA-H100-80GB-HBM3", 40, 30, None),
        ("NVIDIA-H100-80GB-HBM3", 8, 41, None),
    ] {
        let of = format!("{model} {busy_percent} % {memory_gib} GiB");
        assert_eq!(slice(&servers(model, busy_percent, memory_gib)).as_deref(), named, "{of}");
    }
}

#[test]
fn a_model_of_two_memory_sizes_has_slices_where_a_label_states_the_memory() {
    let of_memory = |mib: &str| {
        let mut facts = servers("NVIDIA-A100", 8, 12);
        label(&mut facts, "nvidia.com/gpu.memory", mib);
        slice(&facts)
    };
    assert_eq!(of_memory("81920").as_deref(), Some("1g.20gb"));
    assert_eq!(of_memory("40960").as_deref(), Some("3g.20gb"));
    assert_eq!(slice(&servers("NVIDIA-A100", 8, 12)), None);
}

#[test]
fn the_pods_must_be_on_one_model_whatever_its_labels_are() {
    let with_other = |model: &str| {
        let mut facts = servers("NVIDIA-A100-SXM4-80GB", 8, 6);
        add_node(&mut facts, gpu_node("g2", model));
        facts.workloads[SERVE].pods[0].node = Some("g2".into());
        slice(&facts)
    };
    assert_eq!(with_other("NVIDIA-A100-80GB-PCIe").as_deref(), Some("1g.10gb"));
    assert_eq!(with_other("NVIDIA-H100-80GB-HBM3"), None);
    assert_eq!(with_other("NVIDIA-L4"), None);
}

/// The driver of the other node has a name of its own for half a GPU.
#[test]
fn the_slice_has_the_name_that_nodes_of_the_model_show() {
    let model = "NVIDIA-A100-SXM4-80GB";
    let mut facts = servers(model, 20, 30);
    assert_eq!(slice(&facts).as_deref(), Some("3g.40gb"));
    let mut cut = gpu_node("m1", model);
    let model = Some(model.to_owned());
    let halves = Gpus { model, built_in: 16, allocatable: 16, ..Gpus::default() };
    cut.gpus = map(&[("nvidia.com/mig-3g.39gb", halves)]);
    add_node(&mut facts, cut);
    assert_eq!(slice(&facts).as_deref(), Some("3g.39gb"));
}
