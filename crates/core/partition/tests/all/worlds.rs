//! The 48 published worlds of 64 GPUs.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use dovetail_partition::{
    Change, Demand, Gpu, Instance, PartitionInput, PartitionPlan, Rules, plan,
};
use serde_json::Value;

fn counts(value: &Value) -> BTreeMap<String, u64> {
    let counts = value.as_object().unwrap().iter();
    counts.map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect()
}

fn slices(counts: &BTreeMap<String, u64>) -> u64 {
    let of = |(name, count): (&String, &u64)| {
        name.split('g').next().unwrap().parse::<u64>().unwrap() * count
    };
    counts.iter().map(of).sum()
}

fn world(published: &Value) -> PartitionInput {
    let table = MigTable::of_model("A100-40GB").unwrap();
    let gpus = published["gpus"].as_array().unwrap().iter().map(|held| {
        let held = held.as_array().unwrap().iter().map(|instance| Instance {
            profile: table.profile(instance[0].as_str().unwrap()).unwrap(),
            start: instance[1].as_u64().unwrap() as u8,
        });
        let held = held.collect();
        Gpu { table: 0, pool: 0, is_whole: false, held, idle: Vec::new(), change: Change::Idle }
    });
    let demand = counts(&published["demand"]).into_iter().map(|(profile, count)| Demand {
        profile,
        count: count as u32,
        priority: 0,
        waiting_ms: i64::MAX,
        pools: None,
    });
    PartitionInput { gpus: gpus.collect(), demand: demand.collect(), tables: vec![table] }
}

/// Counts again, without the planner's words: nothing in use moves, nothing overlaps, every new
/// instance serves a pod that waits.
pub(crate) fn judge(world: &PartitionInput, plan: &PartitionPlan) {
    let mut created: BTreeMap<&str, u32> = BTreeMap::new();
    let mut kept: BTreeMap<&str, u32> = BTreeMap::new();
    for (gpu, planned) in world.gpus.iter().zip(&plan.gpus) {
        let table = &world.tables[gpu.table];
        // Where all instances are made again, only their profiles stay.
        let is_made_again = gpu.change == Change::WhenEmpty && planned.is_changed();
        let sorted = |instances: Vec<Instance>| {
            let start = |one: Instance| if is_made_again { 0 } else { one.start };
            let bare = instances.into_iter().map(|one| (one.profile, start(one)));
            let mut bare: Vec<(usize, u8)> = bare.collect();
            bare.sort_unstable();
            bare
        };
        let after = planned.kept.iter().chain(&planned.removed).copied().collect();
        assert_eq!(sorted(after), sorted(gpu.idle.clone()), "idle instances stay or go");
        let is_created =
            |gone: &Instance| planned.created.iter().any(|one| one.profile == gone.profile);
        assert!(!is_made_again || !planned.removed.iter().any(is_created), "removed for nothing");
        let mut memory = [0; 16];
        let (mut compute, mut media) = (0, 0);
        for instance in gpu.held.iter().chain(&planned.kept).chain(&planned.created) {
            let profile = &table.profiles[instance.profile];
            assert!(profile.starts.contains(&instance.start));
            compute += profile.compute_slices;
            media += usize::from(profile.name.ends_with("+me"));
            let slices = instance.start..instance.start + profile.memory_slices;
            slices.for_each(|slice| memory[usize::from(slice)] += 1);
        }
        assert!(memory.iter().all(|taken| *taken <= 1), "memory slices are taken once");
        assert!(compute <= table.compute_slices && media <= 1);
        let may_change = match gpu.change {
            Change::Idle => true,
            Change::WhenEmpty => gpu.held.is_empty(),
            Change::Never => false,
        };
        assert!(may_change || !planned.is_changed());
        assert!(planned.removed.is_empty() || !planned.created.is_empty());
        let name = |instance: &Instance| table.profiles[instance.profile].name.as_str();
        planned.created.iter().for_each(|one| *created.entry(name(one)).or_default() += 1);
        planned.kept.iter().for_each(|one| *kept.entry(name(one)).or_default() += 1);
        // What it serves it has.
        let mut here: BTreeMap<&str, u32> = BTreeMap::new();
        planned
            .kept
            .iter()
            .chain(&planned.created)
            .for_each(|one| *here.entry(name(one)).or_default() += 1);
        let mut served: BTreeMap<&str, u32> = BTreeMap::new();
        for (entry, count) in &planned.served {
            let demand = &world.demand[*entry];
            assert!(demand.pools.as_ref().is_none_or(|pools| pools.contains(&gpu.pool)));
            *served.entry(demand.profile.as_str()).or_default() += count;
        }
        for (profile, count) in &served {
            assert!(here.get(profile) >= Some(count), "{profile} is served twice");
        }
        for one in &planned.created {
            let made = planned.created.iter().filter(|other| name(other) == name(one)).count();
            assert!(served.get(name(one)) >= Some(&(made as u32)), "nobody waits for {one:?}");
        }
    }
    for (demand, accepted) in world.demand.iter().zip(&plan.accepted) {
        assert!(*accepted <= demand.count);
    }
    assert!(plan.accepted_compute_slices <= plan.upper_bound_compute_slices);
}

#[test]
fn published_worlds_are_planned_at_least_as_well_as_any_plan_found_for_them() {
    let test = "published_worlds_are_planned_at_least_as_well_as_any_plan_found_for_them";
    let Some(text) = crate::data(test, "sharing/partition_worlds.json") else { return };
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all.len(), 48);
    let rules = Rules { steps: 400_000, ..Rules::default() };
    let mut of_mix: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut published_share, mut own_share) = (0.0, 0.0);
    for published in &all {
        let world = world(published);
        let plan = plan(&world, &rules).unwrap();
        judge(&world, &plan);
        let accepted: BTreeMap<String, u64> = world
            .demand
            .iter()
            .zip(&plan.accepted)
            .map(|(demand, count)| (demand.profile.clone(), u64::from(*count)))
            .collect();
        let served = slices(&accepted);
        assert_eq!(served, plan.accepted_compute_slices as u64);
        let found = slices(&counts(&published["found_accepted"]));
        let name = format!("{} {} {}", published["mix"], published["fill"], published["seed"]);
        let bound = published["upper_bound_compute_slices"].as_f64().unwrap();
        eprintln!(
            "{name}: {served} of {} ({found} found, {bound} published), {} steps, best {}",
            plan.upper_bound_compute_slices, plan.steps, plan.is_best
        );
        assert!(served >= found, "{name}: {served} < {found}");
        assert!(plan.upper_bound_compute_slices as f64 <= bound + 1e-6, "{name}");
        // Every instance that is created serves a pod, and nothing was idle here.
        assert_eq!(plan.created() as u64, accepted.values().sum::<u64>(), "{name}");
        assert_eq!(plan.removed(), 0);
        published_share += served as f64 / bound;
        own_share += served as f64 / plan.upper_bound_compute_slices as f64;
        let of_mix = of_mix.entry(published["mix"].to_string()).or_default();
        of_mix.0 += served;
        of_mix.1 += slices(&counts(&published["nos_accepted"]));
    }
    let worlds = all.len() as f64;
    eprintln!("of the bounds: {} published, {} own", published_share / worlds, own_share / worlds);
    assert!(published_share / worlds >= 0.99);
    for (mix, (served, by_nos)) in of_mix {
        let ratio = served as f64 / by_nos as f64;
        eprintln!("{mix}: {ratio} times nos");
        assert!(ratio >= 1.3, "{mix}: {ratio}");
    }
}
