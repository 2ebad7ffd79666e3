//! How fast gangs are bound, and how long each is half there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::contestant::Contestant;
use crate::spread::Spread;
use crate::stage::{Stage, create, pod};

const NODES: usize = 1_000;
const GANGS: usize = 64;
const MEMBERS: usize = 64;
const TURNS: usize = 5;

pub(crate) fn print() {
    let stage = Stage::with_nodes(NODES);
    timed(Contestant::BareClient, "warm", &stage);
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut halves: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS {
        for (at, contestant) in Contestant::ALL.into_iter().enumerate() {
            let (rate, half) =
                timed(contestant, &format!("{turn}{}", contestant.scheduler_name()), &stage);
            eprintln!("{}: {rate:.0} pods/s", contestant.name());
            rates[at].push(rate);
            halves[at].extend(half);
        }
    }
    let (rates, halves) = (rates.map(Spread::of), halves.map(Spread::of));
    let limit = rates[0].median();
    println!(
        "| client | pods/s: median of {TURNS} (range) | of the bare client | first to last bind of \
         a gang: p50 ms | p99 ms |"
    );
    println!("|---|---|---|---|---|");
    for (at, contestant) in Contestant::ALL.into_iter().enumerate() {
        println!(
            "| {} | {} | {:.2} | {:.0} | {:.0} |",
            contestant.name(),
            rates[at],
            rates[at].median() / limit,
            halves[at].median(),
            halves[at].percentile(99),
        );
    }
    let ratio = rates[1].median() / limit;
    println!("\ndovetail to the bare client: {ratio:.2} (target 0.70); p99 target 1,000 ms");
    let peer = rates[1].median() / rates[2].median();
    println!("dovetail to kube-scheduler: {peer:.1} (target 3)");
}

/// Pods per second, and for each gang of a turn the milliseconds from its first bound member to its
/// last.
fn timed(contestant: Contestant, turn: &str, stage: &Stage) -> (f64, Vec<f64>) {
    let gangs: Vec<String> = (0..GANGS).map(|at| format!("{turn}.{at}")).collect();
    stage.runtime.block_on(create(&groups(stage), gangs.iter().map(|name| group(name, MEMBERS))));
    let names = gangs.iter().flat_map(|gang| (0..MEMBERS).map(move |at| format!("{gang}-{at}")));
    let names: Vec<String> = names.collect();
    stage.create_pods(names.iter().map(|name| member(contestant.scheduler_name(), name)));
    let mut bound = stage.runtime.block_on(stage.watch_bound());
    let binding = contestant.begin(stage, names, false);
    let seen = stage.runtime.block_on(bound.take(GANGS * MEMBERS));
    drop(binding);
    stage.remove_pods();
    measured(&seen)
}

fn measured(seen: &[(String, Instant)]) -> (f64, Vec<f64>) {
    let mut gangs: BTreeMap<&str, (Instant, Instant)> = BTreeMap::new();
    for (name, at) in seen {
        let gang = gang_of(name);
        gangs.entry(gang).or_insert((*at, *at)).1 = *at;
    }
    let whole = seen[seen.len() - 1].1 - seen[0].1;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let halves = gangs.values().map(|(first, last)| ms(*last - *first));
    (seen.len() as f64 / whole.as_secs_f64(), halves.collect())
}

pub(crate) fn groups(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup");
    Api::default_namespaced_with(stage.client.clone(), &ApiResource::from_gvk(&kind))
}

pub(crate) fn group(name: &str, members: usize) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}}})
}

fn member(scheduler: &str, name: &str) -> Value {
    let mut pod = pod(scheduler, name);
    let group = gang_of(name);
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    pod
}

/// Names of gangs are new each turn, because the server keeps a group until its protection is
/// lifted.
fn gang_of(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(gang, _)| gang)
}
