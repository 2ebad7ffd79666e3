//! All objects that the audit needs, from a server, page by page.

use dovetail_inventory::dump::{DumpError, Sink, read_objects};
use dovetail_objects::{Kind, WorkloadKind};
use hyper::Request;
use kube::{Client, Config};
use serde::Deserialize;
use thiserror::Error;

use super::{ClientError, to_read};

/// A kind with the path of its list, and whether there are servers without it.
struct Listed {
    of: Of,
    /// Where servers have it that are older; empty if there are none.
    older: &'static str,
    is_optional: bool,
}

/// A kind that schedulers watch, too, or another one by its name and the path of its list.
enum Of {
    Watched(Kind),
    Other(&'static str, &'static str),
}

impl Listed {
    fn kind(&self) -> &'static str {
        match self.of {
            Of::Watched(kind) => kind.bare_name(),
            Of::Other(name, _) => name,
        }
    }

    fn path(&self) -> String {
        match self.of {
            Of::Watched(kind) => kind.list_path(),
            Of::Other(_, path) => path.to_owned(),
        }
    }
}

const fn always(kind: Kind) -> Listed {
    Listed { of: Of::Watched(kind), older: "", is_optional: false }
}

const fn if_there(kind: Kind) -> Listed {
    either(kind, "")
}

const fn either(kind: Kind, older: &'static str) -> Listed {
    Listed { of: Of::Watched(kind), older, is_optional: true }
}

const fn other(kind: &'static str, path: &'static str) -> Listed {
    Listed { of: Of::Other(kind, path), older: "", is_optional: true }
}

