//! What preemption cost a job is remembered by the object that makes its pods: across pods, and
//! across leaders.

use dovetail_cluster::world::LastingOwner;
use dovetail_control::announce::Note;
use dovetail_control::schedule::News;
use dovetail_model::PendingReason;
use dovetail_objects::{Kind, WorkloadKind};
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Order, PreemptionConfig};
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use dovetail_translate::Receipt;
use serde_json::{Value, json};

use crate::cohorts::time;
use crate::gangs::{Cluster, native, node, pod};
use crate::preempt::preempting;
use crate::preempt_orders::{high, preempting_cluster};
use crate::schedule::{Running, config, fake_nodes, until};
use crate::server::Server;

const JOB: Kind = Kind::Workload(WorkloadKind::Job);
const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

pub(crate) fn fair() -> EngineConfig {
    let turns = Turns::preset("fair").expect("a preset");
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    EngineConfig { order: Order::Dovetail, turns, preemption, ..EngineConfig::default() }
}

/// One node of eight GPUs, and two queues to which half of it belongs each.
pub(crate) fn shared_node() -> Server {
    let mut server = Server::default();
    node(&mut server, 0);
    for name in ["a", "b"] {
        let spec = json!({"namespaceSelector": {}, "borrowing": "WhenFree",
            "guaranteed": {"nvidia.com/gpu": 4}});
        server.apply(Kind::Queue, "", name, json!({"spec": spec}));
    }
    server
}

/// A pod in a queue, of a Job if it is named.
pub(crate) fn of_job(queue: &str, gpus: usize, job: &str) -> Value {
    let mut pod = pod(gpus);
    pod["metadata"]["labels"] = json!({"dovetail.dev/queue": queue});
    if !job.is_empty() {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!(job);
    }
    pod
}

/// Receipts that are to be written: of which objects, and whether there are pods without one.
fn receipts(cluster: &mut Cluster) -> (Vec<(String, Receipt)>, usize) {
    let (mut receipts, mut without) = (Vec::new(), 0);
    for news in cluster.scheduler.news() {
        match news {
            News::Receipt { account, receipt } => receipts.push((account.name.into(), receipt)),
            News::NoReceipt { .. } => without += 1,
            News::Inconsistent(error) => panic!("{error}"),
            _ => {}
        }
    }
    (receipts, without)
}

/// Annotations of a job that writes checkpoints.
const CHECKPOINTS: [(&str, &str); 2] =
    [("dovetail.dev/checkpoint-interval", "25m"), ("dovetail.dev/restart-cost", "1m")];

fn preempted_once() -> Cluster {
    preempted_once_as(&[], None)
}

/// A node of which half belongs to queue `b`, and Job `train` of queue `a`, which takes all of it
/// until `b` wants its half after an hour: then the pod of the Job is evicted. Another pod of the
/// Job starts. The pods have these annotations, and the first reports a checkpoint after so many
/// minutes.
fn preempted_once_as(annotations: &[(&str, &str)], reported: Option<u64>) -> Cluster {
    let mut server = shared_node();
    server.apply(JOB, "blue", "train", json!({"spec": {"completions": 1}}));
    let mut cluster = Cluster::with(server, fair());
    let mut pod = of_job("a", 8, "train");
    for (name, value) in annotations {
        pod["metadata"]["annotations"][*name] = json!(value);
    }
    cluster.create("train-x", pod.clone());
    assert_eq!(cluster.run(), ["train-x"]);
    let reported = reported.unwrap_or(0);
    cluster.pass(reported * MINUTE_MS);
    if reported > 0 {
        let at = time(cluster.now_ms);
        annotate(&mut cluster, "train-x", "dovetail.dev/last-checkpoint", &at);
        cluster.run();
    }
    cluster.pass(HOUR_MS - reported * MINUTE_MS);
    cluster.create("b0", of_job("b", 4, ""));
    cluster.run();
    assert_eq!(cluster.evict(), ["train-x"]);
    cluster.server.time = Some(time(cluster.now_ms));
    cluster.create("train-y", pod);
    assert_eq!(cluster.run(), ["b0"]);
    cluster.end("b0", "Succeeded");
    assert_eq!(cluster.run(), ["train-y"]);
    cluster
}

fn annotate(cluster: &mut Cluster, pod: &str, name: &str, value: &str) {
    let key = (Kind::Pod, "blue".to_owned(), pod.to_owned());
    cluster.server.change(&key, |pod| pod["metadata"]["annotations"][name] = json!(value));
}

fn preemptions(cluster: &Cluster, pod: &str) -> u32 {
    let job = cluster.scheduler.world().pods().job_of("blue", pod).expect("a job");
    cluster.scheduler.engine().and_then(|engine| engine.job(job)).expect("it").history.preemptions
}

