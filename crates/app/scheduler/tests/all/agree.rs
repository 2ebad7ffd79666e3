//! On a real server: what `dovetail queue` and `dovetail why` read out of the objects is what the
//! leader knows, and what it has written.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dovetail_apiserver::client::{Clients, to_watch};
use dovetail_apiserver::watch::{self, Notice, served, watch};
use dovetail_control::Control;
use dovetail_control::ask::{PodQuestion, Question, QueueLines, Reply, Why};
use dovetail_control::control::{Input, Settings};
use dovetail_control::lead::{LeaseTimes, Permit};
use dovetail_control::request::Now;
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{EstimatesConfig, Order};
use dovetail_scheduler::lead::{Clock, Leadership, LeaseName};
use dovetail_scheduler::{Election, Options, Wires, look};
use dovetail_testkit::ControlPlane;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::PostParams;
use kube::{Api, Config};
use serde_json::{Value, json};

use crate::queue_objects::{self, create, queue};
use crate::schedule::{PATIENCE, create_nodes, pod};

/// The server writes in whole seconds when a pod got its node.
const ROUNDED_MS: u64 = 2_000;
/// How often what is waited for is looked at: not at each of a hundred events.
const LOOK_EVERY_MS: u64 = 50;

fn engine() -> EngineConfig {
    let turns = Turns::preset("fair").expect("a preset");
    EngineConfig { order: Order::Dovetail, turns, ..EngineConfig::default() }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    since.as_millis() as u64
}

/// The only process, in one of its leaderships.
struct Led {
    clock: Clock,
    epoch: u64,
}

