//! Nodes that people label after a change, changes that wait for pods, and runs that die before
//! their first write.

use dovetail_sharing::guard::{DWELL_MS, left_today};
use dovetail_sharing::{Next, Record, Refused, Step, Write, begin, is_for_pods, next, revert};
use dovetail_testkit::gpu_operator::Fault;
use serde_json::json;

use crate::world::{Case, TIMING, World};

const DAY_MS: u64 = 24 * 3_600_000;

fn record(world: &World) -> Record {
    world.seen().record.expect("a record")
}

fn start(world: &World) -> Result<Write, Refused> {
    let Case { by, from, to, .. } = world.case.clone();
    begin(&world.seen(), by, from, to, None, world.now_ms)
}

/// Goes on until the change is over, or at a step.
fn run_to(world: &mut World, step: Option<Step>) -> Record {
    for _ in 0..4_000 {
        let seen = world.seen();
        if step.is_some_and(|step| record(world).step == step) {
            return record(world);
        }
        match next(&seen, &TIMING, world.now_ms) {
            Next::Over => return record(world),
            Next::Wait { .. } => world.pass(5_000),
            Next::WriteConfig => {
                let mut layouts = world.layouts.clone();
                layouts.add_both(record(world).sides(), world.now_ms);
                world.write_layouts(layouts);
            }
            Next::Write(write) => {
                world.take(&write, false);
            }
            Next::Evict(one) => panic!("nothing moves, and {} does", one.pod),
        }
    }
    panic!("the change does not end: {:?}", record(world));
}

/// A world whose node has changed.
fn changed(case: Case) -> World {
    let mut world = World::new(case, 0);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    assert_eq!(run_to(&mut world, None).step, Step::Done);
    world
}

#[test]
fn a_node_whose_label_was_removed_is_rolled_back_or_planned_again() {
    let mut world = changed(Case::mig());
    world.label(None);
    world.pass(60_000);
    // It has the layout of the change still.
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    assert_eq!(run_to(&mut world, None).step, Step::Done);
    assert!(world.has(&world.case.from));
    world.label(None);
    world.pass(DWELL_MS - 60_000);
    let rests = start(&world).expect_err("a rest").to_string();
    assert!(rests.contains("less than 30 minutes ago"), "{rests}");
    world.pass(120_000);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    assert_eq!(run_to(&mut world, None).step, Step::Done);
    assert!(world.has(&world.case.to));
}

#[test]
fn a_node_that_was_cut_by_hand_is_planned_again_and_rollback_says_what_to_do() {
    let mut world = changed(Case::mig());
    let asked = record(&world).asked.expect("a name");
    world.label(Some("all-1g.10gb"));
    world.pass(120_000);
    assert!(world.has(&world.case.from));
    let refused = revert(&world.seen(), world.now_ms).expect_err("another layout").to_string();
    assert!(refused.contains("changed nvidia.com/mig.config to `all-1g.10gb`"), "{refused}");
    assert!(refused.contains(&format!("first set the label to `{asked}`")), "{refused}");
    world.pass(DWELL_MS);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    assert_eq!(run_to(&mut world, None).step, Step::Done);
    assert!(world.has(&world.case.to));
}

/// Those who repair a node label it, as mig-manager acts on nothing else.
#[test]
fn a_stuck_node_that_was_labelled_by_hand_is_rolled_back() {
    let mut world = World::new(Case::mig(), 0);
    world.faults().extend([Some(Fault::Fails), Some(Fault::Fails), Some(Fault::HidesInstances)]);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    let stuck = run_to(&mut world, None);
    assert_eq!(stuck.step, Step::Stuck);
    world.label(Some(&stuck.to.config));
    world.pass(120_000);
    assert!(world.has(&stuck.to));
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    let back = run_to(&mut world, None);
    assert_eq!((back.step, world.is_tainted()), (Step::Undone, false), "{back:?}");
    assert!(world.has(&stuck.from));
}

/// mig-manager fails, and a pod that tolerates the taint comes before the next attempt.
#[test]
fn a_change_that_waits_for_a_pod_says_so_and_other_waits_do_not() {
    let mut world = World::new(Case::mig(), 0);
    world.faults().push_back(Some(Fault::Fails));
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    let asked = run_to(&mut world, Some(Step::Applying));
    let wait = |world: &World| match next(&world.seen(), &TIMING, world.now_ms) {
        Next::Wait { why, .. } => Some(why),
        _ => None,
    };
    let pending = wait(&world).expect("mig-manager works");
    assert!(!is_for_pods(&asked, &pending), "{pending}");
    world.pass(120_000);
    assert_eq!(world.node["metadata"]["labels"]["nvidia.com/mig.config.state"], json!("failed"));
    world.bind_whatever(600_000);
    assert_eq!(world.pods.len(), 1);
    let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("nothing is recorded: {:?}", record(&world));
    };
    assert!(world.take(&write, false));
    let waiting = record(&world);
    let why = wait(&world).expect("it waits");
    assert!(is_for_pods(&waiting, &why), "{why}: {waiting:?}");
    assert_eq!(waiting.step, Step::Applying);
    world.pass(700_000);
    assert_eq!(run_to(&mut world, None).step, Step::Done);
}

