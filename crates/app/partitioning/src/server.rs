//! The requests to the API server that a change of a layout takes.

use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use dovetail_apiserver::client::client;
use dovetail_apiserver::perform;
use dovetail_console::plain::plain_message;
use dovetail_control::answer::message;
use dovetail_control::request::{ApiRequest, Method, RequestClass};
use dovetail_model::MigTable;
use dovetail_objects::{DisruptionBudget, Pod};
use dovetail_sharing::config_map::Layouts;
use dovetail_sharing::names::{DEFAULT_CONFIG_MAP, FIELD_MANAGER};
use dovetail_sharing::{
    Component, EvictionFacts, ObjectName, PodMove, Seen, SharingPolicy, Timing, Write, apply_query,
};
use dovetail_sources::kubeconfig::ConnectionFlags;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::WorkloadName;
use crate::budgets::refusing;

pub(crate) const POLICIES: &str = "/apis/dovetail.dev/v1alpha1/sharingpolicies";

/// Where AMD's charts install its operator.
const AMD_NAMESPACE: &str = "kube-amd-gpu";

/// Body of a patch by RFC 7386.
const MERGE: &str = "application/merge-patch+json";
/// Body of a server-side apply; JSON is YAML, too.
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// What became of the eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// It is ending, or gone.
    Accepted,
    /// It stays for now, with the reason: a disruption budget, or a server that is busy.
    Refused(String),
}

/// The API server, and the namespace of the GPU Operator.
pub(crate) struct Server {
    client: Client,
    /// For evictions, once there are any: the other client retries what a disruption budget refuses
    /// (429).
    evictions: OnceLock<Client>,
    config: Config,
    pub(crate) operator_namespace: String,
    /// Those of AMD's operator, once they are read.
    device_configs: OnceLock<Vec<Value>>,
}

impl Server {
    pub(crate) async fn connect(flags: &ConnectionFlags, operator_namespace: &str) -> Result<Self> {
        let config = flags.connect().await?;
        let (client, evictions) = (client(config.clone())?, OnceLock::new());
        let operator_namespace = operator_namespace.to_owned();
        let device_configs = OnceLock::new();
        Ok(Self { client, evictions, config, operator_namespace, device_configs })
    }

