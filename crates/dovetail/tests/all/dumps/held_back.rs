//! Two clusters that somebody wrote who knew neither the checks nor their code, with figures worked
//! out by hand before the first run. Prices a GPU-hour: p4d.24xlarge 2.74471, g5.12xlarge 1.418,
//! g5.2xlarge 1.212 (us-east-1); the other cluster is owned.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Dump, finding, near, state};
use crate::audit_and_bill::bill_agrees;
use crate::program::Folder;

/// EKS with Karpenter: a node half cut into MIG instances, a Volcano gang of which two of four pods
/// run, a node cordoned for nine hours, A10Gs offered four times each without GPU Feature
/// Discovery, a CPU-heavy pod, an empty spot node.
const EKS: &str = include_str!("eks_gang_mig_replicas.json");

/// Owned nodes of three vendors: H100s behind a taint, of which one is lost, MI300X, Flex 170, and
/// L40S that only resource claims give; a pod on a node that is not in the dump.
const OWNED: &str = include_str!("on_premises_vendors_claims.json");

const OWNED_PRICES: &str = "--gpu-price H100=2.50 --gpu-price MI300X=3.00 --gpu-price L40S=0.80";

/// Both.
pub(super) fn all() -> [Dump; 2] {
    let dump = |name, text: &str, at, flags| {
        let list: Value = serde_json::from_str(text).expect("JSON");
        let objects = list["items"].as_array().expect("items").clone();
        Dump { name, objects, at, flags, usage: None }
    };
    [
        dump("EKS, gang", EKS, "2026-11-25T14:00:00Z", ""),
        dump("three vendors", OWNED, "2026-11-25T15:30:00Z", OWNED_PRICES),
    ]
}

fn audit(dump: &str, flags: &str) -> (Folder, Value) {
    let folder = Folder::new();
    folder.write("dump.json", dump);
    let call = format!("audit --from dump.json --output json --patches patches {flags}");
    let done = folder.call(&call);
    let found =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.err));
    bill_agrees(&folder, &found, &format!("--from dump.json {flags}"));
    (folder, found)
}

fn eks() -> (Folder, Value) {
    audit(EKS, "--at 2026-11-25T14:00:00Z")
}

fn owned() -> Value {
    audit(OWNED, &format!("--at 2026-11-25T15:30:00Z {OWNED_PRICES}")).1
}

fn all_of<'d>(found: &'d Value, id: &str) -> Vec<&'d Value> {
    let findings = found["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["id"] == id).collect()
}

fn names(findings: &[&Value]) -> BTreeSet<String> {
    findings.iter().map(|of| of["object"]["name"].as_str().unwrap().to_owned()).collect()
}

fn usd(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}")) / 1e6
}

#[test]
fn a_half_placed_gang_a_cordon_and_fragments_on_eks() {
    let (_folder, found) = eks();
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 42.0);
    near(usd(&head["bill_usd_micros_per_month"]), 72_610.90);
    // Two pods of four GPUs each, since the others went pending at 08:30: 8 · 5.5 h · 2.74471.
    let (gang, month, so_far) = state(&found, "gang_wait");
    assert_eq!((gang, month), (8.0, None), "{:#}", found["states"]);
    near(so_far.unwrap(), 120.77);
    let short = finding(&found, "SCH-15");
    assert_eq!(short["object"]["name"], "pretrain");
    near(usd(&short["usd_micros_so_far"]), 120.77);
    assert_eq!(short["evidence"][0]["value"], "2 of at least 4, 2 pending");
    // 16 GPUs of 4, and 4 of 1, are replicas.
    let (cordoned, usd_cordoned, _) = state(&found, "free_draining_or_cordoned");
    let (pieces, usd_pieces, _) = state(&found, "free_fragmented");
    assert_eq!((cordoned, pieces), (6.0, 5.0), "{:#}", found["states"]);
    near(usd_cordoned.unwrap(), 11_857.15);
    near(usd_pieces.unwrap(), 9_880.96);
    assert!(!all_of(&found, "SHR-03").is_empty());
    near(usd(&finding(&found, "AUT-06")["usd_micros_per_month"]), 11_857.15);
    // Uncordoning starts the pod: what it would take is not counted a second time. The gang lacks
    // eight GPUs, and five are free.
    let pieces = all_of(&found, "SCH-08");
    assert_eq!(names(&pieces), BTreeSet::from(["finetune-4".to_owned()]));
    assert_eq!(pieces[0]["usd_micros_per_month"], Value::Null);
    let fix = pieces[0]["fix"]["example"].as_str().unwrap();
    assert!(fix.starts_with("kubectl uncordon ip-10-0-31-90.ec2.internal "), "{fix}");
    // Nodes that can be removed are money, whatever pending pods want elsewhere.
    near(usd(&finding(&found, "AUT-03")["usd_micros_per_month"]), 720.0 * 0.462_074);
    assert_eq!(finding(&found, "AUT-07")["moves"].as_array().map(Vec::len), Some(2));
    // One and a half GPUs are free instances. A pending pod would take the whole GPUs beside them,
    // if its selector did not exclude the node.
    let spare = all_of(&found, "CAP-06");
    let of_pool = |name: &str| {
        let mut spare = spare.iter().filter(|of| of["object"]["name"] == name);
        usd(&spare.next().unwrap_or_else(|| panic!("{name}"))["usd_micros_per_month"])
    };
    near(of_pool("gpu-mig"), 720.0 * 1.5 * 2.744_7);
    // Ten of 16 replicas are free, of which the moves of AUT-07 take two. There are 13.8 CPU left
    // after that: four times the 2,988 that each replica has of the node.
    near(of_pool("gpu-g5-shared"), 720.0 * 4.0 / 4.0 * 1.418);
    // `a100` and `NVIDIA-A100-SXM4-40GB` are one model.
    assert!(all_of(&found, "SCH-05").is_empty());
}

