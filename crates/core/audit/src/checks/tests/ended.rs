//! IDL-04: pods whose work is over, or crashes, and what ends them.

use super::*;
use crate::finding::Finding;

/// The finding about training of a kind of owner.
fn finding(kind: &str, change: &dyn Fn(&mut Workload)) -> Finding {
    let mut facts = healthy();
    facts.workloads[TRAIN].owner.kind = kind.to_owned();
    change(&mut facts.workloads[TRAIN]);
    let mut found = audit(&facts).into_iter().filter(|finding| finding.check.id == "IDL-04");
    found.next().expect("a finding")
}

fn all_crash(workload: &mut Workload) {
    workload.pods.iter_mut().for_each(|pod| pod.crash_loops = true);
}

#[test]
fn a_crash_is_ended_by_fields_that_the_owner_has() {
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "Pod", "Fleet"] {
        let example = finding(kind, &all_crash).fix_example();
        assert!(!example.contains("backoffLimit"), "{kind}: {example}");
        assert!(!example.contains("ttlSecondsAfterFinished"), "{kind}: {example}");
    }
    let of = |kind| finding(kind, &all_crash).fix_example();
    assert_eq!(of("Job"), "{backoffLimit: 3, ttlSecondsAfterFinished: 600}");
    assert!(of("PyTorchJob").starts_with("runPolicy: {backoffLimit: 3"));
    assert!(of("JobSet").contains("maxRestarts: 3"));
    assert!(of("Deployment").starts_with("replicas: 0"));
    assert!(of("Pod").starts_with("kubectl delete pod"));
}

/// A Job that gives up ends all its pods.
#[test]
fn retries_are_not_limited_while_another_pod_of_the_owner_runs() {
    let limited = finding("Job", &all_crash);
    assert_eq!(limited.remedies.len(), 1);
    let one_runs = finding("Job", &|workload| workload.pods[0].crash_loops = true);
    assert!(one_runs.remedies.is_empty(), "{:?}", one_runs.remedies);
    assert!(one_runs.fix_example().contains("would also terminate"), "{}", one_runs.fix_example());
}

/// The work is over: nothing is tried again.
#[test]
fn a_helper_that_runs_on_becomes_a_sidecar() {
    let done = |workload: &mut Workload| workload.pods[0].is_done_but_for_helpers = true;
    let finding = finding("Job", &done);
    assert!(finding.remedies.is_empty());
    assert!(finding.fix_example().starts_with("initContainers: "), "{}", finding.fix_example());
}
