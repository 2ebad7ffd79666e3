//! AMD's nodes: what Device Config Manager reports too early, pods that are in the way of its
//! taint, and what other clients leave behind.

use dovetail_sharing::guard::DWELL_MS;
use dovetail_sharing::watch::{Outcome, Watch, conclude};
use dovetail_sharing::{Next, Record, SharingPolicy, Step, begin, give_back, next, revert};
use dovetail_testkit::gpu_operator::Fault;
use serde_json::{Value, json};

use crate::world::{Case, TIMING, World, operand};

fn record(world: &World) -> Record {
    world.seen().record.expect("a record")
}

/// The first write of a change under a policy with a guard, or why it does not begin.
fn start(world: &mut World) -> Result<(), String> {
    let object = json!({"metadata": {"name": "shared"},
        "spec": {"mode": "amd-partition", "partition": "cpx_nps4", "apply": true, "guard": {}}});
    let policy: SharingPolicy = serde_json::from_value(object).expect("a policy");
    let Case { by, from, to, .. } = world.case.clone();
    let write = begin(&world.seen(), by, from, to, Watch::of(&policy), world.now_ms);
    let write = write.map_err(|refused| refused.to_string())?;
    assert!(world.take(&write, false));
    Ok(())
}

/// Makes the next step, or lets time pass; whether a step follows.
fn step(world: &mut World) -> bool {
    match next(&world.seen(), &TIMING, world.now_ms) {
        Next::Over => return false,
        Next::Wait { .. } => world.pass(5_000),
        Next::WriteConfig => {
            let mut layouts = world.layouts.clone();
            layouts.add_both(record(world).sides(), world.now_ms);
            world.write_layouts(layouts);
        }
        Next::Write(write) => drop(world.take(&write, false)),
        Next::Evict(one) => panic!("nothing moves, and {} does", one.pod),
    }
    true
}

/// Goes on until the change is over.
fn run(world: &mut World) -> Record {
    for _ in 0..4_000 {
        if !step(world) {
            return record(world);
        }
    }
    panic!("the change does not end: {:?}", record(world));
}

/// Goes on until a change has come to a step.
fn run_to(world: &mut World, wanted: Step) {
    for _ in 0..4_000 {
        if record(world).step == wanted {
            return;
        }
        assert!(step(world), "it is over: {:?}", record(world));
    }
    panic!("{wanted:?} does not come: {:?}", record(world));
}

fn reasons(world: &World) -> Vec<&str> {
    world.events.values().filter_map(|event| event["reason"].as_str()).collect()
}

/// The node has changed, and its latency got worse.
fn worse() -> World {
    let mut world = World::new(Case::amd(), 0);
    start(&mut world).expect("a start");
    assert_eq!(run(&mut world).step, Step::Done);
    let write = conclude(&world.seen(), Outcome::Worse, "p95 of prod/chat +12%", world.now_ms);
    assert!(world.take(&write.expect("a verdict"), false));
    world
}

#[test]
fn a_failure_that_comes_before_the_answer_to_a_request_is_not_final() {
    for early_ms in [0, 15_000] {
        let mut world = World::new(Case::amd(), 0);
        world.set_delay(60_000);
        world.failures_ms().push_back(early_ms);
        start(&mut world).expect("a start");
        let done = run(&mut world);
        assert_eq!((done.step, done.attempt), (Step::Done, 1), "{done:?}");
        assert!(!reasons(&world).contains(&"RepartitionRetried"), "{:?}", world.events);
    }
    // On the way back, too: the pods of the operator stay away until the answer is there.
    let mut world = World::new(Case::amd(), 0);
    world.set_delay(60_000);
    world.faults().extend([Some(Fault::Fails), Some(Fault::Fails)]);
    start(&mut world).expect("a start");
    run_to(&mut world, Step::Reverting);
    world.failures_ms().push_back(0);
    world.pass(5_000);
    assert_eq!(world.seen().states[&world.case.by], "failure");
    step(&mut world);
    assert!(world.is_barred(), "{:?}", record(&world));
    assert_eq!(run(&mut world).step, Step::Undone);
    assert!(world.has(&world.case.from));
}

#[test]
fn a_failure_that_stays_is_final_before_the_time_is_up() {
    let mut world = World::new(Case::amd(), 0);
    world.faults().extend([Some(Fault::Fails), Some(Fault::Fails)]);
    start(&mut world).expect("a start");
    let began_ms = world.now_ms;
    let undone = run(&mut world);
    assert_eq!((undone.step, undone.attempt), (Step::Undone, 2), "{undone:?}");
    assert!(undone.problem.contains("reported `failure`"), "{undone:?}");
    assert!(world.now_ms < began_ms + 2 * TIMING.limit_ms, "it waited for {undone:?}");
}

