//! What conditions and annotations of a node report of a repair.

use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use super::facts::{gathered, node};

fn marks(change: impl Fn(&mut Value)) -> Vec<String> {
    let mut marked = node("g1", 8);
    change(&mut marked);
    // A collection keeps them.
    let kept = Keeper::default().keep("Node", "v1", &marked);
    let of = |object: Value| gathered(&[object]).facts.nodes[0].repair_marks.clone();
    let found = of(marked);
    let kept = kept.expect("nodes are kept");
    // Under other names there are as many.
    let anonymous = Pseudonyms::new([7; 32]).replace(&kept);
    assert_eq!(of(anonymous).len(), found.len(), "{kept}");
    assert_eq!(of(kept), found);
    found
}

fn condition(kind: &str, status: &str, reason: &str) -> Vec<String> {
    marks(|node| {
        let added = json!({"type": kind, "status": status, "reason": reason});
        node["status"]["conditions"].as_array_mut().expect("conditions").push(added);
    })
}

#[test]
fn conditions_mark_a_node_that_report_a_fault() {
    let xid = "condition GpuNvidiaXidErrors=True with reason XID79";
    assert_eq!(condition("GpuNvidiaXidErrors", "True", "XID79"), [xid]);
    assert_eq!(condition("GpuNvidiaXidErrors", "False", "NoXid"), [""; 0]);
    let hardware = "condition AcceleratedHardwareReady=False";
    assert_eq!(condition("AcceleratedHardwareReady", "False", ""), [hardware]);
    assert_eq!(condition("AcceleratedHardwareReady", "True", "NoXidErrors"), [""; 0]);
    assert_eq!(condition("GpuUnhealthy", "True", ""), ["condition GpuUnhealthy=True"]);
    assert_eq!(condition("XidNotReady", "True", ""), ["condition XidNotReady=True"]);
    assert_eq!(condition("XidErrorsReady", "True", ""), [""; 0]);
    // Kubernetes' own come and go with the kubelet, and others tell of no fault.
    assert_eq!(condition("Ready", "False", "KubeletNotReady"), [""; 0]);
    assert_eq!(condition("EtcdIsVoter", "True", ""), [""; 0]);
}

#[test]
fn a_reboot_in_progress_marks_a_node() {
    let annotated = |key: &'static str, value: &'static str| {
        marks(move |node| node["metadata"]["annotations"] = json!({key: value}))
    };
    let key = "weave.works/kured-reboot-in-progress";
    let since = "2026-11-10T00:00:00Z";
    assert_eq!(annotated(key, since), [format!("annotation {key}: {since}")]);
    assert_eq!(annotated("example.com/owner", "team-a"), [""; 0]);
    let ticket = "example.com/maintenance-ticket";
    assert_eq!(annotated(ticket, "OPS-1"), [format!("annotation {ticket}: OPS-1")]);
    assert_eq!(annotated(ticket, "False"), [""; 0]);
}
