//! What queues have used outlives the leader that counted it.

use std::collections::VecDeque;

use dovetail_cluster::queues::patch;
use dovetail_objects::{Kind, Object};
use dovetail_order::Turns;
use dovetail_plan::Order;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::gangs::{Cluster, node, pod};
use crate::server::{Server, read};

const HOUR_MS: u64 = 3_600_000;

fn fair() -> EngineConfig {
    let turns = Turns::preset("fair").expect("a preset");
    EngineConfig { order: Order::Dovetail, turns, ..EngineConfig::default() }
}

fn in_queue(queue: &str) -> Value {
    let mut pod = pod(8);
    pod["metadata"]["labels"] = json!({"dovetail.dev/queue": queue});
    pod
}

/// The statuses are written as far as they are to be.
fn write_statuses(cluster: &mut Cluster) -> usize {
    let wanted = cluster.scheduler.ask().queue_statuses();
    let mut written = 0;
    for (name, wanted) in wanted {
        let queue = cluster.scheduler.world().queues().get(&name).expect("a queue").clone();
        let Some(patch) = patch(&queue, &wanted, cluster.now_ms) else { continue };
        let key = (Kind::Queue, String::new(), name);
        cluster.server.change(&key, |queue| queue["status"] = patch[1]["value"].clone());
        written += 1;
    }
    cluster.watch();
    written
}

/// One queue has held the only node for three hours while another waited; then its pod ends, and a
/// third one has waited since shortly before. Who of `b` and `a`, which asked first, starts.
fn cluster() -> Cluster {
    let mut server = Server::default();
    node(&mut server, 0);
    for (name, half_life) in [("a", "7d"), ("b", "2h")] {
        let spec = json!({"namespaceSelector": {}, "borrowing": "WhenFree", "halfLife": half_life});
        server.apply(Kind::Queue, "", name, json!({"spec": spec}));
    }
    Cluster::with(server, fair())
}

fn next_after(cluster: &mut Cluster) -> Vec<String> {
    cluster.end("a0", "Succeeded");
    cluster.run()
}

#[test]
fn the_next_leader_ranks_queues_by_what_the_last_one_counted() {
    let mut first = cluster();
    first.create("a0", in_queue("a"));
    assert_eq!(first.run(), ["a0"]);
    first.pass(1_000);
    first.create("a1", in_queue("a"));
    first.create("b0", in_queue("b"));
    assert!(first.run().is_empty());
    assert!(write_statuses(&mut first) > 0);
    for _ in 0..6 {
        first.pass(HOUR_MS / 2);
        assert_eq!(write_statuses(&mut first), 1, "of the queue that is charged");
        first.pass(29_000);
        assert_eq!(write_statuses(&mut first), 0, "usage alone is not written that often");
    }
    let counted = |cluster: &mut Cluster| {
        let usage = cluster.scheduler.ask().queue_usage().expect("the order counts it");
        let of = |queue: &str| usage.iter().find(|one| one.queue == queue && !one.is_own).cloned();
        of("a").expect("it has used the node").used as f64 / 1e9
    };
    let expected = counted(&mut first);
    assert!((3.0 * 3_500.0..3.1 * 3_600.0).contains(&expected), "{expected} cluster-seconds");
    // The leader is gone with all it knew. The next one has the objects.
    let (server, now_ms) = (std::mem::take(&mut first.server), first.now_ms);
    drop(first);
    let mut next = Cluster::with(server, fair());
    next.now_ms = now_ms.max(next.now_ms);
    next.pass(0);
    next.run();
    let found = counted(&mut next);
    assert!(expected - found <= 30.0, "{found} of {expected}: more than one batch is lost");
    assert!(expected - found > 0.0, "what was used since the last write nobody knows");
    // `a1` asked first, and its queue has used the node for three hours.
    assert_eq!(next_after(&mut next), ["b0"]);
    // Without its status nobody would know.
    let mut without = cluster();
    for (name, queue) in [("a0", "a"), ("a1", "a"), ("b0", "b")] {
        without.create(name, in_queue(queue));
        without.run();
    }
    assert_eq!(next_after(&mut without), ["a1"], "the order in which they asked");
}

