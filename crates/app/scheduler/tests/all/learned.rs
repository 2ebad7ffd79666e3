//! What an engine learns outlives it, and the leader.

use dovetail_cluster::world::Change;
use dovetail_control::schedule::{go_on_with, learned};
use dovetail_objects::Kind;
use dovetail_plan::LearntFile;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{EstimatesConfig, Learned};
use serde_json::{Value, json};

use crate::gangs::{Cluster, node, pod};
use crate::server::Server;

fn config() -> EngineConfig {
    EngineConfig {
        estimates: EstimatesConfig { learn: true, ..EstimatesConfig::default() },
        ..EngineConfig::default()
    }
}

/// What the policy has learned, as it is written.
fn written(cluster: &Cluster) -> Value {
    let policy = learned(&cluster.scheduler).policy.expect("the policy learns");
    json!(LearntFile::of(policy))
}

fn runs(cluster: &Cluster) -> u64 {
    learned(&cluster.scheduler).run_times.expect("run times are learned").runs
}

/// Ten pods that came and ended, and one that runs.
fn experienced() -> Cluster {
    let mut server = Server::default();
    node(&mut server, 0);
    let mut cluster = Cluster::with(server, config());
    for at in 0..10 {
        let name = format!("p{at}");
        cluster.create(&name, pod(8));
        assert_eq!(cluster.run(), std::slice::from_ref(&name));
        cluster.pass(600_000);
        cluster.end(&name, "Succeeded");
        cluster.run();
    }
    cluster.create("last", pod(8));
    assert_eq!(cluster.run(), ["last"]);
    cluster
}

/// The next leader over the same objects.
fn next(first: &mut Cluster, learned: Learned) -> Cluster {
    let mut next = Cluster::with(std::mem::take(&mut first.server), config());
    go_on_with(learned, &mut next.scheduler);
    next.pass(first.now_ms - next.now_ms);
    assert!(next.run().is_empty(), "nothing has ended");
    next
}

#[test]
fn the_next_leader_goes_on_with_what_the_last_one_learned() {
    let mut first = experienced();
    let before = written(&first);
    assert_eq!(before["learnt"]["histogram"]["arrivals"], 11);
    assert_eq!(runs(&first), 10);
    let learned = learned(&first.scheduler);
    let mut second = next(&mut first, learned);
    assert_eq!((written(&second), runs(&second)), (before, 10));
    second.end("last", "Succeeded");
    second.create("more", pod(8));
    assert_eq!(second.run(), ["more"]);
    let after = written(&second);
    assert_eq!(after["learnt"]["histogram"]["arrivals"], 12);
    assert_eq!(runs(&second), 11);
    // Without it, the pods that are there are all that was ever seen.
    let cold = next(&mut second, Learned::default());
    assert_eq!(written(&cold)["learnt"]["histogram"]["arrivals"], 1);
    assert_eq!(runs(&cold), 0);
}

/// A server that serves queues no longer has the engine built again.
#[test]
fn an_engine_that_is_built_again_has_forgotten_nothing() {
    let mut cluster = experienced();
    let before = written(&cluster);
    cluster.scheduler.change(Change::Absent(Kind::Queue), cluster.now_ms);
    assert!(cluster.scheduler.engine().is_none());
    assert!(cluster.run().is_empty());
    assert!(cluster.scheduler.engine().is_some());
    assert_eq!((written(&cluster), runs(&cluster)), (before, 10));
}