const LISTED: [Listed; 54] = [
    always(Kind::Node),
    always(Kind::Namespace),
    always(Kind::Pod),
    other("ResourceQuota", "/api/v1/resourcequotas"),
    other("LimitRange", "/api/v1/limitranges"),
    if_there(Kind::PersistentVolume),
    if_there(Kind::Claim),
    other("ReplicaSet", "/apis/apps/v1/replicasets"),
    other("Deployment", "/apis/apps/v1/deployments"),
    other("StatefulSet", "/apis/apps/v1/statefulsets"),
    other("DaemonSet", "/apis/apps/v1/daemonsets"),
    if_there(Kind::Workload(WorkloadKind::Job)),
    other("CronJob", "/apis/batch/v1/cronjobs"),
    other("HorizontalPodAutoscaler", "/apis/autoscaling/v2/horizontalpodautoscalers"),
    other("ScaledObject", "/apis/keda.sh/v1alpha1/scaledobjects"),
    if_there(Kind::DisruptionBudget),
    if_there(Kind::StorageClass),
    if_there(Kind::CsiNode),
    if_there(Kind::CsiDriver),
    if_there(Kind::DeviceClass),
    if_there(Kind::ResourceSlice),
    if_there(Kind::DeviceClaim),
    other("ResourceClaimTemplate", "/apis/resource.k8s.io/v1/resourceclaimtemplates"),
    other(
        "ValidatingAdmissionPolicy",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    ),
    other("ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies"),
    other("NodePool", "/apis/karpenter.sh/v1/nodepools"),
    other("VerticalPodAutoscaler", "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"),
    other("NodeResourceTopology", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"),
    either(Kind::PodGroup, "/apis/scheduling.k8s.io/v1alpha1/podgroups"),
    if_there(Kind::CoschedulingGroup),
    if_there(Kind::VolcanoGroup),
    if_there(Kind::KaiGroup),
    if_there(Kind::HyperNode),
    either(Kind::KueueTopology, "/apis/kueue.x-k8s.io/v1beta1/topologies"),
    if_there(Kind::KaiTopology),
    if_there(Kind::Queue),
    if_there(Kind::Reservation),
    if_there(Kind::Workload(WorkloadKind::JobSet)),
    if_there(Kind::Workload(WorkloadKind::LeaderWorkerSet)),
    Listed {
        older: "/apis/kueue.x-k8s.io/v1beta1/resourceflavors",
        ..other("ResourceFlavor", "/apis/kueue.x-k8s.io/v1beta2/resourceflavors")
    },
    Listed {
        older: "/apis/kueue.x-k8s.io/v1beta1/workloads",
        ..other("Workload", "/apis/kueue.x-k8s.io/v1beta2/workloads")
    },
    if_there(Kind::Workload(WorkloadKind::PyTorchJob)),
    if_there(Kind::Workload(WorkloadKind::TfJob)),
    if_there(Kind::Workload(WorkloadKind::XgBoostJob)),
    if_there(Kind::Workload(WorkloadKind::PaddleJob)),
    if_there(Kind::Workload(WorkloadKind::JaxJob)),
    either(Kind::Workload(WorkloadKind::MpiJob), "/apis/kubeflow.org/v1/mpijobs"),
    other("TrainJob", "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"),
    other("Notebook", "/apis/kubeflow.org/v1/notebooks"),
    if_there(Kind::Workload(WorkloadKind::RayCluster)),
    other("RayJob", "/apis/ray.io/v1/rayjobs"),
    other("RayService", "/apis/ray.io/v1/rayservices"),
    other("Rollout", "/apis/argoproj.io/v1alpha1/rollouts"),
    other("InferenceService", "/apis/serving.kserve.io/v1beta1/inferenceservices"),
];

/// Objects of one page: some megabytes of pods.
pub const PAGE: u32 = 500;

/// What could not be read of a server.
#[derive(Debug, Error)]
pub enum ListError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A list that was not answered.
    #[error("cannot list {kind} objects from {server}: check the address and the credentials")]
    List {
        kind: &'static str,
        /// Address of the server.
        server: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The credentials are not accepted.
    #[error(
        "the API server at {server} rejected your credentials (401), which may have expired: log in again, then \
         retry"
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
    /// Refused, as kubectl names them (`podgroups.scheduling.volcano.sh`): the credentials do not
    /// allow it.
    pub refused: Vec<String>,
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
    let is_audited = |kind: &str| kind != Kind::Reservation.bare_name();
    read_some_lists(config, page, is_audited, sink).await
}

/// Reads those of the kinds, by name, that are wanted.
///
/// # Errors
/// As [`read_lists`].
pub async fn read_some_lists(
    config: &Config,
    page: u32,
    is_wanted: impl Fn(&str) -> bool,
    sink: &mut dyn Sink,
) -> Result<Lists, ListError> {
    let client = to_read(config)?;
    let server = config.cluster_url.to_string();
    let mut lists = Lists::default();
    for listed in LISTED.iter().filter(|listed| is_wanted(listed.kind())) {
        let mut read = pages(&client, listed, &listed.path(), &server, page, sink).await;
        if !listed.older.is_empty() && read.as_ref().is_err_and(is_not_served) {
            read = pages(&client, listed, listed.older, &server, page, sink).await;
        }
        match read {
            Ok(()) => lists.complete.push(listed.kind()),
            // Of single kinds a server behind the API server may say that.
            Err(ListError::List { source, .. })
                if lists.complete.is_empty() && is(&source, &[401]) =>
            {
                return Err(ListError::Unauthorized { server });
            }
            Err(ListError::List { source, .. }) if is(&source, &[401, 403]) => {
                lists.refused.push(resource(&listed.path()));
            }
            Err(error) if listed.is_optional && is_not_served(&error) => {
                lists.complete.push(listed.kind());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(lists)
}

/// The resource of the path of a list, with its group where it has one.
fn resource(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let plural = parts.next().unwrap_or(path);
    match parts.nth(1).filter(|group| *group != "api") {
        Some(group) => format!("{plural}.{group}"),
        None => plural.to_owned(),
    }
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
        kind: listed.kind(),
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
    use super::*;

    #[test]
    fn resources_of_one_kind_and_several_groups_have_names_of_their_own() {
        let names: Vec<String> = LISTED.iter().map(|listed| resource(&listed.path())).collect();
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(resource("/api/v1/nodes"), "nodes");
        let groups = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
        assert_eq!(resource(groups), "podgroups.scheduling.volcano.sh");
    }

    /// A report about a server says what one about a dump of it says.
    #[test]
    fn every_kind_of_group_queue_and_workload_that_the_scheduler_reads_is_listed() {
        let is_meant = |kind: &Kind| {
            let bare = ["HyperNode", "PodGroup", "Queue", "Topology"];
            bare.contains(&kind.bare_name()) || matches!(kind, Kind::Workload(_))
        };
        let mut seen = 0;
        for kind in Kind::ALL.into_iter().filter(is_meant) {
            let path = kind.list_path();
            let of = |listed: &&Listed| listed.path() == path || listed.older == path;
            let listed = LISTED.iter().find(of).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(listed.kind(), kind.bare_name());
            seen += 1;
        }
        assert!(seen >= 18, "{seen}");
    }
}
