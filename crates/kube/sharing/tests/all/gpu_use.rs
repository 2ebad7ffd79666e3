//! Which GPUs pods use, by an exporter's reports that agree with the API server, and what that lets
//! change.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use dovetail_objects::Pod;
use dovetail_sharing::{
    DeviceReport, GpuLayout, GpuUse, NodeLayout, Seen, Side, gpu_amounts, gpu_uses,
};
use serde_json::json;

const NOW_MS: u64 = 2_000_000_000_000;
const SMALL: &str = "nvidia.com/mig-1g.10gb";
const HALF: &str = "nvidia.com/mig-3g.40gb";

fn table() -> MigTable {
    MigTable::of_model("A100-80GB").expect("a table")
}

fn pod(name: &str, resource: &str, count: u32) -> Pod {
    let object = json!({"metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources":
            {"limits": {resource: count.to_string()}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True",
            "lastTransitionTime": "2033-05-18T03:32:20Z"}]}});
    serde_json::from_value(object).expect("a pod")
}

fn slice(gpu: usize, id: usize, profile: &str, pod: Option<&str>) -> DeviceReport {
    let pod = pod.map(|pod| format!("team/{pod}"));
    DeviceReport { gpu, slice: Some((id.to_string(), profile.to_owned())), pod, at_ms: NOW_MS - 9 }
}

/// Seven small instances on GPU 0, of which pod `a` has one and `b` has two; two halves on GPU 1,
/// both free.
fn reports() -> Vec<DeviceReport> {
    let users = [Some("a"), Some("b"), Some("b"), None, None, None, None];
    let small = users.into_iter().enumerate().map(|(id, pod)| slice(0, id, "1g.10gb", pod));
    small.chain([slice(1, 1, "3g.40gb", None), slice(1, 2, "3g.40gb", None)]).collect()
}

fn pods() -> Vec<Pod> {
    vec![pod("a", SMALL, 1), pod("b", SMALL, 2)]
}

fn offers() -> BTreeMap<String, i64> {
    gpu_amounts([(SMALL, 7), (HALF, 2), ("cpu", 9)].into_iter(), Some(&table()))
}

fn read(reports: &[DeviceReport], pods: &[Pod]) -> Result<Vec<GpuUse>, String> {
    gpu_uses(reports, &pods.iter().collect::<Vec<_>>(), &offers(), &table(), NOW_MS)
}

fn cut(instances: &[(&str, u32)]) -> GpuLayout {
    Some(instances.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
}

#[test]
fn reports_that_agree_with_the_api_server_show_the_layout_and_the_pods_of_each_gpu() {
    let uses = read(&reports(), &pods()).expect("evidence");
    assert_eq!(uses[0].layout, cut(&[("1g.10gb", 7)]));
    assert_eq!(uses[0].held, BTreeMap::from([("1g.10gb".to_owned(), 3)]));
    assert_eq!(uses[0].pods.iter().collect::<Vec<_>>(), ["team/a", "team/b"]);
    assert_eq!((&uses[1].layout, uses[1].pods.len()), (&cut(&[("3g.40gb", 2)]), 0));
    // A sample of the GPU as a whole beside its instances says nothing more.
    let whole = DeviceReport { slice: None, ..slice(1, 0, "", None) };
    let with_whole: Vec<DeviceReport> = reports().into_iter().chain([whole]).collect();
    assert_eq!(read(&with_whole, &pods()), Ok(uses));
}

/// One thing that is wrong with the reports or the pods.
type Wrong = (&'static str, fn(&mut Vec<DeviceReport>, &mut Vec<Pod>));

#[test]
fn whatever_does_not_agree_is_no_evidence() {
    let wrong: [Wrong; 10] = [
        ("it has no recent samples of every GPU", |reports, _| {
            reports.iter_mut().for_each(|one| one.at_ms = NOW_MS - 120_001);
        }),
        ("it has no recent samples of every GPU", |reports, _| {
            reports.retain(|one| one.gpu == 1);
        }),
        ("which is not what the node offers", |reports, _| drop(reports.pop())),
        ("which is not what the node offers", |reports, _| {
            reports[7].slice = Some(("1".to_owned(), "4g.40gb".to_owned()));
        }),
        ("an instance of unknown profile 9g", |reports, _| {
            reports[7].slice = Some(("1".to_owned(), "9g".to_owned()));
        }),
        ("it does not report the devices of pod team/b", |reports, _| reports[2].pod = None),
        ("it does not report the devices of pod team/c", |_, pods| pods.push(pod("c", HALF, 1))),
        ("it reports pod team/b, which does not use GPUs", |_, pods| drop(pods.pop())),
        // The sample is of a pod that had the name before.
        ("it does not report the devices of pod team/a", |reports, _| {
            reports[0].at_ms = NOW_MS - 60_001;
        }),
        ("several pods on one device of GPU 0", |reports, _| {
            reports.push(slice(0, 0, "1g.10gb", Some("b")));
        }),
    ];
    for (why, change) in wrong {
        let (mut reports, mut pods) = (reports(), pods());
        change(&mut reports, &mut pods);
        let told = read(&reports, &pods).expect_err(why);
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn only_pods_on_gpus_that_change_are_in_the_way() {
    let seen = |pods: &[Pod]| {
        let node = json!({"metadata": {"name": "n", "uid": "u"},
            "status": {"allocatable": {SMALL: "7", HALF: "2"}}});
        Seen::read(&node, pods, Some(&table())).expect("a node")
    };
    let side = |gpus: [GpuLayout; 2]| Side::of(NodeLayout(gpus.into()));
    let (small, half) = (cut(&[("1g.10gb", 7)]), cut(&[("3g.40gb", 2)]));
    let (large, balanced) = (cut(&[("7g.80gb", 1)]), cut(&[("1g.10gb", 2), ("3g.40gb", 1)]));
    let from = side([small.clone(), half.clone()]);
    let uses = read(&reports(), &pods()).expect("evidence");
    let left = |to: Side, uses: &[GpuUse]| seen(&pods()).besides(uses, &from, &to).gpu_pods.len();
    assert_eq!(left(side([small.clone(), large.clone()]), &uses), 0);
    assert_eq!(left(side([balanced, half]), &uses), 2);
    // The GPU in use is cut in another way than was planned with: mig-manager would change it.
    let mut other = uses.clone();
    other[0].layout = cut(&[("1g.10gb", 6)]);
    assert_eq!(left(side([small.clone(), large.clone()]), &other), 2);
    // A pod that came since is not known to be beside it.
    let all = [pods(), vec![pod("new", SMALL, 1)]].concat();
    let later = seen(&all).besides(&uses, &from, &side([small, large]));
    let names: Vec<&str> = later.gpu_pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["team/new"]);
}
