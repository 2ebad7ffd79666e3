//! Same input, same log; a recording replays; a paused simulation goes on as if it had not been
//! paused.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use dovetail_model::{
    Action, Booking, Device, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase,
    Job, JobId, Node, Owner, PodId, Requirement, Resources, Snapshot,
};
use dovetail_plan::{Engine, EngineConfig, PolicySpec, PreemptionConfig};
use dovetail_sim::record::{Checkpoint, RecordError, Recorder, replay, what_if};
use dovetail_sim::timed::cluster_events::read_cluster_events;
use dovetail_sim::timed::{Estimates, FaultModel, Simulation, TimedConfig, TimedWorld};
use dovetail_trace::synth::{SynthConfig, synth};
use serde_json::Value;

const HOUR_MS: u64 = 3_600_000;

fn world() -> TimedWorld {
    let config = SynthConfig { seed: 7, nodes: 24, days: 2, ..SynthConfig::default() };
    let synthetic = synth(&config).unwrap();
    let name = |index: usize| synthetic.cluster.nodes[index].name.clone();
    let events = format!(
        "at_s,action,node\n9000,cordon,{a}\n50000,uncordon,{a}\n20000,remove,{b}\n90000,add,{b}\n\
         30000,fail,{c}\n33000,repair,{c}\n40000,add,{d}\n",
        a = name(0),
        b = name(1),
        c = name(2),
        d = name(3)
    );
    TimedWorld {
        jobs: synthetic.trace.jobs.into_iter().filter(|job| job.total_gpus() <= 64).collect(),
        cluster_events: read_cluster_events(
            Cursor::new(events.into_bytes()),
            "events",
            &synthetic.cluster,
        )
        .unwrap(),
        nodes: synthetic.cluster.nodes,
        ..TimedWorld::default()
    }
}

fn config(policy: &str) -> TimedConfig {
    let policy = PolicySpec { seed: 3, ..PolicySpec::named(policy) };
    TimedConfig {
        engine: EngineConfig { policy, ..EngineConfig::default() },
        estimates: Estimates::Trace,
        faults: Some(FaultModel {
            mean_time_between_failures_ms: 300 * HOUR_MS,
            mean_time_to_repair_ms: 2 * HOUR_MS,
            seed: 5,
        }),
        ..TimedConfig::default()
    }
}

fn run(policy: &str) -> (Simulation, Vec<u8>) {
    let config = config(policy);
    let mut simulation = Simulation::new(world(), config.clone()).unwrap();
    let mut recorder =
        Recorder::start("log", Vec::new(), "test", &config.engine, &simulation.engine);
    assert!(simulation.run(None, &mut recorder).unwrap());
    (simulation, recorder.finish().unwrap())
}

#[test]
fn equal_inputs_give_equal_logs_on_any_thread() {
    let here = run("dovetail").0;
    assert!(here.metrics().restarts > 0, "the faults hit running jobs");
    let there = std::thread::spawn(|| run("dovetail").0.event_log_hash()).join().unwrap();
    assert_eq!(here.event_log_hash(), there);
    assert_ne!(here.event_log_hash(), run("best-fit").0.event_log_hash());
}

#[test]
fn a_recording_replays_and_a_changed_one_is_caught() {
    for policy in ["dovetail", "random"] {
        let (simulation, recording) = run(policy);
        let report = replay("log", recording.as_slice()).unwrap();
        assert_eq!(report.divergence, None, "{policy}");
        assert_eq!(report.event_log_hash, simulation.event_log_hash(), "{policy}");
        let text = String::from_utf8(recording).unwrap();
        let line = text.lines().position(|line| line.contains("\"bind\"")).unwrap();
        let node = |line: &str| {
            let start = line.find("\"node\":\"").unwrap() + 8;
            line[start..].split('"').next().unwrap().to_owned()
        };
        let original = text.lines().nth(line).unwrap();
        let changed = text.replace(original, &original.replace(&node(original), "elsewhere"));
        let report = replay("log", changed.as_bytes()).unwrap();
        assert_eq!(report.divergence.unwrap().line, line as u64 + 1, "{policy}");
    }
}