/// The pod never finishes: its node stays tainted, as its GPUs are between two layouts, and other
/// nodes change.
#[test]
fn a_pod_that_does_not_finish_holds_up_no_other_node_after_a_day() {
    let mut world = World::new(Case::mig(), 0);
    world.faults().push_back(Some(Fault::Fails));
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    run_to(&mut world, Some(Step::Applying));
    world.pass(120_000);
    world.bind_whatever(2 * DAY_MS);
    let written = |world: &mut World| {
        let next = next(&world.seen(), &TIMING, world.now_ms);
        let Next::Write(write) = next else { panic!("nothing follows: {next:?}") };
        assert!(world.take(&write, false));
    };
    written(&mut world);
    let left = |world: &World| left_today(10, 10, [record(world)].iter(), world.now_ms);
    world.now_ms += DAY_MS - 1;
    assert!(matches!(next(&world.seen(), &TIMING, world.now_ms), Next::Wait { .. }));
    assert_eq!(left(&world), 0);
    world.now_ms += 1;
    written(&mut world);
    assert_eq!((left(&world), world.is_tainted()), (1, true));
    let overdue = world.events.values().find(|event| event["reason"] == "RepartitionOverdue");
    let message = overdue.expect("an event")["message"].as_str().unwrap_or_default();
    assert!(message.contains("waiting until team/p1 finish on its GPUs; after 24 h"), "{message}");
    assert!(matches!(next(&world.seen(), &TIMING, world.now_ms), Next::Wait { .. }), "said once");
    // It goes on once the pod has finished.
    world.now_ms += DAY_MS;
    assert_eq!(run_to(&mut world, None).step, Step::Done);
    assert_eq!((record(&world).pod_wait, left(&world)), (None, 0));
}

/// mig-manager is done with the new layout at once, the former one is asked for by then, and the
/// kubelet has not reported yet that the plugin offers nothing.
#[test]
fn a_success_that_belongs_to_the_request_before_ends_no_return() {
    let mut world = World::new(Case::mig(), 0);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    run_to(&mut world, Some(Step::Applying));
    let state = "nvidia.com/mig.config.state";
    assert_eq!(world.node["metadata"]["labels"][state], json!("pending"), "not of before");
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    assert!(record(&world).unanswered);
    for answer in ["success", "failed"] {
        world.node["metadata"]["labels"][state] = json!(answer);
        assert!(world.seen().has(&world.case.from), "the node shows what it had");
        let next = next(&world.seen(), &TIMING, world.now_ms);
        assert!(matches!(next, Next::Wait { .. }), "{answer}: {next:?}");
        assert!(world.is_tainted());
    }
    // What it reports after that time is about the return.
    world.node["metadata"]["labels"][state] = json!("success");
    world.now_ms += 2 * TIMING.mount_ms;
    let undone = run_to(&mut world, None);
    assert_eq!((undone.step, world.is_tainted()), (Step::Undone, false), "{undone:?}");
}

/// It is late, and is asked again. What it reports then may be about either request.
#[test]
fn an_answer_to_one_of_two_requests_leaves_the_other_unanswered() {
    let mut world = World::new(Case::mig(), 0);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    run_to(&mut world, Some(Step::Applying));
    world.now_ms += TIMING.limit_ms;
    let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it is not late: {:?}", record(&world));
    };
    assert!(world.take(&write, false));
    assert_eq!((record(&world).attempt, record(&world).unanswered), (2, true));
    world.node["metadata"]["labels"]["nvidia.com/mig.config.state"] = json!("failed");
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    let back = record(&world);
    assert_eq!((back.step, back.unanswered), (Step::Reverting, true));
}

#[test]
fn a_label_that_a_gitops_tool_sets_is_not_changed() {
    for case in [Case::time_slicing(), Case::amd()] {
        let label = case.by.label();
        let claim = |world: &mut World, manager: &str| {
            let field = format!("f:{label}");
            world.node["metadata"]["managedFields"] = json!([{"manager": manager,
                "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {field: {}}}}}]);
        };
        let mut world = World::new(case, 0);
        claim(&mut world, "kustomize-controller");
        let refused = start(&world).expect_err("their label").to_string();
        let told = format!("node n: another client, kustomize-controller, sets {label} (");
        assert!(refused.starts_with(&told), "{refused}");
        claim(&mut world, "kubectl-label");
        let write = start(&world).expect("a start");
        assert!(world.take(&write, false));
        assert_eq!(run_to(&mut world, None).step, Step::Done);
        // They apply the same value since.
        claim(&mut world, "kustomize-controller");
        assert!(revert(&world.seen(), world.now_ms).is_err());
        claim(&mut world, "dovetail");
        assert!(revert(&world.seen(), world.now_ms).is_ok());
    }
}

#[test]
fn a_run_that_dies_before_its_first_write_repeats_no_event() {
    let mut world = World::new(Case::mig(), 0);
    let started = |world: &World| {
        world.events.values().filter(|event| event["reason"] == "RepartitionStarted").count()
    };
    for _ in 0..2 {
        let write = start(&world).expect("a start");
        assert!(!world.take(&write, true), "it has died");
        world.pass(5_000);
    }
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    assert_eq!((run_to(&mut world, None).step, started(&world)), (Step::Done, 1));
    // Another change is another event, even between the same layouts.
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    assert_eq!((run_to(&mut world, None).step, started(&world)), (Step::Done, 2));
    world.pass(DWELL_MS);
    let write = start(&world).expect("a start");
    assert!(world.take(&write, false));
    assert_eq!((run_to(&mut world, None).step, started(&world)), (Step::Done, 3));
}
