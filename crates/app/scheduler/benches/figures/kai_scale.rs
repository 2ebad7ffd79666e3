//! The scale tests of which KAI Scheduler publishes the times, on as many nodes: from the first
//! creation to the last bind.
//!
//! Its times are in `docs/scale-tests/example-results.json` of 2026-07-03, of 500 nodes that KWOK
//! plays.

use std::time::{Duration, Instant};

use dovetail_apiserver::watch::served;
use dovetail_cluster::queues::{QUEUE_LABEL, definition};
use dovetail_objects::{DISRUPTION_TARGET, Kind, RECLAIM_BY_SCHEDULER};
use dovetail_testkit::{KubeletOptions, Kubelets};
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, EvictParams, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::contestant::{BARE_IN_FLIGHT, Contestant, post_binding};
use crate::gangs::{group, groups};
use crate::scheduler_process::SchedulerProcess;
use crate::seen::Seen;
use crate::stage::{Stage, create, pod};

const NODES: usize = 500;
/// GPUs of all nodes.
const GPUS: usize = NODES * 8;
/// From the eviction of a pod to the end of its containers.
const TERMINATION: Duration = Duration::from_secs(1);
/// Whoever has not bound all pods by then is not waited for: with both clients, and what is set up
/// for each, a figure takes at most three minutes.
const LIMIT: Duration = Duration::from_secs(100);
/// Queue of the pods that are measured, which is guaranteed all GPUs.
const OURS: &str = "ours";
/// Queue of the pods that run already, which is guaranteed none.
const LENT: &str = "lent";
/// Name of the gang, and what the names of the pods begin with that are measured.
const GANG: &str = "p";

/// What is measured.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Pods of one GPU that run already, evenly on all nodes. If they have all GPUs, each pod that
    /// is measured takes the place of as many as it has GPUs.
    running: usize,
    /// Pods that are measured.
    pods: usize,
    /// GPUs of each.
    gpus: usize,
    /// They are one gang.
    is_gang: bool,
    /// KAI Scheduler's time.
    kai_s: f64,
    /// At most so many times that.
    target: f64,
}

const FILL: Case =
    Case { running: 0, pods: GPUS, gpus: 1, is_gang: false, kai_s: 398.0, target: 0.03 };
const BUSY_GANG: Case =
    Case { running: GPUS - 512, pods: 512, gpus: 1, is_gang: true, kai_s: 49.0, target: 0.05 };
const RECLAIM_GANG: Case =
    Case { running: GPUS, pods: 250, gpus: 8, is_gang: true, kai_s: 102.0, target: 0.1 };
const RECLAIM: Case =
    Case { running: GPUS, pods: GPUS, gpus: 1, is_gang: false, kai_s: 694.0, target: 0.1 };

pub(crate) fn print_fill() {
    compare(&FILL);
}

pub(crate) fn print_busy_gang() {
    compare(&BUSY_GANG);
}

pub(crate) fn print_reclaim_gang() {
    compare(&RECLAIM_GANG);
}

pub(crate) fn print_reclaim() {
    compare(&RECLAIM);
}

impl Case {
    fn reclaims(&self) -> bool {
        self.running == GPUS
    }

    /// Where the bare client binds a pod.
    fn node(&self, at: usize) -> String {
        node(self.running + at)
    }

    /// The pods whose place it takes, all on its node.
    fn victims(&self, at: usize) -> impl Iterator<Item = String> {
        let step = GPUS / self.gpus;
        (0..self.gpus).map(move |gpu| format!("v-{}", at + gpu * step))
    }

    /// The pod that takes the place of a victim.
    fn pod_after(&self, victim: &str) -> usize {
        number(victim) % (GPUS / self.gpus)
    }

