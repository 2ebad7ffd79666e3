//! The requests to the API server that a change of a layout takes.

use anyhow::{Context, Result, anyhow, bail};
use dovetail_apiserver::client::client;
use dovetail_apiserver::perform;
use dovetail_console::plain::plain;
use dovetail_control::answer::message;
use dovetail_control::request::{Class, Method, Request};
use dovetail_model::MigTable;
use dovetail_objects::Pod;
use dovetail_sharing::config_map::Layouts;
use dovetail_sharing::names::DEFAULT_CONFIG_MAP;
use dovetail_sharing::{Component, Seen, SharingPolicy, Timing, Write};
use dovetail_sources::kubeconfig::ConnectionFlags;
use kube::Client;
use serde_json::Value;

pub(crate) const POLICIES: &str = "/apis/dovetail.dev/v1alpha1/sharingpolicies";

/// Body of a patch by RFC 7386.
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// The API server, and the namespace of the GPU Operator.
pub(crate) struct Server {
    client: Client,
    pub(crate) operator_namespace: String,
}

impl Server {
    pub(crate) async fn connect(flags: &ConnectionFlags, operator_namespace: &str) -> Result<Self> {
        let client = client(flags.connect().await?)?;
        Ok(Self { client, operator_namespace: operator_namespace.to_owned() })
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<(&'static str, &Value)>,
    ) -> Result<(u16, Value)> {
        let what = format!("{method:?} {path}");
        let (media_type, body) = match body {
            Some((media_type, body)) => (media_type, body.to_string().into_bytes()),
            None => ("", Vec::new()),
        };
        let request = Request { number: 0, class: Class::Order, method, path, media_type, body };
        let answered = perform(&self.client, request, None).await;
        let (code, _, bytes) = answered.map_err(|none| anyhow!("{what}: {}", none.error))?;
        match code {
            200..300 => Ok((code, serde_json::from_slice(&bytes).unwrap_or_default())),
            404 | 409 => Ok((code, Value::Null)),
            403 => bail!(
                "{}: see the ClusterRole in deploy/sharing/rbac.yaml for the rights that this takes",
                plain(&message(&bytes))
            ),
            _ => bail!("{what}: {code}: {}", plain(&message(&bytes))),
        }
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

    fn config_map(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{name}", self.operator_namespace)
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
        };
        Ok((shipped.map_or_else(|| Layouts::least(of), Layouts::for_new), false))
    }

    /// The layouts in a ConfigMap for a component; `None` if there is none of the name.
    pub(crate) async fn layouts_in(&self, of: Component, name: &str) -> Result<Option<Layouts>> {
        let Some(object) = self.get(self.config_map(name)).await? else { return Ok(None) };
        let layouts = Layouts::read(of, &object).map_err(|problem| {
            anyhow!("ConfigMap {}/{name}: {}", self.operator_namespace, plain(&problem))
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
        let object = layouts.object(&self.operator_namespace, now_ms);
        let (method, path) = match is_there {
            true => (Method::Put, self.config_map(of.config_map())),
            false => {
                let namespace = &self.operator_namespace;
                (Method::Post, format!("/api/v1/namespaces/{namespace}/configmaps"))
            }
        };
        let (code, _) = self.send(method, path, Some((JSON, &object))).await?;
        Ok(code != 409 && code != 404)
    }

    /// A node as it is now.
    pub(crate) async fn seen(
        &self,
        node: &str,
        table: Option<&MigTable>,
        timing: &Timing,
    ) -> Result<Seen> {
        // The pods are read after the node: a pod that is missed was bound after the node was read.
        let object = self.get(format!("/api/v1/nodes/{node}")).await?;
        let object = object.with_context(|| format!("node {node} does not exist any more"))?;
        let pods = self.pods_of(node).await?.into_iter();
        let pods: Vec<Pod> = pods
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()
            .with_context(|| format!("node {node}: a pod on it cannot be read"))?;
        let seen = Seen::read(&object, &pods, table)
            .map_err(|problem| anyhow!(plain(&problem).to_string()))?;
        match seen.record.as_ref().filter(|record| !record.step.is_over()) {
            None => Ok(seen),
            Some(record) => {
                let (layouts, _) = self.layouts(record.by).await?;
                Ok(seen.with(&layouts, timing.mount_ms))
            }
        }
    }

    /// Pods that are bound to a node, with every field that the server has.
    pub(crate) async fn pods_of(&self, node: &str) -> Result<Vec<Value>> {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The owner of a ReplicaSet; empty if there is none.
    pub(crate) async fn owner_uid(&self, namespace: &str, replica_set: &str) -> Result<String> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{replica_set}");
        let object = self.get(path).await?.unwrap_or_default();
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners.into_iter().find(|owner| owner["controller"] == true);
        Ok(owner.and_then(|owner| owner["uid"].as_str()).unwrap_or_default().to_owned())
    }

    /// Creates an event; one of its name says the same.
    pub(crate) async fn create_event(&self, event: &Value) -> Result<()> {
        let namespace = event["metadata"]["namespace"].as_str().unwrap_or("default");
        let path = format!("/api/v1/namespaces/{namespace}/events");
        self.send(Method::Post, path, Some((JSON, event))).await.map(drop)
    }

    /// Sends a write to a node, without its event; `false` if the node has changed in between.
    pub(crate) async fn write(&self, node: &str, write: &Write) -> Result<bool> {
        let path = format!("/api/v1/nodes/{node}");
        let (code, _) = self.send(Method::Patch, path, Some((MERGE, &write.patch))).await?;
        Ok(code == 200)
    }
}
