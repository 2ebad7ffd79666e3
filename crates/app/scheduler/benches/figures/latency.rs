//! How long one pod waits where nothing else does.

use std::time::Instant;

use kube::api::PostParams;

use crate::contestant::{Contestant, post_binding};
use crate::scheduler_process::SchedulerProcess;
use crate::spread::Spread;
use crate::stage::{Stage, pod};

const NODES: usize = 5_000;
const PODS: usize = 300;
/// The first pods meet cold caches and connections.
const WARM_UP: usize = 20;

pub(crate) fn print() {
    let stage = Stage::with_nodes(NODES);
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let bare = stage.runtime.block_on(async {
        let mut times = Vec::new();
        for at in 0..PODS {
            create(&stage, Contestant::BareClient, at).await;
            let begun = Instant::now();
            post_binding(&stage.client, &format!("p{at}"), &format!("n{at}")).await;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            bound.next().await;
        }
        times
    });
    drop(bound);
    stage.remove_pods();
    let process = SchedulerProcess::start(stage.control_plane.kubeconfig());
    let dovetail = stage.runtime.block_on(one_by_one(&stage, Contestant::Dovetail));
    drop(process);
    stage.remove_pods();
    let started = stage
        .control_plane
        .cluster()
        .start_scheduler(dovetail_testkit::cluster::NodesLookedAt::Some);
    started.expect("kube-scheduler");
    let peer = stage.runtime.block_on(one_by_one(&stage, Contestant::KubeScheduler));
    println!("| what | p50 ms | p99 ms |\n|---|---|---|");
    let [bare, dovetail, peer] =
        [bare, dovetail, peer].map(|times| Spread::of(times.into_iter().skip(WARM_UP)));
    for (what, spread) in [
        ("bare client: the bind alone", &bare),
        ("dovetail: created to bound", &dovetail),
        ("kube-scheduler: created to bound", &peer),
    ] {
        println!("| {what} | {:.2} | {:.2} |", spread.median(), spread.percentile(99));
    }
    let ratio = dovetail.median() / bare.median();
    println!("\ndovetail's p50 to that of the bare bind: {ratio:.2} (target 2); p99 target 50 ms");
}

/// From the answer that a pod is created to the watch that shows it bound, in milliseconds.
async fn one_by_one(stage: &Stage, who: Contestant) -> Vec<f64> {
    let mut bound = stage.watch_bound().await;
    let mut times = Vec::new();
    for at in 0..PODS {
        create(stage, who, at).await;
        let begun = Instant::now();
        times.push((bound.next().await.1 - begun).as_secs_f64() * 1e3);
    }
    times
}

async fn create(stage: &Stage, who: Contestant, at: usize) {
    let pod = serde_json::from_value(pod(who.scheduler_name(), &format!("p{at}")));
    let pod = pod.expect("a pod");
    drop(stage.pods().create(&PostParams::default(), &pod).await.expect("a new pod"));
}
