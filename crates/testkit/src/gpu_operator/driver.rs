//! Plays the GPU Operator of some nodes against an API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::MigNode;
use super::mount::Mount;

/// Where the operator runs.
const NAMESPACE: &str = "gpu-operator";
/// How often nodes are read.
const EVERY: Duration = Duration::from_millis(150);

const LABEL: &str = "nvidia.com/mig.config";
const STATE: &str = "nvidia.com/mig.config.state";
const PLUGIN_CONFIG: &str = "nvidia.com/device-plugin.config";
const REPLICAS: &str = "nvidia.com/gpu.replicas";
const STRATEGY: &str = "nvidia.com/gpu.sharing-strategy";
const DEPLOY: &str = "nvidia.com/gpu.deploy.device-plugin";

/// The operator of some nodes: mig-manager, device plugin, feature discovery and the kubelets'
/// device manager. It stops when the value is dropped.
pub struct GpuOperator {
    nodes: Arc<Mutex<BTreeMap<String, MigNode>>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for GpuOperator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GpuOperator").field("nodes", &*lock(&self.nodes)).finish()
    }
}

impl Drop for GpuOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GpuOperator {
    /// Installs what the operator's chart does: its namespace, the ClusterPolicy and the ConfigMap
    /// with the standard layouts.
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
            "metadata": {"name": "clusterpolicies.nvidia.com"},
            "spec": {
                "group": "nvidia.com", "scope": "Cluster",
                "names": {"kind": "ClusterPolicy", "plural": "clusterpolicies", "singular": "clusterpolicy"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any}}],
            },
        }));
        Api::all(client.clone()).create(&create, &definition).await?;
        let policies = policies(client);
        let policy: DynamicObject = from(json!({
            "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
            "metadata": {"name": "cluster-policy"},
            "spec": {"mig": {"strategy": "single"},
                "daemonsets": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists",
                    "effect": "NoSchedule"}]},
                "migManager": {"config": {"name": "default-mig-parted-config"}}},
        }));
        // A definition is served a little after it is created.
        while policies.list(&ListParams::default()).await.is_err() {
            tokio::time::sleep(EVERY).await;
        }
        policies.create(&create, &policy).await?;
        let layouts = "version: v1\nmig-configs:\n  all-disabled:\n    - devices: all\n      mig-enabled: false\n  \
                       all-balanced:\n    - devices: all\n      mig-enabled: true\n      mig-devices:\n        \
                       \"1g.10gb\": 2\n        \"2g.20gb\": 1\n        \"3g.40gb\": 1\n";
        let mut map = ConfigMap::default();
        map.metadata.name = Some("default-mig-parted-config".to_owned());
        map.data = Some(BTreeMap::from([("config.yaml".to_owned(), layouts.to_owned())]));
        Api::namespaced(client.clone(), NAMESPACE).create(&create, &map).await.map(drop)
    }

    /// Plays the operator of these nodes, on the runtime of the caller. mig-manager sees a
    /// ConfigMap `mount` after it was written.
    #[must_use]
    pub fn start(client: Client, nodes: BTreeMap<String, MigNode>, mount: Duration) -> Self {
        let nodes = Arc::new(Mutex::new(nodes));
        let driver = Driver {
            client,
            nodes: Arc::clone(&nodes),
            mount,
            begin: Instant::now(),
            layouts: Mount::default(),
            settings: Mount::default(),
            pods: BTreeSet::new(),
        };
        Self { nodes, task: tokio::spawn(driver.run()) }
    }

    /// Asks or changes a node.
    pub fn with<T>(&self, node: &str, ask: impl FnOnce(&mut MigNode) -> T) -> Option<T> {
        lock(&self.nodes).get_mut(node).map(ask)
    }
}

