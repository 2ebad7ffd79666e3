//! Who binds pods: the limit, the peer and dovetail.

use std::time::SystemTime;

use dovetail_testkit::cluster::NodesLookedAt;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::scheduler_process::SchedulerProcess;
use crate::stage::Stage;

/// Binds of the bare client on their way: more bring nothing.
pub(crate) const BARE_IN_FLIGHT: usize = 64;
/// GPUs of a node.
const GPUS: usize = 8;

/// Who may be asked to bind all pods that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// A client that decides nothing and posts one Binding for each pod: what the server can take.
    BareClient,
    Dovetail,
    /// kube-scheduler 1.37.1, whose client may send 5,000 requests a second.
    KubeScheduler,
}

impl Contestant {
    pub(crate) const ALL: [Self; 3] = [Self::BareClient, Self::Dovetail, Self::KubeScheduler];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BareClient => "bare client",
            Self::Dovetail => "dovetail",
            Self::KubeScheduler => "kube-scheduler",
        }
    }

    /// The `schedulerName` of the pods that it binds.
    pub(crate) fn scheduler_name(self) -> &'static str {
        match self {
            Self::BareClient => "nobody",
            Self::Dovetail => "dovetail",
            Self::KubeScheduler => "default-scheduler",
        }
    }

    /// Begins to bind; ends when the answer is dropped. The bare client binds `pods`, and posts the
    /// event of each behind it if it `tells`, as the others always do.
    pub(crate) fn begin(self, stage: &Stage, pods: Vec<String>, tells: bool) -> Binding<'_> {
        let mut process = None;
        match self {
            Self::BareClient => {
                let client = stage.client.clone();
                stage.runtime.spawn(async move { bind_bare(&client, pods, tells).await });
            }
            Self::Dovetail => {
                process = Some(SchedulerProcess::start(stage.control_plane.kubeconfig()));
            }
            Self::KubeScheduler => {
                let started = stage.control_plane.cluster().start_scheduler(NodesLookedAt::Some);
                started.expect("kube-scheduler");
            }
        }
        Binding { stage, process }
    }
}

/// Somebody who binds.
pub(crate) struct Binding<'a> {
    stage: &'a Stage,
    process: Option<SchedulerProcess>,
}

impl Drop for Binding<'_> {
    fn drop(&mut self) {
        drop(self.process.take());
        self.stage.control_plane.cluster().stop_scheduler();
    }
}

async fn bind_bare(client: &Client, pods: Vec<String>, tells: bool) {
    let binding = stream::iter(pods.iter().enumerate());
    let binding = binding.for_each_concurrent(BARE_IN_FLIGHT, |(at, pod)| async move {
        let node = format!("n{}", at / GPUS);
        post_binding(client, pod, &node).await;
        if tells {
            post_event(client, pod, &node).await;
        }
    });
    binding.await;
}

/// Binds a pod, and waits for the answer.
pub(crate) async fn post_binding(client: &Client, pod: &str, node: &str) {
    let body = json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}});
    post(client, &format!("/api/v1/namespaces/default/pods/{pod}/binding"), &body).await;
}

/// The event that kube-scheduler writes for a bound pod.
async fn post_event(client: &Client, pod: &str, node: &str) {
    let now = Timestamp::try_from(SystemTime::now()).expect("a time");
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": format!("{pod}.{:x}", now.as_microsecond()), "namespace": "default"},
        "eventTime": format!("{now:.6}"), "reportingController": "nobody",
        "reportingInstance": "nobody-1", "action": "Binding", "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": pod},
        "note": format!("Successfully assigned default/{pod} to {node}"), "type": "Normal",
    });
    post(client, "/apis/events.k8s.io/v1/namespaces/default/events", &body).await;
}

async fn post(client: &Client, path: &str, body: &Value) {
    let request = hyper::Request::post(path).header("Content-Type", "application/json");
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    drop(client.request_text(request).await.expect("a server that takes it"));
}
