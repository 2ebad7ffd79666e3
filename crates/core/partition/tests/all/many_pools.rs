//! Nodes that are told apart by the pods that may go there: each is a pool of its own.

use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, PartitionInput, Rules, plan};

const NODES: u16 = 1_000;

fn demand(profile: &str, count: u32, only: Option<u16>) -> Demand {
    Demand {
        profile: profile.to_owned(),
        count,
        priority: i32::from(only.is_some()),
        waiting_ms: 60_000,
        pools: only.map(|pool| vec![pool]),
    }
}

/// A linear program over all pairs of profiles and pools would have thousands of rows.
#[test]
fn a_thousand_nodes_each_with_a_pod_of_its_own_are_planned_together() {
    let (held, idle, change) = (Vec::new(), Vec::new(), Change::WhenEmpty);
    let gpu = Gpu { table: 0, pool: 0, is_whole: false, held, idle, change };
    let gpus = (0..NODES).map(|pool| Gpu { pool, ..gpu.clone() }).collect();
    let own = (0..NODES).map(|pool| demand("3g.40gb", 1, Some(pool)));
    let others = ["4g.40gb", "1g.10gb"].map(|profile| demand(profile, 1_000, None));
    let demand = own.chain(others).collect();
    let tables = vec![MigTable::of_model("A100-80GB").unwrap()];
    let rules = Rules { steps: 20_000, ..Rules::default() };
    let plan = plan(&PartitionInput { tables, gpus, demand }, &rules).unwrap();
    let nodes = usize::from(NODES);
    assert!(plan.accepted[..nodes].iter().all(|served| *served == 1));
    for (node, gpu) in plan.gpus.iter().enumerate() {
        let is_allowed = |(entry, _): &(usize, u32)| *entry == node || *entry >= nodes;
        assert!(gpu.served.iter().all(is_allowed), "{node}: {gpu:?}");
    }
    // Every GPU is full, and has no more.
    assert_eq!(plan.accepted_compute_slices, 7 * i64::from(NODES));
    assert_eq!(plan.upper_bound_compute_slices, plan.accepted_compute_slices);
}