struct Driver {
    client: Client,
    nodes: Arc<Mutex<BTreeMap<String, MigNode>>>,
    mount: Duration,
    begin: Instant,
    /// What mig-manager sees.
    layouts: Mount,
    /// What the device plugin sees.
    settings: Mount,
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
                    format_args!("GPU operator: {error}\n"),
                );
            }
        }
    }

    async fn turn(&mut self) -> Result<(), kube::Error> {
        self.mount().await?;
        self.admit().await?;
        let names: Vec<String> = lock(&self.nodes).keys().cloned().collect();
        let policy = policies(&self.client).get_opt("cluster-policy").await?;
        let policy = policy.map(|policy| policy.data).unwrap_or_default();
        let tolerated = policy["spec"]["daemonsets"]["tolerations"].clone();
        for name in names {
            self.node(&name, &tolerated).await?;
        }
        Ok(())
    }

    /// What mig-manager and the plugin see of their ConfigMaps.
    async fn mount(&mut self) -> Result<(), kube::Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        if let Some(map) = maps.get_opt("dovetail-mig").await? {
            let text = map.data.and_then(|mut data| data.remove("config.yaml")).unwrap_or_default();
            let config: Value = serde_saphyr::from_str(&text).unwrap_or_default();
            self.layouts.written(config["mig-configs"].clone(), self.mount);
        }
        if let Some(map) = maps.get_opt("dovetail-sharing").await? {
            self.settings.written(json!(map.data.unwrap_or_default()), self.mount);
        }
        Ok(())
    }

    /// What mig-manager and the plugin do to a node; `tolerated` is what the plugin tolerates.
    async fn node(&mut self, name: &str, tolerated: &Value) -> Result<(), kube::Error> {
        let api: Api<Node> = Api::all(self.client.clone());
        let Some(node) = api.get_opt(name).await? else { return Ok(()) };
        let labels = node.metadata.labels.unwrap_or_default();
        let now_ms = self.begin.elapsed().as_millis() as u64;
        let report = {
            let mut nodes = lock(&self.nodes);
            let Some(mig) = nodes.get_mut(name) else { return Ok(()) };
            let label = |key: &str| labels.get(key).map(String::as_str);
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            mig.takes_plugin = taints.iter().all(|taint| {
                let mut list = tolerated.as_array().into_iter().flatten();
                taint.effect != "NoSchedule" || list.any(|one| one["key"] == *taint.key)
            });
            mig.tick(now_ms, label(LABEL), self.layouts.seen());
            mig.tick_plugin(now_ms, label(PLUGIN_CONFIG), self.settings.seen()).clone()
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
        let deployed = if report.is_paused { "paused-for-mig-change" } else { "true" };
        let mut wanted = BTreeMap::from([(DEPLOY, deployed)]);
        wanted.extend(report.state.map(|state| (STATE, state)));
        let replicas = report.replicas.to_string();
        wanted.extend([(STRATEGY, report.strategy), (REPLICAS, &*replicas)]);
        if wanted.iter().any(|(key, value)| labels.get(*key).map(String::as_str) != Some(*value)) {
            let patch = Patch::Merge(json!({"metadata": {"labels": wanted}}));
            api.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Bound pods get their device, or are rejected; devices of pods that are gone are free.
    async fn admit(&mut self) -> Result<(), kube::Error> {
        let all: Api<Pod> = Api::all(self.client.clone());
        let mut present = BTreeSet::new();
        for pod in all.list(&ListParams::default()).await? {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            let Some(spec) = &pod.spec else { continue };
            let Some(node) = &spec.node_name else { continue };
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
            if pod.metadata.deletion_timestamp.is_some() {
                // Its containers have ended.
                let now = DeleteParams::default().grace_period(0);
                pods.delete(&name, &now).await.map(drop).or_else(is_gone)?;
                continue;
            }
            let key = format!("{namespace}/{name}");
            present.insert(key.clone());
            if !self.pods.insert(key.clone()) {
                continue;
            }
            let asked = asked(spec);
            let is_admitted = match (asked, lock(&self.nodes).get_mut(node)) {
                (Some(resource), Some(mig)) => mig.admit(&key, &resource),
                _ => true,
            };
            let status = match is_admitted {
                true => {
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
                }
                false => json!({"phase": "Failed", "reason": "UnexpectedAdmissionError"}),
            };
            let patch = Patch::Strategic(json!({"status": status}));
            pods.patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        for gone in self.pods.difference(&present) {
            lock(&self.nodes).values_mut().for_each(|mig| mig.release(gone));
        }
        self.pods = present;
        Ok(())
    }
}

/// The resource of GPUs that a pod asks for. Kubelets take zero of it as not asked for.
fn asked(spec: &PodSpec) -> Option<String> {
    let limits = spec.containers.iter().filter_map(|one| one.resources.as_ref()?.limits.as_ref());
    let mut asked = limits.flatten().filter(|(_, amount)| amount.0 != "0");
    asked.find(|(name, _)| name.starts_with("nvidia.com/")).map(|(name, _)| name.clone())
}

fn policies(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("nvidia.com", "v1", "ClusterPolicy"));
    let kind = ApiResource { plural: "clusterpolicies".to_owned(), ..kind };
    Api::all_with(client.clone(), &kind)
}

/// What is gone is deleted.
pub(super) fn is_gone(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        other => Err(other),
    }
}

fn lock(nodes: &Mutex<BTreeMap<String, MigNode>>) -> MutexGuard<'_, BTreeMap<String, MigNode>> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An object of these fields.
pub(super) fn from<T: serde::de::DeserializeOwned>(fields: Value) -> T {
    serde_json::from_value(fields)
        .unwrap_or_else(|error| panic!("an object of the operator: {error}"))
}
