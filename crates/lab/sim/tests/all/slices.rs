//! The `slices` protocol: the engine against simple rules, and against published figures.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::slices::{
    ByEngine, ByRule, MIXES, Mix, Moves, Places, SlicesRun, SlicesWorld, run_slices,
};

const NO_MOVES: Moves = Moves { percent: 0.0, cost_ms: 180_000 };
const FEW_MOVES: Moves = Moves { percent: 1.0, cost_ms: 180_000 };

fn world(mix: Mix, load: f64, seed: u64, requests: usize) -> SlicesWorld {
    let table = MigTable::of_model("A100-40GB").unwrap();
    SlicesWorld { table, node_gpus: vec![8; 5], mix, load, requests, seed }
}

fn run(world: &SlicesWorld, policy: &str, moves: Moves) -> SlicesRun {
    let config = EngineConfig { policy: PolicySpec::named("dovetail"), ..EngineConfig::default() };
    let mut places: Box<dyn Places> = match policy {
        "dovetail" => Box::new(ByEngine::new(world, config).unwrap()),
        rule => Box::new(ByRule::named(rule, world).unwrap()),
    };
    run_slices(world, places.as_mut(), moves).unwrap()
}

type Shares = BTreeMap<(&'static str, &'static str, &'static str), f64>;

/// Rejected shares by load, mix and policy, in percent: means over seeds.
fn rejected(seeds: u64) -> Shares {
    let mut shares = BTreeMap::new();
    let policies = [
        ("kube-default", "kube-default", NO_MOVES),
        ("first-fit", "first-fit", NO_MOVES),
        ("best-fit", "best-fit", NO_MOVES),
        ("least-room-lost", "least-room-lost", NO_MOVES),
        ("dovetail", "dovetail", NO_MOVES),
        ("with moves", "dovetail", FEW_MOVES),
    ];
    for (load_name, load) in [("0.7", 0.7), ("0.9", 0.9)] {
        for mix in MIXES {
            for (name, policy, moves) in policies {
                let of = |seed| {
                    let run = run(&world(mix, load, seed, 3_000), policy, moves);
                    assert!(run.moved_gpu_s <= 0.011 * run.served_gpu_s, "{run:?}");
                    100.0 * run.rejected as f64 / run.counted as f64
                };
                let mean = (0..seeds).map(of).sum::<f64>() / seeds as f64;
                shares.insert((load_name, mix.name, name), mean);
            }
        }
    }
    shares
}

/// Means over the mixes.
fn mean(shares: &Shares, load: &str, policy: &str) -> f64 {
    let of = shares.iter().filter(|((l, _, p), _)| *l == load && *p == policy);
    of.map(|(_, share)| share).sum::<f64>() / MIXES.len() as f64
}

#[test]
fn fewer_slices_are_rejected_than_by_simple_rules() {
    let shares = rejected(3);
    let of = |policy| mean(&shares, "0.7", policy) + mean(&shares, "0.9", policy);
    let (dovetail, moving) = (of("dovetail"), of("with moves"));
    assert!(dovetail <= 0.55 * of("kube-default"), "{shares:?}");
    assert!(dovetail <= 0.8 * of("first-fit"), "{shares:?}");
    for mix in MIXES {
        let at = |policy| shares[&("0.9", mix.name, policy)];
        // Of three seeds the mean of a mix is good to about 5%: the bound is 1.05.
        assert!(at("dovetail") <= 1.08 * at("least-room-lost"), "{} {shares:?}", mix.name);
        for rule in ["kube-default", "first-fit", "best-fit", "least-room-lost", "dovetail"] {
            assert!(at("with moves") < at(rule), "{} {rule} {shares:?}", mix.name);
        }
    }
    assert!(moving < 0.9 * dovetail, "{shares:?}");
    rules_are_as_published(&shares);
}

/// The rules, restated, reject as often as those of the published table, which is of other seeds.
fn rules_are_as_published(shares: &Shares) {
    let Some(data) = crate::traces::folder("published rejections of slices") else { return };
    let path = data.join("sharing/online_rejections.csv");
    let mut rows = csv::Reader::from_path(&path).unwrap();
    let rows: Vec<BTreeMap<String, String>> = rows.deserialize().map(Result::unwrap).collect();
    let columns = [
        ("kube-default", "kube_spread_first_device"),
        ("first-fit", "first_fit"),
        ("best-fit", "best_fit"),
        ("least-room-lost", "least_room_lost"),
    ];
    for (policy, column) in columns {
        let of_load = rows.iter().filter(|row| row["load"] == "0.9");
        let published: f64 = of_load.map(|row| row[column].parse::<f64>().unwrap()).sum();
        let published = 100.0 * published / MIXES.len() as f64;
        let ours = mean(shares, "0.9", policy);
        assert!((ours / published - 1.0).abs() < 0.15, "{policy}: {ours} {published}");
    }
}

#[test]
fn a_move_is_made_only_within_its_budget_and_only_where_it_makes_room() {
    let world = world(Mix::named("uniform").unwrap(), 0.9, 7, 2_000);
    let none = run(&world, "dovetail", NO_MOVES);
    assert_eq!((none.moves, none.moved_gpu_s), (0, 0.0));
    let dear = Moves { percent: 1.0, cost_ms: 3_600_000 };
    let few = run(&world, "dovetail", dear);
    let many = run(&world, "dovetail", FEW_MOVES);
    assert!(0 < few.moves && few.moves < many.moves, "{few:?} {many:?}");
    assert!(few.moved_gpu_s <= 0.015 * few.served_gpu_s, "{few:?}");
    // The same again is the same.
    assert_eq!(run(&world, "dovetail", FEW_MOVES), many);
}

#[test]
fn a_gpu_with_four_slices_takes_the_sizes_that_it_has() {
    let table = MigTable::of_model("A30").unwrap();
    let mix = Mix::named("big").unwrap();
    let world = SlicesWorld { table, node_gpus: vec![4], mix, load: 0.5, requests: 400, seed: 1 };
    let sizes: std::collections::BTreeSet<u8> = (world.stream().iter())
        .map(|request| world.table.profiles[request.profile].compute_slices)
        .collect();
    assert_eq!(sizes, [1, 2, 4].into());
    assert_eq!(run(&world, "dovetail", NO_MOVES).counted, 300);
}