    fn pod(&self, scheduler: &str, at: usize) -> Value {
        let mut pod = pod(scheduler, &format!("{GANG}-{at}"));
        pod["metadata"]["labels"] = json!({QUEUE_LABEL: OURS});
        let limits = json!({"nvidia.com/gpu": self.gpus.to_string()});
        pod["spec"]["containers"][0]["resources"]["limits"] = limits;
        if self.is_gang {
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": GANG});
        }
        pod
    }
}

fn node(slot: usize) -> String {
    format!("n{}", slot % NODES)
}

fn number(pod: &str) -> usize {
    let number = pod.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
    number.expect("a pod with a number")
}

fn running_pod(scheduler: &str, at: usize) -> Value {
    let mut pod = pod(scheduler, &format!("v-{at}"));
    pod["metadata"]["labels"] = json!({QUEUE_LABEL: LENT});
    pod["spec"]["nodeName"] = json!(node(at));
    pod
}

/// One turn each.
fn compare(case: &Case) {
    let both = [Contestant::BareClient, Contestant::Dovetail];
    let [bare, dovetail] = both.map(|contestant| measure(contestant, case));
    println!("| client | seconds from the first creation to the last bind | pods/s |");
    println!("|---|---|---|");
    for (contestant, times) in both.into_iter().zip([&bare, &dovetail]) {
        println!("| {} | {:.1} | {:.0} |", contestant.name(), times.seconds, times.rate());
    }
    let Case { kai_s, target, .. } = case;
    let of_kai = dovetail.seconds / kai_s;
    println!("\ndovetail's time to KAI Scheduler's {kai_s:.0} s: {of_kai:.3} (target {target})");
    let ratio = dovetail.rate() / bare.rate();
    println!("dovetail's rate to that of the bare client: {ratio:.2} (target 0.7)\n");
}

/// How many pods were bound, and in what time.
struct Times {
    bound: usize,
    seconds: f64,
}

impl Times {
    fn rate(&self) -> f64 {
        self.bound as f64 / self.seconds
    }
}

/// Each on a control plane of its own: what one has evicted is there again for the other.
fn measure(contestant: Contestant, case: &Case) -> Times {
    let stage = Stage::with_nodes(NODES);
    let scheduler = contestant.scheduler_name();
    stage.runtime.block_on(create_queues(&stage.client));
    stage.create_pods((0..case.running).map(|at| running_pod(scheduler, at)));
    let _kubelets = stage.runtime.block_on(start_kubelets(&stage.client, case.running));
    let _process = match contestant {
        Contestant::Dovetail => Some(start_scheduler(&stage)),
        _ => {
            stage.runtime.block_on(start_bare(&stage, *case));
            None
        }
    };
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let begun = Instant::now();
    let creating = async {
        if case.is_gang {
            create(&groups(&stage), std::iter::once(group(GANG, case.pods))).await;
        }
        let pods = (0..case.pods).map(|at| case.pod(scheduler, at));
        create(&stage.untyped_pods(), pods).await;
    };
    let ((), (bound, last)) = stage
        .runtime
        .block_on(async { tokio::join!(creating, bound.until(begun + LIMIT, case.pods)) });
    let name = contestant.name();
    let time = match last {
        Some(last) if bound == case.pods => last - begun,
        _ => {
            println!("{name}: only {bound} of {} pods were bound in {LIMIT:?}", case.pods);
            LIMIT
        }
    };
    eprintln!("{name}: {bound} pods in {time:.1?}");
    Times { bound, seconds: time.as_secs_f64() }
}

async fn create_queues(client: &Client) {
    let api = |group: &str, version: &str, kind: &str| {
        let kind = GroupVersionKind::gvk(group, version, kind);
        Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind))
    };
    let definitions = api("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    create(&definitions, std::iter::once(definition().object())).await;
    while !served(client).await.expect("the server's kinds").contains_key(&Kind::Queue) {}
    let queue = |(name, gpus): (&str, usize)| {
        json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"guaranteed": {"nvidia.com/gpu": gpus}, "namespaceSelector": {}}})
    };
    let queues = [(OURS, GPUS), (LENT, 0)].into_iter().map(queue);
    create(&api("dovetail.dev", "v1alpha1", "Queue"), queues).await;
}

