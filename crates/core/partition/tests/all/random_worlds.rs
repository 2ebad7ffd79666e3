//! Small worlds drawn from a seed.

use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, Instance, PartitionInput, Rules, plan};

use crate::brute::best;
use crate::worlds::judge;

/// Knuth's MMIX generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Which instances fit beside those that are there, tried in a random order.
pub(crate) fn placed(table: &MigTable, random: &mut Random, most: usize) -> Vec<Instance> {
    let mut placed: Vec<Instance> = Vec::new();
    for _ in 0..random.below(most + 1) {
        let profile = random.below(table.profiles.len());
        let starts = &table.profiles[profile].starts;
        let instance = Instance { profile, start: starts[random.below(starts.len())] };
        let mut with = placed.clone();
        with.push(instance);
        if crate::brute::fits(table, &with) {
            placed = with;
        }
    }
    placed
}

fn drawn(random: &mut Random) -> (PartitionInput, Rules) {
    let table = MigTable::of_model(if random.below(2) == 0 { "A30" } else { "A100-40GB" }).unwrap();
    let large = table.compute_slices == 7;
    let gpus = 1 + random.below(if large { 3 } else { 4 });
    let gpus = (0..gpus).map(|_| {
        let mut all = placed(&table, random, 4);
        let idle = all.split_off(random.below(all.len() + 1));
        let change =
            [Change::Idle, Change::Idle, Change::WhenEmpty, Change::Never][random.below(4)];
        Gpu { table: 0, pool: 0, is_whole: false, held: all, idle, change }
    });
    let gpus: Vec<Gpu> = gpus.collect();
    let priorities = 1 + random.below(2) as i32;
    let demand = (0..1 + random.below(if large { 4 } else { 6 })).map(|_| Demand {
        profile: table.profiles[random.below(table.profiles.len())].name.clone(),
        count: 1 + random.below(2) as u32,
        priority: random.below(priorities as usize) as i32,
        waiting_ms: if random.below(8) == 0 { 59_999 } else { 60_000 },
        pools: None,
    });
    let demand = demand.collect();
    let horizon_s = [3_600, 400][random.below(2)];
    (PartitionInput { tables: vec![table], gpus, demand }, Rules { horizon_s, ..Rules::default() })
}

#[test]
fn small_worlds_are_planned_as_brute_force_plans_them() {
    let mut random = Random(42);
    let (mut changed, mut removed, mut steps) = (0, 0, 0);
    for number in 0..2_000 {
        let (world, rules) = drawn(&mut random);
        let plan = plan(&world, &rules).unwrap();
        judge(&world, &plan);
        assert!(plan.is_best, "world {number}: {} steps", plan.steps);
        let ours = crate::brute::objective(&world, &plan);
        assert_eq!(ours, best(&world, &rules), "world {number}: {world:?} {rules:?} {plan:?}");
        changed += usize::from(plan.gpus.iter().any(|gpu| gpu.is_changed()));
        removed += usize::from(plan.removed() > 0);
        steps += plan.steps;
    }
    eprintln!("{changed} worlds change, {removed} remove instances, {steps} steps");
    assert!(changed > 500 && removed > 50, "the worlds ask for changes: {changed}, {removed}");
}

/// Instances of some profiles may not be created, and serve where they are idle.
#[test]
fn worlds_in_which_some_profiles_are_not_created_are_planned_as_brute_force_plans_them() {
    let mut random = Random(7);
    let (mut changed, mut served) = (0, 0);
    for number in 0..600 {
        let (world, mut rules) = drawn(&mut random);
        let profiles = world.tables[0].profiles.iter().map(|profile| profile.name.clone());
        let created = profiles.filter(|_| random.below(2) == 0).collect();
        rules.created = Some(created);
        let plan = plan(&world, &rules).unwrap();
        judge(&world, &plan);
        assert!(plan.is_best, "world {number}: {} steps", plan.steps);
        let ours = crate::brute::objective(&world, &plan);
        assert_eq!(ours, best(&world, &rules), "world {number}: {world:?} {rules:?} {plan:?}");
        assert!(plan.accepted_compute_slices <= plan.upper_bound_compute_slices);
        for (gpu, planned) in world.gpus.iter().zip(&plan.gpus) {
            for one in &planned.created {
                let name = &world.tables[gpu.table].profiles[one.profile].name;
                assert!(rules.may_create(name), "world {number}: {name}");
            }
        }
        changed += usize::from(plan.gpus.iter().any(|gpu| gpu.is_changed()));
        let accepted = world.demand.iter().zip(&plan.accepted);
        let unlisted = accepted.filter(|(demand, _)| !rules.may_create(&demand.profile));
        served += unlisted.map(|(_, count)| *count).sum::<u32>();
    }
    assert!(changed > 50 && served > 20, "the worlds ask for it: {changed}, {served}");
}
