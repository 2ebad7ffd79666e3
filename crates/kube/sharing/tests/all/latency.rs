//! A node whose latency got worse after a change goes back, once its pods have finished.

use dovetail_sharing::guard::DWELL_MS;
use dovetail_sharing::watch::{
    Gate, Outcome, Subject, after, before, conclude, gate, is_due, roll_out,
};
use dovetail_sharing::{
    Next, PolicyReport, Record, SharingPolicy, Step, begin, give_back, next,
    record_not_rolled_back, revert, status_patch, why_not_rolled_back,
};
use dovetail_testkit::gpu_operator::Fault;
use serde_json::{Value, json};

use crate::world::{Case, TIMING, World};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn policy(hours: u32) -> SharingPolicy {
    changed_policy(json!({"guard": {"hours": hours}}))
}

/// The policy with other fields.
fn changed_policy(fields: Value) -> SharingPolicy {
    let mut spec = json!({"mode": "mig", "apply": true, "guard": {"hours": 6}});
    for (field, value) in fields.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "shared"}, "spec": spec});
    serde_json::from_value(object).expect("a policy")
}

fn record(world: &World) -> Record {
    world.seen().record.expect("a record")
}

/// Goes on until the change is over or waits for pods.
fn run(world: &mut World) -> Record {
    for _ in 0..4_000 {
        let seen = world.seen();
        match next(&seen, &TIMING, world.now_ms) {
            Next::Over => return record(world),
            Next::Wait { .. } if record(world).step == Step::Emptying => return record(world),
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

/// A world whose node has changed under a policy.
fn changed(case: Case) -> World {
    let mut world = World::new(case.clone(), 0);
    let watch = dovetail_sharing::watch::Watch::of(&policy(6));
    let write = begin(&world.seen(), case.by, case.from, case.to, watch, world.now_ms);
    world.take(&write.expect("a start"), false);
    assert_eq!(run(&mut world).step, Step::Done);
    world
}

fn judge(world: &mut World, outcome: Outcome) {
    let write = conclude(&world.seen(), outcome, "p95 of prod/chat +12%", world.now_ms);
    assert!(world.take(&write.expect("a verdict"), false));
}

fn gate_of(world: &World, policy: &SharingPolicy) -> Gate {
    let record = world.seen().record;
    gate(policy, record.iter().map(|record| ("n", record)))
}

#[test]
fn the_same_hours_before_are_over_when_the_change_begins() {
    let world = changed(Case::mig());
    for hours in [2, 6, 24] {
        let mut record = record(&world);
        let watch = record.watch.as_mut().expect("a watch");
        watch.hours = hours;
        let watch = watch.clone();
        record.started_ms += 10 * DAY_MS;
        record.since_ms += 10 * DAY_MS;
        let (early, late) = (before(&record, &watch), after(&record, &watch));
        assert_eq!((late.from_ms - early.from_ms) % DAY_MS, 0);
        assert!(early.to_ms <= record.started_ms && early.to_ms + DAY_MS > record.started_ms);
        assert_eq!(early.to_ms - early.from_ms, u64::from(hours) * HOUR_MS);
    }
    let record = record(&world);
    assert!(!is_due(&record, world.now_ms) && is_due(&record, world.now_ms + 7 * HOUR_MS));
}

#[test]
fn one_node_is_tried_and_others_wait_for_its_verdict() {
    let guarded = policy(6);
    assert_eq!(gate(&guarded, [].into_iter()), Gate::Canary);
    let waits = |gate: &Gate| matches!(gate, Gate::Waits(Subject::Node(node)) if node == "n");
    let world = || changed(Case::mig());
    assert!(waits(&gate_of(&world(), &guarded)));
    for (outcome, is_open) in [
        (Outcome::Same, true),
        (Outcome::Better, true),
        (Outcome::Unknown, false),
        (Outcome::Worse, false),
    ] {
        let mut world = world();
        judge(&mut world, outcome);
        let gate = gate_of(&world, &guarded);
        assert_eq!(gate == Gate::Open, is_open, "{outcome:?}");
        assert_eq!(matches!(gate, Gate::Stopped { .. }), !is_open, "{outcome:?}");
        // One verdict for each change.
        assert_eq!(conclude(&world.seen(), Outcome::Same, "", world.now_ms), None);
        // Unknown rolls nothing back.
        let returns = give_back(&world.seen(), world.now_ms).is_some();
        assert_eq!(returns, outcome == Outcome::Worse);
        // A changed policy starts again.
        assert_eq!(gate_of(&world, &changed_policy(json!({"keepWhole": 1}))), Gate::Canary);
    }
}

#[test]
fn a_worse_node_goes_back_when_its_pods_have_finished_even_if_a_pod_comes_in_between() {
    for case in [Case::mig(), Case::time_slicing()] {
        let mut world = changed(case.clone());
        let resource = match &*world.case.to.offers().into_iter().next().expect("an offer").0 {
            "nvidia.com/gpu.shared" => "nvidia.com/gpu.shared",
            _ => "nvidia.com/mig-1g.10gb",
        };
        world.case.resource = resource;
        world.bind_whatever(60_000);
        judge(&mut world, Outcome::Worse);
        let write = give_back(&world.seen(), world.now_ms).expect("a way back");
        world.take(&write, false);
        let waiting = run(&mut world);
        assert_eq!(waiting.step, Step::Emptying, "{waiting:?}");
        assert!(world.is_tainted());
        world.pass(120_000);
        // The node is empty; a pod that tolerates every taint comes before the old layout is
        // asked for.
        let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
            panic!("nothing follows: {waiting:?}");
        };
        world.take(&write, false);
        assert_eq!(record(&world).step, Step::Tainted);
        world.bind_whatever(60_000);
        let waiting = run(&mut world);
        assert_eq!(waiting.step, Step::Emptying, "{waiting:?}");
        let pod = &world.seen().gpu_pods[0].name;
        let words = format!("waiting for {pod} to release its GPUs: restart the pod to move it");
        assert_eq!(waiting.problem, words);
        assert!(world.is_tainted(), "others may start there");
        assert!(matches!(gate_of(&world, &policy(6)), Gate::Stopped { .. }));
        world.pass(120_000);
        let back = run(&mut world);
        assert_eq!(back.step, Step::Done, "{back:?}");
        assert!(world.has(&case.from));
        assert!(!world.is_tainted());
        assert!(matches!(gate_of(&world, &policy(6)), Gate::Stopped { .. }));
        assert_eq!(give_back(&world.seen(), world.now_ms), None);
        let events = world.events.values().filter_map(|event| event["reason"].as_str());
        let events: Vec<&str> = events.collect();
        assert!(events.contains(&"LatencyWorse"), "{events:?}");
    }
}

/// A node that changed, was judged worse, and waits for a pod before it goes back.
fn emptying(case: Case) -> World {
    let mut world = changed(case);
    world.bind_whatever(600_000);
    judge(&mut world, Outcome::Worse);
    let write = give_back(&world.seen(), world.now_ms).expect("a way back");
    world.take(&write, false);
    assert_eq!(run(&mut world).step, Step::Emptying);
    world
}

/// The node as if a client had set its label.
fn claim(world: &mut World, manager: &str) {
    let field = format!("f:{}", world.case.by.label());
    world.node["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:labels": {field: {}}}}}]);
}

