//! Pods of a namespace that may be GPU exporters.
//!
//! Which namespace is asked is the user's word: a pod elsewhere could say what it likes about other
//! people's GPUs. Addresses come from the pod's own fields, never from annotations.

use dovetail_objects::labels;
use kube::Config;
use serde::Deserialize;

use super::candidate::Metadata;
use super::find::{list, readable};
use crate::client::{ClientError, to_read};

/// A pod with the port that is asked for `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterPod {
    pub namespace: String,
    pub name: String,
    pub port: u16,
    /// The node whose devices it reports.
    pub node: String,
}

/// Pods to ask, and what kept some from being found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundExporters {
    /// By name.
    pub pods: Vec<ExporterPod>,
    /// Lists that could not be read, with the reason, for people.
    pub unread: Vec<String>,
}

/// Looks through the running pods of a namespace.
///
/// # Errors
/// When certificates or credentials cannot be used.
pub async fn exporters(config: &Config, namespace: &str) -> Result<FoundExporters, ClientError> {
    let client = to_read(config)?;
    let mut unread = Vec::new();
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let pods: Vec<Pod> = readable(list(&client, &path, &mut unread).await);
    let mut pods: Vec<ExporterPod> = pods.iter().filter_map(Pod::exporter).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(FoundExporters { pods, unread })
}

impl ExporterPod {
    /// The path of the pod in the API server.
    pub fn path(&self) -> String {
        let Self { namespace, name, port, .. } = self;
        format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy")
    }

    /// As messages name it.
    pub fn title(&self) -> String {
        format!("exporter {}/{} on {}", self.namespace, self.name, self.node)
    }
}

/// Labels that name an application.
const APPLICATION: [&str; 3] = [labels::APPLICATION, "app", "k8s-app"];
/// What the names of GPU exporters have in them: those of NVIDIA and AMD, and Intel's XPU Manager.
const EXPORTER: [&str; 2] = ["exporter", "xpum"];
/// Exporters of something else.
const OTHERS: [&str; 2] = ["node-exporter", "blackbox"];
/// What ports with metrics are called, in the order of preference; else the first port is taken.
const PORT_NAMES: [&str; 4] = ["metrics", "gpu-metrics", "http-metrics", "dcgm-exporter"];

/// What is read of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: Metadata,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    containers: Option<Vec<Container>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    ports: Option<Vec<ContainerPort>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerPort {
    name: Option<String>,
    container_port: u16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<String>,
}

impl Pod {
    fn exporter(&self) -> Option<ExporterPod> {
        let labels = self.metadata.labels.as_ref()?;
        let has = |value: &str, parts: &[&str]| parts.iter().any(|part| value.contains(part));
        let names = APPLICATION.iter().filter_map(|key| labels.get(*key));
        let is_exporter = names.clone().any(|name| has(name, &EXPORTER))
            && !names.clone().any(|n| has(n, &OTHERS));
        let runs = self.status.phase.as_deref() == Some("Running");
        if !is_exporter || !runs || !self.metadata.is_sound() {
            return None;
        }
        Some(ExporterPod {
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
            port: self.port()?,
            node: self.spec.node_name.clone()?,
        })
    }

    fn port(&self) -> Option<u16> {
        let containers = self.spec.containers.as_deref()?.iter();
        let ports: Vec<&ContainerPort> =
            containers.flat_map(|container| container.ports.as_deref().unwrap_or(&[])).collect();
        let named = |name: &&str| ports.iter().find(|port| port.name.as_deref() == Some(*name));
        PORT_NAMES.iter().find_map(named).or_else(|| ports.first()).map(|port| port.container_port)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(name: &str, labels: Value, ports: Value, phase: &str) -> Option<String> {
        let pod = json!({"metadata": {"namespace": "gpu-operator", "name": name, "labels": labels,
                "annotations": {"prometheus.io/port": "22", "prometheus.io/path": "/../../secrets"}},
            "spec": {"nodeName": "n1", "containers": [{"ports": ports}]}, "status": {"phase": phase}});
        serde_json::from_value::<Pod>(pod).unwrap().exporter().map(|found| found.path())
    }

    #[test]
    fn exporters_are_known_by_their_labels_and_asked_at_their_own_port() {
        let dcgm = json!([{"containerPort": 9401}, {"name": "metrics", "containerPort": 9400}]);
        let path = |rest: &str| Some(format!("/api/v1/namespaces/gpu-operator/pods/{rest}/proxy"));
        for (labels, ports, expected) in [
            (json!({"app": "nvidia-dcgm-exporter"}), dcgm.clone(), path("p:9400")),
            (
                json!({"app.kubernetes.io/name": "metrics-exporter"}),
                json!([{"containerPort": 5000}]),
                path("p:5000"),
            ),
            (
                json!({"app": "intel-xpumanager"}),
                json!([{"containerPort": 29_999}]),
                path("p:29999"),
            ),
            (json!({"app.kubernetes.io/name": "node-exporter"}), dcgm.clone(), None),
            (json!({"app": "shop"}), dcgm.clone(), None),
            (json!({"app": "dcgm-exporter"}), json!([]), None),
            (Value::Null, dcgm.clone(), None),
        ] {
            assert_eq!(asked("p", labels.clone(), ports, "Running"), expected, "{labels}");
        }
        let labels = json!({"app": "dcgm-exporter"});
        assert_eq!(asked("p", labels.clone(), dcgm.clone(), "Pending"), None);
        assert_eq!(asked("../../x", labels, dcgm, "Running"), None);
    }
}
