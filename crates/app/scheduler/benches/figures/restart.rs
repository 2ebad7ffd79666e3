//! How long a scheduler takes from its start to its first bind in a full cluster, and what it holds
//! then.

use std::time::Instant;

use dovetail_apiserver::watch::served;
use dovetail_objects::Kind;
use futures_util::{AsyncBufReadExt, StreamExt};
use kube::Client;
use serde_json::{Value, json};

use crate::scheduler_process::SchedulerProcess;
use crate::spread::Spread;
use crate::stage::{Stage, create, pod};

const NODES: usize = 5_000;
const PODS: usize = 100_000;
const POD_BYTES: usize = 5_000;
const TURNS: usize = 5;
const RELISTS: usize = 3;

pub(crate) fn print() {
    let stage = Stage::with_nodes(NODES);
    let objects = (0..PODS).map(bound_pod);
    stage.runtime.block_on(create(&stage.pods(), objects));
    let (mut lists, mut firsts) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        lists.push(stage.runtime.block_on(read_lists(&stage)));
        firsts.push(start_to_first_bind(&stage, &format!("waiting-{turn}")).0);
        eprintln!("lists {:.1} s, first bind {:.1} s", lists[turn], firsts[turn]);
    }
    let [lists, firsts] = [lists, firsts].map(Spread::of);
    println!("| what | median of {TURNS} |\n|---|---|");
    println!("| bare client reads the same lists | {:.1} s |", lists.median());
    println!("| dovetail: start to first bind | {:.1} s (target 12) |", firsts.median());
    let ratio = firsts.median() / lists.median();
    println!("\nfirst bind to the bare lists: {ratio:.2} (target 1.5)\n");
    print_memory(&stage);
}

/// Seconds from the start of a process to the bind of the one pod that waits; the process runs on.
fn start_to_first_bind(stage: &Stage, name: &str) -> (f64, SchedulerProcess) {
    stage.runtime.block_on(create(&stage.pods(), std::iter::once(pod("dovetail", name))));
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let begun = Instant::now();
    let process = SchedulerProcess::start(stage.control_plane.kubeconfig());
    let (_, first) = stage.runtime.block_on(bound.next());
    ((first - begun).as_secs_f64(), process)
}

/// Memory after the first lists, and after and during each time that everything is listed again
/// because the API server was killed.
fn print_memory(stage: &Stage) {
    let (_, process) = start_to_first_bind(stage, "waiting-memory");
    println!("| memory of dovetail | MB resident then | most since the row above |\n|---|---|---|");
    let row = |what: &str| {
        let [now, most] = [process.resident_bytes(), process.most_resident_bytes()];
        println!("| {what} | {:.0} | {:.0} |", now as f64 / 1e6, most as f64 / 1e6);
        process.forget_most();
    };
    row("start to first bind");
    for at in 1..=RELISTS {
        {
            let mut cluster = stage.control_plane.cluster();
            cluster.kill_api_server().expect("a killed server");
            cluster.start_api_server().expect("a server again");
        }
        let mut bound = stage.runtime.block_on(stage.watch_bound());
        let name = format!("after-{at}");
        stage.runtime.block_on(create(&stage.pods(), std::iter::once(pod("dovetail", &name))));
        stage.runtime.block_on(bound.next());
        row(&format!("listed again {at} times, and one more bind"));
    }
    println!("\ntargets: 600 MB after three lists, during one at most 1.2 times that");
}

/// A pod that is on a node, as large as real ones.
fn bound_pod(at: usize) -> Value {
    let mut pod = json!({
        "metadata": {"name": format!("b{at}"), "labels": {"app": format!("a{}", at % 500)}},
        "spec": {"nodeName": format!("n{}", at % NODES), "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"cpu": "1", "memory": "4Gi"}}}]},
    });
    let padding = POD_BYTES.saturating_sub(pod.to_string().len());
    pod["metadata"]["annotations"] = json!({"padding": "x".repeat(padding)});
    pod
}

/// Reads the bytes of every list that a scheduler reads, and makes nothing of them: seconds.
async fn read_lists(stage: &Stage) -> f64 {
    let kinds = served(&stage.client).await.expect("the server's kinds");
    let begun = Instant::now();
    let reading = kinds.into_keys().map(|kind| read_list(&stage.client, kind));
    futures_util::future::join_all(reading).await;
    begun.elapsed().as_secs_f64()
}

async fn read_list(client: &Client, kind: Kind) {
    let group = match kind.group() {
        "" => "/api/v1".to_owned(),
        group => format!("/apis/{group}/{}", kind.version()),
    };
    let path = format!(
        "{group}/{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        kind.plural()
    );
    let request = hyper::Request::get(path).body(Vec::new()).expect("a request");
    let stream = client.request_stream(request).await.expect("a list that streams");
    let mut lines = Box::pin(stream).lines();
    while let Some(line) = lines.next().await {
        if line.expect("a line").contains("k8s.io/initial-events-end") {
            return;
        }
    }
    panic!("the list of {} ends before its end mark", kind.plural());
}
