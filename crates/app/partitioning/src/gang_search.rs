//! Plans that serve as many pods of a gang as start together, or none.
//!
//! The planner serves one instance at a time. The first gang that it serves in part is left out,
//! and it is planned again without it, because its room may be enough for others. Then each gang
//! that is left out is served before all other pods, once, and the plan is kept if it is worth
//! more: so no gang is left out because pods that are worth less take a part of its room.

use std::collections::BTreeSet;

use anyhow::Result;
use dovetail_partition::PartitionPlan;
use dovetail_translate::gang::GangName;

use crate::fleet::Fleet;
use crate::gangs::{GangChoice, in_part};
use crate::several::plan_with_several;
use crate::worth::Worth;

/// So many plans are made in which gangs are left out one by one, and as many in which gangs are
/// served before all other pods.
const MOST_PLANS: usize = 32;

/// Plans take longer on many nodes: as many nodes as these are planned in all, and so many plans at
/// least.
const MOST_PLANNED_NODES: usize = 4_096;
const LEAST_PLANS: usize = 4;

/// Plans for the pods of a fleet. `fleet_of`: the fleet with the demand of such gangs.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_with_gangs(
    fleet_of: impl Fn(&GangChoice) -> Fleet,
) -> Result<(Fleet, PartitionPlan)> {
    let choice = GangChoice::default();
    let mut search = GangSearch { fleet_of, limit: MOST_PLANS, plans: 0, bound: 0 };
    let (fleet, plan) = search.plan(&choice)?;
    let order: Vec<GangName> = fleet.gangs.iter().map(|gang| gang.name.clone()).collect();
    search.limit = (MOST_PLANNED_NODES / fleet.free.len().max(1)).clamp(LEAST_PLANS, MOST_PLANS);
    let whole = search.whole(choice, fleet, plan)?;
    search.plans = 0;
    let WholeGangs { choice, fleet, mut plan, .. } = search.with_each_first(whole, &order)?;
    if !choice.is_none() {
        // Other gangs may have been the right ones to leave out.
        (plan.upper_bound_compute_slices, plan.is_best) = (search.bound, false);
    }
    Ok((fleet, plan))
}

/// A plan that serves no gang in part.
struct WholeGangs {
    choice: GangChoice,
    worth: Worth,
    fleet: Fleet,
    plan: PartitionPlan,
}

struct GangSearch<F> {
    fleet_of: F,
    /// How many plans may be made, and how many were.
    limit: usize,
    plans: usize,
    /// No choice of gangs serves more compute slices.
    bound: i64,
}

impl<F: Fn(&GangChoice) -> Fleet> GangSearch<F> {
    fn plan(&mut self, choice: &GangChoice) -> Result<(Fleet, PartitionPlan)> {
        self.plans += 1;
        let fleet = (self.fleet_of)(choice);
        let offered = fleet.world.offered_compute_slices();
        let (fleet, plan) = plan_with_several(fleet)?;
        // Without some of its gangs, quotas could let other pods start.
        let may_others_start = fleet.is_short_of_quota && !fleet.gangs.is_empty();
        let of_plan = plan.upper_bound_compute_slices;
        self.bound = self.bound.max(if may_others_start { offered } else { of_plan });
        Ok((fleet, plan))
    }

    /// Leaves out gangs until a plan serves none in part: one after the other of those that it
    /// serves in part, then all that it does not serve at all. If that takes too many plans, all
    /// that are in part at once, and in the end all.
    fn whole(
        &mut self,
        mut choice: GangChoice,
        mut fleet: Fleet,
        mut plan: PartitionPlan,
    ) -> Result<WholeGangs> {
        loop {
            let in_part = in_part(&fleet, &plan);
            if in_part.is_empty() {
                let worth = Worth::of(&fleet, &plan);
                return Ok(WholeGangs { choice, worth, fleet, plan });
            }
            let with_some = in_part.iter().find(|gang| gang.has_some);
            let left_out: Vec<GangName> = match with_some {
                Some(gang) if self.plans < self.limit => vec![gang.name.clone()],
                _ if self.plans < self.limit + LEAST_PLANS => {
                    in_part.iter().map(|gang| gang.name.clone()).collect()
                }
                _ => fleet.gangs.iter().map(|gang| gang.name.clone()).collect(),
            };
            choice.left_out.extend(left_out);
            (fleet, plan) = self.plan(&choice)?;
        }
    }

