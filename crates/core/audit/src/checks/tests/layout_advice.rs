//! Layouts that SHR-07 and SHR-09 advise: profiles that the GPUs have, no instance in use is
//! replaced, and no pod is left without the instances that it requests. What SHR-04 claims of a
//! node whose change is stuck.

use dovetail_account::device_time::{DeviceInterval, DeviceState};
use dovetail_facts::DeviceWaste;
use dovetail_model::FreeCause;

use super::*;
use crate::attribution::settle;

/// Names of models as labels write them, a profile that their nodes have instances of, and the
/// layout that leaves nothing over.
const LAYOUTS: [(&str, &str, &str); 6] = [
    ("NVIDIA-A100-SXM4-80GB", "1g.10gb", "all-1g.10gb"),
    ("NVIDIA-A100-SXM4-80GB", "3g.40gb", "all-3g.40gb"),
    // Three of them leave a slice over.
    ("NVIDIA-A100-SXM4-80GB", "2g.20gb", "all-1g.10gb"),
    ("NVIDIA-A30", "2g.12gb", "all-2g.12gb"),
    ("NVIDIA-A30", "1g.6gb", "all-1g.6gb"),
    ("NVIDIA-H200", "4g.71gb", "all-1g.18gb"),
];

/// A cluster whose first node has MIG instances of a profile, which all pods request, and GPUs that
/// are not cut, or not wholly.
fn cut(model: &str, profile: &str, (rest_milli, uncounted): (i64, i64)) -> Facts {
    let mut facts = healthy();
    let resource = format!("nvidia.com/mig-{profile}");
    for workload in [TRAIN, SERVE] {
        let limits = &mut main_of(&mut facts, workload).limits;
        limits.remove(GPU);
        limits.insert(resource.clone(), 1);
    }
    let node = &mut facts.nodes[0];
    let gpus =
        Gpus { model: Some(model.to_owned()), built_in: 8, allocatable: 8, ..Gpus::default() };
    node.gpus = map(&[(&*resource, gpus)]);
    (node.layout_rest_milli, node.uncounted_gpus) = (rest_milli, uncounted);
    facts
}

/// The fix of a check by example, and the pods that it says must leave.
fn fix_and_pods(facts: &Facts, check: &str) -> (String, Vec<String>) {
    let found = audit(facts);
    let finding = found.iter().find(|finding| finding.check.id == check).expect(check);
    let pods = finding.evidence.iter().filter(|of| of.what == "pods that must leave first");
    (finding.fix_example(), pods.map(|of| of.value.clone()).collect())
}

#[test]
fn an_advised_layout_is_one_that_the_gpus_have() {
    for (model, profile, layout) in LAYOUTS {
        for (check, amounts) in [("SHR-07", (500, 0)), ("SHR-09", (0, 1))] {
            let mut facts = cut(model, profile, amounts);
            facts.workloads.retain(|workload| !workload.has_gpus());
            let (fix, pods) = fix_and_pods(&facts, check);
            let label = format!("kubectl label node g1 nvidia.com/mig.config={layout} --overwrite");
            assert!(fix.starts_with(&label), "{check} {model} {profile}: {fix}");
            assert_eq!(pods, [""; 0]);
            // On GKE, another pool has another layout.
            facts.nodes[0].pool.kind = "GKENodePool".into();
            let (fix, _) = fix_and_pods(&facts, check);
            let profile = layout.trim_start_matches("all-");
            assert!(fix.starts_with(&format!("gpu-partition-size={profile} ")), "{fix}");
        }
    }
}

#[test]
fn pods_leave_before_another_layout_replaces_their_instances() {
    for (check, amounts) in [("SHR-07", (500, 0)), ("SHR-09", (0, 1))] {
        let mut facts = cut("NVIDIA-A30", "2g.12gb", amounts);
        let (fix, pods) = fix_and_pods(&facts, check);
        assert!(fix.starts_with("kubectl drain g1 --ignore-daemonsets  # "), "{check}: {fix}");
        assert!(fix.contains("kubectl label node g1 nvidia.com/mig.config=all-2g.12gb "), "{fix}");
        assert_eq!(pods, ["prod/serve-0, prod/serve-1, research/train-0 and 1 more on g1"]);
        // Who uses it, nobody knows.
        facts.workloads.retain(|workload| !workload.has_gpus());
        facts.nodes[0].may_be_held = true;
        let (fix, _) = fix_and_pods(&facts, check);
        assert!(fix.starts_with("kubectl drain g1 "), "{check}: {fix}");
        // The label asks for these instances already.
        let label = ("nvidia.com/mig.config".to_owned(), "all-2g.12gb".to_owned());
        facts.nodes[0].node.labels.extend([label]);
        let (fix, _) = fix_and_pods(&facts, check);
        assert!(fix.contains("delete the mig-manager pod"), "{check}: {fix}");
    }
}

/// What the pods of these facts need that no layout of one profile has, as SHR-07 tells it.
fn kept(facts: &Facts) -> Vec<String> {
    let found = audit(facts);
    let finding = found.iter().find(|finding| finding.check.id == "SHR-07").expect("SHR-07");
    let kept = finding.evidence.iter().filter(|of| of.what.starts_with("pods that a layout must"));
    let kept: Vec<String> = kept.map(|of| of.value.clone()).collect();
    let fix = finding.fix_example();
    assert_eq!(fix.contains("mig.config="), kept.is_empty(), "{fix}");
    assert_eq!(fix.starts_with("keep the layout"), !kept.is_empty(), "{fix}");
    kept
}

