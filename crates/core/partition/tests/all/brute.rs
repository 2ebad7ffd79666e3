//! Brute force over the places of single instances. It shares nothing with the planner but the
//! rules of what a plan is worth.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::MigTable;
use dovetail_partition::{Change, Gpu, Instance, PartitionInput, PartitionPlan, Rules};

/// −cleared, −unavailable, −removed, room.
type Cost = (i64, i64, i64, i64);

/// Value by priority (the higher first), then the cost.
pub(crate) type Objective = (i64, i64, Cost);

/// What is taken of a GPU: memory slices, compute slices, sets of media engines.
type Taken = ([u8; 16], u8, u8);

fn taken(table: &MigTable, placed: &[Instance]) -> Taken {
    let mut memory = [0; 16];
    let (mut compute, mut media) = (0, 0);
    for instance in placed {
        let profile = &table.profiles[instance.profile];
        compute += profile.compute_slices;
        media += u8::from(profile.name.ends_with("+me"));
        for slice in instance.start..instance.start + profile.memory_slices {
            memory[usize::from(slice)] += 1;
        }
    }
    (memory, compute, media)
}

pub(crate) fn fits(table: &MigTable, placed: &[Instance]) -> bool {
    let (memory, compute, media) = taken(table, placed);
    compute <= table.compute_slices && media <= 1 && memory.iter().all(|count| *count <= 1)
}

/// Most instances of one profile that fit beside those placed, by trying all sets of starts.
fn most(table: &MigTable, placed: &[Instance], profile: usize) -> i64 {
    let starts = &table.profiles[profile].starts;
    let mut most = 0;
    for set in 0u32..1 << starts.len() {
        let mut with = placed.to_vec();
        let chosen = starts.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
        with.extend(chosen.map(|(_, start)| Instance { profile, start: *start }));
        if fits(table, &with) {
            most = most.max(i64::from(set.count_ones()));
        }
    }
    most
}

fn slices(table: &MigTable, instances: &[Instance]) -> i64 {
    instances.iter().map(|one| i64::from(table.profiles[one.profile].compute_slices)).sum()
}

fn is_media(table: &MigTable, profile: usize) -> bool {
    table.profiles[profile].name.ends_with("+me")
}

/// Room that instances leave on a GPU, by what they take: each answer is found once.
#[derive(Default)]
struct Rooms(BTreeMap<Taken, i64>);

impl Rooms {
    /// Room on a GPU; idle instances that serve nobody are room for their profile.
    fn of(&mut self, table: &MigTable, placed: &[Instance], idle: &[u32]) -> i64 {
        let plain = || (0..table.profiles.len()).filter(|profile| !is_media(table, *profile));
        let compute = |profile: usize| i64::from(table.profiles[profile].compute_slices);
        let free = self.0.entry(taken(table, placed)).or_insert_with(|| {
            plain().map(|profile| compute(profile) * most(table, placed, profile)).sum()
        });
        *free + plain().map(|profile| compute(profile) * i64::from(idle[profile])).sum::<i64>()
    }
}

/// Futures of a GPU: by what serves, of each profile, the best cost.
type Futures = BTreeMap<Vec<u32>, Cost>;

/// All futures of one GPU in which no more serve than `waiting`.
fn futures(world: &PartitionInput, rules: &Rules, number: usize, waiting: &[u32]) -> Futures {
    let gpu = &world.gpus[number];
    let table = &world.tables[gpu.table];
    let all = i64::from(table.compute_slices);
    let free = match gpu.change {
        Change::WhenEmpty => all,
        _ => all - slices(table, &gpu.held),
    };
    let (mut found, mut rooms) = (Futures::new(), Rooms::default());
    let created = waiting.iter().zip(&table.profiles).map(|(waiting, profile)| {
        let is_listed = rules.created.as_ref().is_none_or(|names| names.contains(&profile.name));
        if is_listed { *waiting } else { 0 }
    });
    let created: Vec<u32> = created.collect();
    for (kept, created) in changes(table, gpu, &created) {
        let gain = slices(table, &created) * rules.horizon_s * 100;
        if !created.is_empty() && gain < free * rules.change_s * rules.gain_percent {
            continue;
        }
        let removed = gpu.idle.len() - kept.len();
        let placed: Vec<Instance> = gpu.held.iter().chain(&kept).chain(&created).copied().collect();
        let unavailable = if created.is_empty() { 0 } else { free * 1_000 / all };
        let cleared = cleared(gpu, removed, !created.is_empty());
        for serving in 0u32..1 << kept.len() {
            let mut served = vec![0; table.profiles.len()];
            let mut idle = vec![0; table.profiles.len()];
            created.iter().for_each(|one| served[one.profile] += 1);
            for (place, one) in kept.iter().enumerate() {
                let counts = if serving >> place & 1 == 1 { &mut served } else { &mut idle };
                counts[one.profile] += 1;
            }
            if served.iter().zip(waiting).any(|(served, waiting)| served > waiting) {
                continue;
            }
            let room = rooms.of(table, &placed, &idle);
            let cost = (-cleared, -unavailable, -(removed as i64), room);
            found.entry(served).and_modify(|known| *known = (*known).max(cost)).or_insert(cost);
        }
    }
    found
}

