//! How few GPUs a list needs.

use dovetail_model::MigTable;
use dovetail_partition::{layouts_of_counts, least_gpus, size};

fn sized(model: &str, demand: &[(&str, u64)]) -> (u64, u64) {
    let table = MigTable::of_model(model).unwrap();
    let demand: Vec<(String, u64)> =
        demand.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let sizing = size(&table, &demand).unwrap();
    let mut held = vec![0; table.profiles.len()];
    let mut gpus = 0;
    for (layout, count) in &sizing.layouts {
        assert!(table.is_legal(layout), "{layout:?}");
        gpus += count;
        held.iter_mut().zip(layout).for_each(|(held, one)| *held += u64::from(*one) * count);
    }
    let mut asked = vec![0; table.profiles.len()];
    demand.iter().for_each(|(name, count)| asked[table.profile(name).unwrap()] += count);
    assert_eq!(held, asked, "the layouts hold what is asked for");
    assert_eq!(gpus, sizing.gpus);
    (sizing.gpus, sizing.lower_bound)
}

#[test]
fn known_lists_need_as_many_gpus_as_they_must() {
    assert_eq!(sized("A100-80GB", &[("1g.10gb", 50)]), (8, 8));
    // Issue of upstream's allocator: nine 1g and three 4g fit on three GPUs.
    assert_eq!(sized("A100-40GB", &[("1g.5gb", 9), ("4g.20gb", 3)]), (3, 3));
    // A 3g takes half of the memory: two to a GPU, however many compute slices are left.
    assert_eq!(sized("A100-40GB", &[("3g.20gb", 7)]), (4, 4));
    assert_eq!(sized("A100-40GB", &[("7g.40gb", 3), ("1g.5gb", 1)]), (4, 4));
    assert_eq!(sized("A100-40GB", &[("1g.5gb+me", 3)]), (3, 3));
    assert_eq!(sized("A30", &[("2g.12gb", 3), ("1g.6gb", 2)]), (2, 2));
    assert_eq!(sized("A100-80GB", &[("3g.39gb", 1_000), ("4g.40gb", 1_000)]), (1_000, 1_000));
    assert_eq!(sized("A100-80GB", &[("1g.10gb", 1_000_000)]), (142_858, 142_858));
    assert_eq!(sized("A100-80GB", &[]), (0, 0));
}

#[test]
fn what_a_gpu_does_not_have_is_named() {
    let table = MigTable::of_model("A30").unwrap();
    let error = size(&table, &[("1g.5gb".to_owned(), 1)]).unwrap_err().to_string();
    let known = "1g.6gb, 2g.12gb, 4g.24gb, 1g.6gb+me, 2g.12gb+me";
    assert_eq!(error, format!("A30 has no profile `1g.5gb`; it has {known}"));
}

/// Every number of GPUs below the answer is refuted by trying every layout of every GPU.
#[test]
fn random_lists_are_as_small_as_brute_force_finds() {
    let mut random = crate::random_worlds::Random(7);
    for model in ["A30", "A100-40GB"] {
        let table = MigTable::of_model(model).unwrap();
        let layouts = crate::brute::layouts(&table);
        for _ in 0..150 {
            let mut asked = vec![0u64; table.profiles.len()];
            for _ in 0..1 + random.below(9) {
                asked[random.below(table.profiles.len())] += 1;
            }
            let demand: Vec<(&str, u64)> =
                table.profiles.iter().map(|p| p.name.as_str()).zip(asked.iter().copied()).collect();
            let (gpus, bound) = sized(model, &demand);
            let fewest = crate::brute::fewest_gpus(&layouts, &asked);
            assert_eq!(gpus, fewest, "{demand:?}");
            assert!(bound <= gpus);
        }
    }
}

#[test]
fn counted_instances_lie_on_as_many_gpus_as_there_are() {
    let of_model = |model: &str, counts: &[(&str, u16)], gpus: usize| {
        let table = MigTable::of_model(model).unwrap();
        let mut all = vec![0; table.profiles.len()];
        counts.iter().for_each(|(name, count)| all[table.profile(name).unwrap()] += count);
        let layouts = layouts_of_counts(&table, &all, gpus)?;
        assert!(layouts.iter().all(|layout| table.is_legal(layout)), "{layouts:?}");
        for (place, count) in all.iter().enumerate() {
            assert_eq!(layouts.iter().map(|layout| layout[place]).sum::<u16>(), *count);
        }
        Some(layouts.iter().map(|layout| layout.iter().sum()).collect::<Vec<u16>>())
    };
    let of = |counts: &[(&str, u16)], gpus| of_model("A100-80GB", counts, gpus);
    assert_eq!(of(&[("3g.40gb", 4)], 2), Some(vec![2, 2]));
    assert_eq!(of(&[("3g.40gb", 2)], 2), Some(vec![1, 1]));
    assert_eq!(of(&[("1g.10gb", 7)], 2), Some(vec![7, 0]));
    // What fills GPUs lies on them, also where it could be spread evenly.
    assert_eq!(of_model("A30", &[("1g.6gb", 4)], 2), Some(vec![4, 0]));
    assert_eq!(of_model("A30", &[("1g.6gb", 2)], 2), Some(vec![1, 1]));
    assert_eq!(of_model("A30", &[("1g.6gb", 12)], 2), None);
    assert_eq!(of(&[], 2), Some(vec![0, 0]));
    assert_eq!(of(&[("3g.40gb", 5)], 2), None);
    assert_eq!(of(&[], 0), None);
}

#[test]
fn no_fewer_gpus_than_the_least_hold_a_list() {
    let table = MigTable::of_model("A100-80GB").unwrap();
    let full = table.fullest_layouts();
    let least = |demand: &[(&str, u64)]| {
        let list: Vec<(String, u64)> =
            demand.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let least = least_gpus(&table, &full, &list)?;
        assert!(least <= size(&table, &list)?.gpus, "{demand:?}");
        Ok::<u64, dovetail_partition::SizingError>(least)
    };
    assert_eq!(least(&[]), Ok(0));
    assert_eq!(least(&[("3g.40gb", 2)]), Ok(1));
    // Six of seven compute slices, and ten of eight memory slices.
    assert_eq!(least(&[("1g.20gb", 3), ("3g.40gb", 1)]), Ok(2));
    assert!(least(&[("9g.99gb", 1)]).is_err());
}
