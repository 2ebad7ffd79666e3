//! Whether the random worlds have what they are for: a property over worlds where nothing happens
//! proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Action, DeviceRequest, Event, Job, Owner, PendingReason, PodId};
use dovetail_plan::Engine;
use dovetail_plan::engine::EngineConfig;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::drive::{self, History};
use crate::recipe::{Recipe, cases, recipes};

type Tally = BTreeMap<&'static str, u32>;

/// Who holds something besides the engine's pods.
fn foreign(engine: &Engine) -> BTreeSet<String> {
    let held = engine.snapshot().holdings.into_iter().filter_map(|held| match held.owner {
        Owner::Foreign(name) => Some(name),
        _ => None,
    });
    held.collect()
}

/// What a history has seen.
fn tally(recipe: &Recipe, seen: &mut Tally) {
    let config = EngineConfig {
        policy: drive::policy(recipe, None),
        order: drive::order(recipe),
        preemption: crate::recipe::preempting(recipe),
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(config, &drive::start(recipe)).expect("a good world");
    let mut history = History::of(recipe);
    for bytes in &recipe.events {
        let event = history.event(bytes, &engine);
        let held = foreign(&engine);
        let Ok(plan) = engine.step(event.clone(), history.now_ms) else {
            count(seen, "refused event");
            continue;
        };
        let submitted = matches!(event, Event::Submitted(_));
        if matches!(event, Event::CountsChanged { .. }) {
            count(seen, "changed counts");
        }
        for action in &plan.actions {
            match action {
                Action::Bind { pod, .. } => {
                    let job = engine.job(pod.job).expect("bound in this step").clone();
                    if job.kept_room.iter().any(|name| held.contains(name)) {
                        count(seen, "start of whom room was held for");
                    }
                    bound(&job, *pod, seen);
                    if !submitted {
                        count(seen, "start after waiting");
                    }
                }
                Action::Lost { .. } => count(seen, "lost job"),
                Action::Publish { .. } => count(seen, "published version"),
                Action::Wait { reason: PendingReason::WaitingForQuota, .. } => {
                    count(seen, "wait for quota");
                }
                Action::Wait { reason: PendingReason::Unschedulable, .. } => {
                    count(seen, "wait for room");
                }
                Action::Wait { reason: PendingReason::WaitingForReservation, .. } => {
                    count(seen, "wait for victims");
                }
                Action::Wait { .. } => count(seen, "wait for turn"),
                Action::Preempt { victims, .. } => {
                    count(seen, "preemption");
                    if victims.len() > 1 {
                        count(seen, "preemption of several pods");
                    }
                }
                Action::GivenBack { .. } => count(seen, "given back"),
                Action::RoomGivenUp { .. } => count(seen, "room given up"),
            }
        }
    }
    // Reasons not to fit, as the explanations count them.
    let waiting = engine.snapshot().jobs.into_iter().filter(|job| job.start_ms.is_none());
    for job in waiting {
        let why = engine.ask().why(job.id).expect("it waits");
        for (cause, name) in CAUSES {
            let nodes: u32 = why.obstacles.iter().map(|counts| counts[cause as usize]).sum();
            *seen.entry(name).or_default() += nodes;
        }
        for relaxation in why.relaxations {
            count(seen, ["one relaxation", "two relaxations"][relaxation.len() - 1]);
        }
    }
}

const CAUSES: [(dovetail_plan::Cause, &str); 32] = {
    use dovetail_plan::Cause::*;
    [
        (NotReady, "not ready"),
        (Starting, "starting"),
        (Cordoned, "cordoned"),
        (NodeName, "node name"),
        (Unschedulable, "unschedulable"),
        (Taint, "taint"),
        (NodeAffinity, "node affinity"),
        (HostPort, "host port"),
        (Overcommitted, "over-committed"),
        (Model, "model"),
        (PodSlots, "pod slots"),
        (Cpu, "cpu"),
        (Memory, "memory"),
        (Ephemeral, "ephemeral"),
        (Extended, "extended"),
        (Device, "device"),
        (DiskConflict, "disk conflict"),
        (ReadWriteOncePod, "claim of one pod"),
        (VolumeDriver, "volume driver"),
        (VolumeLimit, "volume limit"),
        (VolumeNodeAffinity, "volume's node"),
        (StorageTopology, "storage topology"),
        (StorageCapacity, "storage capacity"),
        (VolumeZone, "volume's zone"),
        (SpreadLabel, "spread label"),
        (Spread, "spread"),
        (Affinity, "affinity"),
        (AntiAffinity, "anti-affinity"),
        (ExistingAntiAffinity, "anti-affinity of others"),
        (DeviceClaims, "device claims"),
        (DeclaredFeatures, "declared features"),
        (SharedGpus, "shared GPUs"),
    ]
};

fn bound(job: &Job, pod: PodId, seen: &mut Tally) {
    let set = &job.pod_sets[usize::from(pod.pod_set)];
    count(
        seen,
        match set.requirement.device {
            DeviceRequest::None => "no device",
            DeviceRequest::Whole { same_island: false, .. } => "whole devices",
            DeviceRequest::Whole { same_island: true, .. } => "devices of one island",
            DeviceRequest::Share { .. } => "share",
            DeviceRequest::Replicas { .. } => "replicas",
            DeviceRequest::Slice { .. } => "slice",
            DeviceRequest::Counters { .. } => "counters",
        },
    );
    let facts = [
        (!set.requirement.rules.is_empty(), "pod with rules"),
        (!set.requirement.node_conditions.is_empty(), "pod with selector"),
        (!set.requirement.attachments.is_empty(), "pod with volumes"),
        (!set.requirement.preferences.is_empty(), "pod with preferences"),
        (job.pod_sets.len() > 1, "gang of several sets"),
        (set.min > 1, "set of several pods"),
        (pod.ordinal >= set.min, "pod beyond the smallest size"),
        (set.topology.required.is_some() || job.topology.required.is_some(), "required level"),
        (set.topology.preferred.is_some() || job.topology.preferred.is_some(), "preferred level"),
    ];
    facts.iter().filter(|(is, _)| *is).for_each(|(_, name)| count(seen, name));
}

fn count(seen: &mut Tally, name: &'static str) {
    *seen.entry(name).or_default() += 1;
}

#[test]
fn the_worlds_have_everything() {
    let strategy = recipes(7, 7, 40);
    let mut runner = TestRunner::new(cases(1));
    let mut seen = Tally::new();
    for _ in 0..1_000 {
        let recipe = strategy.new_tree(&mut runner).expect("no filter rejects").current();
        tally(&recipe, &mut seen);
    }
    let names = "no device, whole devices, devices of one island, share, replicas, slice, counters, \
        pod with rules, pod with selector, pod with volumes, pod with preferences, changed counts, gang of several sets, set of several pods, pod beyond the \
        smallest size, required level, preferred level, start after waiting, lost job, published \
        version, wait for quota, preemption, preemption of several pods, wait for victims, given back, wait for room, wait for turn, refused event, one relaxation, two \
        relaxations, start of whom room was held for, room given up";
    let causes = CAUSES.iter().map(|(_, name)| *name);
    for name in names.split(", ").chain(causes) {
        let times = seen.get(name).copied().unwrap_or(0);
        assert!(times >= 15, "`{name}` came up {times} times in 1,000 worlds: {seen:#?}");
    }
}