#[test]
fn older_forms_replay_and_unknown_ones_are_refused() {
    let text = String::from_utf8(run("dovetail").1).unwrap();
    let of_form = |form: u32| {
        let header = |form: u32| format!("{{\"dovetail_recording\":{form},");
        assert!(text.starts_with(&header(3)));
        replay("log", text.replacen(&header(3), &header(form), 1).as_bytes())
    };
    // In form 2 every step decided, and none said so. Nothing else differs.
    assert!(!text.contains("\"decides\""));
    let (of_2, of_3) = (of_form(2).unwrap(), of_form(3).unwrap());
    assert_eq!((of_2.divergence, of_2.event_log_hash), (None, of_3.event_log_hash));
    for form in [1, 99] {
        let refused = of_form(form).unwrap_err().to_string();
        assert!(refused.contains(&format!("unsupported recording format {form} ")), "{refused}");
    }
}

#[test]
fn learned_numbers_that_no_policy_learns_are_refused_with_their_line() {
    let text = String::from_utf8(run("dovetail").1).unwrap();
    let header = text.lines().next().unwrap();
    for (from, to, told) in [
        ("\"turnover\":0", "\"turnover\":9007199254740993", "log:1: turnover is 9007199254740993"),
        ("\"arrivals\":0", "\"arrivals\":18446744073709551615", "log:1: histogram.arrivals is"),
    ] {
        let changed = text.replacen(header, &header.replacen(from, to, 1), 1);
        assert_ne!(changed, text, "{from}");
        let refused = replay("log", changed.as_bytes()).unwrap_err().to_string();
        assert!(refused.starts_with(told), "{refused}");
        let policy = PolicySpec::named("best-fit");
        let refused = what_if("log", changed.as_bytes(), policy).unwrap_err().to_string();
        assert!(refused.starts_with(told), "{refused}");
    }
}

#[test]
fn a_recording_that_was_cut_off_is_told_from_a_whole_one_wherever_it_was_cut() {
    let text = String::from_utf8(run("dovetail").1).unwrap();
    let lines = text.lines().count();
    let ends: Vec<usize> = text.match_indices('\n').map(|(place, _)| place + 1).collect();
    // Within the first line, between two lines, within one, and the last line alone.
    for (kept, whole_lines) in [
        (ends[0] / 2, 0),
        (ends[lines - 2], lines - 1),
        (ends[lines / 2], lines / 2 + 1),
        (ends[lines / 2] + 9, lines / 2 + 1),
        (text.len() - 1, lines - 1),
    ] {
        match replay("log", &text.as_bytes()[..kept]) {
            Err(RecordError::CutOff { whole_lines: told, .. }) if whole_lines == 0 => {
                assert_eq!(told, 0);
            }
            Ok(report) => {
                // All but the header is compared.
                assert_eq!(report.cut_off_after_line, Some(whole_lines as u64), "cut at {kept}");
                assert_eq!(report.steps, whole_lines as u64 - 1, "cut at {kept}");
                assert_eq!(report.divergence, None);
            }
            other => panic!("cut at {kept}: {other:?}"),
        }
    }
    let old_mac = replay("log", text.replace('\n', "\r").as_bytes()).unwrap_err().to_string();
    assert!(old_mac.starts_with("log:1: lines end with a carriage return alone;"), "{old_mac}");
    let without_a_line = text.replacen(&text[ends[0]..ends[1]], "", 1);
    let longer = format!("{text}{}", &text[ends[1]..ends[2]]);
    for changed in [without_a_line, longer] {
        let report = replay("log", changed.as_bytes());
        assert!(report.is_err() || report.unwrap().divergence.is_some());
    }
}