/// The object says what is to be said of it.
fn write(cluster: &mut Cluster, receipt: &Receipt) {
    let key = (JOB, "blue".to_owned(), "train".to_owned());
    let said = receipt.annotations();
    cluster.server.change(&key, |job| job["metadata"]["annotations"] = said.clone());
    cluster.watch();
}

/// The next leader has the objects alone.
fn next_leader(cluster: &mut Cluster) -> Cluster {
    let mut next = Cluster::with(std::mem::take(&mut cluster.server), fair());
    next.pass(cluster.now_ms - next.now_ms);
    assert!(next.run().is_empty(), "nothing has ended");
    next
}

/// Queue `b` wants its half again; which pods are evicted for that.
fn evicted_again(cluster: &mut Cluster) -> Vec<String> {
    cluster.pass(HOUR_MS);
    cluster.create("b1", of_job("b", 4, ""));
    cluster.run();
    cluster.evict()
}

/// A job that was preempted, and would lose everything again, is left alone for a day: by the
/// leader that preempted it, whatever its object says by then, and by the next one.
#[test]
fn a_job_that_was_preempted_is_known_by_its_next_pod_and_by_the_next_leader() {
    let mut cluster = preempted_once();
    let (said, without) = receipts(&mut cluster);
    let [(name, receipt)] = &said[..] else { panic!("{said:?}") };
    let gpu_hours = 8 * 1_000 * HOUR_MS;
    assert_eq!((name.as_str(), receipt.preemptions, without), ("train", 1, 0));
    assert_eq!((receipt.attained_gpu_milli_ms, receipt.lost_gpu_milli_ms), (gpu_hours, gpu_hours));
    assert_eq!(preemptions(&cluster, "train-y"), 1);
    assert!(evicted_again(&mut cluster).is_empty());
    cluster.delete(Kind::Pod, "blue", "b1");
    write(&mut cluster, receipt);
    let mut next = next_leader(&mut cluster);
    assert_eq!(preemptions(&next, "train-y"), 1);
    assert!(evicted_again(&mut next).is_empty());
    // A leader that finds no receipt preempts it again.
    next.delete(Kind::Pod, "blue", "b1");
    write(&mut next, &Receipt::default());
    let mut without = next_leader(&mut next);
    assert_eq!(preemptions(&without, "train-y"), 0);
    assert_eq!(evicted_again(&mut without), ["train-y"]);
}

/// A queue whose quota others borrow waits five minutes at most until they have written a
/// checkpoint, and says so.
#[test]
fn a_pod_names_the_checkpoint_that_its_preemption_waits_for() {
    let mut cluster = Cluster::with(shared_node(), fair());
    let mut lent = of_job("a", 8, "");
    lent["metadata"]["annotations"] = json!({"dovetail.dev/checkpoint-interval": "10m",
        "dovetail.dev/checkpoint-cost": "0s", "dovetail.dev/restart-cost": "0s"});
    cluster.create("lent", lent);
    assert_eq!(cluster.run(), ["lent"]);
    let at = time(cluster.now_ms + 10 * MINUTE_MS);
    cluster.pass(8 * MINUTE_MS);
    cluster.server.time = Some(time(cluster.now_ms));
    cluster.create("b0", of_job("b", 4, ""));
    cluster.run();
    assert_eq!(cluster.evict(), [""; 0]);
    let told = format!(
        "dovetail preempts no pods for it before {at}: the pods to preempt write a checkpoint by then"
    );
    let job = cluster.scheduler.world().pods().job_of("blue", "b0").expect("a job");
    let waiting = cluster.scheduler.ask().waiting(job).expect("it waits");
    assert_eq!((waiting.word(), waiting.message), ("WaitingForTurn", told));
    // New nodes are not what it waits for.
    let reason = cluster.scheduler.pending_reason(job);
    assert_eq!(reason, Some(PendingReason::WaitingForTurn));
    cluster.pass(2 * MINUTE_MS);
    cluster.run();
    assert_eq!(cluster.evict(), ["lent"]);
    assert_eq!(cluster.run(), ["b0"]);
}

