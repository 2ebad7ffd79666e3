//! GPUs all of whose instances are made again: only instances that the new layout lacks are
//! removed.

use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, Instance, PartitionInput, Rules, plan};

use crate::brute::{best, objective};
use crate::worlds::judge;

/// A GPU with idle instances at these starts, and one pod for each of some profiles.
fn world(idle: &[(&str, u8)], pods: &[&str]) -> PartitionInput {
    let table = MigTable::of_model("A100-80GB").unwrap();
    let idle = idle
        .iter()
        .map(|(name, start)| Instance { profile: table.profile(name).unwrap(), start: *start });
    let (held, idle) = (Vec::new(), idle.collect());
    let gpu = Gpu { table: 0, pool: 0, is_whole: false, held, idle, change: Change::WhenEmpty };
    let demand = pods.iter().map(|name| Demand {
        profile: (*name).to_owned(),
        count: 1,
        priority: 0,
        waiting_ms: 60_000,
        pools: None,
    });
    PartitionInput { demand: demand.collect(), tables: vec![table], gpus: vec![gpu] }
}

#[test]
fn idle_instances_stay_if_a_layout_has_room_for_them_anywhere() {
    let small = |starts: &[u8]| starts.iter().map(|start| ("1g.10gb", *start)).collect::<Vec<_>>();
    for (idle, pods, created, removed) in [
        // [4g][1g][1g]: one of the small ones is there already, where the large one starts.
        (vec![("3g.40gb", 4), ("1g.10gb", 3)], vec!["4g.40gb", "1g.10gb", "1g.10gb"], 2, 1),
        // [3g][2g][1g][1g].
        ([vec![("2g.20gb", 4)], small(&[3, 2, 1])].concat(), vec!["3g.40gb"], 1, 1),
        // [3g] and four small ones.
        ([vec![("1g.20gb", 6)], small(&[5, 4, 3, 2])].concat(), vec!["3g.40gb"], 1, 1),
        // Nothing is missing.
        (small(&[6, 5]), vec!["1g.10gb", "1g.10gb"], 0, 0),
    ] {
        let world = world(&idle, &pods);
        let plan = plan(&world, &Rules::default()).unwrap();
        judge(&world, &plan);
        let served: u32 = plan.accepted.iter().sum();
        assert_eq!(served as usize, pods.len(), "{plan:?}");
        assert_eq!((plan.created(), plan.removed()), (created, removed), "{plan:?}");
        assert_eq!(objective(&world, &plan), best(&world, &Rules::default()));
    }
}

/// A layout with the same instances at other starts is no change, and an instance that is made
/// again is no gain.
#[test]
fn instances_that_are_made_again_are_not_worth_a_change() {
    let world = world(&[("3g.40gb", 0), ("3g.40gb", 4)], &["3g.40gb", "1g.10gb"]);
    // One slice for 900 s against a whole GPU for 180 s, which must gain 1.5 times that.
    let rules = Rules { horizon_s: 900, ..Rules::default() };
    let plan = plan(&world, &rules).unwrap();
    judge(&world, &plan);
    assert_eq!((plan.created(), plan.removed()), (0, 0), "{plan:?}");
    assert_eq!(plan.accepted, [1, 0]);
}