#[test]
fn a_paused_simulation_goes_on_as_if_never_paused() {
    for policy in ["dovetail", "fgd-learnt", "kube-default", "random"] {
        let whole = run(policy).0;
        let mut simulation = Simulation::new(world(), config(policy)).unwrap();
        let mut pauses = 0;
        while !simulation.run(Some((pauses + 1) * 7 * HOUR_MS), &mut ()).unwrap() {
            pauses += 1;
            let paused = Checkpoint::of(&simulation, &world(), &config(policy), "test");
            let text = serde_json::to_string(&paused).unwrap();
            let read: Checkpoint = serde_json::from_str(&text).unwrap();
            simulation = read.resume(world()).unwrap();
        }
        assert!(pauses > 3, "the simulation was paused often");
        assert_eq!(simulation.event_log_hash(), whole.event_log_hash(), "{policy}");
        assert_eq!(simulation.metrics(), whole.metrics(), "{policy}");
    }
}

#[test]
fn a_checkpoint_of_another_world_is_refused() {
    let mut simulation = Simulation::new(world(), config("dovetail")).unwrap();
    simulation.run(Some(HOUR_MS), &mut ()).unwrap();
    let paused = Checkpoint::of(&simulation, &world(), &config("dovetail"), "test");
    let mut other = world();
    other.jobs.pop();
    let error = paused.resume(other).err().unwrap().to_string();
    assert!(error.contains("another trace"), "{error}");
}

#[test]
fn the_policy_that_decided_would_choose_the_same_again_and_another_would_not() {
    let (_, recording) = run("best-fit");
    let asked = |policy: &str| {
        let policy = PolicySpec { seed: 3, ..PolicySpec::named(policy) };
        what_if("log", recording.as_slice(), policy).unwrap()
    };
    let same = asked("best-fit");
    assert!(same.decisions > 100 && same.same_nodes == same.decisions, "{same:?}");
    assert!(same.differences.is_empty());
    let other = asked("fgd");
    assert_eq!((&*other.recorded_policy, &*other.policy), ("best-fit", "fgd"));
    assert_eq!(other.decisions, same.decisions);
    // Both stand before the same cluster: what one could place, the other can.
    assert!(other.other_nodes > 0 && other.not_placed == 0, "{other:?}");
    assert_eq!(other.same_nodes + other.other_nodes, other.decisions);
    assert!(!other.differences.is_empty() && other.differences.len() <= 20);
    assert!(other.differences.iter().all(|found| found.recorded != found.chosen));
}

/// Room of four GPUs on `b`, where somebody outside keeps it.
fn kept_room(phase: HoldingPhase) -> Event {
    Event::ForeignHeld(Box::new(Holding {
        id: HoldingId(0),
        node: "b".into(),
        owner: Owner::Foreign("kept".to_owned()),
        phase,
        reservation: None,
        resources: Resources::pod(100, 0),
        devices: (0..4).map(|index| (index, DeviceAmount::share(1000, 0))).collect(),
        counts_into: Default::default(),
        attachments: BTreeSet::new(),
    }))
}

/// A job of one pod with four GPUs.
fn four_gpus(id: u64, change: impl FnOnce(&mut Job)) -> Event {
    let resources = Resources::pod(100, 0);
    let device = DeviceRequest::Whole { count: 4, same_island: false };
    let requirement = Requirement { resources, device, ..Requirement::default() };
    let mut job = Job::single(JobId(id), "by-hand", id, Arc::new(requirement));
    change(&mut job);
    Event::Submitted(Box::new(job))
}

