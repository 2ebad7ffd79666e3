//! All objects that the audit needs, from a server, page by page.

use dovetail_inventory::dump::{DumpError, Sink, read_objects};
use hyper::Request;
use kube::{Client, Config};
use serde::Deserialize;
use thiserror::Error;

use super::{ClientError, to_read};

/// A kind with the path of its list, and whether there are servers without it.
struct Listed {
    kind: &'static str,
    path: &'static str,
    /// Where servers have it that are older; empty if there are none.
    older: &'static str,
    is_optional: bool,
}

const fn always(kind: &'static str, path: &'static str) -> Listed {
    Listed { kind, path, older: "", is_optional: false }
}

const fn if_there(kind: &'static str, path: &'static str) -> Listed {
    either(kind, path, "")
}

const fn either(kind: &'static str, path: &'static str, older: &'static str) -> Listed {
    Listed { kind, path, older, is_optional: true }
}

const LISTED: [Listed; 50] = [
    always("Node", "/api/v1/nodes"),
    always("Namespace", "/api/v1/namespaces"),
    always("Pod", "/api/v1/pods"),
    if_there("ResourceQuota", "/api/v1/resourcequotas"),
    if_there("PersistentVolume", "/api/v1/persistentvolumes"),
    if_there("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims"),
    if_there("ReplicaSet", "/apis/apps/v1/replicasets"),
    if_there("Deployment", "/apis/apps/v1/deployments"),
    if_there("StatefulSet", "/apis/apps/v1/statefulsets"),
    if_there("DaemonSet", "/apis/apps/v1/daemonsets"),
    if_there("Job", "/apis/batch/v1/jobs"),
    if_there("CronJob", "/apis/batch/v1/cronjobs"),
    if_there("HorizontalPodAutoscaler", "/apis/autoscaling/v2/horizontalpodautoscalers"),
    if_there("PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets"),
    if_there("StorageClass", "/apis/storage.k8s.io/v1/storageclasses"),
    if_there("CSINode", "/apis/storage.k8s.io/v1/csinodes"),
    if_there("CSIDriver", "/apis/storage.k8s.io/v1/csidrivers"),
    if_there("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses"),
    if_there("ResourceSlice", "/apis/resource.k8s.io/v1/resourceslices"),
    if_there("ResourceClaim", "/apis/resource.k8s.io/v1/resourceclaims"),
    if_there("ResourceClaimTemplate", "/apis/resource.k8s.io/v1/resourceclaimtemplates"),
    if_there(
        "ValidatingAdmissionPolicy",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    ),
    if_there("ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies"),
    if_there("NodePool", "/apis/karpenter.sh/v1/nodepools"),
    if_there("VerticalPodAutoscaler", "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"),
    if_there("NodeResourceTopology", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"),
    either(
        "PodGroup",
        "/apis/scheduling.k8s.io/v1beta1/podgroups",
        "/apis/scheduling.k8s.io/v1alpha1/podgroups",
    ),
    if_there("PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
    if_there("PodGroup", "/apis/scheduling.volcano.sh/v1beta1/podgroups"),
    if_there("PodGroup", "/apis/scheduling.run.ai/v2alpha2/podgroups"),
    if_there("HyperNode", "/apis/topology.volcano.sh/v1alpha1/hypernodes"),
    either(
        "Topology",
        "/apis/kueue.x-k8s.io/v1beta2/topologies",
        "/apis/kueue.x-k8s.io/v1beta1/topologies",
    ),
    if_there("Topology", "/apis/kai.scheduler/v1alpha1/topologies"),
    if_there("Queue", "/apis/dovetail.dev/v1alpha1/queues"),
    if_there("JobSet", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"),
    if_there("LeaderWorkerSet", "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"),
    either(
        "Workload",
        "/apis/kueue.x-k8s.io/v1beta2/workloads",
        "/apis/kueue.x-k8s.io/v1beta1/workloads",
    ),
    if_there("PyTorchJob", "/apis/kubeflow.org/v1/pytorchjobs"),
    if_there("TFJob", "/apis/kubeflow.org/v1/tfjobs"),
    if_there("XGBoostJob", "/apis/kubeflow.org/v1/xgboostjobs"),
    if_there("PaddleJob", "/apis/kubeflow.org/v1/paddlejobs"),
    if_there("JAXJob", "/apis/kubeflow.org/v1/jaxjobs"),
    either("MPIJob", "/apis/kubeflow.org/v2beta1/mpijobs", "/apis/kubeflow.org/v1/mpijobs"),
    if_there("TrainJob", "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"),
    if_there("Notebook", "/apis/kubeflow.org/v1/notebooks"),
    if_there("RayCluster", "/apis/ray.io/v1/rayclusters"),
    if_there("RayJob", "/apis/ray.io/v1/rayjobs"),
    if_there("RayService", "/apis/ray.io/v1/rayservices"),
    if_there("Rollout", "/apis/argoproj.io/v1alpha1/rollouts"),
    if_there("InferenceService", "/apis/serving.kserve.io/v1beta1/inferenceservices"),
];

/// Objects of one page: some megabytes of pods.
pub const PAGE: u32 = 500;

/// What could not be read of a server.
#[derive(Debug, Error)]
pub enum ListError {
    /// No client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A list that was not answered.
    #[error("cannot list {kind} objects of {server}: check address and credentials")]
    List {
        /// Kind.
        kind: &'static str,
        /// Address of the server.
        server: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The credentials are not accepted.
    #[error(
        "the API server at {server} does not accept your credentials (401): they may have expired: log in again, \
         then retry"
    )]
    Unauthorized {
        /// Address of the server.
        server: String,
    },
    /// An answer that is no list.
    #[error(transparent)]
    Answer(#[from] DumpError),
}

/// Kinds that were read in full, and kinds that one may not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Read in full, or not served at all.
    pub complete: Vec<&'static str>,
    /// Refused: the credentials do not allow it.
    pub refused: Vec<&'static str>,
}

/// Reads every kind that the audit needs, in pages of so many objects ([`PAGE`]). Kinds that the
/// credentials do not allow are left out and named.
///
/// # Errors
/// A server that cannot be reached, or that answers with something else than lists.
pub async fn read_lists(
    config: &Config,
    page: u32,
    sink: &mut dyn Sink,
) -> Result<Lists, ListError> {
    let client = to_read(config)?;
    let server = config.cluster_url.to_string();
    let mut lists = Lists::default();
    for listed in &LISTED {
        let mut read = pages(&client, listed, listed.path, &server, page, sink).await;
        if !listed.older.is_empty() && read.as_ref().is_err_and(is_not_served) {
            read = pages(&client, listed, listed.older, &server, page, sink).await;
        }
        match read {
            Ok(()) => lists.complete.push(listed.kind),
            // Of single kinds a server behind the API server may say that.
            Err(ListError::List { source, .. })
                if lists.complete.is_empty() && is(&source, &[401]) =>
            {
                return Err(ListError::Unauthorized { server });
            }
            Err(ListError::List { source, .. }) if is(&source, &[401, 403]) => {
                lists.refused.push(listed.kind);
            }
            Err(error) if listed.is_optional && is_not_served(&error) => {
                lists.complete.push(listed.kind);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(lists)
}

fn is_not_served(error: &ListError) -> bool {
    matches!(error, ListError::List { source, .. } if is(source, &[404]))
}

fn is(error: &kube::Error, codes: &[u16]) -> bool {
    matches!(error, kube::Error::Api(status) if codes.contains(&status.code))
}

async fn pages(
    client: &Client,
    listed: &Listed,
    path: &str,
    server: &str,
    page: u32,
    sink: &mut dyn Sink,
) -> Result<(), ListError> {
    let failed = |source: kube::Error| ListError::List {
        kind: listed.kind,
        server: server.to_owned(),
        source: Box::new(source),
    };
    let mut after = String::new();
    loop {
        let mut path = format!("{path}?limit={page}");
        if !after.is_empty() {
            path += &format!("&continue={after}");
        }
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        let text = client.request_text(request).await.map_err(failed)?;
        read_objects(text.as_bytes(), server, sink)?;
        after = next_page(&text);
        if after.is_empty() {
            return Ok(());
        }
    }
}

/// The mark of the next page, as it stands in a path; empty behind the last.
pub(crate) fn next_page(text: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Page {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(default, rename = "continue")]
        after: String,
    }
    let page: Page = serde_json::from_str(text).unwrap_or_default();
    let mut mark = String::new();
    for byte in page.metadata.after.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => mark.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => mark.push(char::from(byte)),
            byte => mark += &format!("%{byte:02X}"),
        }
    }
    mark
}

#[cfg(test)]
mod tests {
    use dovetail_objects::Kind;

    use super::*;

    /// A report about a server says what one about a dump of it says.
    #[test]
    fn every_kind_of_group_queue_and_workload_that_the_scheduler_reads_is_listed() {
        let is_meant = |kind: &Kind| {
            let bare = ["HyperNode", "PodGroup", "Queue", "Topology"];
            bare.contains(&kind.bare_name()) || matches!(kind, Kind::Workload(_))
        };
        let mut seen = 0;
        for kind in Kind::ALL.into_iter().filter(is_meant) {
            let path = format!("/apis/{}/{}/{}", kind.group(), kind.version(), kind.plural());
            let of = |listed: &&Listed| listed.path == path || listed.older == path;
            let listed = LISTED.iter().find(of).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(listed.kind, kind.bare_name());
            seen += 1;
        }
        assert!(seen >= 18, "{seen}");
    }
}
