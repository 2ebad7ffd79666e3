//! GPU-time that queues got back, and that was reserved without use.

use std::collections::BTreeMap;

use dovetail_control::schedule::GpuTime;
use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::cohorts::time;
use crate::gangs::{Cluster, pod};
use crate::receipts;

fn in_queue(queue: &str) -> Value {
    let mut pod = pod(4);
    pod["metadata"]["labels"] = json!({"dovetail.dev/queue": queue});
    pod
}

#[test]
fn what_a_queue_got_back_counts_for_as_long_as_it_uses_it() {
    let mut cluster = Cluster::with(receipts::shared_node(), receipts::fair());
    for name in ["a0", "a1"] {
        cluster.create(name, in_queue("a"));
    }
    assert_eq!(cluster.run(), ["a0", "a1"]);
    cluster.pass(60_000);
    cluster.create("b0", in_queue("b"));
    cluster.run();
    assert_eq!(cluster.scheduler.gpu_meter.take(), GpuTime::default(), "it has got nothing yet");
    assert_eq!(cluster.evict().len(), 1);
    assert_eq!(cluster.run(), ["b0"]);
    cluster.run();
    let after = |cluster: &mut Cluster, ms: u64| {
        cluster.pass(ms);
        cluster.run();
        cluster.scheduler.gpu_meter.take().reclaimed
    };
    let gpus = |seconds: u64| BTreeMap::from([("b".to_owned(), 4_000 * 1_000 * seconds)]);
    assert_eq!(after(&mut cluster, 100_000), gpus(100));
    assert_eq!(after(&mut cluster, 20_000), gpus(20));
    // Another job of the queue starts in room that is free.
    cluster.end("b0", "Succeeded");
    cluster.create("b1", in_queue("b"));
    assert_eq!(cluster.run(), ["b1"]);
    cluster.scheduler.gpu_meter.take();
    assert_eq!(after(&mut cluster, 50_000), BTreeMap::new());
}

#[test]
fn a_reservation_that_is_not_used_counts_until_it_is() {
    let mut cluster = Cluster::with(receipts::shared_node(), receipts::fair());
    let spec = json!({"queue": "a", "count": 1, "requests": {"nvidia.com/gpu": 4},
        "from": time(cluster.now_ms), "to": time(cluster.now_ms + 3_600_000)});
    cluster.server.apply(Kind::Reservation, "", "demo", json!({"spec": spec}));
    for _ in 0..2 {
        cluster.pass(1_000);
        cluster.run();
    }
    cluster.scheduler.gpu_meter.take();
    cluster.pass(100_000);
    cluster.run();
    let unused = cluster.scheduler.gpu_meter.take().reserved_unused;
    assert_eq!(unused, [0, 4_000 * 100_000]);
    // The other half is not reserved.
    for (name, queue) in [("b0", "b"), ("a0", "a")] {
        cluster.create(name, in_queue(queue));
        assert_eq!(cluster.run(), [name]);
    }
    cluster.scheduler.gpu_meter.take();
    cluster.pass(100_000);
    cluster.run();
    assert_eq!(cluster.scheduler.gpu_meter.take().reserved_unused, [0, 0]);
}
