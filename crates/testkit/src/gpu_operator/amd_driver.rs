//! Plays AMD's GPU Operator of some nodes against an API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, PodSpec, Toleration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::AmdNode;
use super::driver::{from, is_gone};
use super::mount::Mount;

/// Where the operator runs.
const NAMESPACE: &str = "kube-amd-gpu";
/// How often nodes are read.
const EVERY: Duration = Duration::from_millis(150);

const LABEL: &str = "dcm.amd.com/gpu-config-profile";
const STATE: &str = "dcm.amd.com/gpu-config-profile-state";
const PARTITION: &str = "amd.com/compute-memory-partition";
const TAINT: &str = "amd-dcm";

/// The operator of some nodes: Device Config Manager, device plugin, node labeller, the kubelets'
/// device manager, and what evicts pods by the taint `amd-dcm`. It stops when the value is dropped.
pub struct AmdOperator {
    nodes: Nodes,
    task: JoinHandle<()>,
}

type Nodes = Arc<Mutex<BTreeMap<String, AmdNode>>>;

impl std::fmt::Debug for AmdOperator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AmdOperator").field("nodes", &*lock(&self.nodes)).finish()
    }
}

impl Drop for AmdOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AmdOperator {
    /// Installs what the operator's chart does: its namespace, a DeviceConfig, and a ConfigMap with
    /// a profile of its own.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn install(client: &Client) -> Result<(), kube::Error> {
        let create = PostParams::default();
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(NAMESPACE.to_owned());
        Api::all(client.clone()).create(&create, &namespace).await?;
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition: CustomResourceDefinition = from(json!({
            "metadata": {"name": "deviceconfigs.amd.com"},
            "spec": {
                "group": "amd.com", "scope": "Namespaced",
                "names": {"kind": "DeviceConfig", "plural": "deviceconfigs", "singular": "deviceconfig"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any}}],
            },
        }));
        Api::all(client.clone()).create(&create, &definition).await?;
        let kind =
            ApiResource::from_gvk(&GroupVersionKind::gvk("amd.com", "v1alpha1", "DeviceConfig"));
        let configs: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &kind);
        let config: DynamicObject = from(json!({
            "apiVersion": "amd.com/v1alpha1", "kind": "DeviceConfig",
            "metadata": {"name": "amd", "namespace": NAMESPACE},
            "spec": {"configManager": {"enable": true, "config": {"name": "config-manager-config"}},
                "devicePlugin": {"nodeLabellerArguments": ["vram"]}},
        }));
        // A definition is served a little after it is created.
        while configs.list(&ListParams::default()).await.is_err() {
            tokio::time::sleep(EVERY).await;
        }
        configs.create(&create, &config).await?;
        let profiles = json!({
            "gpu-config-profiles": {"spx-profile": {"profiles": [{"computePartition": "SPX",
                "memoryPartition": "NPS1", "numGPUsAssigned": 8}]}},
            "gpuClientSystemdServices": {"names": ["gpuagent"]},
        });
        let mut map = ConfigMap::default();
        map.metadata.name = Some("config-manager-config".to_owned());
        map.data = Some(BTreeMap::from([("config.json".to_owned(), profiles.to_string())]));
        Api::namespaced(client.clone(), NAMESPACE).create(&create, &map).await.map(drop)
    }

    /// Plays the operator of these nodes, on the runtime of the caller. Device Config Manager sees
    /// a ConfigMap `mount` after it was written.
    #[must_use]
    pub fn start(client: Client, nodes: BTreeMap<String, AmdNode>, mount: Duration) -> Self {
        let nodes = Arc::new(Mutex::new(nodes));
        let driver = Driver {
            client,
            nodes: Arc::clone(&nodes),
            mount,
            begin: Instant::now(),
            profiles: Mount::default(),
            pods: BTreeSet::new(),
        };
        Self { nodes, task: tokio::spawn(driver.run()) }
    }

    /// Asks or changes a node.
    pub fn with<T>(&self, node: &str, ask: impl FnOnce(&mut AmdNode) -> T) -> Option<T> {
        lock(&self.nodes).get_mut(node).map(ask)
    }
}

struct Driver {
    client: Client,
    nodes: Nodes,
    mount: Duration,
    begin: Instant,
    profiles: Mount,
    /// Pods that kubelets have decided about.
    pods: BTreeSet<String>,
}