/// Room that is kept is used by whom it is kept for, or is given up for somebody of higher
/// priority; then it is over.
#[test]
fn who_is_asked_stands_before_the_room_that_was_kept_and_given_up() {
    let nodes =
        vec![Node::plain("a", 64_000, 100, 4, "h100"), Node::plain("b", 64_000, 100, 4, "h100")];
    let snapshot = Snapshot { nodes, ..Snapshot::default() };
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let policy = PolicySpec::named("best-fit");
    let config = EngineConfig { policy: policy.clone(), preemption, ..EngineConfig::default() };
    let mut engine = Engine::new(config.clone(), &snapshot).unwrap();
    let mut recorder = Recorder::start("log", Vec::new(), "test", &config, &engine);
    let events = [
        four_gpus(1, |job| job.priority = 9),
        kept_room(HoldingPhase::Kept { priority: 0 }),
        four_gpus(2, |job| job.priority = 5),
        Event::ended(JobId(2)),
        four_gpus(3, |_| {}),
        Event::ended(JobId(3)),
        kept_room(HoldingPhase::Held { expected_end_ms: None }),
        four_gpus(4, |job| job.kept_room = BTreeSet::from(["kept".to_owned()])),
        Event::ended(JobId(4)),
        four_gpus(5, |_| {}),
    ];
    let mut actions = Vec::new();
    for (at_ms, event) in (10..).zip(events) {
        let plan = engine.step(event.clone(), at_ms).unwrap();
        recorder.step(at_ms, &[event], &plan);
        actions.extend(plan.actions);
    }
    assert!(
        actions.iter().any(|action| matches!(action, Action::RoomGivenUp { .. })),
        "{actions:?}"
    );
    let recording = recorder.finish().unwrap();
    let asked = what_if("log", recording.as_slice(), policy).unwrap();
    assert_eq!((asked.decisions, asked.same_nodes), (5, 5), "{asked:?}");
}

/// A job of one pod that asks for some of everything, besides the devices.
fn some_of_all(id: u64, device: DeviceRequest) -> Job {
    let resources = Resources {
        ephemeral_bytes: 10,
        extended: [("rdma".to_owned(), 1)].into(),
        ..Resources::pod(100, 10)
    };
    let requirement = Requirement { resources, device, ..Requirement::default() };
    Job::single(JobId(id), &format!("job-{id}"), id, Arc::new(requirement))
}

/// A recording that tells an engine of every kind of amount, and one that starts after it.
fn recordings_of_all_amounts() -> [String; 2] {
    let mut shared = Node::plain("shared", 64_000, 1_000, 4, "h100");
    shared.devices = vec![Device::plain("h100", 100); 4];
    let mut counted = Node::plain("counted", 64_000, 1_000, 0, "");
    let counters = vec![("slices".to_owned(), 8)];
    counted.devices = vec![Device { counters: counters.clone(), ..Device::plain("h100", 100) }];
    for node in [&mut shared, &mut counted] {
        node.allocatable.ephemeral_bytes = 1_000;
        node.allocatable.extended = [("rdma".to_owned(), 8)].into();
    }
    let snapshot = Snapshot { nodes: vec![shared.clone(), counted], ..Snapshot::default() };
    let config = EngineConfig { policy: PolicySpec::named("best-fit"), ..EngineConfig::default() };
    let share = DeviceRequest::Share { compute_milli: 300, memory_bytes: 10 };
    let pod = PodId { job: JobId(4), pod_set: 0, ordinal: 0 };
    let mut runs = some_of_all(4, share.clone());
    runs.pod_sets[0].present = 1;
    let held = |owner: Owner, index: u16| Holding {
        id: HoldingId(0),
        node: "shared".into(),
        owner,
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: runs.pod_sets[0].requirement.resources.clone(),
        devices: vec![(index, DeviceAmount::share(300, 10))],
        counts_into: Default::default(),
        attachments: BTreeSet::new(),
    };
    let booking = Booking {
        name: "later".to_owned(),
        beneficiary: None,
        requirement: Arc::clone(&runs.pod_sets[0].requirement),
        count: 1,
        from_ms: HOUR_MS,
        to_ms: 2 * HOUR_MS,
        was_admitted: false,
    };
    let too_many = DeviceRequest::Whole { count: 9, same_island: false };
    let events = [
        Event::NodeChanged(Box::new(shared)),
        Event::Submitted(Box::new(some_of_all(1, share))),
        Event::Submitted(Box::new(some_of_all(2, DeviceRequest::Counters { amounts: counters }))),
        Event::Submitted(Box::new(some_of_all(3, too_many.clone()))),
        Event::JobChanged(Box::new(some_of_all(3, too_many))),
        Event::ForeignHeld(Box::new(held(Owner::Foreign("other".to_owned()), 2))),
        Event::Adopted { job: Box::new(runs.clone()), holdings: vec![held(Owner::Pod(pod), 3)] },
        Event::HeldChanged(Box::new(held(Owner::Pod(pod), 2))),
        Event::BookingSet(Box::new(booking)),
    ];
    let mut engine = Engine::new(config.clone(), &snapshot).unwrap();
    let mut recorder = Recorder::start("log", Vec::new(), "test", &config, &engine);
    for (at_ms, event) in (10..).zip(events) {
        let plan = engine.step(event.clone(), at_ms).unwrap();
        recorder.step(at_ms, &[event], &plan);
    }
    let after = Recorder::start("log", Vec::new(), "test", &config, &engine);
    [recorder, after].map(|recorder| String::from_utf8(recorder.finish().unwrap()).unwrap())
}