    /// Serves each gang that is left out before all other pods, by itself and beside those that
    /// are served first already, and keeps the plan if it is worth more.
    fn with_each_first(&mut self, mut best: WholeGangs, order: &[GangName]) -> Result<WholeGangs> {
        for gang in order {
            if self.plans >= self.limit {
                break;
            }
            let mut choice = best.choice.clone();
            if !choice.left_out.remove(gang) {
                continue;
            }
            let alone = BTreeSet::from([gang.clone()]);
            let beside = &best.choice.first | &alone;
            let are_one = beside == alone;
            for first in std::iter::once(alone).chain((!are_one).then_some(beside)) {
                let next = self.first(gang, GangChoice { first, ..choice.clone() })?;
                best = next.filter(|next| next.worth > best.worth).unwrap_or(best);
            }
        }
        Ok(best)
    }

    /// The plan of a choice if it serves a gang as a whole.
    fn first(&mut self, gang: &GangName, choice: GangChoice) -> Result<Option<WholeGangs>> {
        let (fleet, plan) = self.plan(&choice)?;
        if in_part(&fleet, &plan).iter().any(|other| other.name == gang) {
            return Ok(None);
        }
        self.whole(choice, fleet, plan).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dovetail_model::MigTable;
    use serde_json::json;

    use crate::objects::Objects;
    use crate::planned::Planned;
    use crate::planned::tests::{node, of, pod};

    const PROFILES: [&str; 5] = ["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];

    /// Numbers that look as if drawn.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % most
        }
    }

    /// Pods that start together, by their profiles; one that starts alone is the only one.
    struct Group {
        priority: i32,
        profiles: Vec<&'static str>,
    }

    fn groups(draws: &mut Draws) -> Vec<Group> {
        let (gangs, singles) = (draws.below(4), draws.below(4));
        let mut sizes: Vec<usize> = (0..gangs).map(|_| 2 + draws.below(2)).collect();
        sizes.resize(gangs + singles, 1);
        let group = |size: usize| Group {
            priority: i32::from(draws.below(4) == 0),
            profiles: (0..size).map(|_| PROFILES[draws.below(PROFILES.len())]).collect(),
        };
        sizes.into_iter().map(group).collect()
    }

    fn objects(gpus: usize, groups: &[Group]) -> Objects {
        let nodes = (0..gpus).map(|number| node(&format!("n{number}"), &json!({})));
        let mut objects = Objects { nodes: nodes.collect(), ..Objects::default() };
        for (number, group) in groups.iter().enumerate() {
            for (place, profile) in group.profiles.iter().enumerate() {
                let (key, mut pod) = pod(&format!("g{number}-{place}"), "", profile);
                pod.priority = group.priority;
                if group.profiles.len() > 1 {
                    let labels = json!({"scheduling.x-k8s.io/pod-group": format!("g{number}")});
                    pod.meta.labels = serde_json::from_value(labels).expect("labels");
                }
                objects.pods.insert(key, pod);
            }
        }
        objects
    }

    /// Compute slices of pods of priority 1 and of priority 0.
    type Value = (i64, i64);

    fn add(value: &mut Value, priority: i32, slices: i64) {
        let of = if priority > 0 { &mut value.0 } else { &mut value.1 };
        *of += slices;
    }

    fn slices(table: &MigTable, profile: &str) -> i64 {
        let place = table.profile(profile).expect("a profile");
        i64::from(table.profiles[place].compute_slices)
    }

    /// Whether GPUs can have these instances, by trying each on each of them.
    fn fit(table: &MigTable, gpus: &mut [Vec<u16>], profiles: &[&str]) -> bool {
        let Some((first, rest)) = profiles.split_first() else { return true };
        let place = table.profile(first).expect("a profile");
        (0..gpus.len()).any(|gpu| {
            gpus[gpu][place] += 1;
            let is_possible = table.is_legal(&gpus[gpu]) && fit(table, gpus, rest);
            gpus[gpu][place] -= 1;
            is_possible
        })
    }