impl Driver {
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            // An API server that does not answer is asked again.
            if let Err(error) = self.turn().await {
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("AMD GPU operator: {error}\n"),
                );
            }
        }
    }

    async fn turn(&mut self) -> Result<(), kube::Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        if let Some(map) = maps.get_opt("dovetail-amd").await? {
            let text = map.data.and_then(|mut data| data.remove("config.json")).unwrap_or_default();
            let config: Value = serde_json::from_str(&text).unwrap_or_default();
            self.profiles.written(config["gpu-config-profiles"].clone(), self.mount);
        }
        let names: Vec<String> = lock(&self.nodes).keys().cloned().collect();
        let mut barred = BTreeSet::new();
        for name in names {
            if self.node(&name).await? {
                barred.insert(name);
            }
        }
        self.pods(&barred).await
    }

    /// What the operator does to a node; whether the taint is on it.
    async fn node(&mut self, name: &str) -> Result<bool, kube::Error> {
        let api: Api<Node> = Api::all(self.client.clone());
        let Some(node) = api.get_opt(name).await? else { return Ok(false) };
        let labels = node.metadata.labels.unwrap_or_default();
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let is_barred = taints.iter().any(|one| one.key == TAINT && one.effect == "NoExecute");
        let now_ms = self.begin.elapsed().as_millis() as u64;
        let report = {
            let mut nodes = lock(&self.nodes);
            let Some(amd) = nodes.get_mut(name) else { return Ok(is_barred) };
            let label = labels.get(LABEL).map(String::as_str);
            amd.tick(now_ms, label, self.profiles.seen(), is_barred).clone()
        };
        let offered = node.status.and_then(|status| status.allocatable).unwrap_or_default();
        let is_offered = |(resource, count): (&String, &i64)| {
            offered.get(resource).map_or("0", |known| &known.0) == count.to_string()
        };
        if !report.allocatable.iter().all(is_offered) {
            let amounts: BTreeMap<&String, String> =
                report.allocatable.iter().map(|(name, count)| (name, count.to_string())).collect();
            let status = json!({"status": {"allocatable": amounts, "capacity": amounts}});
            api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        let mut wanted = BTreeMap::from([(PARTITION, report.partition)]);
        wanted.extend(report.state.map(|state| (STATE, state.map(str::to_owned))));
        if wanted.iter().any(|(key, value)| labels.get(*key) != value.as_ref()) {
            let patch = Patch::Merge(json!({"metadata": {"labels": wanted}}));
            api.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(is_barred)
    }

    /// Pods that do not tolerate the taint leave; the others get their device, or are rejected.
    async fn pods(&mut self, barred: &BTreeSet<String>) -> Result<(), kube::Error> {
        let all: Api<Pod> = Api::all(self.client.clone());
        let mut present = BTreeSet::new();
        for pod in all.list(&ListParams::default()).await? {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            let Some(spec) = &pod.spec else { continue };
            let Some(node) = &spec.node_name else { continue };
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
            let is_evicted = barred.contains(node) && !tolerates(spec);
            if is_evicted || pod.metadata.deletion_timestamp.is_some() {
                let now = DeleteParams::default().grace_period(0);
                pods.delete(&name, &now).await.map(drop).or_else(is_gone)?;
                continue;
            }
            let key = format!("{namespace}/{name}");
            present.insert(key.clone());
            if !self.pods.insert(key.clone()) {
                continue;
            }
            let is_admitted = match (asked(spec), lock(&self.nodes).get_mut(node)) {
                (Some(resource), Some(amd)) => amd.admit(&key, &resource),
                _ => true,
            };
            let status = match is_admitted {
                true => json!({"phase": "Running"}),
                false => json!({"phase": "Failed", "reason": "UnexpectedAdmissionError"}),
            };
            let patch = Patch::Strategic(json!({"status": status}));
            pods.patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        for gone in self.pods.difference(&present) {
            lock(&self.nodes).values_mut().for_each(|amd| amd.release(gone));
        }
        self.pods = present;
        Ok(())
    }
}

/// Whether a pod stays on a node with the taint.
fn tolerates(spec: &PodSpec) -> bool {
    let accepts = |one: &Toleration| {
        let is_any = one.operator.as_deref() == Some("Exists");
        let is_key = one.key.as_deref().is_none_or(|key| key == TAINT);
        let is_effect = one.effect.as_deref().is_none_or(|effect| effect == "NoExecute");
        is_key && is_effect && (is_any || one.value.as_deref() == Some("up"))
    };
    spec.tolerations.iter().flatten().any(accepts)
}

/// The resource of AMD's GPUs that a pod asks for.
fn asked(spec: &PodSpec) -> Option<String> {
    let limits = spec.containers.iter().filter_map(|one| one.resources.as_ref()?.limits.as_ref());
    let mut asked = limits.flatten().filter(|(_, amount)| amount.0 != "0");
    asked.find(|(name, _)| name.starts_with("amd.com/")).map(|(name, _)| name.clone())
}

fn lock(nodes: &Mutex<BTreeMap<String, AmdNode>>) -> MutexGuard<'_, BTreeMap<String, AmdNode>> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}
