//! Changes of a node by seed, with everything that goes wrong: no pod that runs is ended, no taint
//! stays without an event, and every change finishes or is undone.

use std::collections::BTreeMap;

use dovetail_sharing::{Component, Next, Step, begin, next, revert};
use dovetail_testkit::gpu_operator::Fault;

use crate::world::{Case, Chance, TIMING, World};

const SEEDS: u64 = 300;
/// For each change of the device plugin.
const PLUGIN_SEEDS: u64 = 150;
/// For each change of AMD's GPUs.
const AMD_SEEDS: u64 = 300;

/// How much of a history goes wrong.
struct Plan {
    has_others: bool,
    /// They taint the node, and do not label it.
    others_taint: bool,
    has_racing_pods: bool,
    /// Some pods tolerate every taint.
    has_tolerant_pods: bool,
    dies_percent: u64,
}

/// Draws how late a ConfigMap is mounted, how long mig-manager takes, and what goes wrong there.
fn spoil(world: &mut World, chance: &mut Chance) {
    let is_late = chance.percent(20);
    world.mount_ms = chance.below(if is_late { 400_000 } else { 110_000 });
    world.set_delay(1_000 + chance.below(120_000));
    for _ in 0..4 {
        let fault = match chance.below(8) {
            0 | 1 => Some(Fault::Fails),
            2 => Some(Fault::HidesInstances),
            3 => Some(Fault::Reboots),
            4 => Some(Fault::Ignores),
            _ => None,
        };
        world.faults().push_back(fault);
    }
}

fn others_act(world: &mut World, chance: &mut Chance, plan: &Plan, turn: u64, foreign_at: u64) {
    if plan.has_racing_pods && turn < 100 && chance.percent(20) {
        let runs_ms = 1_000 + chance.below(1_200_000);
        let is_amd = world.case.by == Component::DeviceConfigManager;
        match chance.percent(20) && plan.has_tolerant_pods {
            false if is_amd && chance.percent(50) => world.bind_without_gpu(runs_ms),
            false => world.bind(runs_ms),
            true => world.bind_whatever(runs_ms),
        }
    }
    if plan.has_others && turn == foreign_at {
        match plan.others_taint {
            true => world.taint_by_others(),
            false => world.label_by_others(),
        }
    }
    if chance.percent(20) {
        world.pass(chance.below(10_000));
    }
}

/// Plays one history to its end; answers with its last step and how many faults failed a request.
fn play(case: &Case, seed: u64) -> (Step, usize) {
    let mut chance = Chance::new(seed);
    let mut world = World::new(case.clone(), chance.below(9_000));
    let is_amd = case.by == Component::DeviceConfigManager;
    let plan = Plan {
        has_others: chance.percent(if is_amd { 16 } else { 8 }),
        others_taint: is_amd && chance.percent(50),
        has_racing_pods: chance.percent(50),
        // The plugin ends clients of MPS, and gives whole GPUs that a pod has to others: unlike
        // mig-manager it does not refuse.
        has_tolerant_pods: case.by != Component::DevicePlugin,
        dies_percent: if chance.percent(70) { 30 } else { 0 },
    };
    spoil(&mut world, &mut chance);
    let foreign_at = chance.below(60);
    let mut began = false;
    for turn in 0..4_000u64 {
        let seen = world.seen();
        // Between the read and the write others act.
        others_act(&mut world, &mut chance, &plan, turn, foreign_at);
        let dies = chance.percent(plan.dies_percent);
        let now_ms = world.now_ms;
        if !began {
            if let Ok(write) =
                begin(&seen, case.by, case.from.clone(), case.to.clone(), None, now_ms)
            {
                began = world.take(&write, dies);
            }
            world.pass(1_000 + chance.below(5_000));
            continue;
        }
        match next(&seen, &TIMING, now_ms) {
            Next::Over => break,
            Next::Wait { until_ms, .. } => {
                assert!(until_ms > now_ms, "seed {seed}: a wait that is over");
                // A process that died comes back at any time; one that lives looks every second.
                world.pass(chance.below(if dies { 300_000 } else { 5_000 }));
            }
            Next::WriteConfig => {
                let mut layouts = world.layouts.clone();
                let record = seen.record.as_ref().expect("a record");
                assert!(
                    layouts.add_both(record.sides(), now_ms),
                    "seed {seed}: nothing new to write"
                );
                if !dies {
                    world.write_layouts(layouts);
                }
            }
            Next::Write(write) => {
                let asks = write.patch["metadata"].get("labels").is_some();
                assert!(!asks || seen.gpu_pods.is_empty(), "seed {seed}: asked for a node in use");
                world.take(&write, dies);
            }
            Next::Evict(one) => panic!("seed {seed}: nothing moves, and {} does", one.pod),
        }
        assert!(!world.is_tainted() || has_event(&world, "RepartitionStarted"), "seed {seed}");
    }
    // Pods end, mig-manager comes to rest.
    world.pass(3_000_000);
    ended(world, seed, began, plan.has_others)
}