    fn evictions(&self) -> Result<&Client> {
        if let Some(client) = self.evictions.get() {
            return Ok(client);
        }
        let mut config = self.config.clone();
        config.default_retry = false;
        let made = client(config)?;
        Ok(self.evictions.get_or_init(|| made))
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<(&'static str, &Value)>,
    ) -> Result<(u16, Value)> {
        let what = format!("{method:?} {path}");
        let (code, bytes) = answer(&self.client, method, path, body).await?;
        match code {
            200..300 => Ok((code, serde_json::from_slice(&bytes).unwrap_or_default())),
            404 | 409 => Ok((code, Value::Null)),
            _ => Err(refused(&what, code, &bytes)),
        }
    }

    /// Evicts a pod of this UID, or only asks whether that would be allowed.
    pub(crate) async fn evict(&self, pod: &str, uid: &str, is_trial: bool) -> Result<Eviction> {
        let (code, bytes) = self.ask_to_evict(pod, uid, is_trial).await?;
        evicted(pod, code, &bytes)
    }

    /// Why a pod may not be evicted now; `None` if it may. Credentials that may not evict read the
    /// PodDisruptionBudgets instead.
    pub(crate) async fn refuses_eviction(&self, one: &PodMove) -> Result<Option<String>> {
        let (code, bytes) = self.ask_to_evict(&one.pod, &one.uid, true).await?;
        if code == 403 {
            return self.refused_by_budget(one).await;
        }
        match evicted(&one.pod, code, &bytes)? {
            Eviction::Accepted => Ok(None),
            Eviction::Refused(why) => Ok(Some(why)),
        }
    }

    async fn refused_by_budget(&self, one: &PodMove) -> Result<Option<String>> {
        let (namespace, _) = one.pod.split_once('/').unwrap_or_default();
        let pods = self.pods_in(namespace).await?;
        let Some(pod) = pods.iter().find(|pod| pod["metadata"]["uid"] == *one.uid) else {
            return Ok(None);
        };
        let pod = Pod::deserialize(pod).with_context(|| format!("pod {}", one.pod))?;
        let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
        let list = self.get(path).await?.unwrap_or_default();
        let items = list["items"].as_array().into_iter().flatten();
        let budgets: Result<Vec<_>, _> = items.map(DisruptionBudget::deserialize).collect();
        let budgets = budgets.with_context(|| format!("a budget of namespace {namespace}"))?;
        Ok(refusing(&budgets, &pod))
    }

    /// Code and body of the answer to an eviction.
    async fn ask_to_evict(&self, pod: &str, uid: &str, is_trial: bool) -> Result<(u16, Vec<u8>)> {
        let (namespace, name) = pod.split_once('/').unwrap_or_default();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        let mut options = json!({"preconditions": {"uid": uid}});
        if is_trial {
            options["dryRun"] = json!(["All"]);
        }
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace}, "deleteOptions": options});
        answer(self.evictions()?, Method::Post, path, Some((JSON, &body))).await
    }

    /// An object; `None` if there is none.
    pub(crate) async fn get(&self, path: String) -> Result<Option<Value>> {
        let (code, object) = self.send(Method::Get, path, None).await?;
        Ok((code != 404).then_some(object))
    }

    /// The policies; an error text for each that cannot be read.
    pub(crate) async fn policies(&self) -> Result<Vec<Result<SharingPolicy, String>>> {
        let Some(list) = self.get(POLICIES.to_owned()).await? else { return Ok(Vec::new()) };
        let items = list["items"].as_array().into_iter().flatten();
        let read = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            serde_json::from_value(object.clone()).map_err(|error| format!("{name}: {error}"))
        };
        Ok(items.map(read).collect())
    }

    /// Reports in the status of a policy.
    pub(crate) async fn report(&self, policy: &str, patch: &Value) -> Result<()> {
        let path = format!("{POLICIES}/{policy}/status");
        self.send(Method::Patch, path, Some((MERGE, patch))).await.map(drop)
    }

    /// The GPU Operator's ClusterPolicy; `None` where there is no operator.
    pub(crate) async fn cluster_policy(&self) -> Result<Option<Value>> {
        let list = self.get("/apis/nvidia.com/v1/clusterpolicies".to_owned()).await?;
        Ok(list.and_then(|list| list["items"].as_array()?.first().cloned()))
    }

    /// The DeviceConfigs of AMD's GPU Operator; none where there is no operator.
    pub(crate) async fn device_configs(&self) -> Result<&[Value]> {
        if let Some(configs) = self.device_configs.get() {
            return Ok(configs);
        }
        let list = self.get("/apis/amd.com/v1alpha1/deviceconfigs".to_owned()).await?;
        let items = list.unwrap_or_default()["items"].as_array().cloned().unwrap_or_default();
        Ok(self.device_configs.get_or_init(|| items))
    }

    /// The namespace of a component's operator.
    pub(crate) async fn namespace(&self, of: Component) -> Result<String> {
        if of != Component::DeviceConfigManager {
            return Ok(self.operator_namespace.clone());
        }
        let first = self.device_configs().await?.first();
        let namespace = first.and_then(|config| config["metadata"]["namespace"].as_str());
        Ok(namespace.unwrap_or(AMD_NAMESPACE).to_owned())
    }

    async fn config_map(&self, of: Component, name: &str) -> Result<String> {
        let namespace = self.namespace(of).await?;
        Ok(format!("/api/v1/namespaces/{namespace}/configmaps/{name}"))
    }

    /// The layouts that a component may be asked for, and whether their ConfigMap exists. Where it
    /// does not, they are those that the operator ships.
    pub(crate) async fn layouts(&self, of: Component) -> Result<(Layouts, bool)> {
        if let Some(layouts) = self.layouts_in(of, of.config_map()).await? {
            return Ok((layouts, true));
        }
        let shipped = match of {
            Component::MigManager => self.layouts_in(of, DEFAULT_CONFIG_MAP).await?,
            Component::DevicePlugin => None,
            Component::DeviceConfigManager => {
                let configs = self.device_configs().await?.iter();
                let mut names = configs
                    .filter_map(|one| one["spec"]["configManager"]["config"]["name"].as_str());
                match names.find(|name| *name != of.config_map()) {
                    Some(name) => self.layouts_in(of, name).await?,
                    None => None,
                }
            }
        };
        Ok((shipped.map_or_else(|| Layouts::least(of), Layouts::for_new), false))
    }

    /// The layouts in a ConfigMap for a component; `None` if there is none of the name.
    pub(crate) async fn layouts_in(&self, of: Component, name: &str) -> Result<Option<Layouts>> {
        let Some(object) = self.get(self.config_map(of, name).await?).await? else {
            return Ok(None);
        };
        let namespace = self.namespace(of).await?;
        let layouts = Layouts::read(of, &object).map_err(|problem| {
            anyhow!("ConfigMap {namespace}/{name}: {}", plain_message(&problem))
        })?;
        Ok(Some(layouts))
    }

    /// Writes the layouts; `false` if others have written them in between.
    pub(crate) async fn write_layouts(
        &self,
        of: Component,
        layouts: &Layouts,
        is_there: bool,
        now_ms: u64,
    ) -> Result<bool> {
        let namespace = self.namespace(of).await?;
        let object = layouts.object(&namespace, now_ms);
        let (method, path) = match is_there {
            true => (Method::Put, self.config_map(of, of.config_map()).await?),
            false => (Method::Post, format!("/api/v1/namespaces/{namespace}/configmaps")),
        };
        let (code, _) = self.send(method, path, Some((JSON, &object))).await?;
        Ok(code != 409 && code != 404)
    }

    /// A node as it is now, with the pods on it. `by`: the component that is to change it, if no
    /// record says that.
    pub(crate) async fn seen(
        &self,
        node: &str,
        table: Option<&MigTable>,
        timing: &Timing,
        by: Option<Component>,
    ) -> Result<(Seen, Vec<Pod>)> {
        // The pods are read after the node: a pod that is missed was bound after the node was read.
        let object = self.get(format!("/api/v1/nodes/{node}")).await?;
        let object = object.with_context(|| format!("node {node} no longer exists"))?;
        let objects = self.pods_of(node).await?;
        let unread = || format!("node {node}: a pod on it cannot be read");
        let pods = objects.iter().map(Pod::deserialize).collect::<Result<Vec<Pod>, _>>();
        let pods = pods.with_context(unread)?;
        let seen = Seen::read(&object, &pods, table)
            .map_err(|problem| anyhow!(plain_message(&problem)))?;
        let by = by.or_else(|| seen.record.as_ref().map(|record| record.by));
        let seen = match by.filter(|by| by.clearing_taint().is_some()) {
            Some(by) => {
                let facts = objects.iter().map(EvictionFacts::deserialize);
                let facts = facts.collect::<Result<Vec<_>, _>>().with_context(unread)?;
                let with_facts = pods.iter().zip(facts.iter().map(Some));
                seen.clearing(by, with_facts, &self.namespace(by).await?)
            }
            None => seen,
        };
        match seen.record.as_ref().filter(|record| !record.step.is_over()) {
            None => Ok((seen, pods)),
            Some(record) => {
                let (layouts, _) = self.layouts(record.by).await?;
                Ok((seen.with(&layouts, timing.mount_ms), pods))
            }
        }
    }

    /// Pods that are bound to a node, with every field that the server has.
    pub(crate) async fn pods_of(&self, node: &str) -> Result<Vec<Value>> {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The pods of a namespace, with every field that the server has.
    pub(crate) async fn pods_in(&self, namespace: &str) -> Result<Vec<Value>> {
        let list = self.get(format!("/api/v1/namespaces/{namespace}/pods")).await?;
        let list = list.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The owner of a ReplicaSet; empty if there is none.
    pub(crate) async fn owner_uid(&self, namespace: &str, replica_set: &str) -> Result<String> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{replica_set}");
        let object = self.get(path).await?.unwrap_or_default();
        let uid = controller_of(&object).and_then(|owner| owner["uid"].as_str());
        Ok(uid.unwrap_or_default().to_owned())
    }

    /// The Deployment whose ReplicaSet a pod that moves belongs to; `None` if it has none.
    pub(crate) async fn deployment_of(&self, one: &PodMove) -> Result<Option<Value>> {
        let ObjectName { kind, namespace, name, .. } = &one.owner;
        if kind != "ReplicaSet" {
            return Ok(None);
        }
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{name}");
        let replica_set = self.get(path).await?.unwrap_or_default();
        let is_deployment = |owner: &&Value| {
            owner["kind"] == "Deployment"
                && owner["apiVersion"].as_str().is_some_and(|version| version.starts_with("apps/"))
        };
        let owner = controller_of(&replica_set).filter(is_deployment);
        let Some(name) = owner.and_then(|owner| owner["name"].as_str()) else { return Ok(None) };
        self.get(format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")).await
    }

    /// Sends a merge patch of a Deployment; `false` if it has changed since it was read, or is
    /// gone.
    pub(crate) async fn patch_deployment(&self, read: &Value, patch: &Value) -> Result<bool> {
        let text = |field: &str| read["metadata"][field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let (code, _) = self.send(Method::Patch, path, Some((MERGE, patch))).await?;
        Ok(code == 200)
    }

    /// The HorizontalPodAutoscalers of a namespace.
    pub(crate) async fn autoscalers(&self, namespace: &str) -> Result<Vec<Value>> {
        let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// A Deployment or StatefulSet; `None` if there is none of the name.
    pub(crate) async fn owner(&self, name: &WorkloadName) -> Result<Option<Value>> {
        self.get(name.path()).await
    }

    /// Applies fields of a Deployment or StatefulSet; `false` if it has changed in between.
    pub(crate) async fn apply(&self, name: &WorkloadName, body: &Value) -> Result<bool> {
        let path = format!("{}?{}", name.path(), apply_query());
        let (code, _) = self.send(Method::Patch, path, Some((APPLY, body))).await?;
        Ok(code == 200)
    }

    /// Creates an event; one of its name says the same.
    pub(crate) async fn create_event(&self, event: &Value) -> Result<()> {
        let namespace = event["metadata"]["namespace"].as_str().unwrap_or("default");
        let path = format!("/api/v1/namespaces/{namespace}/events");
        self.send(Method::Post, path, Some((JSON, event))).await.map(drop)
    }

    /// Sends a write to a node, without its event; `false` if the node has changed in between.
    pub(crate) async fn write(&self, node: &str, write: &Write) -> Result<bool> {
        self.patch_node(node, &write.patch).await
    }

    /// Sends a merge patch of a node; `false` if the node has changed in between, or is gone.
    pub(crate) async fn patch_node(&self, node: &str, patch: &Value) -> Result<bool> {
        let path = format!("/api/v1/nodes/{node}?fieldManager={FIELD_MANAGER}");
        let (code, _) = self.send(Method::Patch, path, Some((MERGE, patch))).await?;
        Ok(code == 200)
    }
}

/// What an answer says about the eviction of a pod.
fn evicted(pod: &str, code: u16, bytes: &[u8]) -> Result<Eviction> {
    match code {
        // Another pod has its name now.
        200..300 | 404 | 409 => Ok(Eviction::Accepted),
        // More than one disruption budget is a 500.
        429 | 500 => Ok(Eviction::Refused(told(bytes))),
        _ => Err(refused(&format!("eviction of pod {pod}"), code, bytes)),
    }
}

/// Code and body of whatever the server answers.
async fn answer(
    client: &Client,
    method: Method,
    path: String,
    body: Option<(&'static str, &Value)>,
) -> Result<(u16, Vec<u8>)> {
    let what = format!("{method:?} {path}");
    let (media_type, body) = match body {
        Some((media_type, body)) => (media_type, body.to_string().into_bytes()),
        None => ("", Vec::new()),
    };
    let request =
        ApiRequest { number: 0, class: RequestClass::Order, method, path, media_type, body };
    let answered = perform(client, request, None).await;
    let (code, _, bytes) = answered.map_err(|none| anyhow!("{what}: {}", none.error))?;
    Ok((code, bytes.to_vec()))
}

/// What controls an object.
fn controller_of(object: &Value) -> Option<&Value> {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.find(|owner| owner["controller"] == true)
}

/// Why an eviction is refused: the causes name the budget.
fn told(bytes: &[u8]) -> String {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let causes: Vec<&str> = causes.filter_map(|cause| cause["message"].as_str()).collect();
    plain_message(&match causes.is_empty() {
        true => message(bytes),
        false => causes.join("; "),
    })
}

fn refused(what: &str, code: u16, bytes: &[u8]) -> anyhow::Error {
    let message = message(bytes);
    match code {
        403 => anyhow!(
            "{}: see the ClusterRole in deploy/sharing/rbac.yaml for the required permissions",
            plain_message(&message)
        ),
        _ => anyhow!("{what}: {code}: {}", plain_message(&message)),
    }
}
