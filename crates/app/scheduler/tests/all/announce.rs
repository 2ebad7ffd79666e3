//! What is written about pods: once, true, and about no other pod.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use dovetail_apiserver::client::Clients;
use dovetail_cases::cases;
use dovetail_cluster::world::{self, Patience, PodKey};
use dovetail_control::announce::{
    AnnouncedWrite, Announcements, Limits, Note, WatchedPod, WriteOutcome, WriteResult,
};
use dovetail_control::lead::Permit;
use dovetail_control::status::WaitingReason;
use dovetail_control::writes::Ended;
use dovetail_model::PendingReason;
use dovetail_scheduler::Options;
use dovetail_scheduler::lead::{Clock, Leadership};
use dovetail_testkit::binaries::Program;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};
use dovetail_testkit::{ControlPlane, FakeApi};
use dovetail_translate::NotYet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schedule::{PATIENCE, Running, config, create_nodes, fake_cluster, pause, pod, until};
use crate::sender::{Given, Sender};

fn identity(uid: u32) -> PodKey {
    let name = format!("p{uid}");
    PodKey { namespace: "n".into(), name: name.into(), uid: uid.to_string().into() }
}

fn waits(unschedulable: bool, message: u8) -> WaitingReason {
    let reason = match unschedulable {
        true => PendingReason::Unschedulable,
        false => PendingReason::WaitingForTurn,
    };
    WaitingReason::pending(reason, message.to_string())
}

/// What can happen to the book.
#[derive(Clone, Debug)]
enum Move {
    Waits(u32, bool, u8),
    Bound(u32),
    Gone(u32),
    Pass(u64),
    /// The server takes the oldest write, or answers it so.
    Answer(Option<WriteOutcome>),
}

fn moves() -> impl Strategy<Value = Move> {
    let uid = 0_u32..4;
    let refused = WriteOutcome::Refused { code: 403, message: String::new() };
    let troubled = |retry_after_ms| WriteOutcome::Troubled { retry_after_ms };
    prop_oneof![
        6 => (uid.clone(), any::<bool>(), 0_u8..3).prop_map(|(u, w, m)| Move::Waits(u, w, m)),
        1 => uid.clone().prop_map(Move::Bound),
        1 => uid.prop_map(Move::Gone),
        4 => (0_u64..700_000).prop_map(Move::Pass),
        8 => Just(Move::Answer(None)),
        2 => prop_oneof![Just(refused), Just(troubled(None)), Just(troubled(Some(9_000)))]
            .prop_map(|written| Move::Answer(Some(written))),
    ]
}

/// A server and a scheduler in miniature, with books of their own.
#[derive(Default)]
struct Play {
    now_ms: u64,
    book: Announcements,
    /// What waiting pods should say, and what their objects say.
    wanted: BTreeMap<u32, WaitingReason>,
    said: RefCell<BTreeMap<u32, (&'static str, String)>>,
    versions: BTreeMap<u32, String>,
    on_the_way: Vec<AnnouncedWrite>,
    /// Names of scheduled events that are due, and written.
    bound: Vec<u32>,
    written: Vec<Note>,
    conditions: u32,
}

impl Play {
    fn perform(&mut self, chosen: Move) {
        match chosen {
            Move::Waits(uid, unschedulable, message) if !self.bound.contains(&uid) => {
                let waiting = waits(unschedulable, message);
                self.wanted.insert(uid, waiting.clone());
                self.book.waits(identity(uid), waiting, self.now_ms);
            }
            Move::Bound(uid) if self.wanted.remove(&uid).is_some() => {
                self.bound.push(uid);
                self.book.bound(identity(uid), "m", "d", self.now_ms);
            }
            Move::Gone(uid) => drop(self.wanted.remove(&uid)),
            Move::Pass(span_ms) => self.now_ms += span_ms,
            Move::Answer(answer) => self.answer(answer),
            Move::Waits(..) | Move::Bound(_) => {}
        }
        self.send();
    }