/// What each queue holds, borrows, has of the cluster and has pending: what the leader writes, and
/// what `dovetail queue` reads out of the same objects.
fn says_beside_usage(cluster: &mut Cluster) -> Vec<(String, Value)> {
    let mut statuses = cluster.scheduler.ask().queue_statuses();
    for (_, status) in &mut statuses {
        status.as_object_mut().expect("a status").remove("usage");
    }
    statuses
}

/// What becomes of a leader and of what it wrote.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Lives,
    /// Nothing but the objects is left for the next one.
    Dies,
    /// The usage in the statuses is lost, too.
    DiesUnread,
}

/// Two nodes and three queues that ask for more than there is, for 24 steps of about an hour; at
/// each a pod ends. Which pods start at each step when the leader meets its fate before one.
fn starts_of_a_day(fate: Fate, before: usize) -> Vec<Vec<String>> {
    let mut server = Server::default();
    (0..2).for_each(|at| node(&mut server, at));
    for (name, weight) in [("a", 1), ("b", 2), ("c", 4)] {
        let spec = json!({"namespaceSelector": {}, "borrowing": "WhenFree", "weight": weight,
            "halfLife": "5h"});
        server.apply(Kind::Queue, "", name, json!({"spec": spec}));
    }
    let mut cluster = Cluster::with(server, fair());
    for at in 0..26 {
        for queue in ["a", "b", "c"] {
            cluster.create(&format!("{queue}{at:02}"), in_queue(queue));
        }
    }
    let mut running = VecDeque::from(cluster.run());
    let mut starts = Vec::new();
    for step in 0..24 {
        cluster.pass(HOUR_MS / 2 + step as u64 % 5 * 720_000);
        write_statuses(&mut cluster);
        cluster.pass(29_000);
        write_statuses(&mut cluster);
        if step == before && fate != Fate::Lives {
            let (mut server, now_ms) = (std::mem::take(&mut cluster.server), cluster.now_ms);
            if fate == Fate::DiesUnread {
                for key in server.keys(Kind::Queue) {
                    server.change(&key, |queue| queue["status"] = json!({}));
                }
            }
            let said = says_beside_usage(&mut cluster);
            cluster = Cluster::with(server, fair());
            cluster.pass(now_ms - cluster.now_ms);
            assert!(cluster.run().is_empty(), "step {step}: nothing has ended");
            assert_eq!(says_beside_usage(&mut cluster), said, "step {step}");
        }
        let ended = running.pop_front().expect("two pods run");
        cluster.end(&ended, "Succeeded");
        let started = cluster.run();
        running.extend(started.iter().cloned());
        starts.push(started);
    }
    starts
}

/// Up to 29 seconds of usage are lost each time, of about an hour.
#[test]
fn whenever_the_leader_dies_the_next_one_decides_as_it_would_have() {
    let expected = starts_of_a_day(Fate::Lives, 0);
    assert!(expected.iter().all(|started| started.len() == 1), "{expected:?}");
    for before in 0..24 {
        assert_eq!(starts_of_a_day(Fate::Dies, before), expected, "it dies before step {before}");
    }
    let differs = |before: &usize| starts_of_a_day(Fate::DiesUnread, *before) != expected;
    assert!((0..24).any(|before| differs(&before)), "usage does not matter in this day");
}

#[test]
fn a_half_life_that_cannot_be_read_is_told() {
    let queue = json!({"metadata": {"name": "a"}, "spec": {"halfLife": "99999999999d"}});
    let Object::Queue(queue) = read(Kind::Queue, &queue) else { panic!("a queue") };
    assert_eq!(&*queue.half_life, "99999999999d");
    let mut cluster = cluster();
    let spec = json!({"namespaceSelector": {}, "halfLife": "99999999999d"});
    cluster.server.apply(Kind::Queue, "", "a", json!({"spec": spec}));
    cluster.create("p", in_queue("a"));
    assert!(cluster.run().is_empty());
    let told = cluster.reports().join("\n");
    assert!(told.contains("spec.halfLife: "), "{told}");
}