/// What may become of a GPU: the idle instances that stay, where they are then, and new ones, of
/// each profile as many as pods wait for that may be created. Where all instances are made again,
/// one stays if the new layout has one of its profile.
fn changes(table: &MigTable, gpu: &Gpu, waiting: &[u32]) -> Vec<(Vec<Instance>, Vec<Instance>)> {
    let mut all = vec![(gpu.idle.clone(), Vec::new())];
    let idle_of = |profile: usize| gpu.idle.iter().filter(|one| one.profile == profile).count();
    match gpu.change {
        Change::Idle => {
            for stays in 0u32..1 << gpu.idle.len() {
                let idle = gpu.idle.iter().enumerate();
                let kept: Vec<Instance> = idle
                    .filter(|(place, _)| stays >> place & 1 == 1)
                    .map(|(_, one)| *one)
                    .collect();
                let mut base = gpu.held.clone();
                base.extend(&kept);
                let layouts = layouts_beside(table, &base, waiting).into_iter();
                all.extend(layouts.map(|created| (kept.clone(), created)));
            }
        }
        Change::WhenEmpty if gpu.held.is_empty() => {
            let most = waiting.iter().enumerate();
            let most: Vec<u32> =
                most.map(|(profile, waiting)| waiting + idle_of(profile) as u32).collect();
            for layout in layouts_beside(table, &[], &most) {
                let (mut kept, mut created): (Vec<Instance>, Vec<Instance>) = Default::default();
                for one in layout {
                    let there = kept.iter().filter(|kept| kept.profile == one.profile).count();
                    let list = if there < idle_of(one.profile) { &mut kept } else { &mut created };
                    list.push(one);
                }
                all.push((kept, created));
            }
        }
        Change::WhenEmpty | Change::Never => {}
    }
    let is_whole_change =
        |(kept, created): &(Vec<Instance>, Vec<Instance>)| !created.is_empty() || *kept == gpu.idle;
    all.retain(is_whole_change);
    all
}

fn sum_of(one: Cost, other: Cost) -> Cost {
    (one.0 + other.0, one.1 + other.1, one.2 + other.2, one.3 + other.3)
}

/// Idle instances that a change clears: mig-manager clears a GPU whole.
fn cleared(gpu: &Gpu, removed: usize, is_changed: bool) -> i64 {
    match gpu.change {
        Change::WhenEmpty if is_changed => gpu.idle.len() as i64,
        _ => removed as i64,
    }
}

/// All sets of instances at all places that fit beside others, at most so many of each profile.
fn layouts_beside(table: &MigTable, base: &[Instance], most: &[u32]) -> BTreeSet<Vec<Instance>> {
    let mut open: Vec<Vec<Instance>> = vec![Vec::new()];
    let mut seen: BTreeSet<Vec<Instance>> = BTreeSet::new();
    while let Some(created) = open.pop() {
        if !seen.insert(created.clone()) {
            continue;
        }
        for (profile, of) in table.profiles.iter().enumerate() {
            let there = created.iter().filter(|one| one.profile == profile).count();
            if there as u32 >= most[profile] {
                continue;
            }
            for start in &of.starts {
                let mut more = created.clone();
                more.push(Instance { profile, start: *start });
                more.sort_unstable();
                let placed: Vec<Instance> = base.iter().chain(&more).copied().collect();
                if fits(table, &placed) {
                    open.push(more);
                }
            }
        }
    }
    seen
}