impl Leadership for Led {
    fn permit(&self) -> Option<Permit> {
        Some(Permit { epoch: self.epoch, deadline_ms: self.clock.now_ms().saturating_add(4_000) })
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// A leader that can be asked. It does something only while it is waited for.
pub(crate) struct Leader {
    pub(crate) control: Control,
    notices: BoxStream<'static, Notice>,
    wires: Wires,
    clock: Clock,
    inputs: Vec<Input>,
    /// How far its time of day is ahead of that of the server.
    pub(crate) ahead_ms: u64,
}

impl Leader {
    async fn start(config: &Config, settings: Settings) -> Self {
        Self::of_epoch(0, config, settings).await
    }

    pub(crate) async fn of_epoch(epoch: u64, config: &Config, settings: Settings) -> Self {
        let client = to_watch(config).expect("a client");
        let kinds = served(&client).await.expect("the kinds of the server");
        let leads: Arc<dyn Leadership> = Arc::new(Led { clock: Clock, epoch });
        let wires = Wires::new(Clients::new(config).expect("clients"), leads, epoch, 8);
        Self {
            control: Control::new(settings),
            notices: watch(&client, &kinds, watch::Settings::default()),
            wires,
            clock: Clock,
            inputs: vec![Input::Won { epoch }],
            ahead_ms: 0,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        now_ms() + self.ahead_ms
    }

    /// Takes what happens and decides until this holds.
    pub(crate) async fn until(&mut self, what: &str, mut enough: impl FnMut(&mut Self) -> bool) {
        let leading = async {
            let mut looked_ms: Option<u64> = None;
            loop {
                let now = Now { wall_ms: self.now_ms(), own_ms: self.clock.now_ms() };
                if looked_ms.is_none_or(|at_ms| now.own_ms >= at_ms + LOOK_EVERY_MS) {
                    if enough(self) {
                        break;
                    }
                    looked_ms = Some(now.own_ms);
                }
                let inputs = std::mem::take(&mut self.inputs);
                let output = self.control.step(inputs, self.wires.credits(), now);
                output.requests.into_iter().for_each(|request| self.wires.send(request));
                let wait_ms = output.wait_ms.unwrap_or(LOOK_EVERY_MS).min(LOOK_EVERY_MS);
                tokio::select! {
                    notice = self.notices.next() => match notice {
                        Some(Notice::Change(change, json)) => {
                            self.inputs.push(Input::Change(change, json));
                        }
                        // A watch that the server broke off begins again by itself.
                        Some(Notice::Interrupted { .. } | Notice::Absent { .. }) | None => {}
                    },
                    answer = self.wires.next() => self.inputs.push(Input::Answered(answer)),
                    // What is due by time is done.
                    () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, leading).await.unwrap_or_else(|_| panic!("{what} in time"));
    }
}

pub(crate) fn queues(control: &mut Control, at_ms: u64) -> QueueLines {
    match control.ask(&Question::Queues { starts: true }, at_ms) {
        Some(Reply::Queues(queues)) => queues,
        other => panic!("{other:?}"),
    }
}

fn why(control: &mut Control, name: &str, at_ms: u64) -> Why {
    let default_namespace = "default".to_owned();
    let pod = PodQuestion { name: name.to_owned(), namespace: None, default_namespace };
    match control.ask(&Question::Pod(pod), at_ms) {
        Some(Reply::Pod(Some(why))) => *why,
        other => panic!("{other:?}"),
    }
}

/// Queues `a` and `b` below `all`.
fn create_queues(control_plane: &ControlPlane) {
    let gpus = |amount: u32| json!({"nvidia.com/gpu": amount});
    create(control_plane, &queue("all", json!({})));
    for (name, guaranteed, weight) in [("a", 4, 1), ("b", 8, 3)] {
        let spec = json!({"parent": "all", "guaranteed": gpus(guaranteed), "weight": weight,
            "borrowing": "WhenFree", "namespaceSelector": {}, "halfLife": "1h"});
        create(control_plane, &queue(name, spec));
    }
}

/// Pods of a queue, which may say for how long they run: each takes a node.
async fn submit(pods: &Api<Pod>, all: [(&str, &str, &str); 2]) {
    for (name, queue, runtime) in all {
        let mut object = pod(name, 8);
        if !queue.is_empty() {
            object["metadata"]["labels"] = json!({"dovetail.dev/queue": queue});
        }
        if !runtime.is_empty() {
            object["metadata"]["annotations"] = json!({"dovetail.dev/runtime": runtime});
        }
        let object = serde_json::from_value(object).expect("a pod");
        pods.create(&PostParams::default(), &object).await.expect("a new pod");
    }
}

/// What of a queue the leader writes and a question reads.
pub(crate) fn written(control_plane: &ControlPlane, name: &str) -> Value {
    let path = format!("/apis/dovetail.dev/v1alpha1/queues/{name}");
    control_plane.object(&path).expect("a queue")["status"].clone()
}

/// The queues as they are shown, without what they have used by now, which is counted by time.
fn shown(queues: &QueueLines) -> Value {
    let mut lines = json!(queues.queues);
    for line in lines.as_array_mut().expect("a list") {
        line.as_object_mut().expect("a queue").remove("used_cluster_hours");
    }
    lines
}

fn assert_same_start(one: Option<&Value>, other: Option<&Value>) {
    let (one, other) = (one.expect("a start"), other.expect("a start"));
    assert_eq!((&one["after"], &one["nodes"]), (&other["after"], &other["nodes"]));
    for quantile in ["within_p50_ms", "within_p90_ms"] {
        let (one, other) = (one[quantile].as_u64(), other[quantile].as_u64());
        let (one, other) = (one.expect("a time"), other.expect("a time"));
        // Chances of run times follow the time that has passed: a part of a second shifts them all.
        let most_ms = ROUNDED_MS + one / 1_000;
        assert!(one.abs_diff(other) <= most_ms, "{quantile}: {one:?} and {other:?}");
    }
}

/// What decides about the queues is the same; what they have used by now is taken out: it is
/// counted by time, and written every 30 s.
fn assert_same_usage(one: &mut Value, other: &mut Value) {
    let used = |answer: &mut Value| -> Vec<f64> {
        let queues = answer["turn"]["queues"].as_array_mut().into_iter().flatten();
        let take = |queue: &mut Value| queue.as_object_mut()?.remove("used_cluster_hours");
        queues.filter_map(take).filter_map(|hours| hours.as_f64()).collect()
    };
    let (one, other) = (used(one), used(other));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert!((one - other).abs() * 3_600.0 <= 30.0, "{one} and {other}");
    }
}

/// The jobs in line are the same, at the same places, for the same reasons, and expected to start
/// at the same times.
pub(crate) fn assert_same_line(leader: &QueueLines, seen: &QueueLines) {
    let line = |queues: &QueueLines| {
        let jobs = queues.waiting.iter();
        jobs.map(|job| (job.job.clone(), job.queue.clone(), job.place, job.reason)).collect()
    };
    let (one, other): (Vec<_>, Vec<_>) = (line(leader), line(seen));
    assert_eq!(one, other);
    assert_eq!(one.len(), 2, "{one:?}");
    for (one, other) in leader.waiting.iter().zip(&seen.waiting) {
        let (one, other) = (json!(one), json!(other));
        assert_same_start(one.get("expected_start"), other.get("expected_start"));
        assert!(one["expected_start"]["within_p50_ms"].as_u64() > Some(1_500_000), "{one}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_answered_as_the_leader_would_answer_them() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    queue_objects::install(&control_plane);
    let client = control_plane.client().await.expect("a client");
    let pods = Api::<Pod>::default_namespaced(client.clone());
    create_nodes(&Api::<Node>::all(client), 2).await;
    let config = control_plane.config().await.expect("a kubeconfig");
    let settings = Settings { engine: engine(), ..Settings::default() };
    let mut leader = Leader::start(&config, settings).await;
    create_queues(&control_plane);
    submit(&pods, [("r0", "a", "1h"), ("r1", "a", "2h")]).await;
    let borrowed = json!({"nvidia.com/gpu": "12"});
    let borrows = |_: &mut Leader| written(&control_plane, "a")["borrowed"] == borrowed;
    leader.until("the status of the queue that borrows", borrows).await;
    submit(&pods, [("w0", "a", "3h"), ("w1", "b", "30m")]).await;
    let pending = |_: &mut Leader| {
        ["a", "b"].iter().all(|name| written(&control_plane, name)["pending"]["jobs"] == 1)
    };
    leader.until("the statuses of queues in which pods wait", pending).await;

    let at_ms = now_ms();
    let options = Options { engine: engine(), ..Options::default() };
    let seen = look(&config, &options, PATIENCE, at_ms).await;
    let mut seen = seen.expect("a cluster that can be read").control;
    let (known, read) = (queues(&mut leader.control, at_ms), queues(&mut seen, at_ms));
    assert_eq!(shown(&known), shown(&read));
    assert_same_line(&known, &read);
    for line in &read.queues {
        let status = written(&control_plane, &line.name);
        assert_eq!(status["used"], json!(line.used), "{}", line.name);
        assert_eq!(status["borrowed"], json!(line.borrowed), "{}", line.name);
        assert_eq!(status["share"], format!("{:.1}%", line.share_percent), "{}", line.name);
    }
    for (one, other) in known.queues.iter().zip(&read.queues) {
        let hours = |used: Option<f64>| used.expect("the order counts it");
        let apart_s = (hours(one.used_cluster_hours) - hours(other.used_cluster_hours)) * 3_600.0;
        assert!(apart_s.abs() <= 30.0, "{}: {apart_s} s of the cluster", one.name);
    }
    for name in ["w0", "w1", "r0"] {
        let (mut known, mut read) =
            (json!(why(&mut leader.control, name, at_ms)), json!(why(&mut seen, name, at_ms)));
        let start = |answer: &mut Value| {
            answer.get_mut("in_line")?.as_object_mut()?.remove("expected_start")
        };
        let starts = (start(&mut known), start(&mut read));
        assert_same_usage(&mut known, &mut read);
        if name != "r0" {
            assert_same_start(starts.0.as_ref(), starts.1.as_ref());
        }
        assert_eq!(known, read, "{name}");
    }
}

/// What an earlier leader learned: half of all runs took an hour or so, the others three.
pub(crate) fn create_learned(control_plane: &ControlPlane) {
    let tables = json!({"format": "dovetail-run-times-1", "run_times": {"runs": 400, "version": 9,
        "next": [[{}, {"buckets": [[48, 3_200, 0], [54, 3_200, 0]], "last_seen": 400}]]}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "dovetail-learned", "namespace": "kube-system"},
        "data": {"run-times.json": tables.to_string()}});
    create(control_plane, &map);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expected_starts_rest_on_the_run_times_that_the_leader_has_learned() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    let pods = Api::<Pod>::default_namespaced(client.clone());
    create_nodes(&Api::<Node>::all(client), 2).await;
    create_learned(&control_plane);
    let config = control_plane.config().await.expect("a kubeconfig");
    let estimates = EstimatesConfig { learn: true, only_learned: true };
    let engine = EngineConfig { estimates, ..EngineConfig::default() };
    let (namespace, name) = ("kube-system".to_owned(), "dovetail".to_owned());
    let lease = LeaseName { namespace, name };
    let settings =
        Settings { engine: engine.clone(), learned: Some(lease.learned()), ..Settings::default() };
    let mut leader = Leader::start(&config, settings).await;
    submit(&pods, [("r0", "", ""), ("r1", "", "")]).await;
    let pending = |count: usize| {
        move |leader: &mut Leader| {
            let known = leader.control.ask(&Question::Queues { starts: false }, now_ms());
            matches!(known, Some(Reply::Queues(queues)) if queues.waiting.len() == count)
        }
    };
    let on_nodes = |leader: &mut Leader| {
        let nodes = leader.control.ask(&Question::Nodes { all: false }, now_ms());
        matches!(nodes, Some(Reply::Nodes(nodes)) if nodes.iter().all(|node| node.holders.len() == 1))
    };
    leader.until("pods that run", on_nodes).await;
    submit(&pods, [("w0", "", ""), ("w1", "", "")]).await;
    leader.until("pods that wait", pending(2)).await;

    let at_ms = now_ms();
    let election = Election { lease, identity: "asks".to_owned(), terms: LeaseTimes::default() };
    let options = Options { engine, election: Some(election), ..Options::default() };
    let seen = look(&config, &options, PATIENCE, at_ms).await.expect("a cluster");
    assert_eq!(seen.unlearned, None);
    let (known, read) = (queues(&mut leader.control, at_ms), queues(&mut { seen.control }, at_ms));
    assert_same_line(&known, &read);
    // Nothing is known without.
    let options = Options { election: None, ..options };
    let seen = look(&config, &options, PATIENCE, at_ms).await.expect("a cluster");
    let starts = queues(&mut { seen.control }, at_ms).waiting;
    let starts = starts.iter().filter_map(|job| job.expected_start.as_ref());
    assert!(starts.clone().count() == 2 && starts.clone().all(|it| it.within_p50_ms.is_none()));
}
