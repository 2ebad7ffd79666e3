//! Gangs while everything goes wrong: a server that fails, nodes that go, another scheduler that
//! binds to the same nodes, and kubelets that reject what does not fit. Owners make anew what they
//! lose. In half of the runs less important pods hold most nodes at first.
//!
//! `DOVETAIL_FAULT_SEEDS` sets how many runs there are; each is the same for the same seed but for
//! the order of threads.

use std::collections::BTreeMap;
use std::time::Duration;

use dovetail_cluster::world::{self, Patience};
use dovetail_scheduler::Options;
use dovetail_testkit::fake_api::{Fault, FaultRule, On, Verb};
use dovetail_testkit::{FakeApi, KubeletOptions, Kubelets, Shape};
use kube::Client;
use serde_json::{Value, json};

use crate::history::Choices;
use crate::preempt::preempting;
use crate::schedule::{PATIENCE, Running, config, fake_nodes, fault_runs, pod};

const NODES: usize = 5;
/// Gangs that all fit, beside whatever the other scheduler does: 16 pods of two GPUs each.
const GANGS: usize = 4;
const SIZE: usize = 4;
/// Pods of one GPU that the other scheduler binds.
const FOREIGN: usize = 4;
/// Pods of whole nodes that are less important than any gang: beside the gangs there is no room for
/// one.
const LOW: usize = 4;

/// A pod by its name, as its owner makes it.
fn member(gang: &str, at: usize, gpus: u32) -> Value {
    let mut pod = pod(&format!("{gang}-{at}"), gpus);
    pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
    let min = if gang == "big" { NODES + 1 } else { SIZE };
    pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": min.to_string()});
    pod
}

/// A less important pod of a whole node.
fn low(at: usize) -> Value {
    let mut pod = pod(&format!("low-{at}"), 8);
    pod["spec"]["priority"] = json!(-1);
    pod
}

/// Everything that owners want there to be.
fn wanted(lows: usize) -> BTreeMap<String, Value> {
    let gangs =
        (0..GANGS).flat_map(|gang| (0..SIZE).map(move |at| member(&format!("g{gang}"), at, 2)));
    // One more than there are nodes: it never fits, and must never have anything.
    let big = (0..=NODES).map(|at| member("big", at, 8));
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    gangs.chain(big).chain((0..lows).map(low)).map(|pod| (name(&pod), pod)).collect()
}

fn faults(choose: &mut Choices) -> Vec<FaultRule> {
    let mut rules = Vec::new();
    for _ in 0..1 + choose.below(3) {
        let per_million = choose.below(300_000) as u32;
        let on_bind = |fault| FaultRule::some(On::binds(), per_million, fault);
        let on_watch = |fault| FaultRule::first(On::new(&[Verb::Watch], "pods"), 2, fault);
        let after_events = choose.below(40) as u32;
        rules.push(match choose.below(9) {
            0 => on_bind(Fault::Conflict),
            1 => on_bind(Fault::TooManyRequests { retry_after_s: 0 }),
            2 => on_bind(Fault::ServerError { code: 500 }),
            3 => on_bind(Fault::ServerError { code: 503 }),
            4 => on_bind(Fault::Cut),
            5 => on_bind(Fault::ReplyLost),
            6 => on_watch(Fault::CutWatch { after_events }),
            7 => on_watch(Fault::ExpireWatch { after_events }),
            _ => on_watch(Fault::DuplicateEvents { per_million: 200_000 }),
        });
    }
    rules
}

/// One run: the server with all that happens to it besides the scheduler.
struct Run {
    api: FakeApi,
    wanted: BTreeMap<String, Value>,
    choose: Choices,
    foreign: usize,
    /// Nodes that still go, and for how many looks one stays away.
    to_go: usize,
    away: Option<(String, usize)>,
}