/// The best of all plans: GPU after GPU, every total of served pods with the best cost.
pub(crate) fn best(world: &PartitionInput, rules: &Rules) -> Objective {
    let table = &world.tables[0];
    let waiting = |profile: usize, at_least: i32| -> u32 {
        let of = world.demand.iter().filter(|demand| {
            demand.profile == table.profiles[profile].name
                && demand.priority >= at_least
                && demand.waiting_ms >= rules.min_age_ms
        });
        of.map(|demand| demand.count).sum()
    };
    let profiles = table.profiles.len();
    let all: Vec<u32> = (0..profiles).map(|profile| waiting(profile, i32::MIN)).collect();
    let mut totals = Futures::from([(vec![0; profiles], (0, 0, 0, 0))]);
    for number in 0..world.gpus.len() {
        let futures = futures(world, rules, number, &all);
        let mut next = Futures::new();
        for (total, cost) in &totals {
            for (served, more) in &futures {
                let sum: Vec<u32> =
                    total.iter().zip(served).map(|(one, other)| one + other).collect();
                if sum.iter().zip(&all).any(|(sum, all)| sum > all) {
                    continue;
                }
                let cost = sum_of(*cost, *more);
                next.entry(sum).and_modify(|known| *known = (*known).max(cost)).or_insert(cost);
            }
        }
        totals = next;
    }
    let value = |total: &[u32]| {
        let each = total.iter().enumerate().map(|(profile, count)| {
            let compute = i64::from(table.profiles[profile].compute_slices);
            let urgent = (*count).min(waiting(profile, 1));
            (compute * i64::from(urgent), compute * i64::from(*count - urgent))
        });
        each.fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
    };
    let objectives = totals.iter().map(|(total, cost)| {
        let value = value(total);
        (value.0, value.1, *cost)
    });
    objectives.max().unwrap()
}

/// What a plan is worth, counted from its instances.
pub(crate) fn objective(world: &PartitionInput, plan: &PartitionPlan) -> Objective {
    let table = &world.tables[0];
    let mut all = (0, 0, (0, 0, 0, 0));
    for (gpu, planned) in world.gpus.iter().zip(&plan.gpus) {
        let mut idle = vec![0u32; table.profiles.len()];
        planned.kept.iter().chain(&planned.created).for_each(|one| idle[one.profile] += 1);
        for (entry, count) in &planned.served {
            let demand = &world.demand[*entry];
            let profile = table.profiles.iter().position(|p| p.name == demand.profile).unwrap();
            idle[profile] -= count;
            let worth = i64::from(table.profiles[profile].compute_slices) * i64::from(*count);
            if demand.priority > 0 {
                all.0 += worth;
            } else {
                all.1 += worth;
            }
        }
        let cleared = cleared(gpu, planned.removed.len(), planned.is_changed());
        let placed: Vec<Instance> =
            gpu.held.iter().chain(&planned.kept).chain(&planned.created).copied().collect();
        let room = Rooms::default().of(table, &placed, &idle);
        // The rules say 180 seconds.
        let unavailable = planned.unavailable_gpu_ms / 180;
        all.2 = sum_of(all.2, (-cleared, -unavailable, -(planned.removed.len() as i64), room));
    }
    all
}

/// All sets of instances that one GPU can hold, as counts by profile.
pub(crate) fn layouts(table: &MigTable) -> BTreeSet<Vec<u64>> {
    let most = vec![u32::MAX; table.profiles.len()];
    let counts = |placed: Vec<Instance>| {
        let mut counts = vec![0; table.profiles.len()];
        placed.iter().for_each(|one| counts[one.profile] += 1);
        counts
    };
    layouts_beside(table, &[], &most).into_iter().map(counts).collect()
}

/// The fewest GPUs for a list: rests that one GPU more leaves, level by level.
pub(crate) fn fewest_gpus(layouts: &BTreeSet<Vec<u64>>, asked: &[u64]) -> u64 {
    let mut rests: BTreeSet<Vec<u64>> = BTreeSet::from([asked.to_vec()]);
    for gpus in 0.. {
        if rests.iter().any(|rest| rest.iter().all(|count| *count == 0)) {
            return gpus;
        }
        let next = rests.iter().flat_map(|rest| {
            layouts.iter().map(|layout| {
                rest.iter().zip(layout).map(|(rest, count)| rest.saturating_sub(*count)).collect()
            })
        });
        rests = next.collect();
    }
    unreachable!("every GPU takes something of the rest")
}
