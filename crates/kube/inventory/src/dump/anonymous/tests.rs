//! What stays in an anonymous collection, and what does not.

use super::*;
use serde_json::json;

#[test]
fn hashes_are_those_of_the_standard() {
    // RFC 4231, test case 2.
    let found = hex(&keyed(b"Jefe", b"what do ya want for nothing?"));
    assert_eq!(found, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[test]
fn gpus_that_hami_registers_lose_their_identity_alone() {
    let mut names = Pseudonyms::new([7; 32]);
    let mut registered = |text: &str| {
        let object = json!({"metadata": {"annotations": {labels::HAMI_REGISTER: text}}});
        let replaced = names.replace(&object);
        let text = replaced["metadata"]["annotations"][labels::HAMI_REGISTER].as_str();
        text.expect("a text").to_owned()
    };
    let plain = registered("GPU-canary,10,46068,100,NVIDIA-L40S,0,true:");
    assert!(plain.ends_with(",10,46068,100,NVIDIA-L40S,0,true:"), "{plain}");
    let gpus = json!([{"id": "GPU-canary", "count": 10, "type": "NVIDIA L40S", "at": "canary"}]);
    let listed = registered(&gpus.to_string());
    assert!(listed.contains(r#""count":10"#) && listed.contains("NVIDIA L40S"), "{listed}");
    assert!(!plain.contains("canary") && !listed.contains("canary"), "{plain} {listed}");
}

#[test]
fn text_of_the_owner_hides_in_no_key_and_no_amount_and_rules_still_hold() {
    let mut names = Pseudonyms::new([7; 32]);
    let object = json!({
        "metadata": {"annotations": {"dovetail.dev/ignore": "REQ-06, because canary said so"},
            "labels": {"canary.io/rack": "r1"}},
        "spec": {"topologySpreadConstraints": [{"topologyKey": "canary.io/rack"},
                {"topologyKey": "kubernetes.io/hostname"}],
            "minAvailable": "half of canary", "maxUnavailable": "25%",
            "hard": {"requests.canary.com/chip": "4", "requests.nvidia.com/gpu": "8", "pods": "5",
                "canary.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "canary.deviceclass.resource.k8s.io/devices": "6",
                "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "6",
                "count/widgets.canary.com": "2", "count/deployments.apps": "3"}},
        "status": {"allocatable": {"canary.com/chip": "4", "cpu": "96", "habana.ai/gaudi": "8",
                "memory": "canary"},
            "containerStatuses": [
                {"state": {"waiting": {"reason": "CanaryNotFed"}}},
                {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
    });
    let replaced = names.replace(&object);
    let text = replaced.to_string();
    assert!(!text.to_lowercase().contains("canary"), "{text}");
    for kept in [
        "REQ-06,anon-",
        "\"topologyKey\":\"kubernetes.io/hostname\"",
        "25%",
        "CrashLoopBackOff",
        "\"requests.nvidia.com/gpu\":\"8\"",
        "\"pods\":\"5\"",
        "\"cpu\":\"96\"",
        "habana.ai/gaudi",
        "count/deployments.apps",
        ".storageclass.storage.k8s.io/requests.storage\":\"1Gi",
        ".deviceclass.resource.k8s.io/devices\":\"6",
        "\"gpu.nvidia.com.deviceclass.resource.k8s.io/devices\"",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    // The rule and the node still mean the same label, the quota and the node the same
    // resource.
    let key = replaced["spec"]["topologySpreadConstraints"][0]["topologyKey"].as_str().unwrap();
    assert!(replaced["metadata"]["labels"].get(key).is_some(), "{text}");
    let offered = replaced["status"]["allocatable"].as_object().unwrap().keys();
    let chip = offered.clone().find(|name| names.translate(name) == "canary.com/chip").unwrap();
    let hard = replaced["spec"]["hard"].as_object().unwrap();
    assert_eq!(hard[&format!("requests.{chip}")], "4");
}

/// Sources whose code asks for labels by key.
const READERS: [&str; 15] = [
    include_str!("../../facts/class.rs"),
    include_str!("../../facts/node.rs"),
    include_str!("../../facts/pods.rs"),
    include_str!("../../facts/source.rs"),
    include_str!("../../facts/template.rs"),
    include_str!("../../../../translate/src/gang/job.rs"),
    include_str!("../../../../translate/src/gang/job_set.rs"),
    include_str!("../../../../translate/src/gang/kubeflow.rs"),
    include_str!("../../../../translate/src/gang/kueue.rs"),
    include_str!("../../../../translate/src/gang/leader_worker_set.rs"),
    include_str!("../../../../translate/src/gang/min_member.rs"),
    include_str!("../../../../translate/src/gang/ray.rs"),
    include_str!("../../../../translate/src/gang/slices.rs"),
    include_str!("../../../../translate/src/gang/topology.rs"),
    include_str!("../../../../translate/src/levels.rs"),
];

/// Where labels and annotations are spelled.
const SPELLED: [&str; 2] = [
    include_str!("../../../../objects/src/labels.rs"),
    include_str!("../../../../../core/model/src/labels.rs"),
];

/// Those that a source names by their constants.
fn named_in(source: &str) -> impl Iterator<Item = &'static str> {
    let constants = SPELLED.into_iter().flat_map(|file| file.split("pub const ").skip(1));
    let named = constants.filter(move |constant| {
        let name = constant.split(':').next().unwrap_or_default();
        source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
    });
    named.flat_map(|constant| keys_in(constant.split(";\n").next().unwrap_or_default()))
}

/// Quoted texts of the form `domain/name`.
fn keys_in(source: &str) -> impl Iterator<Item = &str> {
    let quoted = source.lines().flat_map(|line| line.split('"').skip(1).step_by(2));
    quoted.filter(|text| {
        let is_key = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        let parts = text.split_once('/');
        text.chars().all(is_key)
            && parts.is_some_and(|(domain, name)| {
                domain.contains('.') && !name.is_empty() && !name.contains('/')
            })
    })
}

#[test]
fn every_key_that_is_read_stays() {
    let mut names = Pseudonyms::new([7; 32]);
    let spelled = READERS.into_iter().flat_map(keys_in);
    let keys: Vec<&str> = spelled.chain(READERS.into_iter().flat_map(named_in)).collect();
    for known in ["kueue.x-k8s.io/queue-name", "scheduling.x-k8s.io/pod-group", "llm-d.ai/model"] {
        assert!(keys.contains(&known), "{known} is not found: {keys:?}");
    }
    let pools = crate::facts::POOL_LABELS.map(|(key, _)| key);
    let keys = keys.into_iter().chain(pools).chain(crate::facts::TEAM_LABELS).chain(KEYS);
    for key in keys.filter(|key| !key.starts_with("example.com/")) {
        assert_eq!(names.label_key(key), key);
    }
}

#[test]
fn values_that_are_read_stay_and_words_of_the_owner_do_not() {
    let mut names = Pseudonyms::new([7; 32]);
    let pod = json!({
        "metadata": {"labels": {"dovetail.dev/class": "canary", "notebook-name": "canary",
            "llm-d.ai/model": "canary-70b-fp8", "amd.com/gpu.product-name": "MI300X",
            "gpu.intel.com/gpu-numbers": "0.1", "gpu.intel.com/gpu-numbers2": "canary"}},
        "spec": {"schedulerName": "volcano",
            "volumes": [{"hostPath": {"path": "/dev/nvidia0"}}, {"hostPath": {"path": "/canary"}}],
            "containers": [{"volumeMounts": [{"mountPath": "/dev/shm"}, {"mountPath": "/canary"}]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["canary"]}],
            "matchExpressions": [{"key": "dovetail.dev/class", "operator": "In",
                "values": ["canary", "training"]}],
            "hard": {"count/secrets.canary145xrqk": "3", "count/jobs.batch": "4"}},
        "status": {"conditions": [{"type": "CanaryFed", "status": "True"},
            {"type": "PodScheduled", "status": "True"}]}
    });
    let replaced = names.replace(&pod);
    let text = replaced.to_string();
    assert!(!text.to_lowercase().contains("canary"), "{text}");
    let (labels, spec) = (&replaced["metadata"]["labels"], &replaced["spec"]);
    // 70 thousand million weights of 8 bits each.
    let model = labels["llm-d.ai/model"].as_str().unwrap();
    assert!(model.ends_with("/70000m-8bit"), "{model}");
    assert_eq!(labels["amd.com/gpu.product-name"], "MI300X");
    assert_eq!(labels["gpu.intel.com/gpu-numbers"], "0.1");
    assert!(labels.get("notebook-name").is_some(), "{text}");
    assert_eq!(spec["schedulerName"], "volcano");
    assert_eq!(spec["volumes"][0]["hostPath"]["path"], "/dev/nvidia0");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], "/dev/shm");
    // The field of the node, with the hash that the node's own name has.
    let node = names.replace(&json!({"metadata": {"name": "canary"}}));
    assert_eq!(spec["matchFields"][0]["key"], "metadata.name");
    assert_eq!(spec["matchFields"][0]["values"][0], node["metadata"]["name"]);
    assert_eq!(spec["matchExpressions"][0]["values"][0], labels["dovetail.dev/class"]);
    assert_eq!(spec["matchExpressions"][0]["values"][1], "training");
    assert_eq!(spec["hard"]["count/jobs.batch"], "4");
    assert_eq!(replaced["status"]["conditions"][1]["type"], "PodScheduled");
    let own = names.replace(&json!({"schedulerName": "canary-scheduler"}));
    assert!(own["schedulerName"].as_str().unwrap().starts_with(PREFIX), "{own}");
}

#[test]
fn what_is_called_something_is_not_recognised_and_comes_back_under_the_key() {
    let mut names = Pseudonyms::new([7; 32]);
    let pod = json!({
        "kind": "Pod",
        "metadata": {"name": "payroll-0", "namespace": "finance", "labels": {
            "team": "finance", "secret-project": "x1", "nvidia.com/gpu.product": "NVIDIA-L4"}},
        "spec": {"nodeName": "node-7", "containers": [{
            "name": "main", "image": "registry.corp/finance/vllm:1",
            "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            "affinity": {"nodeAffinity": {"expressions": [
                {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]},
                {"key": "secret-project", "operator": "In", "values": ["x1"]}]}}},
        "status": {"phase": "Running"}
    });
    let replaced = names.replace(&pod);
    let text = replaced.to_string();
    for name in ["payroll", "finance", "secret", "x1", "node-7", "corp", "main"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    for kept in ["NVIDIA-L4", "\"nvidia.com/gpu\":\"1\"", "Running", "/vllm", "\"team\":"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    // A selector still selects.
    let labels = replaced["metadata"]["labels"].as_object().unwrap();
    let wanted = &replaced["spec"]["affinity"]["nodeAffinity"]["expressions"][1];
    assert_eq!(labels[wanted["key"].as_str().unwrap()], wanted["values"][0]);
    // The table brings a report back, also after it was written; another key knows nothing.
    let report = format!(
        "Pod {}/{}",
        replaced["metadata"]["namespace"].as_str().unwrap(),
        replaced["metadata"]["name"].as_str().unwrap()
    );
    let table = Pseudonyms::from_json(&names.to_json()).unwrap();
    assert_eq!(table.translate(&report), "Pod finance/payroll-0");
    assert_eq!(Pseudonyms::new([8; 32]).translate(&report), report);
    assert_eq!(table.translate("anon-é anon-"), "anon-é anon-");
    // Columns stay in place.
    let hash = replaced["metadata"]["name"].as_str().unwrap();
    let line = format!("    Pod {hash} runs    12  b\n  --  {hash}");
    let room = " ".repeat(4 + hash.len() - "payroll-0".len());
    let restored = format!("    Pod payroll-0 runs{room}12  b\n  --  payroll-0");
    assert_eq!(table.translate(&line), restored);
    assert_ne!(Pseudonyms::new([8; 32]).replace(&pod), replaced);
    assert_eq!(Pseudonyms::from_json("{}").unwrap_err(), NamesError::Form);
}
