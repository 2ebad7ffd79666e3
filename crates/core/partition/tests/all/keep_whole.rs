//! Whole GPUs that stay whole are free ones, wherever those in use are listed.

use dovetail_model::MigTable;
use dovetail_partition::{Change, Demand, Gpu, PartitionInput, Rules, plan};

#[test]
fn gpus_that_cannot_change_do_not_count_as_kept() {
    let gpu = |change| Gpu {
        table: 0,
        pool: 0,
        is_whole: true,
        held: Vec::new(),
        idle: Vec::new(),
        change,
    };
    let (free, used) = (Change::WhenEmpty, Change::Never);
    let accepted = |gpus: &[Change], keep: u32| {
        let table = MigTable::of_model("A100-40GB").unwrap();
        let keep_whole = [(table.name.clone(), keep)].into();
        let demand = Demand {
            profile: "1g.5gb".to_owned(),
            count: 7,
            priority: 0,
            waiting_ms: 60_000,
            pools: None,
        };
        let gpus = gpus.iter().map(|change| gpu(*change)).collect();
        let world = PartitionInput { tables: vec![table], gpus, demand: vec![demand] };
        plan(&world, &Rules { keep_whole, ..Rules::default() }).unwrap().accepted
    };
    for gpus in [[free, used], [used, free]] {
        assert_eq!(accepted(&gpus, 0), [7]);
        assert_eq!(accepted(&gpus, 1), [0]);
    }
    assert_eq!(accepted(&[free, free], 1), [7]);
}