/// Names in a recording of what is an amount, or has amounts in it.
const AMOUNTS: [&str; 9] = [
    "cpu_milli",
    "memory_bytes",
    "ephemeral_bytes",
    "pod_slots",
    "extended",
    "compute_milli",
    "min_device_memory_bytes",
    "counters",
    "amounts",
];

/// Every place of an amount, as a JSON pointer.
fn amounts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) if at.split('/').any(|name| AMOUNTS.contains(&name)) => {
            found.push(at.to_owned());
        }
        Value::Array(all) => {
            let places = all.iter().enumerate();
            places.for_each(|(place, one)| amounts(one, &format!("{at}/{place}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(name, one)| amounts(one, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

#[test]
fn an_amount_beyond_its_limits_is_refused_with_its_line_and_one_at_its_limit_works() {
    let policy = PolicySpec::named("best-fit");
    let mut seen = BTreeSet::new();
    for text in recordings_of_all_amounts() {
        let report = replay("log", text.as_bytes()).unwrap();
        assert_eq!((report.divergence, report.cut_off_after_line), (None, None));
        for (index, line) in text.lines().enumerate() {
            let whole: Value = serde_json::from_str(line).unwrap();
            let mut places = Vec::new();
            amounts(&whole, "", &mut places);
            for place in places {
                let edited = |amount: i64| {
                    let mut other = whole.clone();
                    *other.pointer_mut(&place).unwrap() = amount.into();
                    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    lines[index] = other.to_string();
                    lines.join("\n") + "\n"
                };
                let mut most: Option<i64> = None;
                for amount in [i64::MIN, -1, i64::MAX] {
                    let edited = edited(amount);
                    let replayed = replay("log", edited.as_bytes()).unwrap_err().to_string();
                    let asked = what_if("log", edited.as_bytes(), policy.clone());
                    assert_eq!(asked.unwrap_err().to_string(), replayed, "{place}");
                    assert!(replayed.starts_with(&format!("log:{}: ", index + 1)), "{replayed}");
                    let (_, limits) = replayed
                        .split_once(&format!(" is {amount}, expected "))
                        .unwrap_or_else(|| panic!("{place}: {replayed}"));
                    most = limits.split_once(" to ").and_then(|(_, most)| most.parse().ok());
                }
                // Nothing overflows, which would panic here; that is another world.
                let at_limit = edited(most.expect("a limit"));
                if let Err(error) = replay("log", at_limit.as_bytes()) {
                    assert!(!error.to_string().contains(", expected "), "{error}");
                }
                seen.extend(place.split('/').map(str::to_owned));
            }
        }
    }
    // Of what the recordings have amounts.
    for name in AMOUNTS.into_iter().chain([
        "nodes",
        "jobs",
        "holdings",
        "bookings",
        "node_changed",
        "submitted",
        "job_changed",
        "adopted",
        "held_changed",
        "foreign_held",
        "booking_set",
        "bind",
    ]) {
        assert!(seen.contains(name), "{name} is not in {seen:?}");
    }
}
