//! The workload that a pod belongs to, and the names of its pods.

use dovetail_objects::Pod;
use serde_json::Value;

use crate::gpu_amounts::uses_gpus;
use crate::latency_query::exactly;
use crate::object_name::ObjectName;

/// Label of pods of a ReplicaSet that a Deployment made.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// What Kubernetes makes random endings of, which have no vowels
/// (`k8s.io/apimachinery/pkg/util/rand`).
const RANDOM: &str = "[b-df-hj-np-tv-xz24-9]";
/// Longer names are cut before they get a random ending (`maxGeneratedNameLength`).
const MOST_BEFORE_RANDOM: usize = 58;

/// The pods of one owner on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub owner: ObjectName,
    /// The ReplicaSet between a Deployment and its pods.
    pub replica_set: Option<String>,
    /// Regular expression of the names of all of its pods, also of those that are gone.
    pub all_pods: String,
    /// Regular expression of the names of its pods on the node.
    pub pods: String,
}

impl Workload {
    /// All pods of a Deployment or of another owner.
    pub fn of_owner(owner: &ObjectName) -> Self {
        let all_pods = match &*owner.kind {
            "Deployment" => pods_of_deployment(&owner.name),
            kind => pods_of(kind, &owner.name),
        };
        let (owner, pods) = (owner.clone(), all_pods.clone());
        Self { owner, replica_set: None, all_pods, pods }
    }
}

/// The workloads with pods that use GPUs, out of the pods of a node as the API server has them.
pub fn workloads(pods: &[Value]) -> Vec<Workload> {
    let mut found: Vec<Workload> = Vec::new();
    for object in pods {
        let is_user =
            serde_json::from_value::<Pod>(object.clone()).is_ok_and(|pod| uses_gpus(&pod));
        if !is_user {
            continue;
        }
        let workload = of(object);
        match found.iter_mut().find(|known| known.owner == workload.owner) {
            None => found.push(workload),
            Some(known) => {
                known.pods = format!("{}|{}", known.pods, workload.pods);
            }
        }
    }
    found.sort_by(|one, other| one.owner.cmp(&other.owner));
    found
}

