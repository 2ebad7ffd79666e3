//! Pods that move so that a node can change, by seed, with a process that dies anywhere: each is
//! evicted once, what that costs counts once, and the node changes or stays as it was.

use std::collections::BTreeMap;

use dovetail_sharing::{
    Next, ObjectName, PodMove, Record, Step, begin, begin_moving, evicting, held_up, moved_gpu_ms,
    next, waits_for_pods,
};

use crate::world::{Case, Chance, TIMING, World};

const SEEDS: u64 = 200;
const LOST_MS: u64 = 17_000;

fn moves(world: &World) -> Vec<PodMove> {
    let owner = ObjectName {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        namespace: "team".to_owned(),
        name: "chat-5f".to_owned(),
        uid: "o".to_owned(),
    };
    let of = |pod: &dovetail_sharing::GpuPod| PodMove {
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        owner: owner.clone(),
        is_replica: true,
        to: "other".to_owned(),
        lost_gpu_ms: LOST_MS,
        adds_replica: false,
        evicted_ms: None,
        waits_until_ms: None,
    };
    world.seen().gpu_pods.iter().map(of).collect()
}

/// A node with three pods that are about to move.
fn begun() -> World {
    started(|_, _| {})
}

/// A node with three pods that are about to leave; `adapt` changes how.
fn started(adapt: impl Fn(&World, &mut Vec<PodMove>)) -> World {
    let mut world = World::new(Case::mig(), 0);
    for _ in 0..3 {
        world.bind(u64::MAX / 2);
    }
    let case = world.case.clone();
    let change = (case.by, case.from, case.to);
    let unknown = begin_moving(&world.seen(), change.clone(), Vec::new(), None, world.now_ms);
    assert!(unknown.is_err_and(|why| why.to_string().contains("team/p1 use its GPUs")));
    let mut leave = moves(&world);
    adapt(&world, &mut leave);
    let write = begin_moving(&world.seen(), change, leave, None, world.now_ms);
    assert!(world.take(&write.expect("a start"), false));
    world
}

fn record(world: &World) -> Record {
    world.seen().record.expect("a record")
}

/// Evicts a pod as `dovetail partition apply` does; the process may die after each request.
fn evict(world: &mut World, one: &PodMove, chance: &mut Chance, dies: u64) -> bool {
    let (seen, now_ms) = (world.seen(), world.now_ms);
    if chance.percent(40) {
        if let Some(write) = held_up(&seen, &record(world), one, "its budget", now_ms) {
            world.take(&write, chance.percent(dies));
        }
        return false;
    }
    if one.evicted_ms.is_none() {
        let (write, of_owner) = evicting(&seen, &record(world), one, now_ms);
        assert_eq!(of_owner["involvedObject"]["name"], "chat-5f");
        if !world.take(&write, chance.percent(dies)) || chance.percent(dies) {
            return false;
        }
    }
    let (_, name) = one.pod.split_once('/').expect("a name");
    world.end(name);
    true
}

fn play(seed: u64) -> Step {
    let mut chance = Chance::new(seed);
    let mut world = begun();
    let dies = if chance.percent(70) { 40 } else { 0 };
    let mut evicted: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..4_000 {
        let seen = world.seen();
        match next(&seen, &TIMING, world.now_ms) {
            Next::Over => break,
            Next::Wait { .. } => world.pass(5_000),
            Next::WriteConfig => {
                let mut layouts = world.layouts.clone();
                layouts.add_both(record(&world).sides(), world.now_ms);
                world.write_layouts(layouts);
            }
            Next::Write(write) => {
                let asks = write.patch["metadata"].get("labels").is_some();
                assert!(!asks || seen.gpu_pods.is_empty(), "seed {seed}: asked for a node in use");
                world.take(&write, chance.percent(dies));
            }
            Next::Evict(one) => {
                assert!(world.is_tainted(), "seed {seed}: evicted without a taint");
                if evict(&mut world, &one, &mut chance, dies) {
                    *evicted.entry(one.pod.clone()).or_default() += 1;
                }
                world.pass(1_000 + chance.below(200_000));
            }
        }
    }
    let record = record(&world);
    assert!(!world.is_tainted(), "seed {seed}: {record:?}");
    assert!(evicted.values().all(|times| *times == 1), "seed {seed}: {evicted:?}");
    let told = moved_gpu_ms([&record].into_iter(), record.started_ms);
    let least = evicted.len() as u64 * LOST_MS;
    assert!(told >= least && (record.step != Step::Done || told == least), "seed {seed}: {told}");
    for pod in evicted.keys() {
        assert!(record.moved_words().contains(&**pod), "seed {seed}: {record:?}");
    }
    // Neither is it tried again soon, nor is what it cost forgotten.
    let (case, now_ms) = (world.case.clone(), world.now_ms);
    let again = begin(&world.seen(), case.by, case.from, case.to, None, now_ms);
    assert!(again.is_err(), "seed {seed}");
    record.step
}

