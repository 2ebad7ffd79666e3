//! What keeps a pod pending although there is capacity for it: disruption budgets of pods that
//! would make room for it, and Reservations of free GPUs.

use dovetail_control::announce::Note;
use dovetail_control::schedule::News;
use dovetail_objects::Kind;
use serde_json::json;

use crate::cohorts::time;
use crate::gangs::{Cluster, names};
use crate::receipts::{fair, of_job, shared_node};

const HOUR_MS: u64 = 3_600_000;
const FULL: &str = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";

/// What a pending pod writes into its condition, and what is news about its disruption budgets.
fn announced(cluster: &mut Cluster, pod: &str) -> (String, Vec<Note>) {
    cluster.scheduler.news();
    let job = cluster.scheduler.world().pods().job_of("blue", pod).expect("a job");
    let waiting = cluster.scheduler.ask().announced(job).expect("it waits");
    let news = cluster.scheduler.news().into_iter();
    let notes = news.filter_map(|news| match news {
        News::PreemptionBlocked { pod, text } => Some(Note::preemption_blocked(pod, &text, 0)),
        _ => None,
    });
    (waiting.message, notes.collect())
}

#[test]
fn a_reclaim_that_a_budget_holds_up_names_the_budget_and_the_queue_of_the_victims() {
    let mut server = shared_node();
    let budget = |queue: &str| {
        json!({"spec": {"selector": {"matchLabels": {"dovetail.dev/queue": queue}}},
            "status": {"disruptionsAllowed": 0}})
    };
    server.apply(Kind::DisruptionBudget, "blue", "calm", budget("a"));
    server.apply(Kind::DisruptionBudget, "blue", "other", budget("b"));
    let mut cluster = Cluster::with(server, fair());
    cluster.create("a0", of_job("a", 8, ""));
    assert_eq!(cluster.run(), ["a0"]);
    cluster.pass(HOUR_MS);
    cluster.create("b0", of_job("b", 4, ""));
    assert_eq!(cluster.run(), names(&[]));
    let why = "It would start if pods of queue a were evicted, which PodDisruptionBudget blue/calm \
               does not allow now: blue/a0.";
    let (message, notes) = announced(&mut cluster, "b0");
    assert_eq!(message, format!("{FULL} {why}"));
    let told: Vec<_> =
        notes.iter().map(|note| (&*note.about.name, note.reason, note.text.as_str())).collect();
    assert_eq!(told, [("b0", "FailedPreemption", why)]);

    let key = (Kind::DisruptionBudget, "blue".to_owned(), "calm".to_owned());
    cluster.server.change(&key, |budget| budget["status"]["disruptionsAllowed"] = json!(1));
    cluster.run();
    assert_eq!(cluster.evict(), ["a0"]);
    assert_eq!(cluster.run(), ["b0"]);
}

#[test]
fn a_pod_that_a_reservation_keeps_out_names_it() {
    let mut cluster = Cluster::with(shared_node(), fair());
    let to = time(cluster.now_ms + HOUR_MS);
    let spec = json!({"queue": "a", "count": 1, "requests": {"nvidia.com/gpu": 4},
        "from": time(cluster.now_ms), "to": to});
    cluster.server.apply(Kind::Reservation, "", "demo", json!({"spec": spec}));
    for _ in 0..2 {
        cluster.pass(1_000);
        cluster.run();
    }
    // The other half of the node is free, which is not enough for one of these.
    for (name, gpus) in [("fits", 8), ("large", 9)] {
        cluster.create(name, of_job("b", gpus, ""));
        assert_eq!(cluster.run(), names(&[]));
    }
    let why = "Reservation demo reserves the free capacity in which it would start, until";
    assert_eq!(cluster.says("fits"), format!("{FULL} {why} {to}."));
    assert_eq!(cluster.says("large"), FULL);
}