/// What holds once a history has come to rest.
fn ended(mut world: World, seed: u64, began: bool, has_others: bool) -> (Step, usize) {
    let seen = world.seen();
    let Some(record) = seen.record.clone() else {
        assert!(!began && !world.is_tainted(), "seed {seed}");
        return (Step::Undone, 0);
    };
    assert!(record.step.is_over(), "seed {seed}: {record:?} {:?}", world.node);
    let count = |reason: &str| world.events.values().filter(|one| one["reason"] == reason).count();
    assert!(count("RepartitionStarted") <= 1, "seed {seed}: {:?}", world.events);
    let failed = count("RepartitionRetried");
    let is_stuck = record.step == Step::Stuck;
    // What dovetail put there is gone, what others did is not.
    assert_eq!(world.is_barred(), world.is_barred_by_others, "seed {seed}: {record:?}");
    assert_eq!(world.is_tainted(), is_stuck, "seed {seed}: {record:?}");
    let ending = match record.step {
        Step::Done => "Repartitioned",
        Step::Undone => "RepartitionUndone",
        Step::Abandoned => "RepartitionAbandoned",
        _ => "RepartitionStuck",
    };
    assert!(has_event(&world, ending), "seed {seed}: {:?}", world.events);
    // Others may have taken the node once it was over.
    if record.step != Step::Abandoned && seen.asked(record.by) != record.asked.as_deref() {
        assert!(has_others, "seed {seed}");
        return (record.step, failed);
    }
    match record.step {
        Step::Done => assert!(world.has(&world.case.to), "seed {seed}"),
        Step::Undone => {
            assert!(world.has(&world.case.from), "seed {seed}");
        }
        Step::Abandoned => assert!(has_others, "seed {seed}"),
        _ => {
            assert_eq!(failed, 2, "seed {seed}: stuck before everything was tried");
            repair(&mut world, seed);
        }
    }
    (record.step, failed)
}

/// A person repairs mig-manager and rolls back.
fn repair(world: &mut World, seed: u64) {
    world.faults().clear();
    world.set_delay(20_000);
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    for _ in 0..1_000 {
        match next(&world.seen(), &TIMING, world.now_ms) {
            Next::Over => break,
            Next::Write(write) => assert!(world.take(&write, false)),
            Next::Wait { .. } => world.pass(5_000),
            Next::WriteConfig => panic!("seed {seed}: both layouts are written"),
            Next::Evict(one) => panic!("seed {seed}: nothing moves, and {} does", one.pod),
        }
    }
    assert!(!world.is_tainted(), "seed {seed}: {:?}", world.node);
    assert!(world.has(&world.case.from), "seed {seed}");
}

fn has_event(world: &World, reason: &str) -> bool {
    world.events.values().any(|event| event["reason"] == reason)
}

/// Plays histories of a change.
fn finishes_or_is_undone(case: &Case, seeds: u64) {
    let mut endings: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..seeds {
        let (step, _) = play(case, seed);
        *endings.entry(step.word()).or_default() += 1;
    }
    // Every way out was taken.
    for step in [Step::Done, Step::Undone, Step::Abandoned, Step::Stuck] {
        let count = endings.get(step.word()).copied().unwrap_or_default();
        assert!(count >= seeds / 100, "{endings:?}");
    }
}

#[test]
fn a_mig_layout_that_anything_interrupts_finishes_or_is_undone() {
    finishes_or_is_undone(&Case::mig(), SEEDS);
}

#[test]
fn time_slicing_that_anything_interrupts_finishes_or_is_undone() {
    finishes_or_is_undone(&Case::time_slicing(), PLUGIN_SEEDS);
}

#[test]
fn mps_that_anything_interrupts_finishes_or_is_undone() {
    finishes_or_is_undone(&Case::mps(), PLUGIN_SEEDS);
}

#[test]
fn an_amd_partition_that_anything_interrupts_finishes_or_is_undone() {
    finishes_or_is_undone(&Case::amd(), AMD_SEEDS);
}

#[test]
fn an_amd_memory_mode_that_anything_interrupts_finishes_or_is_undone() {
    finishes_or_is_undone(&Case::amd_memory(), AMD_SEEDS);
}

#[test]
fn a_finished_change_is_rolled_back_by_the_same_steps() {
    for case in [Case::mig(), Case::time_slicing(), Case::amd()] {
        rolls_back(&case);
    }
}

fn rolls_back(case: &Case) {
    let mut world = World::new(case.clone(), 0);
    let again = |world: &World| {
        begin(&world.seen(), case.by, case.from.clone(), case.to.clone(), None, world.now_ms)
    };
    let write = again(&world).expect("a change");
    assert!(world.take(&write, false));
    let finish = |world: &mut World| {
        for _ in 0..1_000 {
            match next(&world.seen(), &TIMING, world.now_ms) {
                Next::Over => return,
                Next::Write(write) => assert!(world.take(&write, false)),
                Next::Wait { .. } => world.pass(5_000),
                Next::WriteConfig => {
                    let mut layouts = world.layouts.clone();
                    let record = world.seen().record.expect("a record");
                    layouts.add_both(record.sides(), world.now_ms);
                    world.write_layouts(layouts);
                }
                Next::Evict(one) => panic!("nothing moves, and {} does", one.pod),
            }
        }
    };
    finish(&mut world);
    assert!(world.has(&case.to));
    // It rests for half an hour, and no pod is in the way of a person who goes back.
    let again = again(&world).expect_err("rest");
    assert!(again.to_string().contains("less than 30 minutes ago"), "{again}");
    if case.by != Component::DevicePlugin {
        world.bind(60_000);
        let in_use = revert(&world.seen(), world.now_ms).expect_err("a pod");
        assert!(in_use.to_string().contains("team/p1 use its GPUs"), "{in_use}");
        world.pass(60_000);
    }
    let write = revert(&world.seen(), world.now_ms).expect("a way back");
    assert!(world.take(&write, false));
    finish(&mut world);
    assert!(world.has(&case.from));
    assert_eq!(world.node["metadata"]["labels"][case.by.label()], case.from.config);
}