/// Returns when so many pods run.
async fn start_kubelets(client: &Client, pods: usize) -> Kubelets {
    let options = KubeletOptions { terminate_after: TERMINATION, ..KubeletOptions::default() };
    let kubelets = Kubelets::start(client.clone(), options);
    kubelets.wait_until_listed(LIMIT).await.expect("kubelets");
    let all_run = kubelets.wait_until(LIMIT, |counts| counts.running == pods as u64).await;
    all_run.expect("pods that run");
    kubelets
}

/// Returns when it has bound a pod, which has no GPU.
fn start_scheduler(stage: &Stage) -> SchedulerProcess {
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let process = SchedulerProcess::start_with_preset(stage.control_plane.kubeconfig(), "fair");
    let mut first = pod(Contestant::Dovetail.scheduler_name(), "first");
    first["spec"]["containers"][0]["resources"] = json!({});
    stage.create_pods(std::iter::once(first));
    stage.runtime.block_on(bound.next());
    process
}

/// Begins to see pods that have no node, and victims that are gone, and to write for both.
async fn start_bare(stage: &Stage, case: Case) {
    let (pending, gone) = (stage.watch_pending().await, stage.watch_gone().await);
    let client = stage.client.clone();
    stage.runtime.spawn(serve_bare(client, case, pending, gone));
}

/// Makes the writes of a scheduler for each pod, and decides nothing. As a scheduler must, it waits
/// for all pods of a gang before it writes, and binds a pod when its victims are gone.
async fn serve_bare(client: Client, case: Case, mut pending: Seen, gone: Seen) {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let gang = pending.take(if case.is_gang { case.pods } else { 0 }).await;
    let gang = gang.into_iter().map(|(name, _)| name);
    let arriving = stream::iter(gang).chain(pending.names());
    let arriving = arriving.for_each_concurrent(BARE_IN_FLIGHT, |name| {
        let (pods, client) = (pods.clone(), client.clone());
        async move {
            let at = number(&name);
            if case.reclaims() {
                make_room(&pods, case, at).await;
            } else {
                post_binding(&client, &name, &case.node(at)).await;
            }
        }
    });
    let mut victims_left = vec![case.gpus; case.pods];
    let freed = gone.names().filter_map(move |victim| {
        let at = case.pod_after(&victim);
        victims_left[at] -= 1;
        std::future::ready((victims_left[at] == 0).then_some(at))
    });
    let binding = freed.for_each_concurrent(BARE_IN_FLIGHT, |at| {
        let client = client.clone();
        async move { post_binding(&client, &format!("{GANG}-{at}"), &case.node(at)).await }
    });
    tokio::join!(arriving, binding);
}

/// The writes by which dovetail reclaims: the node of the pod, and of each victim why it is
/// evicted, the eviction, and again why, because the server replaces that.
async fn make_room(pods: &Api<Pod>, case: Case, at: usize) {
    let nominated = json!({"status": {"nominatedNodeName": case.node(at)}});
    let nominated = patch_status(pods, &format!("{GANG}-{at}"), &nominated).await;
    drop(nominated.expect("a nominated node"));
    let why = json!({"type": DISRUPTION_TARGET, "status": "True", "reason": RECLAIM_BY_SCHEDULER,
        "message": "evicted to return quota to another queue"});
    let why = json!({"status": {"conditions": [why]}});
    for victim in case.victims(at) {
        drop(patch_status(pods, &victim, &why).await.expect("a condition"));
        drop(pods.evict(&victim, &EvictParams::default()).await.expect("an eviction"));
        // It may be gone by then.
        drop(patch_status(pods, &victim, &why).await);
    }
}

async fn patch_status(pods: &Api<Pod>, name: &str, patch: &Value) -> Result<Pod, kube::Error> {
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await
}