/// A job that declares its checkpoints loses what it did since the last of them, which its pod may
/// report, and is left alone only until its losses are a tenth of what it held.
#[test]
fn a_job_with_checkpoints_loses_little_and_is_soon_preempted_again() {
    for (reported, lost, alone) in [(None, 10, 310), (Some(55), 5, 260)] {
        let mut cluster = preempted_once_as(&CHECKPOINTS, reported);
        let (said, _) = receipts(&mut cluster);
        assert_eq!(said[0].1.lost_gpu_milli_ms, 8 * 1_000 * lost * MINUTE_MS, "{reported:?}");
        let job = cluster.scheduler.world().pods().job_of("blue", "train-y").expect("a job");
        let job = cluster.scheduler.engine().and_then(|engine| engine.job(job)).expect("it");
        assert_eq!(job.history.saved_ms, (60 - lost) * MINUTE_MS);
        cluster.pass((alone - 1) * MINUTE_MS);
        cluster.create("b1", of_job("b", 4, ""));
        cluster.run();
        assert!(cluster.evict().is_empty(), "{reported:?}");
        cluster.pass(2 * MINUTE_MS);
        cluster.run();
        assert_eq!(cluster.evict(), ["train-y"], "{reported:?}");
    }
}

/// A job that was preempted again and again is told when it saves its progress much too seldom for
/// that.
#[test]
fn a_job_that_saves_too_seldom_for_its_preemptions_gets_advice() {
    for (interval, advised) in [("4h", true), ("15m", false)] {
        let declared = [
            ("dovetail.dev/checkpoint-interval", interval),
            ("dovetail.dev/checkpoint-cost", "20s"),
        ];
        let mut cluster = preempted_once_as(&declared, None);
        let (said, _) = receipts(&mut cluster);
        write(&mut cluster, &Receipt { preemptions: 2, ..said[0].1 });
        let mut next = next_leader(&mut cluster);
        next.pass(24 * HOUR_MS);
        assert_eq!(evicted_again(&mut next), ["train-y"]);
        let advice = next.scheduler.news().into_iter().find_map(|news| match news {
            News::IntervalFarOff { account, advice } => Some((account.name, advice)),
            _ => None,
        });
        assert_eq!(advice.is_some(), advised, "{interval}: {advice:?}");
        let Some((job, advice)) = advice else { continue };
        // One hour before the first preemption, 25 before the last: three in 26 hours.
        let between_ms = (26 * HOUR_MS) / 3;
        assert_eq!((&*job, advice.between_ms), ("train", between_ms));
        assert!((17..20).contains(&(advice.best_ms / MINUTE_MS)), "{advice:?}");
        let account = LastingOwner {
            kind: JOB,
            namespace: "blue".into(),
            name: "train".into(),
            uid: "u".into(),
        };
        let note = Note::interval_far_off(&account, &advice, 0);
        let text =
            "The job is preempted about once per 8.7 h of run time. With a checkpoint every 4 h";
        assert!(note.text.starts_with(text), "{}", note.text);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_reported_by_a_running_pod() {
    let mut cluster = Cluster::of(1);
    cluster.create("p", pod(1));
    assert_eq!(cluster.run(), ["p"]);
    cluster.reports();
    for (value, reported) in [("10:00", 1), ("10:00", 0), ("2030-01-01T10:00:00Z", 0)] {
        annotate(&mut cluster, "p", "dovetail.dev/last-checkpoint", value);
        cluster.run();
        let told = cluster.reports();
        assert_eq!(told.len(), reported, "{told:?}");
        assert!(told.iter().all(|told| told.contains("`10:00` is not a time")), "{told:?}");
    }
}

/// A Job that is submitted again under the label of its run is the same piece of work: it keeps its
/// history and its age, and its object says so to the next leader.
#[test]
fn a_run_that_is_submitted_again_keeps_its_history() {
    let mut cluster = preempted_once_as(&[], None);
    receipts(&mut cluster);
    let of_run = |job: &str| {
        let mut pod = of_job("a", 8, job);
        pod["metadata"]["labels"]["dovetail.dev/run"] = json!("llm");
        pod
    };
    let run = json!({"metadata": {"labels": {"dovetail.dev/run": "llm"}},
        "spec": {"completions": 1}});
    // The first attempt of the run is preempted as any other job.
    cluster.delete(Kind::Pod, "blue", "train-y");
    cluster.server.apply(JOB, "blue", "first", run.clone());
    cluster.create("first-x", of_run("first"));
    assert_eq!(cluster.run(), ["first-x"]);
    let submitted = |cluster: &Cluster, pod: &str| {
        let job = cluster.scheduler.world().pods().job_of("blue", pod).expect("a job");
        cluster.scheduler.engine().and_then(|engine| engine.job(job)).expect("it").submit_ms
    };
    let first_ms = submitted(&cluster, "first-x");
    assert_eq!(evicted_again(&mut cluster), ["first-x"]);
    cluster.run();
    let (said, _) = receipts(&mut cluster);
    assert_eq!((said[0].0.as_str(), said[0].1.first_ms), ("first", first_ms));
    // Its Job is gone, too, when another one is submitted.
    cluster.delete(JOB, "blue", "first");
    cluster.watch();
    cluster.server.time = Some(time(cluster.now_ms + HOUR_MS));
    cluster.server.apply(JOB, "blue", "second", run);
    cluster.create("second-x", of_run("second"));
    cluster.delete(Kind::Pod, "blue", "b1");
    assert_eq!(cluster.run(), ["second-x"]);
    assert_eq!((preemptions(&cluster, "second-x"), submitted(&cluster, "second-x")), (1, first_ms));
    let (inherited, _) = receipts(&mut cluster);
    let [(name, receipt)] = &inherited[..] else { panic!("{inherited:?}") };
    assert_eq!((name.as_str(), receipt), ("second", &said[0].1));
    let key = (JOB, "blue".to_owned(), "second".to_owned());
    let says = receipt.annotations();
    cluster.server.change(&key, |job| job["metadata"]["annotations"] = says.clone());
    cluster.watch();
    let next = next_leader(&mut cluster);
    assert_eq!((preemptions(&next, "second-x"), submitted(&next, "second-x")), (1, first_ms));
}

#[test]
fn a_job_that_allows_no_preemption_is_left_alone_from_its_start() {
    for (most, evicted) in [("0", 0), ("1", 1)] {
        let mut cluster = preempted_once();
        let mut server = std::mem::take(&mut cluster.server);
        server.delete(&(Kind::Pod, "blue".to_owned(), "train-y".to_owned()));
        let mut cluster = Cluster::with(server, fair());
        let mut new = of_job("a", 8, "other");
        new["metadata"]["annotations"] = json!({"dovetail.dev/max-preemptions": most});
        cluster.create("other-x", new);
        assert_eq!(cluster.run(), ["other-x"]);
        assert_eq!(evicted_again(&mut cluster).len(), evicted, "{most}");
    }
}

/// The pods of a gang that are preempted together are one preemption, and what each of them had run
/// counts. Another Job, or group, of the same name begins from nothing.
#[test]
fn a_gang_is_preempted_once_with_all_its_pods() {
    let mut cluster = preempting_cluster(2);
    let group = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", group.clone());
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), native(8)));
    assert_eq!(cluster.run().len(), 2);
    cluster.pass(HOUR_MS);
    cluster.create("high", high(8));
    cluster.run();
    assert_eq!(cluster.evict().len(), 2);
    let (said, _) = receipts(&mut cluster);
    let (name, last) = said.last().expect("a receipt");
    assert_eq!((name.as_str(), last.preemptions), ("train", 1));
    assert_eq!(last.attained_gpu_milli_ms, 2 * 8 * 1_000 * HOUR_MS);
    cluster.run();
    (2..4).for_each(|at| cluster.create(&format!("p{at}"), native(8)));
    cluster.run();
    assert_eq!(preemptions(&cluster, "p2"), 1);
    cluster.delete(Kind::PodGroup, "blue", "train");
    cluster.watch();
    cluster.server.apply(Kind::PodGroup, "blue", "train", group);
    cluster.delete(Kind::Pod, "blue", "high");
    assert_eq!(cluster.run().len(), 2);
    assert_eq!(preemptions(&cluster, "p2"), 0);
}