impl Run {
    fn new(seed: u64, lows: usize) -> Self {
        let api = FakeApi::start().expect("a free port");
        fake_nodes(&api, NODES);
        let mut choose = Choices(seed);
        let wanted = wanted(lows);
        for at in 0..lows {
            let mut pod = low(at);
            pod["spec"]["nodeName"] = json!(format!("n{at}"));
            pod["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1"});
            api.create("pods", "default", &pod).expect("a new pod");
        }
        for (_, pod) in wanted.iter().filter(|(name, _)| !name.starts_with("low")) {
            api.create("pods", "default", pod).expect("a new pod");
        }
        api.set_faults(seed, faults(&mut choose));
        let to_go = choose.below(3);
        Self { api, wanted, choose, foreign: 0, to_go, away: None }
    }

    /// Everybody else does something.
    fn meddle(&mut self) {
        self.make_anew();
        if self.foreign < FOREIGN && self.choose.once_in(3) {
            self.bind_another();
        }
        match self.away.take() {
            Some((node, 0)) => self.add_node(&node),
            Some((node, looks)) => self.away = Some((node, looks - 1)),
            None if self.to_go > 0 && self.choose.once_in(4) => self.remove_node(),
            None => {}
        }
    }

    /// Owners replace the pods that have failed or are gone.
    fn make_anew(&self) {
        let pods = self.api.all("pods");
        for (name, pod) in &self.wanted {
            let there = pods.iter().find(|pod| pod["metadata"]["name"] == **name);
            let failed = there.is_some_and(|pod| pod["status"]["phase"] == "Failed");
            if failed {
                self.forget(name);
            }
            if failed || there.is_none() {
                // It may have been made anew between the look and now.
                _ = self.api.create("pods", "default", pod);
            }
        }
    }

    fn forget(&self, name: &str) {
        // It may be gone already.
        _ = self.api.delete("pods", "default", name, &json!({"gracePeriodSeconds": 0}));
    }

    /// The other scheduler binds a pod of its own, whatever the node has.
    fn bind_another(&mut self) {
        let mut pod = pod(&format!("other-{}", self.foreign), 1);
        pod["spec"]["schedulerName"] = json!("other");
        pod["spec"]["nodeName"] = json!(format!("n{}", self.choose.below(NODES)));
        self.api.create("pods", "default", &pod).expect("a new pod");
        self.foreign += 1;
    }

    /// A node goes with its pods, those that are about to be bound to it included.
    fn remove_node(&mut self) {
        self.to_go -= 1;
        let node = format!("n{}", self.choose.below(NODES));
        self.api.delete("nodes", "", &node, &json!({})).expect("a node that is there");
        self.sweep(&node);
        self.away = Some((node, self.choose.below(20)));
    }

    /// What the garbage collector of pods does for a node that is gone.
    fn sweep(&self, node: &str) {
        for pod in self.api.all("pods") {
            if pod["spec"]["nodeName"] == *node {
                self.forget(pod["metadata"]["name"].as_str().unwrap_or_default());
            }
        }
    }

    fn add_node(&mut self, node: &str) {
        self.sweep(node);
        let shape = "8xH100".parse::<Shape>().expect("a shape");
        self.api.create("nodes", "", &shape.node(node)).expect("a new node");
        let ready = json!({"spec": {"taints": null}});
        self.api.merge("nodes", "", node, "", &ready).expect("a node that takes pods");
    }

    /// Whether nothing more will happen: everything that can run does.
    fn is_over(&self) -> bool {
        let pods = self.api.all("pods");
        let runs = |pod: &&Value| pod["status"]["phase"] == "Running";
        let of_gang = |pod: &&Value| pod["metadata"]["labels"]["dovetail.dev/gang"].is_string();
        let ours = pods.iter().filter(runs).filter(of_gang);
        self.to_go == 0
            && self.away.is_none()
            && self.foreign == FOREIGN
            && ours.count() == GANGS * SIZE
    }

    fn judge(&self, seed: u64) {
        let mut uids = BTreeMap::new();
        for bound in self.api.bound() {
            let before = uids.insert(bound.uid.clone(), bound.node.clone());
            assert_eq!(before, None, "seed {seed}: {bound:?} was bound again");
            assert!(!bound.pod.starts_with("big"), "seed {seed}: {bound:?} of a gang without room");
        }
        let mut gpus = BTreeMap::<String, u64>::new();
        for pod in self.api.all("pods").iter().filter(|pod| pod["status"]["phase"] == "Running") {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
            let asked = &pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"];
            let asked = asked.as_str().and_then(|text| text.parse::<u64>().ok());
            *gpus.entry(node).or_default() += asked.unwrap_or_default();
        }
        assert!(gpus.values().all(|gpus| *gpus <= 8), "seed {seed}: {gpus:?}");
        let pods = self.api.all("pods");
        let stopped = pods.iter().filter(|pod| {
            let conditions = pod["status"]["conditions"].as_array();
            let is_target = |c: &Value| c["reason"] == "PreemptionByScheduler";
            conditions.into_iter().flatten().any(is_target)
        });
        let names: Vec<&Value> = stopped.map(|pod| &pod["metadata"]["name"]).collect();
        assert!(
            names.iter().all(|name| name.as_str().is_some_and(|n| n.starts_with("low"))),
            "seed {seed}: {names:?}"
        );
    }
}

async fn survive(seed: u64, lows: usize) {
    let mut run = Run::new(seed, lows);
    let client = Client::try_from(config(&run.api)).expect("a client");
    let options = KubeletOptions { terminate_after: Duration::ZERO, ..KubeletOptions::default() };
    let _kubelets = Kubelets::start(client, options);
    let patience = Patience { complete_within_ms: 1_000, keep_for_ms: 500, ..Patience::default() };
    let world = world::Settings { patience, ..world::Settings::default() };
    let options = preempting(Options { world, ..Options::default() });
    let scheduler = Running::start(config(&run.api), options);
    let mut written = run.api.written();
    let going_on = async {
        while !run.is_over() {
            run.meddle();
            // Something is written, or nothing happens but what is to happen next.
            _ = tokio::time::timeout(Duration::from_millis(50), written.changed()).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, going_on).await;
    assert!(ended.is_ok(), "seed {seed}: {:#?}", standing(&run.api));
    scheduler.stop().await;
    run.judge(seed);
}

/// What each pod is up to, for people.
fn standing(api: &FakeApi) -> Vec<String> {
    let of = |pod: Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let (name, node) = (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]));
        format!("{name} {node} {}", text(&pod["status"]["phase"]))
    };
    api.all("pods").into_iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangs_are_whole_or_absent_whatever_happens() {
    for seed in 0..fault_runs(8) {
        survive(seed.into(), if seed % 2 == 0 { 0 } else { LOW }).await;
    }
}