fn of(pod: &Value) -> Workload {
    let metadata = &pod["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner["controller"] == true);
    let namespace = text(&metadata["namespace"]);
    let pods = exactly(&text(&metadata["name"]));
    let Some(owner) = owner else {
        let owner = ObjectName {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace,
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
        };
        return Workload { owner, replica_set: None, all_pods: pods.clone(), pods };
    };
    let mut named = ObjectName {
        api_version: text(&owner["apiVersion"]),
        kind: text(&owner["kind"]),
        namespace,
        name: text(&owner["name"]),
        uid: text(&owner["uid"]),
    };
    let hash = metadata["labels"][TEMPLATE_HASH].as_str().unwrap_or_default();
    let deployment = (named.kind == "ReplicaSet" && !hash.is_empty())
        .then(|| named.name.strip_suffix(hash)?.strip_suffix('-').map(str::to_owned))
        .flatten();
    let Some(deployment) = deployment else {
        let all_pods = pods_of(&named.kind, &named.name);
        return Workload { owner: named, replica_set: None, all_pods, pods };
    };
    let all_pods = pods_of_deployment(&deployment);
    let replica_set = Some(std::mem::replace(&mut named.name, deployment));
    "Deployment".clone_into(&mut named.kind);
    named.uid.clear();
    Workload { owner: named, replica_set, all_pods, pods }
}

/// A regular expression of the names of the pods of an owner.
fn pods_of(kind: &str, name: &str) -> String {
    let (whole, cut) = (exactly(name), before_random(&format!("{name}-")));
    match kind {
        "StatefulSet" => format!("{whole}-[0-9]+"),
        "DaemonSet" | "ReplicaSet" | "ReplicationController" => format!("{cut}{RANDOM}{{5}}"),
        // An indexed Job has the number before the random ending.
        "Job" => format!("{cut}([0-9]+-)?{RANDOM}{{5}}"),
        // A number, a random ending, or both.
        _ => format!("{whole}(-[0-9]+)*(-{RANDOM}{{5}})?"),
    }
}

/// The same of a Deployment, whose ReplicaSets have a hash.
fn pods_of_deployment(name: &str) -> String {
    // What is left of the longest hash, if names of pods are cut within it.
    match name.len() + "-1234567890-".len() <= MOST_BEFORE_RANDOM {
        true => format!("{}-{RANDOM}{{1,10}}-{RANDOM}{{5}}", exactly(name)),
        false => format!("{}(-?{RANDOM})*", before_random(name)),
    }
}

/// A name as it is cut before a random ending.
fn before_random(name: &str) -> String {
    exactly(name.get(..MOST_BEFORE_RANDOM).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_of_one_deployment_are_one_workload_and_others_are_their_owners() {
        let pod = |name: &str, kind: &str, owner: &str, hash: &str, gpus: u32| {
            json!({"metadata": {"name": name, "namespace": "prod",
                    "labels": {"pod-template-hash": hash},
                    "ownerReferences": [{"kind": kind, "name": owner, "uid": "u",
                        "apiVersion": "apps/v1", "controller": true}]},
                "spec": {"nodeName": "n", "containers": [{"name": "c", "resources":
                    {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]},
                "status": {"phase": "Running"}})
        };
        let found = workloads(&[
            pod("chat-5f-abcde", "ReplicaSet", "chat-5f", "5f", 1),
            pod("chat-5f-fghij", "ReplicaSet", "chat-5f", "5f", 1),
            pod("llm-0", "StatefulSet", "llm", "", 1),
            pod("proxy-5f-abcde", "ReplicaSet", "proxy-5f", "5f", 0),
        ]);
        let names: Vec<(&str, &str, &str)> =
            found.iter().map(|one| (&*one.owner.kind, &*one.owner.name, &*one.pods)).collect();
        assert_eq!(
            names,
            [
                ("Deployment", "chat", "chat-5f-abcde|chat-5f-fghij"),
                ("StatefulSet", "llm", "llm-0")
            ]
        );
        assert_eq!(found[0].replica_set.as_deref(), Some("chat-5f"));
        assert_eq!(found[0].all_pods, format!("chat-{RANDOM}{{1,10}}-{RANDOM}{{5}}"));
    }

    /// As Prometheus does it, which matches whole values.
    fn matches(pattern: &str, name: &str) -> bool {
        regex::Regex::new(&format!("^(?:{pattern})$")).expect("a pattern").is_match(name)
    }

    #[test]
    fn names_of_pods_are_those_of_their_owner_and_of_none_with_a_longer_name() {
        for (kind, owner, own, others) in [
            ("StatefulSet", "qwen-2", ["qwen-2-5", "qwen-2-11"], ["qwen-2-5-0", "qwen-2-small"]),
            ("DaemonSet", "agent", ["agent-x7k2b", "agent-zz4d9"], ["agent-gpu-x7k2b", "agent-0"]),
            ("Job", "train", ["train-x7k2b", "train-3-x7k2b"], ["train-big-x7k2b", "train-3"]),
            ("LeaderWorkerSet", "llm", ["llm-0-3", "llm-1"], ["llm-big-0", "llms-0"]),
        ] {
            let pattern = pods_of(kind, owner);
            own.iter().for_each(|name| assert!(matches(&pattern, name), "{pattern}: {name}"));
            others.iter().for_each(|name| assert!(!matches(&pattern, name), "{pattern}: {name}"));
        }
        let chat = pods_of_deployment("chat");
        assert!(matches(&chat, "chat-7c9f8d6b5-x7k2b") && !matches(&chat, "chat-blue-x7k2b"));
        // Cut at 58 characters, within the hash.
        let long = "a-model-with-a-very-long-name-predictor-00001-deployment";
        let cut = format!("{long}-7x7k2b");
        assert_eq!((cut.len(), MOST_BEFORE_RANDOM), (63, 58));
        assert!(matches(&pods_of_deployment(long), &cut));
        assert!(!matches(
            &pods_of_deployment(long),
            "a-model-with-a-very-long-name-predictor-00002"
        ));
    }
}