/// The command of AUT-07 relies on them, and they are those of pods of the namespace.
#[test]
fn all_moves_are_explained_and_shown_to_the_namespace_of_their_pods() {
    let (folder, found) = eks();
    let moves = finding(&found, "AUT-07")["moves"].as_array().unwrap();
    let call = |more: &str| {
        let done = folder.call(&format!("audit --from dump.json --at 2026-11-25T14:00:00Z {more}"));
        done.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let explained = call("--explain AUT-07");
    for moved in moves {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (namespace, name) = (text(&moved["pod"]["namespace"]), text(&moved["pod"]["name"]));
        let (from, to) = (text(&moved["from"]), text(&moved["to"]));
        let line = format!("moves: Pod {namespace}/{name} from {from} to {to}");
        assert!(explained.contains(&line), "{line}: {explained}");
        let of_namespace = call(&format!("--all-findings -n {namespace}"));
        assert!(of_namespace.contains("AUT-07"), "{of_namespace}");
    }
}

#[test]
fn an_object_that_several_findings_need_is_created_once() {
    let (folder, _) = eks();
    let files = std::fs::read_dir(folder.path("patches")).unwrap();
    let names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let classes = names.iter().filter(|name| name.contains("PriorityClass"));
    let classes = classes.filter(|name| name.ends_with(".json")).count();
    assert!(classes <= 1, "{names:?}");
}

#[test]
fn gpus_that_claims_alone_give_are_none_for_containers_that_ask() {
    let found = owned();
    let head = &found["headline"];
    assert_eq!((&head["installed_gpus"], &head["unknown_gpus"]), (&30.0.into(), &4.0.into()));
    near(usd(&head["bill_usd_micros_per_month"]), 48_384.0);
    let states =
        ["unknown", "unavailable", "free_taint", "free_no_demand", "free_of_unknown_cause"];
    let gpus = states.map(|name| state(&found, name).0);
    assert_eq!(gpus, [20.0, 1.0, 1.0, 8.0, 0.0], "{:#}", found["states"]);
    near(usd(&head["waste_usd_micros_per_month"]), 15_696.0);
    near(usd(&finding(&found, "SCH-04")["usd_micros_per_month"]), 1_800.0);
    near(usd(&finding(&found, "CAP-01")["usd_micros_per_month"]), 1_800.0);
    assert!(all_of(&found, "SCH-05").is_empty());
    // `dedicated=llm` reserves nodes: the resource's name would let others in.
    assert!(all_of(&found, "SCH-06").is_empty());
    // MI300X and H100 are never taken for each other: only the H100s are shared with training.
    assert_eq!(names(&all_of(&found, "SCH-11")), BTreeSet::from(["llm-serve".to_owned()]));
    let missing = found["unseen"].to_string();
    assert!(
        missing.contains("4 GPUs of 1 pod on nodes that were not read: node dgx-03"),
        "{missing}"
    );
}