    fn send(&mut self) {
        while self.on_the_way.len() < 3 {
            let said = self.said.borrow();
            let look = |pod: &PodKey| {
                let uid: u32 = pod.uid.parse().unwrap();
                let says = said.get(&uid).map(|(word, text)| (*word, &**text));
                let resource_version = self.versions.get(&uid).map_or("0", |version| version);
                self.wanted.contains_key(&uid).then_some(WatchedPod { resource_version, says })
            };
            let Some(write) = self.book.next(self.now_ms, look) else { return };
            self.on_the_way.push(write);
        }
    }

    fn answer(&mut self, answer: Option<WriteOutcome>) {
        if self.on_the_way.is_empty() {
            return;
        }
        let write = self.on_the_way.remove(0);
        let written = answer.unwrap_or_else(|| self.take(&write));
        self.book.outcome(WriteResult { write, written }, self.now_ms);
    }

    /// The server takes conditions of pods without a node only, as their versions make sure.
    fn take(&mut self, write: &AnnouncedWrite) -> WriteOutcome {
        match write {
            AnnouncedWrite::Event(note, _) => self.written.push((**note).clone()),
            AnnouncedWrite::Status(_) => panic!("this book is of pods"),
            AnnouncedWrite::Condition(condition) => {
                let uid: u32 = condition.pod.uid.parse().unwrap();
                let version = self.versions.entry(uid).or_insert_with(|| "0".to_owned());
                if !self.wanted.contains_key(&uid) || *version != condition.resource_version {
                    return WriteOutcome::Changed;
                }
                *version = format!("{version}1");
                let says = (condition.waiting.word(), condition.waiting.message.clone());
                let before = self.said.borrow_mut().insert(uid, says.clone());
                assert_ne!(before, Some(says), "written although it said so");
                assert_eq!(before.is_none(), condition.since_ms.is_some());
                self.conditions += 1;
            }
        }
        WriteOutcome::Done
    }