#[test]
fn a_return_waits_for_pods_that_use_no_gpu() {
    let mut world = worse();
    world.run_without_gpu(2 * DWELL_MS);
    let write = give_back(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    assert_eq!(record(&world).step, Step::Emptying);
    let problem = record(&world).problem;
    assert!(problem.starts_with("waiting: pods would be evicted"), "{problem}");
    assert!(problem.contains("tolerationSeconds: team/p1;"), "{problem}");
    assert!(step(&mut world) && record(&world).step == Step::Emptying);
    world.pass(2 * DWELL_MS);
    // Others come while it settles, and while the operator's pods leave.
    run_to(&mut world, Step::Tainted);
    world.run_without_gpu(60_000);
    step(&mut world);
    assert_eq!(record(&world).step, Step::Emptying);
    run_to(&mut world, Step::Clearing);
    assert!(world.is_barred());
    world.bind_whatever(60_000);
    step(&mut world);
    assert_eq!(record(&world).step, Step::Emptying);
    assert!(!world.is_barred() && world.is_tainted());
    let back = run(&mut world);
    let failed = back.watch.as_ref().map(|watch| watch.failed_returns);
    assert_eq!((back.step, failed), (Step::Done, Some(0)), "{back:?}");
    assert!(world.has(&world.case.from));
}

#[test]
fn a_change_whose_operator_does_not_leave_rests_before_it_is_tried_again() {
    let mut world = World::new(Case::amd(), 0);
    start(&mut world).expect("a start");
    run_to(&mut world, Step::Tainted);
    // A pod of the operator that hangs.
    world.more_pods.push(operand("hangs", "amd-node-labeller", &json!([])));
    let undone = run(&mut world);
    assert_eq!((undone.step, undone.attempt), (Step::Undone, 0), "{undone:?}");
    assert!(undone.problem.contains("kube-amd-gpu/hangs still run there"), "{undone:?}");
    let why = start(&mut world).expect_err("a rest");
    assert!(why.contains("its change was given up less than 30 minutes ago"), "{why}");
    world.more_pods.clear();
    world.pass(DWELL_MS);
    start(&mut world).expect("a start");
    assert_eq!(run(&mut world).step, Step::Done);
}

#[test]
fn a_pod_that_tolerates_the_taint_for_a_time_is_in_the_way() {
    let limited = json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
    let mut pod = operand("web", "web", &limited);
    pod["metadata"]["namespace"] = json!("team");
    let mut world = World::new(Case::amd(), 0);
    world.more_pods.push(pod);
    let why = start(&mut world).expect_err("a pod");
    assert!(why.contains("do not tolerate the taint amd-dcm=up"), "{why}");
    assert!(why.contains("tolerationSeconds: team/web"), "{why}");
    // Pods of the operator are to leave.
    world.more_pods = vec![operand("exporter", "metrics-exporter", &limited)];
    start(&mut world).expect("a start");
}

#[test]
fn a_pod_that_tolerates_the_taint_and_uses_the_gpus_is_in_the_way() {
    let any = json!([{"operator": "Exists"}]);
    let refused = |pod: Value| {
        let mut world = World::new(Case::amd(), 0);
        world.more_pods.push(pod);
        start(&mut world).err()
    };
    let why = refused(operand("exporter", "metrics-exporter", &any)).expect("a pod");
    assert!(why.contains("kube-amd-gpu/exporter use its GPUs and would stay"), "{why}");
    for of in ["device-config-manager", "node-feature-discovery"] {
        assert_eq!(refused(operand("p", of, &any)), None, "{of}");
    }
    let mut agent = operand("agent", "agent", &any);
    agent["metadata"]["namespace"] = json!("monitoring");
    assert_eq!(refused(agent.clone()), None);
    agent["spec"]["volumes"] = json!([{"hostPath": {"path": "/dev/dri"}}]);
    assert!(refused(agent.clone()).is_some_and(|why| why.contains("monitoring/agent")));
    // One that comes during the change is waited for.
    let mut world = World::new(Case::amd(), 0);
    start(&mut world).expect("a start");
    run_to(&mut world, Step::Clearing);
    world.more_pods.push(agent);
    world.pass(60_000);
    let Next::Wait { why, .. } = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it does not wait: {:?}", record(&world));
    };
    assert_eq!(why, "for monitoring/agent to leave the GPUs");
}

#[test]
fn a_node_that_others_took_is_left_until_they_give_it_back() {
    for given_back in [None, Some("dovetail-spx-nps1-2")] {
        let mut world = World::new(Case::amd(), 0);
        start(&mut world).expect("a start");
        run_to(&mut world, Step::Applying);
        world.label_by_others();
        assert_eq!(run(&mut world).step, Step::Abandoned);
        world.pass(10 * DWELL_MS);
        assert!(start(&mut world).is_err(), "it is theirs");
        let master = world.seen().other_master.expect("a master");
        assert!(master.contains("to `cpx-profile`: to let dovetail manage"), "{master}");
        assert!(revert(&world.seen(), world.now_ms).is_err());
        world.label(given_back);
        assert_eq!(world.seen().other_master, None);
    }
}

#[test]
fn a_node_that_was_stuck_settles_before_it_goes_back() {
    let stuck = || {
        let mut world = World::new(Case::amd(), 9_000);
        world.faults().extend([Some(Fault::Fails), Some(Fault::Fails), Some(Fault::Ignores)]);
        start(&mut world).expect("a start");
        assert_eq!(run(&mut world).step, Step::Stuck);
        // People repair it, and take the taint off.
        world.untaint(dovetail_sharing::names::TAINT);
        world.pass(5_000);
        let write = revert(&world.seen(), world.now_ms).expect("a way back");
        assert!(world.take(&write, false));
        assert!(world.is_tainted() && !world.is_barred());
        assert!(revert(&world.seen(), world.now_ms).is_err(), "it is on its way");
        world
    };
    // A scheduler that did not see the taint yet: the pod is not evicted.
    let mut world = stuck();
    world.bind_without_gpu(60_000);
    assert_eq!(world.pods.len(), 1);
    let again = run(&mut world);
    assert_eq!((again.step, world.pods.len()), (Step::Stuck, 1), "{again:?}");
    world.pass(60_000);
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    assert_eq!(run(&mut world).step, Step::Undone);
    let mut world = stuck();
    let undone = run(&mut world);
    assert_eq!((undone.step, world.is_tainted()), (Step::Undone, false), "{undone:?}");
    assert!(world.has(&world.case.from));
}
