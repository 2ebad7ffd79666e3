//! Which nodes have devices for pending pods is kept, and asked again of those nodes alone that a
//! change concerns: after any history it is what a scheduler finds that has kept nothing.

use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_model::Node;
use dovetail_objects::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::device_claims::{run, slice, with_own_claim};
use crate::gangs::{Cluster, member, node, pod};
use crate::server::Server;

const NODES: usize = 4;

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// A pod with a claim of so many devices comes.
    Comes(usize),
    /// A gang of two pods comes, each with a claim of its own for so many devices.
    GangComes(usize),
    /// A pod and its claim go.
    Goes(usize),
    /// A claim that another scheduler serves has a device of a node, or is gone.
    Foreign { node: usize, has: bool },
    /// A node has so many devices; none is no slice.
    Offers { node: usize, devices: usize },
    /// All devices of a pool are tainted, or are not.
    Tainted { node: usize, is_tainted: bool },
    /// A node has another label.
    Labelled(usize),
    /// The scheduler places what it can.
    Runs,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_usize..4).prop_map(Step::Comes),
        1 => (1_usize..3).prop_map(Step::GangComes),
        2 => (0_usize..20).prop_map(Step::Goes),
        1 => (0..NODES, any::<bool>()).prop_map(|(node, has)| Step::Foreign { node, has }),
        2 => (0..NODES, 0_usize..4).prop_map(|(node, devices)| Step::Offers { node, devices }),
        1 => (0..NODES, any::<bool>())
            .prop_map(|(node, is_tainted)| Step::Tainted { node, is_tainted }),
        1 => (0..NODES).prop_map(Step::Labelled),
        3 => Just(Step::Runs),
    ]
}

/// The nodes on which each pending pod could have its devices, and how many like it.
fn found(cluster: &mut Cluster) -> BTreeMap<String, (Vec<String>, String)> {
    let snapshot = cluster.scheduler.ask().snapshot(cluster.now_ms);
    let pending = snapshot.jobs.iter().filter(|job| job.start_ms.is_none());
    let found = pending.map(|job| {
        let accepts = |node: &&Node| {
            let mut sets = job.pod_sets.iter().flat_map(|set| &set.requirement.node_conditions);
            sets.all(|condition| condition.accepts(node))
        };
        let nodes = snapshot.nodes.iter().filter(accepts).map(|node| node.name.to_string());
        let rules: Vec<_> = job.pod_sets.iter().map(|set| &set.requirement.rules).collect();
        (job.name.clone(), (nodes.collect(), format!("{rules:?}")))
    });
    found.collect()
}

fn claim_of(pool: &str, has: bool) -> Value {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let spec = json!({"devices": {"requests": [request]}});
    let result = json!({"request": "r", "driver": "gpu.example.com", "pool": pool, "device": "d0"});
    let allocation = json!({"devices": {"results": [result]}});
    match has {
        true => json!({"spec": spec, "status": {"allocation": allocation}}),
        false => json!({"spec": spec}),
    }
}

fn takes_place(cluster: &mut Cluster, step: &Step, at: usize) {
    let server = &mut cluster.server;
    match step {
        Step::Comes(count) => {
            let exactly = json!({"deviceClassName": "gpu", "count": count});
            let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
            server.apply(Kind::DeviceClaim, "blue", &format!("p{at}"), json!({"spec": spec}));
            let mut pod = pod(0);
            pod["spec"]["resourceClaims"] =
                json!([{"name": "c", "resourceClaimName": format!("p{at}")}]);
            cluster.create(&format!("p{at}"), pod);
        }
        Step::GangComes(count) => {
            for at_member in 0..2 {
                let mut pod = member(0, 2, 2);
                pod["metadata"]["labels"]["dovetail.dev/gang"] = json!(format!("g{at}"));
                with_own_claim(cluster, &format!("g{at}-{at_member}"), pod, *count);
            }
        }
        Step::Goes(number) => {
            let pods = server.keys(Kind::Pod);
            let Some((_, _, name)) = pods.get(number % pods.len().max(1)).cloned() else { return };
            cluster.delete(Kind::Pod, "blue", &name);
            cluster.delete(Kind::DeviceClaim, "blue", &name);
            cluster.delete(Kind::DeviceClaim, "blue", &format!("{name}-c"));
        }
        Step::Foreign { node, has } => {
            let name = format!("n{node}");
            server.apply(Kind::DeviceClaim, "other", &name, claim_of(&name, *has));
        }
        Step::Offers { node, devices: 0 } => {
            cluster.delete(Kind::ResourceSlice, "", &format!("n{node}"));
        }
        Step::Offers { node, devices } => slice(server, *node, *devices),
        Step::Tainted { node, is_tainted: true } => {
            let taint = json!({"key": "broken", "effect": "NoSchedule"});
            let pool = format!("n{node}");
            let spec = json!({"deviceSelector": {"pool": pool}, "taint": taint});
            server.apply(Kind::DeviceTaintRule, "", &pool, json!({"spec": spec}));
        }
        Step::Tainted { node, is_tainted: false } => {
            cluster.delete(Kind::DeviceTaintRule, "", &format!("n{node}"));
        }
        Step::Labelled(number) => {
            let key = (Kind::Node, String::new(), format!("n{number}"));
            let label = json!(at.to_string());
            server.change(&key, |node| node["metadata"]["labels"]["example.com/at"] = label);
        }
        Step::Runs => drop(run(cluster)),
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn what_is_kept_is_what_a_scheduler_finds_that_has_kept_nothing(
        history in proptest::collection::vec(steps(), 1..40),
    ) {
        let mut server = Server::default();
        let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
        server.apply(Kind::DeviceClass, "", "gpu", json!({"spec": {"selectors": selectors}}));
        for at in 0..NODES {
            node(&mut server, at);
            slice(&mut server, at, 2);
        }
        let mut cluster = Cluster::over(server);
        takes_place(&mut cluster, &Step::Comes(1), NODES * 100);
        cluster.watch();
        prop_assert_eq!(found(&mut cluster).len(), 1);
        for (at, step) in history.iter().enumerate() {
            takes_place(&mut cluster, step, at);
            cluster.watch();
            let mut fresh = Cluster::over(cluster.server.clone());
            prop_assert_eq!(found(&mut cluster), found(&mut fresh), "after {} steps", at + 1);
        }
    }
}
