//! Moves that make room, against trying every one.

use dovetail_model::MigTable;
use dovetail_partition::{Instance, InstanceMove, move_for};

use crate::brute::fits;
use crate::random_worlds::{Random, placed};

/// Whether an instance of the profile fits beside those that are there.
fn takes(table: &MigTable, held: &[Instance], profile: usize) -> bool {
    table.profiles[profile].starts.iter().any(|start| {
        let mut with = held.to_vec();
        with.push(Instance { profile, start: *start });
        fits(table, &with)
    })
}

#[test]
fn the_move_of_the_fewest_slices_is_found_if_there_is_one() {
    let table = MigTable::of_model("A100-40GB").unwrap();
    let mut random = Random(7);
    let (mut found, mut none) = (0, 0);
    for _ in 0..1_000 {
        let count = 1 + random.below(4);
        let gpus: Vec<_> = (0..count).map(|_| placed(&table, &mut random, 8)).collect();
        let profile = random.below(table.profiles.len());
        let size =
            |at: InstanceMove| table.profiles[gpus[at.gpu][at.instance].profile].compute_slices;
        let makes_room = |at: &InstanceMove| {
            let mut left = gpus[at.gpu].clone();
            let moved = left.remove(at.instance);
            let elsewhere =
                (0..count).any(|gpu| gpu != at.gpu && takes(&table, &gpus[gpu], moved.profile));
            elsewhere && takes(&table, &left, profile)
        };
        let all = (0..count).flat_map(|gpu| {
            (0..gpus[gpu].len()).map(move |instance| InstanceMove { gpu, instance })
        });
        let least = all.filter(makes_room).map(size).min();
        let answer = move_for(&table, &gpus, profile);
        assert!(answer.is_none_or(|at| makes_room(&at)), "{answer:?} {gpus:?}");
        assert_eq!(answer.map(size), least, "{gpus:?}");
        found += u32::from(answer.is_some());
        none += u32::from(answer.is_none());
    }
    assert!(found > 200 && none > 100, "{found} {none}");
}