#[test]
fn that_nothing_remembers_the_preemption_of_some_pods_is_told_once() {
    let mut cluster = preempting_cluster(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), pod(8)));
    assert_eq!(cluster.run().len(), 2);
    for at in 0..2 {
        cluster.create(&format!("high{at}"), high(8));
        cluster.run();
        assert_eq!(cluster.evict().len(), 1);
        assert_eq!(receipts(&mut cluster), (Vec::new(), 1 - at), "{at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_receipt_is_written_to_the_job_of_the_pod() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let job = json!({"metadata": {"name": "train"}, "spec": {"completions": 1}});
    api.create("jobs", "default", &job).expect("a new Job");
    let named = |name: &str, priority: i32| {
        let mut pod = crate::schedule::pod(name, 8);
        pod["spec"]["priority"] = json!(priority);
        pod
    };
    let mut low = named("train-x", 0);
    low["metadata"]["labels"] = json!({"batch.kubernetes.io/job-name": "train"});
    low["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1"});
    low["spec"]["nodeName"] = json!("n0");
    api.create("pods", "default", &low).expect("a new pod");
    api.create("pods", "default", &named("high", 5)).expect("a new pod");
    let scheduler = Running::start(config(&api), preempting(Options::default()));
    let said =
        || api.get("jobs", "default", "train").expect("a Job")["metadata"]["annotations"].clone();
    until(&api, || said()["dovetail.dev/preemptions"] == "1").await;
    assert!(said()["dovetail.dev/last-preempted"].is_string(), "{}", said());
    scheduler.stop().await;
}
