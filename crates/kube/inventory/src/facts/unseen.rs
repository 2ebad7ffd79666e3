//! What could not be seen, what that hides, and the command that would show it.

use std::collections::BTreeSet;

use dovetail_objects::Labels;

use super::inventory::Inventory;
use super::unmade::QUEUE_LABEL;

/// A part of the cluster that the audit knows nothing of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// What was not seen.
    pub what: String,
    /// What cannot be told without it.
    pub hides: String,
    /// What would show it.
    pub command: String,
}

/// What was not seen where there are no pods at all.
pub(super) const PODS: &str = "pods";

/// What was not seen where all pods are in one namespace: a cluster has pods of its own in another.
pub const OTHER_PODS: &str = "pods of other namespaces";

/// Kinds with what is not known without them.
const KINDS: [(&[&str], &str, &str, &str); 11] = [
    (&["Node"], "nodes", "everything: GPUs, their price, free capacity", "nodes"),
    (&["Pod"], PODS, "which pods use GPUs, and which are pending", "pods"),
    (
        &["ReplicaSet", "Deployment", "Job", "StatefulSet"],
        "owners of pods",
        "suspended jobs, and which object to edit",
        "replicasets,deployments,statefulsets,daemonsets,jobs,cronjobs",
    ),
    (&["Namespace"], "namespaces", "teams and quotas (GOV-01, GOV-02)", "namespaces"),
    (&["ResourceQuota"], "quotas", "namespaces that may take every GPU (GOV-01)", "resourcequotas"),
    (
        &["LimitRange"],
        "limit ranges",
        "whether a LimitRange rejects the requests of a patch (REQ-08)",
        "limitranges",
    ),
    (
        &["PodDisruptionBudget"],
        "disruption budgets",
        "budgets that block every drain (AUT-02)",
        "poddisruptionbudgets",
    ),
    (
        &["HorizontalPodAutoscaler"],
        "autoscalers",
        "GPU servers that are scaled by CPU (IDL-03)",
        "horizontalpodautoscalers",
    ),
    (
        &["ValidatingAdmissionPolicy", "ClusterPolicy", "ValidatingPolicy"],
        "admission policies",
        "whether findings can come back (GOV-04)",
        "validatingadmissionpolicies",
    ),
    (
        &["VerticalPodAutoscaler"],
        "recommenders",
        "requests that are guesses, GPUs starved of CPU (REQ-07, REQ-09, VIS-04)",
        "verticalpodautoscalers",
    ),
    (
        &["NodeResourceTopology"],
        "topology of nodes",
        "pods with GPUs across sockets (SCH-12)",
        "noderesourcetopologies",
    ),
];

/// Kinds that matter where GPUs are given by claims: told only where pods refer to some, or where a
/// server was asked and did not let them be listed.
const OF_CLAIMS: [(&str, &str, &str, &str); 2] = [
    (
        "ResourceSlice",
        "devices that drivers offer",
        "GPUs offered through dynamic resource allocation",
        "resourceslices",
    ),
    (
        "ResourceClaim",
        "claims of devices",
        "which pods have or need GPUs offered through dynamic resource allocation",
        "resourceclaims,resourceclaimtemplates,deviceclasses",
    ),
];

/// Whether something that Kueue may keep back names one of its queues.
fn names_a_queue(inventory: &Inventory) -> bool {
    let mut gated = inventory.pods.list.iter().filter(|record| record.pod.gated);
    let names = |labels: &Labels| labels.get(QUEUE_LABEL).is_some();
    inventory.waiting.names_a_queue || gated.any(|of| names(&of.pod.meta.labels))
}

/// What was neither handed over nor said to be complete.
pub(super) fn unseen(inventory: &Inventory) -> Vec<Unseen> {
    let seen =
        |kind: &&str| inventory.kinds.contains_key(*kind) || inventory.complete.contains(*kind);
    let missing = KINDS.iter().filter(|(kinds, ..)| !kinds.iter().any(seen));
    let mut unseen: Vec<Unseen> = missing
        .map(|(_, what, hides, plural)| Unseen {
            what: (*what).to_owned(),
            hides: (*hides).to_owned(),
            command: format!("kubectl get {plural} -A -o json"),
        })
        .collect();
    if let Some(namespace) = inventory.only_namespace() {
        let others = Unseen {
            what: OTHER_PODS.to_owned(),
            hides: format!(
                "the GPUs allocated to them: all pods of the input are in namespace {namespace}; \
                 service accounts of other namespaces show that these have no pods"
            ),
            // Every namespace has a service account.
            command: "kubectl get pods,serviceaccounts -A -o json".to_owned(),
        };
        unseen.insert(0, others);
    }
    let has_claims = inventory.pods.has_claims();
    let missing = OF_CLAIMS.iter().filter(|(kind, ..)| {
        let was_asked = !inventory.complete.is_empty() && !inventory.complete.contains(*kind);
        !inventory.kinds.contains_key(*kind)
            && !inventory.complete.contains(*kind)
            && (has_claims || was_asked)
    });
    unseen.extend(missing.map(|(_, what, hides, plural)| Unseen {
        what: (*what).to_owned(),
        hides: (*hides).to_owned(),
        command: format!("kubectl get {plural} -A -o json"),
    }));
    let groups = inventory.pods.groups.iter().filter(|group| group.common.has_group_annotation);
    let volcano = "podgroups.scheduling.volcano.sh";
    let resources: BTreeSet<&str> = groups
        .map(|group| match &*inventory.pods.list[group.first].pod.scheduler {
            "kai-scheduler" | "runai-scheduler" => "podgroups.scheduling.run.ai",
            _ => volcano,
        })
        .collect();
    if !resources.is_empty() && !seen(&"PodGroup") && !seen(&"PodGroup.scheduling.volcano.sh") {
        let resources: Vec<&str> = resources.into_iter().collect();
        unseen.push(Unseen {
            what: "pod groups".to_owned(),
            hides:
                "GPUs of pods that wait for the rest of their gang (SCH-15), and the size of the gang"
                    .to_owned(),
            command: format!("kubectl get {} -A -o json", resources.join(",")),
        });
    }
    if names_a_queue(inventory) && !seen(&"Workload") {
        unseen.push(Unseen {
            what: "workloads of Kueue".to_owned(),
            hides: "whether suspended jobs and gated pods wait for quota".to_owned(),
            command: "kubectl get workloads.kueue.x-k8s.io -A -o json".to_owned(),
        });
    }
    if inventory.cluster.scoring.is_none() {
        unseen.push(Unseen {
            what: "configuration of the scheduler".to_owned(),
            hides: "whether GPU pods are spread over empty nodes (SCH-07)".to_owned(),
            command: "kubectl get configmaps -n kube-system -o json".to_owned(),
        });
    }
    unseen
}