/// Records why the node is not rolled back, and returns the reason.
fn kept(world: &mut World) -> String {
    assert_eq!(give_back(&world.seen(), world.now_ms), None);
    let write = record_not_rolled_back(&world.seen(), world.now_ms).expect("a reason");
    assert!(world.take(&write, false));
    assert_eq!(record_not_rolled_back(&world.seen(), world.now_ms), None, "recorded once");
    assert!(matches!(gate_of(world, &policy(6)), Gate::Stopped { .. }));
    let events = world.events.values().filter(|event| event["reason"] == "NotRolledBack");
    let messages: Vec<&str> = events.filter_map(|event| event["message"].as_str()).collect();
    let problem = record(world).problem;
    assert_eq!(messages, [&*problem]);
    problem
}

/// Two clients that set one label would undo each other's changes.
#[test]
fn a_worse_node_is_not_rolled_back_while_a_gitops_tool_sets_its_label() {
    for case in [Case::time_slicing(), Case::amd()] {
        let (label, former) = (case.by.label(), case.from.config.clone());
        let mut world = changed(case);
        judge(&mut world, Outcome::Worse);
        claim(&mut world, "kustomize-controller");
        let why = kept(&mut world);
        let who = format!(
            "latency is worse, but the node is not rolled back: another client, \
             kustomize-controller, sets {label} ("
        );
        assert!(why.starts_with(&who), "{why}");
        let fragment = json!({"metadata": {"labels": {label: former}}}).to_string();
        assert!(why.ends_with(&fragment), "{why}");
        // They take the fragment: nothing is left to say.
        let labels = &mut world.node["metadata"]["labels"];
        let asked = std::mem::replace(&mut labels[label], json!(former));
        assert_eq!(why_not_rolled_back(&world.seen()), None);
        assert_eq!(give_back(&world.seen(), world.now_ms), None);
        world.node["metadata"]["labels"][label] = asked;
        // They remove the label from their manifest.
        claim(&mut world, "dovetail");
        let write =
            record_not_rolled_back(&world.seen(), world.now_ms).expect("nothing is in the way");
        assert!(world.take(&write, false));
        assert_eq!((record(&world).problem, write.event), (String::new(), None));
        assert!(give_back(&world.seen(), world.now_ms).is_some());
    }
}

