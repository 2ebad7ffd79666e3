//! A real control plane with nodes and pods.

use dovetail_testkit::{ControlPlane, MachineShape, cluster};
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::seen::Seen;

/// Requests on their way while something is set up.
pub(crate) const SET_UP_IN_FLIGHT: usize = 32;

/// A control plane with nodes.
pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
}

impl Stage {
    /// Nodes of eight GPUs each.
    pub(crate) fn with_nodes(nodes: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("threads");
        let control_plane = ControlPlane::start(cluster::Options::default());
        let control_plane = control_plane.expect("a control plane");
        let client = runtime.block_on(control_plane.client()).expect("a client");
        let stage = Self { runtime, control_plane, client };
        let shape = "8xH100".parse::<MachineShape>().expect("a shape");
        let api = Api::<Node>::all(stage.client.clone());
        let objects = (0..nodes).map(|at| shape.node(&format!("n{at}")));
        stage.runtime.block_on(create(&api, objects));
        stage
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Pods as they are written: the types of the client know no groups of pods, and would drop
    /// them without a word.
    pub(crate) fn untyped_pods(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Pod>(&());
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    /// Creates pods.
    pub(crate) fn create_pods(&self, pods: impl Iterator<Item = Value>) {
        self.runtime.block_on(create(&self.untyped_pods(), pods));
    }

    /// Removes all pods, and returns when the last is gone.
    pub(crate) fn remove_pods(&self) {
        self.runtime.block_on(remove(&self.pods()));
    }

    /// Begins to see pods that get a node, from now on.
    pub(crate) async fn watch_bound(&self) -> Seen {
        Seen::begin(self.pods(), "spec.nodeName!=").await
    }

    /// Begins to see pods that come without a node, from now on.
    pub(crate) async fn watch_pending(&self) -> Seen {
        Seen::begin(self.pods(), "spec.nodeName=").await
    }

    /// Begins to see pods with a node that are gone, from now on.
    pub(crate) async fn watch_gone(&self) -> Seen {
        Seen::begin_gone(self.pods(), "spec.nodeName!=").await
    }

    /// Begins to see the events that say of a pod where it was put, from now on.
    pub(crate) async fn watch_scheduled_events(&self) -> Seen {
        Seen::begin(self.events(), "reason=Scheduled").await
    }

    /// Removes all events.
    pub(crate) fn remove_events(&self) {
        self.runtime.block_on(remove(&self.events()));
    }

    fn events(&self) -> Api<Event> {
        Api::default_namespaced(self.client.clone())
    }
}

/// A pod of one GPU.
pub(crate) fn pod(scheduler: &str, name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
}

/// Creates objects, many at a time.
pub(crate) async fn create<K>(api: &Api<K>, objects: impl Iterator<Item = Value>)
where
    K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let creating =
        stream::iter(objects).for_each_concurrent(SET_UP_IN_FLIGHT, |object| async move {
            let object = serde_json::from_value(object).expect("an object of its kind");
            drop(api.create(&PostParams::default(), &object).await.expect("a new object"));
        });
    creating.await;
}

/// Removes all objects, many at a time: the server itself would remove a collection one by one.
pub(crate) async fn remove<K>(api: &Api<K>)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let there = api.list_metadata(&ListParams::default()).await.expect("a list").items;
    let names = there.into_iter().filter_map(|object| object.metadata.name);
    let removing = stream::iter(names).for_each_concurrent(SET_UP_IN_FLIGHT, |name| {
        let now = &now;
        async move { drop(api.delete(&name, now).await.expect("one object less")) }
    });
    removing.await;
    let left = api.list_metadata(&ListParams::default().limit(1)).await;
    assert!(left.expect("a list").items.is_empty(), "objects that are deleted now are gone");
}