    /// The most that a choice of groups is worth that GPUs can serve together, with so many gangs
    /// at most.
    fn best(table: &MigTable, gpus: usize, groups: &[Group], most_gangs: usize) -> Value {
        let mut best = (0, 0);
        for choice in 0u32..1 << groups.len() {
            let chosen = || groups.iter().zip(0..).filter(|(_, bit)| choice >> bit & 1 == 1);
            let gangs = chosen().filter(|(group, _)| group.profiles.len() > 1).count();
            let profiles: Vec<&str> =
                chosen().flat_map(|(group, _)| group.profiles.iter().copied()).collect();
            let mut value = (0, 0);
            for (group, _) in chosen() {
                let each = group.profiles.iter().map(|profile| slices(table, profile));
                add(&mut value, group.priority, each.sum());
            }
            let mut empty = vec![vec![0; table.profiles.len()]; gpus];
            if gangs <= most_gangs && value > best && fit(table, &mut empty, &profiles) {
                best = value;
            }
        }
        best
    }

    /// What a plan is worth, and how many instances of each gang it serves.
    fn served(table: &MigTable, planned: &Planned) -> (Value, BTreeMap<String, u32>) {
        let (mut value, mut gangs) = ((0, 0), BTreeMap::new());
        for ((pods, _), count) in planned.fleet.waiting.iter().zip(&planned.plan.accepted) {
            add(&mut value, pods.priority, slices(table, &pods.profile) * i64::from(*count));
            if let Some(gang) = pods.gang {
                let name = planned.fleet.gangs[gang].name.name.to_string();
                *gangs.entry(name).or_default() += count;
            }
        }
        (value, gangs)
    }

    /// Exact for one gang; for several, no worse than with any one of them.
    #[test]
    fn no_gang_of_a_small_world_is_served_in_part_and_plans_are_as_good_as_with_one_gang() {
        let table = MigTable::of_model("A100-80GB").expect("a table");
        let (mut draws, mut whole, mut out) = (Draws(1), 0, 0);
        for world in 0..80 {
            let (gpus, groups) = (1 + draws.below(2), groups(&mut draws));
            let planned = of(&objects(gpus, &groups));
            let (value, gangs) = served(&table, &planned);
            let of_gang = |number: usize| gangs.get(&format!("g{number}")).copied().unwrap_or(0);
            for (number, group) in groups.iter().enumerate() {
                let size = group.profiles.len();
                if size > 1 {
                    let count = of_gang(number) as usize;
                    assert!(count == 0 || count == size, "{world}: {count} of {size}");
                    (whole, out) = (whole + count / size, out + usize::from(count == 0));
                }
            }
            let best_of = |most_gangs: usize| best(&table, gpus, &groups, most_gangs);
            assert!(value >= best_of(1), "{world}: {value:?} < {:?}", best_of(1));
            assert!(value <= best_of(usize::MAX), "{world}: {value:?}");
        }
        assert!(whole > 10 && out > 10, "{whole} {out}");
    }

    /// A plan serves most if it serves a part of a gang beside another pod: then the gang comes
    /// first, because it is worth more than that pod.
    #[test]
    fn a_pod_that_is_worth_less_than_a_gang_does_not_keep_it_from_starting() {
        let group = |profiles: &[&'static str]| Group { priority: 0, profiles: profiles.to_vec() };
        let groups = [group(&["3g.40gb", "3g.40gb"]), group(&["4g.40gb"])];
        let planned = of(&objects(1, &groups));
        assert_eq!(planned.plan.accepted_compute_slices, 6);
        assert!(planned.plan.upper_bound_compute_slices >= 7 && !planned.plan.is_best);
        let why = "no plan was found that serves all pending pods of its gang";
        assert!(!planned.fleet.not_planned.contains_key(why));
    }
}