    /// Lets everything that is owed be written.
    fn finish(&mut self) {
        for _ in 0..200 {
            self.perform(Move::Answer(None));
            self.now_ms = self.book.due_ms().unwrap_or_default().max(self.now_ms);
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn in_the_end_every_waiting_pod_says_why_and_nothing_was_said_twice(
        history in proptest::collection::vec(moves(), 0..120),
    ) {
        let mut play = Play { book: Announcements::new(Limits::default()), ..Play::default() };
        history.into_iter().for_each(|chosen| play.perform(chosen));
        play.finish();
        for (uid, waiting) in &play.wanted {
            let says = play.said.borrow().get(uid).cloned();
            prop_assert_eq!(says, Some((waiting.word(), waiting.message.clone())), "pod {}", uid);
        }
        let mut scheduled: Vec<&str> = play.written.iter()
            .filter(|note| note.reason == "Scheduled").map(|note| &*note.about.uid).collect();
        scheduled.sort_unstable();
        scheduled.dedup();
        let events = play.written.iter().filter(|note| note.reason == "Scheduled").count();
        prop_assert_eq!(events, scheduled.len(), "one event per bound pod");
        prop_assert!(events as u64 + play.book.given_up() >= play.bound.len() as u64);
        let waiting_events = play.written.len() - events;
        prop_assert!(waiting_events <= play.conditions as usize, "no event without a change");
    }
}

#[test]
fn a_text_that_keeps_changing_is_an_event_once_in_five_minutes() {
    let mut play = Play { book: Announcements::new(Limits::default()), ..Play::default() };
    // Every 30 s for half an hour the nodes have something else against it.
    for at in 0..60 {
        play.perform(Move::Waits(0, true, at));
        (0..3).for_each(|_| play.perform(Move::Answer(None)));
        play.perform(Move::Pass(30_000));
    }
    assert_eq!((play.conditions, play.written.len()), (60, 6));
    assert!(play.written.iter().all(|note| note.reason == "FailedScheduling" && note.is_warning));
}

/// Whoever names the node that is freed for a pod writes the message with it: the book tells it,
/// and writes only what is not there after a second.
#[test]
fn what_another_write_makes_a_pod_say_is_told_and_written_if_it_is_not_there() {
    let on =
        |node: &str| WaitingReason::pending(PendingReason::WaitingForReservation, node.to_owned());
    let says =
        |text| WatchedPod { resource_version: "7", says: Some(("WaitingForReservation", text)) };
    let mut book = Announcements::new(Limits::default());
    book.expect(identity(0), on("n0"), 0);
    assert_eq!((book.next(999, |_| Some(says("n0"))), book.events()), (None, 0));
    let told = book.next(1_000, |_| Some(says("n0")));
    let told = told.or_else(|| book.next(1_000, |_| Some(says("n0"))));
    assert!(matches!(&told, Some(AnnouncedWrite::Event(note, _)) if note.text == "n0"), "{told:?}");
    // Another node is freed, and that write was lost: no ten seconds pass.
    book.expect(identity(0), on("n1"), 2_000);
    let write = book.next(3_000, |_| Some(says("n0")));
    assert!(
        matches!(&write, Some(AnnouncedWrite::Condition(it)) if it.waiting == on("n1")),
        "{write:?}"
    );
}

#[test]
fn beyond_the_limit_events_are_given_up_and_counted() {
    let mut book = Announcements::new(Limits { events: 2 });
    (0..5).for_each(|uid| book.bound(identity(uid), "m", "d", 0));
    assert_eq!((book.events(), book.given_up(), book.given_up()), (2, 3, 0));
}

#[test]
fn what_its_owner_holds_back_is_corrected_and_no_warning() {
    let mut book = Announcements::new(Limits::default());
    let workload = "job blue/train".to_owned();
    book.is_left_untouched(identity(0), &NotYet::WorkloadSuspended { workload }, false, 0);
    assert_eq!(book.events(), 0);
    // Autoscalers would buy nodes for it.
    let says = WatchedPod { resource_version: "7", says: Some(("Unschedulable", "no room")) };
    let write = book.next(0, |_| Some(says)).expect("a condition");
    assert!(
        matches!(&write, AnnouncedWrite::Condition(it) if it.waiting.word() == "LeftUntouched")
    );
    book.outcome(WriteResult { write, written: WriteOutcome::Done }, 0);
    assert_eq!(book.events(), 0);
    let queue = "lost".to_owned();
    book.is_left_untouched(identity(1), &NotYet::QueueMissing { queue }, false, 0);
    assert_eq!(book.events(), 1, "that is for people to mend");
    let queue = "gone".to_owned();
    book.is_left_untouched(identity(1), &NotYet::QueueMissing { queue }, true, 0);
    assert_eq!(book.events(), 1, "its cause was told of late");
}

/// Waits until so many events are there.
async fn all_written(client: &Client, count: usize) {
    while events(client, "default").await.len() < count {
        pause().await;
    }
}

/// All events of a namespace: pod, reason, text.
async fn events(client: &Client, namespace: &str) -> Vec<(String, String, String)> {
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    let all = api.list(&ListParams::default()).await.expect("events").items;
    let mut all: Vec<_> = all
        .into_iter()
        .map(|event| {
            let pod = event.regarding.and_then(|pod| pod.name).unwrap_or_default();
            (pod, event.reason.unwrap_or_default(), event.note.unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

/// Status, reason and message of the condition `PodScheduled`.
fn condition(pod: &Value) -> Option<[String; 3]> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|one| one["type"] == "PodScheduled")?;
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    Some([text("status"), text("reason"), text("message")])
}

/// Pods for which Cluster Autoscaler and Karpenter buy nodes: a condition `PodScheduled` that is
/// false for the reason `Unschedulable` (`pod.ConditionStatus`, `pod.FailedToSchedule`).
fn autoscalers_act(pod: &Value) -> bool {
    condition(pod).is_some_and(|[status, reason, _]| status == "False" && reason == "Unschedulable")
}

fn expected(rows: &[[&str; 3]]) -> Vec<(String, String, String)> {
    let row = |[pod, reason, text]: &[&str; 3]| ((*pod).into(), (*reason).into(), (*text).into());
    rows.iter().map(row).collect()
}

const NO_GPU: &str = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
const TURN: &str = "other jobs that request the same resources go first";

/// Everything that a run of three pods of eight GPUs on one node of eight says, whatever goes
/// wrong.
async fn one_after_the_other(api: &FakeApi) {
    let client = Client::try_from(config(api)).expect("a client");
    for name in ["a", "b", "c"] {
        api.create("pods", "default", &pod(name, 8)).expect("a new pod");
    }
    let scheduler = Running::start(config(api), Options::default());
    let says = |name: &str, words: [&str; 3]| {
        condition(&api.get("pods", "default", name).expect("a pod")) == Some(words.map(Into::into))
    };
    let bound = ["True", "", ""];
    until(api, || {
        says("a", bound)
            && says("b", ["False", "Unschedulable", NO_GPU])
            && says("c", ["False", "WaitingForTurn", TURN])
    })
    .await;
    let pods = api.all("pods");
    assert_eq!(pods.iter().map(autoscalers_act).collect::<Vec<_>>(), [false, true, false]);
    let now = json!({"gracePeriodSeconds": 0});
    api.delete("pods", "default", "a", &now).expect("a pod that ends");
    until(api, || says("b", bound) && says("c", ["False", "Unschedulable", NO_GPU])).await;
    let all_written = all_written(&client, 5);
    tokio::time::timeout(PATIENCE, all_written).await.expect("events in time");
    // Ends when everything that is owed is written.
    scheduler.stop().await;
    let expected = expected(&[
        ["a", "Scheduled", "Successfully assigned default/a to n0"],
        ["b", "FailedScheduling", NO_GPU],
        ["b", "Scheduled", "Successfully assigned default/b to n0"],
        ["c", "FailedScheduling", NO_GPU],
        ["c", "WaitingForTurn", TURN],
    ]);
    assert_eq!(events(&client, "default").await, expected);
}

fn on_announcements(fault: ApiFault, per_million: u32) -> [FaultRule; 2] {
    let status = On { subresource: Some("status".to_owned()), ..On::new(&[Verb::Patch], "pods") };
    let events = On::new(&[Verb::Create], "events");
    [status, events].map(|on| FaultRule::some(on, per_million, fault))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_say_why_they_wait_and_each_thing_is_said_once() {
    let api = fake_cluster(1, 0);
    one_after_the_other(&api).await;
    for (seed, fault) in [
        ApiFault::ReplyLost,
        ApiFault::TooManyRequests { retry_after_s: 0 },
        ApiFault::ServerError { code: 503 },
        ApiFault::Cut,
    ]
    .into_iter()
    .enumerate()
    {
        let api = fake_cluster(1, 0);
        api.set_faults(seed as u64, on_announcements(fault, 400_000).to_vec());
        one_after_the_other(&api).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_said_of_another_pod_of_the_name_nor_of_one_that_has_a_node_by_then() {
    let api = fake_cluster(1, 0);
    api.set_faults(1, on_announcements(ApiFault::Hold, 1_000_000)[..1].to_vec());
    for (name, gpus) in [("placed", 9), ("replaced", 10)] {
        api.create("pods", "default", &pod(name, gpus)).expect("a new pod");
    }
    let scheduler = Running::start(config(&api), Options::default());
    api.held(2).await;
    api.set_faults(1, Vec::new());
    api.delete("pods", "default", "replaced", &json!(null)).expect("an unbound pod goes at once");
    let mut gated = pod("replaced", 10);
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    api.create("pods", "default", &gated).expect("another pod of the same name");
    let node = "16xH100".parse::<dovetail_testkit::MachineShape>().expect("a shape").node("n1");
    api.create("nodes", "", &node).expect("a new node");
    let ready = json!({"spec": {"taints": null}});
    api.merge("nodes", "", "n1", "", &ready).expect("a node that takes pods");
    until(&api, || api.bound().len() == 1).await;
    api.release();
    scheduler.stop().await;
    let says = |name: &str| condition(&api.get("pods", "default", name).expect("a pod"));
    assert_eq!(says("placed").map(|[status, ..]| status).as_deref(), Some("True"));
    assert_ne!(says("replaced").map(|[_, reason, _]| reason).as_deref(), Some("Unschedulable"));
}

/// What is left untouched does not go on saying what held before: autoscalers would buy nodes for
/// it. Who said nothing is not written to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_left_untouched_from_now_on_is_unschedulable_no_longer() {
    let api = fake_cluster(1, 0);
    let fraction = json!({"metadata": {"annotations": {"gpu-fraction": "0.5"}}});
    let mut silent = pod("silent", 9);
    silent["metadata"]["annotations"] = fraction["metadata"]["annotations"].clone();
    api.create("pods", "default", &pod("large", 9)).expect("a new pod");
    api.create("pods", "default", &silent).expect("a new pod");
    let word = |name: &str| {
        let pod = api.get("pods", "default", name).expect("a pod");
        condition(&pod).map(|[_, reason, _]| reason)
    };
    let scheduler = Running::start(config(&api), Options::default());
    until(&api, || word("large").as_deref() == Some("Unschedulable")).await;
    scheduler.stop().await;
    // Nobody leads when it changes.
    api.merge("pods", "default", "large", "", &fraction).expect("a changed pod");
    let scheduler = Running::start(config(&api), Options::default());
    until(&api, || word("large").as_deref() == Some("LeftUntouched")).await;
    assert!(!autoscalers_act(&api.get("pods", "default", "large").expect("a pod")));
    scheduler.stop().await;
    assert_eq!(word("silent"), None);
    let client = Client::try_from(config(&api)).expect("a client");
    let told = events(&client, "default").await;
    let of_large = told.iter().filter(|(pod, ..)| pod == "large").count();
    assert_eq!(of_large, 2, "that no node takes it, and why it is left: {told:?}");
}

const ONE_OF_TWO: &str = "gang default/train has 1 of the 2 pods that start together";

/// A pod of a gang of two.
fn one_of_two(name: &str) -> Value {
    let mut member = pod(name, 4);
    member["metadata"]["labels"] = json!({"dovetail.dev/gang": "train"});
    member["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
    member
}

/// A gang of two starts: the pod that is there first says for how many it waits, then the other one
/// comes.
async fn pairs_up(api: &FakeApi) -> Running {
    api.create("pods", "default", &one_of_two("a")).expect("a new pod");
    let patience = Patience { quiet_ms: 50, ..Patience::default() };
    let world = world::Settings { patience, ..world::Settings::default() };
    let scheduler = Running::start(config(api), Options { world, ..Options::default() });
    let says = |name: &str| condition(&api.get("pods", "default", name).expect("a pod"));
    let waits = Some(["False", "WaitingForMembers", ONE_OF_TWO].map(str::to_owned));
    until(api, || says("a") == waits).await;
    assert!(!autoscalers_act(&api.get("pods", "default", "a").expect("a pod")));
    api.create("pods", "default", &one_of_two("b")).expect("a new pod");
    until(api, || api.bound().len() == 2).await;
    scheduler
}

/// The gang's events: that its pods are placed, and once for how many the first of them waited.
async fn assert_pair_told(client: &Client) {
    let expected = expected(&[
        ["a", "Scheduled", "Successfully assigned default/a to n0"],
        ["a", "WaitingForMembers", ONE_OF_TWO],
        ["b", "Scheduled", "Successfully assigned default/b to n0"],
    ]);
    assert_eq!(events(client, "default").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_waits_for_the_others_of_its_gang_says_so() {
    let api = fake_cluster(1, 0);
    let client = Client::try_from(config(&api)).expect("a client");
    let scheduler = pairs_up(&api).await;
    let all_written = all_written(&client, 3);
    tokio::time::timeout(PATIENCE, all_written).await.expect("events in time");
    scheduler.stop().await;
    assert_pair_told(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_pod_says_is_told_also_if_it_is_bound_before_the_answer_comes() {
    let api = fake_cluster(1, 0);
    let client = Client::try_from(config(&api)).expect("a client");
    api.set_faults(1, on_announcements(ApiFault::HoldReply, 1_000_000)[..1].to_vec());
    let scheduler = pairs_up(&api).await;
    let both_placed = all_written(&client, 2);
    tokio::time::timeout(PATIENCE, both_placed).await.expect("events in time");
    api.release();
    // Ends when everything that is owed is written.
    scheduler.stop().await;
    assert_pair_told(&client).await;
}

struct Nobody(Clock);

impl Leadership for Nobody {
    fn permit(&self) -> Option<Permit> {
        Some(Permit { epoch: 2, deadline_ms: self.0.now_ms() + 60_000 })
    }

    fn clock(&self) -> &Clock {
        &self.0
    }
}

#[tokio::test]
async fn without_its_leadership_nothing_is_written() {
    let api = fake_cluster(1, 1);
    let before = api.revision();
    let clients = Clients::new(&config(&api)).expect("clients");
    let write = |epoch| {
        let clients = clients.clone();
        async move {
            let leads = Arc::new(Nobody(Clock));
            let mut sender = Sender::start(clients, leads, epoch, 1);
            let note = Note::scheduled(identity(1), "n0", "d", 0);
            let note = Note { about: PodKey { namespace: "default".into(), ..note.about }, ..note };
            sender.give(Given::Announcement(AnnouncedWrite::Event(Box::new(note), 0)));
            match sender.next().await {
                Ended::Announcement(report) => report.written,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!((write(1).await, api.revision()), (WriteOutcome::NotLeading, before));
    assert_eq!((write(2).await, api.revision()), (WriteOutcome::Done, before + 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn describe_on_a_real_server_shows_what_people_expect() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 1).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    for name in ["a", "b", "c"] {
        let pod = serde_json::from_value(pod(name, 8)).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("a new pod");
    }
    let claims = json!({"metadata": {"name": "d"}, "spec": {"schedulerName": "dovetail",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]}});
    let claims = serde_json::from_value(claims).expect("a pod");
    pods.create(&PostParams::default(), &claims).await.expect("a new pod");
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    let metric = |what: &str| {
        let text = scheduler.metrics.open_metrics();
        let line = format!("dovetail_announcements_total{{what=\"{what}\",outcome=\"written\"}} ");
        text.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok()).unwrap_or(0_u32)
    };
    let waiting = async {
        while (metric("condition"), metric("event")) < (2, 4) || metric("event") < 4 {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("announcements in time");
    let kubectl = |arguments: &[&str]| {
        let cluster = control_plane.cluster();
        let program = cluster.program(Program::Kubectl).expect("kubectl").to_owned();
        let output = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", control_plane.kubeconfig())
            .output()
            .expect("kubectl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let described = |pod: &str| {
        let text = kubectl(&["describe", "pod", pod]);
        let row = text.lines().filter(|line| line.contains(" dovetail "));
        row.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let is_row = |pod: &str, start: &str, end: &str| {
        let rows = described(pod);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].starts_with(start) && rows[0].ends_with(end), "{rows:?}");
    };
    let placed = pods.list(&ListParams::default()).await.expect("pods").items;
    let value = |pod: &Pod| serde_json::to_value(pod).expect("JSON");
    assert_eq!(placed.iter().filter(|pod| autoscalers_act(&value(pod))).count(), 1);
    is_row("a", "Normal Scheduled", "dovetail Successfully assigned default/a to n0");
    is_row("b", "Warning FailedScheduling", &format!("dovetail {NO_GPU}"));
    is_row("c", "Normal WaitingForTurn", &format!("dovetail {TURN}"));
    let rows = described("d");
    assert!(rows.len() == 1 && rows[0].contains("missing"), "{rows:?}");
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.expect("a pod that ends");
    let now_first = async {
        loop {
            let pod = pods.get("c").await.expect("a pod");
            if autoscalers_act(&value(&pod)) {
                break;
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, now_first).await.expect("a condition in time");
    scheduler.stop().await;
    let told = events(&client, "default").await;
    assert!((6..=7).contains(&told.len()), "6, or 7 on a slow machine: {told:#?}");
}
