//! Pods that ask for the same and differ in priority and in where they may go.

use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, PartitionInput, Rules, plan};

use crate::random_worlds::Random;
use crate::worlds::judge;

/// Empty GPUs of these pools.
fn world(pools: &[u16], demand: Vec<Demand>) -> PartitionInput {
    let gpu = |pool: &u16| Gpu {
        table: 0,
        pool: *pool,
        is_whole: false,
        held: Vec::new(),
        idle: Vec::new(),
        change: Change::WhenEmpty,
    };
    let tables = vec![MigTable::of_model("A100-40GB").unwrap()];
    PartitionInput { tables, gpus: pools.iter().map(gpu).collect(), demand }
}

fn demand(profile: &str, count: u32, priority: i32, pools: Option<&[u16]>) -> Demand {
    let (profile, pools) = (profile.to_owned(), pools.map(<[u16]>::to_vec));
    Demand { profile, count, priority, waiting_ms: 60_000, pools }
}

/// Pods of high priority that may go anywhere leave a pool to those that may go nowhere else.
#[test]
fn pods_of_high_priority_leave_room_to_others_where_they_can() {
    for (gpus, high, low, expected) in [
        (1, 1, 1, [1, 1]),
        (20, 20, 20, [20, 20]),
        // Both cannot have all.
        (20, 30, 20, [30, 10]),
    ] {
        for pools in [[0, 1], [1, 0]] {
            let gpus: Vec<u16> = pools.iter().flat_map(|pool| vec![*pool; gpus]).collect();
            let pods = vec![
                demand("7g.40gb", high, 1, None),
                demand("7g.40gb", low, 0, Some(&[pools[0]])),
            ];
            let world = world(&gpus, pods);
            let plan = plan(&world, &Rules::default()).unwrap();
            judge(&world, &plan);
            assert_eq!(plan.accepted, expected, "{} GPUs: {plan:?}", gpus.len());
        }
    }
}

/// The most pods of high priority, and beside them the most others, on places of one pod each.
fn most(places: &[u16], demand: &[Demand], left: &mut [u32]) -> (u32, u32) {
    let Some((pool, rest)) = places.split_first() else { return (0, 0) };
    let mut best = most(rest, demand, left);
    for (entry, pods) in demand.iter().enumerate() {
        let may_go = pods.pools.as_ref().is_none_or(|pools| pools.contains(pool));
        if may_go && left[entry] > 0 {
            left[entry] -= 1;
            let (high, low) = most(rest, demand, left);
            left[entry] += 1;
            let is_high = u32::from(pods.priority > 0);
            best = best.max((high + is_high, low + 1 - is_high));
        }
    }
    best
}

#[test]
fn pods_of_one_profile_are_served_as_brute_force_serves_them() {
    let mut random = Random(5);
    for number in 0..200 {
        let pools: Vec<u16> = (0..=random.below(3)).map(|_| random.below(3) as u16).collect();
        let entries = (0..=random.below(3)).map(|_| {
            let allowed: Vec<u16> = (0..3).filter(|_| random.below(2) == 0).collect();
            let (count, priority) = (1 + random.below(3) as u32, random.below(2) as i32);
            demand("3g.20gb", count, priority, Some(&allowed))
        });
        let world = world(&pools, entries.collect());
        let plan = plan(&world, &Rules::default()).unwrap();
        judge(&world, &plan);
        assert!(plan.is_best, "world {number}: {} steps", plan.steps);
        let served = |priority: i32| -> u32 {
            let pods = world.demand.iter().zip(&plan.accepted);
            pods.filter(|(pods, _)| pods.priority == priority).map(|(_, count)| *count).sum()
        };
        // A GPU has room for two.
        let places: Vec<u16> = pools.iter().flat_map(|pool| [*pool; 2]).collect();
        let mut left: Vec<u32> = world.demand.iter().map(|pods| pods.count).collect();
        let expected = most(&places, &world.demand, &mut left);
        assert_eq!((served(1), served(0)), expected, "world {number}: {world:?} {plan:?}");
    }
}
