//! Drains before a repair: the command works, and the finding names what the pods lose.

use super::*;

/// The fix of a finding by example, and the risks of its drain.
fn fix_and_risks(facts: &Facts, check: &str) -> (String, Vec<String>) {
    let found = audit(facts);
    let finding = found.iter().find(|finding| finding.check.id == check).expect(check);
    let risks = finding.evidence.iter().filter(|of| of.what == "risk of the drain");
    (finding.fix_example(), risks.map(|of| of.value.clone()).collect())
}

#[test]
fn a_drain_for_a_repair_names_what_running_pods_lose() {
    let mut facts = healthy();
    facts.nodes[0].gpus.get_mut(GPU).expect("it has GPUs").allocatable = 7;
    let (fix, risks) = fix_and_risks(&facts, "CAP-01");
    assert!(fix.starts_with("kubectl drain g1 --ignore-daemonsets"), "{fix}");
    let lost = "Job research/train: training without checkpoints loses its progress";
    assert!(risks.iter().any(|risk| risk.starts_with(lost)), "{risks:?}");
    facts.workloads[TRAIN].owner.kind = "Pod".into();
    let (_, risks) = fix_and_risks(&facts, "CAP-01");
    assert!(risks.iter().any(|risk| risk.ends_with("only with --force")), "{risks:?}");
}

#[test]
fn a_fix_of_the_layout_that_drains_names_risks_and_another_fix_does_not() {
    let mut facts = healthy();
    let state = ("nvidia.com/mig.config.state".to_owned(), "failed".to_owned());
    facts.nodes[0].node.labels.extend([state]);
    let (fix, risks) = fix_and_risks(&facts, "SHR-04");
    assert!(fix.starts_with("kubectl drain g1 --ignore-daemonsets"), "{fix}");
    assert!(!risks.is_empty());
    facts.nodes[0].pool.kind = "GKENodePool".into();
    let (fix, risks) = fix_and_risks(&facts, "SHR-04");
    assert!(fix.starts_with("gcloud "), "{fix}");
    assert_eq!(risks, [""; 0]);
}

/// By hand: a GPU of the node has no instances, next to those that the pods use.
#[test]
fn missing_instances_are_made_after_a_drain_and_with_the_label_in_place() {
    let mut facts = healthy();
    let labels = [("config", "all-1g.10gb"), ("config.state", "success")];
    let labels = labels.map(|(key, value)| (format!("nvidia.com/mig.{key}"), value.to_owned()));
    facts.nodes[0].node.labels.extend(labels);
    facts.nodes[0].uncounted_gpus = 1;
    facts.nodes[0].gpus.insert("nvidia.com/mig-1g.10gb".into(), Gpus::default());
    let (fix, risks) = fix_and_risks(&facts, "SHR-09");
    assert!(fix.starts_with("kubectl drain g1 --ignore-daemonsets"), "{fix}");
    assert!(!fix.contains("mig.config-"), "{fix}");
    assert!(!risks.is_empty());
}
