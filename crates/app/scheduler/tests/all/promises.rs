//! Who is told that it starts when terminating pods are gone.

use dovetail_model::PendingReason;
use dovetail_objects::Kind;
use serde_json::json;

use crate::gangs::{Cluster, pod};
use crate::preempt_orders::high;

const PROMISED: &str = "it starts when terminating pods are gone";

/// What a pod says.
fn says(cluster: &mut Cluster, name: &str) -> (&'static str, String) {
    let job = cluster.scheduler.world().pods().job_of("blue", name).expect("a job");
    let says =
        cluster.scheduler.ask().waiting_for(job, PendingReason::Unschedulable).expect("it waits");
    (says.word(), says.message)
}

/// Eight GPUs are about to be free, and others wait than can have them.
#[test]
fn no_more_are_promised_what_is_freed_than_can_have_it() {
    let mut cluster = Cluster::of(1);
    cluster.create("first", pod(8));
    assert_eq!(cluster.run(), ["first"]);
    let small = ["a", "b", "c"];
    small.iter().for_each(|name| cluster.create(name, pod(4)));
    assert_eq!(cluster.run(), [""; 0]);
    let none = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
    let unschedulable = ("Unschedulable", none.to_owned());
    let promised = ("WaitingForTurn", PROMISED.to_owned());
    let all = |cluster: &mut Cluster| small.map(|name| says(cluster, name));
    assert!(all(&mut cluster).iter().all(|says| *says == unschedulable), "nobody ends");
    let key = (Kind::Pod, "blue".to_owned(), "first".to_owned());
    cluster.server.change(&key, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2030-03-17T17:47:10Z");
    });
    cluster.run();
    let expected = [promised.clone(), promised.clone(), unschedulable.clone()];
    for asked in ["first", "again"] {
        assert_eq!(all(&mut cluster), expected, "asked {asked}");
    }
    // One that goes before them comes, and takes all of it.
    cluster.create("top", high(8));
    cluster.run();
    assert_eq!(says(&mut cluster, "top"), promised);
    assert!(all(&mut cluster).iter().all(|says| *says == unschedulable));
    // When that has gone which was waited for, all are asked again.
    cluster.scheduler.take_recheck();
    cluster.delete(Kind::Pod, "blue", "first");
    assert_eq!(cluster.run(), ["top"]);
    assert!(cluster.scheduler.take_recheck());
}