/// A GPU has room for three of these, and the layout that leaves nothing over has none.
#[test]
fn no_layout_is_advised_that_lacks_instances_in_use() {
    let mut facts = cut("NVIDIA-A100-SXM4-80GB", "2g.20gb", (143, 0));
    let all = "prod/serve-0, prod/serve-1, research/train-0 and 1 more (nvidia.com/mig-2g.20gb)";
    assert_eq!(kept(&facts), [all]);
    // Nobody knows whether they are in use.
    facts.workloads.retain(|workload| !workload.has_gpus());
    assert_eq!(kept(&facts), [""; 0]);
    facts.nodes[0].may_be_held = true;
    assert_eq!(kept(&facts), ["pods that were not read (nvidia.com/mig-2g.20gb)"]);
}

#[test]
fn no_layout_is_advised_that_lacks_what_other_pods_of_the_pool_request() {
    let mut facts = cut("NVIDIA-A100-SXM4-80GB", "3g.40gb", (125, 0));
    assert_eq!(kept(&facts), [""; 0]);
    main_of(&mut facts, SERVE).limits = map(&[("nvidia.com/mig-1g.10gb", 1)]);
    let small = "(nvidia.com/mig-1g.10gb)";
    assert_eq!(kept(&facts), [format!("prod/serve-0, prod/serve-1 {small}")]);
    // They run on another node of the pool; of another pool they are none of its pods.
    let mut other = gpu_node("g2", "NVIDIA-A100-SXM4-80GB");
    other.gpus = map(&[(
        "nvidia.com/mig-1g.10gb",
        facts.nodes[0].gpus.values().next().cloned().expect("instances"),
    )]);
    add_node(&mut facts, other);
    facts.workloads[SERVE].pods.iter_mut().for_each(|pod| pod.node = Some("g2".into()));
    assert_eq!(kept(&facts), [format!("prod/serve-0, prod/serve-1 {small}")]);
    facts.nodes[2].pool.name = "others".into();
    assert_eq!(kept(&facts), [""; 0]);
    // One of them waits, and may use the node once it tolerates its taint.
    facts.workloads[SERVE].pods[0].node = None;
    assert_eq!(kept(&facts), [""; 0]);
    facts.workloads[SERVE].template.tolerations.push(toleration(GPU));
    assert_eq!(kept(&facts), [format!("prod/serve-0 {small}")]);
}

/// A layout cuts all GPUs of a node; and where instances have the name of whole GPUs, theirs stays.
#[test]
fn whole_gpus_and_instances_under_their_name_are_kept() {
    let mut facts = cut("NVIDIA-A100-SXM4-80GB", "3g.40gb", (125, 0));
    let instances = facts.nodes[0].gpus.clone();
    let gpus = instances.values().next().cloned().expect("instances");
    facts.nodes[0].gpus.insert(GPU.to_owned(), gpus.clone());
    assert_eq!(kept(&facts), [""; 0]);
    main_of(&mut facts, SERVE).limits = map(&[(GPU, 1)]);
    assert_eq!(kept(&facts), [format!("prod/serve-0, prod/serve-1 ({GPU})")]);
    facts.nodes[0].gpus = map(&[(GPU, gpus)]);
    main_of(&mut facts, TRAIN).limits = map(&[(GPU, 1)]);
    label(&mut facts, "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb");
    assert_eq!(kept(&facts), [""; 0]);
    label(&mut facts, "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-2g.20gb");
    assert_eq!(kept(&facts).len(), 1);
}

/// By hand: free for the whole day, of which the change has been stuck for ten hours.
#[test]
fn a_node_that_stays_tainted_wastes_what_is_free_there_since_its_change_is_stuck() {
    let claimed_hours = |stuck: bool, state: DeviceState| {
        let mut facts = healthy();
        let (key, failed) = ("nvidia.com/mig.config.state".to_owned(), "failed".to_owned());
        facts.nodes[0].node.labels.extend([(key, failed)]);
        facts.nodes[0].stuck_since_ms = stuck.then_some(NOW_MS - 10 * HOUR_MS);
        let found = audit(&facts);
        let place = found.iter().position(|finding| finding.check.id == "SHR-04").expect("SHR-04");
        let (span, holder) = (facts.period, None);
        let interval = DeviceInterval { span, gpu_milli: 1000, state, holder, signal: None };
        let free =
            DeviceWaste { device: 0, interval, usd_micros_per_gpu_hour: None, since_ms: None };
        let claimed = settle(&[free], &found)[place].claimed.gpu_milli_ms;
        claimed / 1000 / i128::from(HOUR_MS)
    };
    for cause in [FreeCause::NoDemand, FreeCause::Taint, FreeCause::TypeMismatch] {
        let state = DeviceState::Free(Some(cause));
        assert_eq!([false, true].map(|stuck| claimed_hours(stuck, state)), [0, 10], "{cause:?}");
    }
    assert_eq!([false, true].map(|stuck| claimed_hours(stuck, DeviceState::Unavailable)), [24; 2]);
}