#[test]
fn pods_that_move_are_evicted_once_whatever_dies() {
    let mut endings: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        *endings.entry(play(seed).word()).or_default() += 1;
    }
    for step in [Step::Done, Step::Undone] {
        let count = endings.get(step.word()).copied().unwrap_or_default();
        assert!(count >= SEEDS / 20, "{endings:?}");
    }
}

#[test]
fn a_pod_that_slips_in_ends_the_change_and_what_moved_counts_for_an_hour() {
    let mut world = begun();
    world.pass(TIMING.settle_ms);
    let Next::Evict(one) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("nothing is evicted")
    };
    let mut chance = Chance::new(1);
    while !evict(&mut world, &one, &mut chance, 0) {}
    world.bind_whatever(u64::MAX / 2);
    let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it goes on beside another pod")
    };
    assert_eq!(write.record.step, Step::Undone);
    let problem = &write.record.problem;
    assert!(problem.contains("team/p4 started before schedulers saw the taint"), "{problem}");
    assert_eq!(moved_gpu_ms([&write.record].into_iter(), world.now_ms), LOST_MS);
    assert_eq!(moved_gpu_ms([&write.record].into_iter(), world.now_ms + 3_600_000), 0);
}

const WAIT_MS: u64 = 900_000;

/// The first of three pods finishes by itself; the other two move.
fn waiting() -> World {
    started(|world, leave| {
        leave[0].waits_until_ms = Some(world.now_ms + WAIT_MS);
        leave[0].lost_gpu_ms = 0;
    })
}

#[test]
fn no_pod_is_evicted_before_those_that_finish_by_themselves_have_finished() {
    let mut world = waiting();
    assert!(record(&world).problem.ends_with("for team/p1 to finish"), "{:?}", record(&world));
    world.pass(TIMING.limit_ms / 2);
    assert!(waits_for_pods(&world.seen(), &record(&world)));
    let Next::Wait { why, .. } = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it does not wait")
    };
    assert_eq!(why, "for team/p1 to finish");
    world.end("p1");
    assert!(!waits_for_pods(&world.seen(), &record(&world)));
    let mut chance = Chance::new(1);
    for pod in ["team/p2", "team/p3"] {
        let Next::Evict(one) = next(&world.seen(), &TIMING, world.now_ms) else {
            panic!("nothing is evicted")
        };
        assert_eq!(one.pod, pod);
        while !evict(&mut world, &one, &mut chance, 0) {}
    }
    let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it does not go on")
    };
    assert_eq!((write.record.step, &*write.record.problem), (Step::Tainted, ""));
}

#[test]
fn a_pod_that_runs_on_ends_the_wait_and_no_other_pod_has_moved() {
    let mut world = waiting();
    let until_ms = record(&world).moves[0].waits_until_ms.expect("a time");
    world.pass(until_ms - world.now_ms - 10_000);
    assert!(matches!(next(&world.seen(), &TIMING, world.now_ms), Next::Wait { .. }));
    world.pass(10_000);
    let Next::Write(write) = next(&world.seen(), &TIMING, world.now_ms) else {
        panic!("it waits on")
    };
    assert_eq!(write.record.step, Step::Undone);
    assert_eq!(write.record.problem, "team/p1 did not finish within 15 minutes");
    assert!(world.take(&write, false));
    assert!(!world.is_tainted());
    assert_eq!(record(&world).moved_words(), "");
}
