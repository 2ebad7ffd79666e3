//! Fixes by example on platforms where that of the check does not exist: who manages nodes decides
//! which labels they have, and where the device plugin is configured.

/// Kinds of node pools of each platform, as facts name them.
pub(crate) const GKE: &str = "GKENodePool";
const EKS: &str = "EKSNodegroup";
const AKS: &str = "AKSNodePool";
/// A node that no pool made.
const OWN: &str = "Node";

/// The check, the kind of pool, the example.
const EXAMPLES: [(&str, &str, &str); 22] = [
    (
        "AUT-03",
        GKE,
        "gcloud container node-pools update POOL --cluster CLUSTER --enable-autoscaling --total-min-nodes 0 \
         --total-max-nodes 4",
    ),
    ("AUT-03", EKS, "minSize: 0  # of the node group, scaled by the Cluster Autoscaler"),
    (
        "AUT-03",
        AKS,
        "az aks nodepool update -g GROUP --cluster-name CLUSTER -n POOL --enable-cluster-autoscaler --min-count 0 \
         --max-count 4",
    ),
    (
        "AUT-03",
        OWN,
        "kubectl drain NODE --ignore-daemonsets  # then remove the machine from its node group, or \
         give it other work",
    ),
    (
        "CAP-05",
        GKE,
        "kubectl delete pod -n kube-system -l k8s-app=nvidia-gpu-device-plugin  # on that node",
    ),
    ("CAP-06", OWN, "a queue of preemptible work for these nodes"),
    ("SCH-13", OWN, "add nodes, or let the gang start with fewer pods"),
    (
        "SCH-02",
        GKE,
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
         [{matchExpressions: [{key: cloud.google.com/gke-accelerator, operator: DoesNotExist}]}]}}}",
    ),
    ("SCH-05", GKE, "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}"),
    (
        "SCH-14",
        GKE,
        "nodeSelector: {}  # without cloud.google.com/gke-accelerator, if the program also runs on \
         other models",
    ),
    ("MOD-02", GKE, "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}"),
    (
        "SPT-02",
        GKE,
        "nodeSelector: {cloud.google.com/gke-spot: \"true\"}  # and a toleration of that taint",
    ),
    ("SPT-02", EKS, "nodeSelector: {eks.amazonaws.com/capacityType: SPOT}"),
    (
        "SPT-02",
        AKS,
        "nodeSelector: {kubernetes.azure.com/scalesetpriority: spot}  # and a toleration of that taint",
    ),
    (
        "SPT-03",
        GKE,
        "topologySpreadConstraints: [{topologyKey: cloud.google.com/gke-provisioning, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
    ),
    (
        "SPT-03",
        EKS,
        "topologySpreadConstraints: [{topologyKey: eks.amazonaws.com/capacityType, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
    ),
    (
        "SPT-03",
        AKS,
        "topologySpreadConstraints: [{topologyKey: kubernetes.azure.com/scalesetpriority, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
    ),
    (
        "SHR-01",
        GKE,
        "a node pool with gpu-partition-size (GPUs with MIG) or gpu-sharing-strategy=mps, or whole GPUs",
    ),
    (
        "SHR-03",
        GKE,
        "nodeSelector: {cloud.google.com/gke-gpu-sharing-strategy: time-sharing}  # of the pods \
         that may share a GPU; a taint keeps other pods away",
    ),
    ("SHR-05", GKE, "max-shared-clients-per-gpu=2  # of a new node pool: fewer"),
    ("SHR-04", GKE, "gcloud container node-pools create  # with the intended gpu-partition-size"),
    (
        "SHR-07",
        GKE,
        "gpu-partition-size=PROFILE  # of a new node pool: a profile that its GPUs have",
    ),
];

/// The example of a check for nodes of a kind of pool, where it has one of its own.
pub(crate) fn example(check: &str, pool: &str) -> Option<&'static str> {
    let mut examples = EXAMPLES.iter();
    let (_, _, example) = examples.find(|(id, kind, _)| *id == check && *kind == pool)?;
    Some(example)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::check;

    #[test]
    fn examples_are_of_checks_and_never_name_another_platform() {
        let named = |text: &str| {
            let of =
                |kind, words: &[&str]| words.iter().any(|word| text.contains(word)).then_some(kind);
            [
                of(GKE, &["cloud.google.com", "gcloud"]),
                of(EKS, &["eks.amazonaws.com"]),
                of(AKS, &["kubernetes.azure.com", "az aks"]),
            ]
        };
        for (id, kind, text) in EXAMPLES {
            assert!(check(id).is_some(), "{id}");
            assert_eq!(example(id, kind), Some(text), "{id} has two examples for {kind}");
            let others = named(text).into_iter().flatten().find(|named| *named != kind);
            assert_eq!(others, None, "{text}");
        }
        assert_eq!(example("SPT-03", "NodePool"), None);
    }
}