#[test]
fn a_worse_node_that_another_client_labelled_is_rolled_back_once_the_label_is_removed() {
    let mut world = changed(Case::mig());
    judge(&mut world, Outcome::Worse);
    world.label(Some("all-7g.80gb"));
    claim(&mut world, "argocd-controller");
    let why = kept(&mut world);
    let who = "another client, argocd-controller, changed nvidia.com/mig.config to `all-7g.80gb`: ";
    assert!(why.contains(who), "{why}");
    world.label(None);
    assert!(give_back(&world.seen(), world.now_ms).is_some());
}

#[test]
fn a_return_that_fails_is_tried_again_after_a_rest_and_three_times_at_most() {
    let mut world = changed(Case::mig());
    judge(&mut world, Outcome::Worse);
    for failed in 1..=3 {
        let write = give_back(&world.seen(), world.now_ms).expect("a way back");
        world.take(&write, false);
        world.faults().extend([Some(Fault::Fails), Some(Fault::Fails)]);
        let back = run(&mut world);
        assert_eq!(back.watch.as_ref().expect("a watch").failed_returns, failed);
        let step = if failed < 3 { Step::Undone } else { Step::Stuck };
        assert_eq!((back.step, world.is_tainted()), (step, failed == 3), "{back:?}");
        assert_eq!(give_back(&world.seen(), world.now_ms), None, "it rests");
        world.pass(DWELL_MS);
    }
    assert_eq!(give_back(&world.seen(), world.now_ms), None);
    let stuck = world.events.values().find(|event| event["reason"] == "RepartitionStuck");
    let message = stuck.expect("an event")["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("the rollback failed 3 times: mig-manager"), "{message}");
    // People repair the node: it keeps its layout, and nothing else changes.
    let write = revert(&world.seen(), world.now_ms).expect("a way out");
    world.take(&write, false);
    assert_eq!(run(&mut world).step, Step::Undone);
    assert!(!world.is_tainted());
    world.pass(DWELL_MS);
    assert_eq!(give_back(&world.seen(), world.now_ms), None);
    assert!(matches!(gate_of(&world, &policy(6)), Gate::Stopped { .. }));
}

#[test]
fn a_node_that_people_roll_back_stops_the_roll_out() {
    for outcome in [None, Some(Outcome::Same), Some(Outcome::Unknown)] {
        let mut world = changed(Case::mig());
        if let Some(outcome) = outcome {
            judge(&mut world, outcome);
        }
        let write = revert(&world.seen(), world.now_ms).expect("a way back");
        world.take(&write, false);
        assert_eq!(run(&mut world).step, Step::Done);
        assert!(world.has(&world.case.from));
        let told = |event: &Value| {
            let message = event["message"].as_str().unwrap_or_default();
            message.ends_with("; rolled back on request")
        };
        assert!(world.events.values().any(told), "{:?}", world.events);
        let stopped = gate_of(&world, &policy(6));
        let is_stopped = matches!(stopped, Gate::Stopped { outcome: Outcome::RolledBack, ref by, .. } if *by == Subject::Node("n".to_owned()));
        assert!(is_stopped, "{stopped:?}");
        assert!(!is_due(&record(&world), world.now_ms + DAY_MS));
        assert_eq!(give_back(&world.seen(), world.now_ms + DAY_MS), None);
    }
    // One that has only been tainted, too.
    let case = Case::mig();
    let mut world = World::new(case.clone(), 0);
    let watch = dovetail_sharing::watch::Watch::of(&policy(6));
    let write = begin(&world.seen(), case.by, case.from, case.to, watch, world.now_ms);
    world.take(&write.expect("a start"), false);
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    world.take(&write, false);
    assert_eq!(record(&world).step, Step::Undone);
    assert!(matches!(gate_of(&world, &policy(6)), Gate::Stopped { .. }));
}

#[test]
fn a_return_that_waits_for_pods_can_be_called_off() {
    let mut world = emptying(Case::mig());
    let write = revert(&world.seen(), world.now_ms).expect("it is called off");
    world.take(&write, false);
    let kept = run(&mut world);
    assert_eq!((kept.step, world.is_tainted()), (Step::Undone, false));
    assert_eq!(kept.problem, "its rollback was canceled on request");
    assert!(world.has(&world.case.to));
    assert_eq!(give_back(&world.seen(), world.now_ms + DAY_MS), None);
    assert!(matches!(gate_of(&world, &policy(6)), Gate::Stopped { .. }));
}

/// Pods of a service do not finish: the node takes pods again, and people begin the return.
#[test]
fn a_return_whose_pods_do_not_finish_in_a_day_is_called_off_and_can_begin_again() {
    let mut world = changed(Case::mig());
    world.bind_whatever(3 * DAY_MS);
    judge(&mut world, Outcome::Worse);
    let write = give_back(&world.seen(), world.now_ms).expect("a way back");
    world.take(&write, false);
    assert_eq!(run(&mut world).step, Step::Emptying);
    let other = changed_policy(json!({"keepWhole": 2}));
    world.now_ms += DAY_MS - 1;
    assert_eq!(run(&mut world).step, Step::Emptying);
    assert_eq!(gate_of(&world, &other), Gate::Changes { node: "n".to_owned() });
    world.now_ms += 1;
    let kept = run(&mut world);
    assert_eq!((kept.step, world.is_tainted()), (Step::Undone, false), "{kept:?}");
    let words = "its rollback was canceled after 24 hours of waiting for team/p1 to release its \
                 GPUs: restart the pod to move it, then run `dovetail partition rollback --node n`";
    assert_eq!(kept.problem, words);
    let undone = world.events.values().find(|event| event["reason"] == "RepartitionUndone");
    let message = undone.expect("an event")["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(words), "{message}");
    // Other nodes are tried, and this one is not by itself.
    assert_eq!(gate_of(&world, &other), Gate::Canary);
    assert_eq!(give_back(&world.seen(), world.now_ms + DAY_MS), None);
    let refused = revert(&world.seen(), world.now_ms).expect_err("the pod is there").to_string();
    assert!(refused.contains("team/p1 use its GPUs"), "{refused}");
    world.now_ms += 3 * DAY_MS;
    world.pass(5_000);
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    world.take(&write, false);
    assert_eq!(run(&mut world).step, Step::Done);
    assert!(world.has(&world.case.from) && !world.is_tainted());
}

#[test]
fn only_other_layouts_start_again_and_not_while_a_node_is_watched_or_goes_back() {
    let judged = || {
        let mut world = changed(Case::mig());
        judge(&mut world, Outcome::Worse);
        world
    };
    for same in [
        json!({"budget": {"percentPerDay": 50}}),
        json!({"nodeSelector": {"pool": "a"}}),
        json!({"guard": {"query": "increase(a_bucket[$window])", "hours": 8}}),
        json!({"apply": false}),
    ] {
        let gate = gate_of(&judged(), &changed_policy(same.clone()));
        assert!(matches!(gate, Gate::Stopped { .. }), "{same}: {gate:?}");
    }
    for other in [
        json!({"mode": "time-slicing", "replicas": 4}),
        json!({"profiles": ["1g.10gb"]}),
        json!({"keepWhole": 2}),
        json!({"classes": ["batch"]}),
    ] {
        let other = changed_policy(other);
        assert_eq!(gate_of(&judged(), &other), Gate::Canary);
        let waits = gate_of(&changed(Case::mig()), &other);
        assert!(matches!(waits, Gate::Waits(_)), "{waits:?}");
        let empties = gate_of(&emptying(Case::mig()), &other);
        assert_eq!(empties, Gate::Changes { node: "n".to_owned() });
    }
}

#[test]
fn the_query_of_a_watch_is_that_of_the_beginning() {
    let query = "increase(a_bucket[$window])";
    let guarded = changed_policy(json!({"guard": {"query": query}}));
    let watch = dovetail_sharing::watch::Watch::of(&guarded).expect("a watch");
    assert_eq!(watch.query, query);
    let text = serde_json::to_string(&watch).expect("JSON");
    assert_eq!(serde_json::from_str::<dovetail_sharing::watch::Watch>(&text).ok(), Some(watch));
}

/// The policy as its status is once a record was reported.
fn reported(policy: &SharingPolicy, world: &World) -> SharingPolicy {
    let record = record(world);
    let roll_out = roll_out(policy, [("n", &record)].into_iter(), [].into_iter());
    let report = PolicyReport { roll_out, ..PolicyReport::default() };
    let patch = status_patch(report, None, &Value::Null, world.now_ms).expect("a patch");
    SharingPolicy { status: patch["status"].clone(), ..policy.clone() }
}

#[test]
fn a_verdict_is_remembered_when_its_node_is_deleted() {
    for outcome in [Outcome::Worse, Outcome::Unknown, Outcome::Same, Outcome::Better] {
        let mut world = changed(Case::mig());
        judge(&mut world, outcome);
        let known = reported(&policy(6), &world);
        let later = gate(&known, [].into_iter());
        match outcome {
            Outcome::Same | Outcome::Better => assert_eq!(later, Gate::Open),
            _ => assert_eq!(
                later,
                Gate::Stopped {
                    by: Subject::Node("n".to_owned()),
                    outcome,
                    why: "p95 of prod/chat +12%".to_owned()
                }
            ),
        }
        // It is reported again, and other layouts start again.
        assert!(roll_out(&known, [].into_iter(), [].into_iter()).is_some());
        let other = changed_policy(json!({"keepWhole": 1}));
        let other = SharingPolicy { status: known.status.clone(), ..other };
        assert_eq!(gate(&other, [].into_iter()), Gate::Canary);
        assert_eq!(roll_out(&other, [].into_iter(), [].into_iter()), None);
    }
    // What stops comes before what passed later.
    let (mut worse, mut same) = (changed(Case::mig()), changed(Case::mig()));
    judge(&mut worse, Outcome::Worse);
    judge(&mut same, Outcome::Same);
    let known = reported(&policy(6), &worse);
    assert!(matches!(gate_of(&same, &known), Gate::Stopped { .. }));
    let again =
        roll_out(&known, [("m", &record(&same))].into_iter(), [].into_iter()).expect("a verdict");
    assert_eq!((&*again.node, again.outcome), ("n", Outcome::Worse));
    // A node that waits has no verdict.
    let waiting = reported(&policy(6), &changed(Case::mig()));
    assert_eq!(gate(&waiting, [].into_iter()), Gate::Canary);
}
