//! Small random worlds against brute force.

use dovetail_cases::cases;
use dovetail_check::check_claims;
use dovetail_claims::{
    AllocatableDevice, Alternative, CandidateDevice, Constraint, DeviceDemand, DeviceSupply, Draw,
    RequestGroup, SearchResult, ValueRule, allocate,
};
use proptest::prelude::*;

use crate::brute::first_alternatives;

const STEPS: u64 = 200_000;

fn draws(counters: usize) -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0..counters, 0..4_i128).prop_map(|(counter, amount)| Draw { counter, amount });
    prop::collection::vec(draw, 0..3)
}

fn supply() -> impl Strategy<Value = DeviceSupply> {
    let device = (prop::bool::weighted(0.25), draws(3))
        .prop_map(|(is_shared, draws)| AllocatableDevice { is_shared, draws });
    let counters = prop::collection::vec(-1..8_i128, 3);
    (counters, prop::collection::vec(device, 1..6))
        .prop_map(|(counters, devices)| DeviceSupply { counters, devices })
}

fn alternative(devices: usize) -> impl Strategy<Value = Alternative> {
    let mine = prop::collection::vec(prop::option::weighted(0.7, draws(3)), devices);
    (1..4_usize, prop::bool::ANY, prop::bool::weighted(0.1), mine).prop_map(
        |(count, is_each_once, only_looks_on, mine)| {
            let candidates = mine.into_iter().enumerate();
            let candidates = candidates
                .filter_map(|(device, draws)| Some(CandidateDevice { device, draws: draws? }))
                .collect();
            Alternative { count, is_each_once, only_looks_on, candidates }
        },
    )
}

fn constraint(devices: usize) -> impl Strategy<Value = Constraint> {
    let values = prop::collection::btree_set(0..3_u32, 0..3);
    let values = prop::collection::vec(values, devices);
    let covers = prop::collection::vec((0..3_usize, prop::option::weighted(0.3, 0..2_usize)), 1..3);
    (prop::bool::ANY, covers, values).prop_map(|(is_match, covers, values)| Constraint {
        rule: if is_match { ValueRule::Match } else { ValueRule::Distinct },
        covers,
        values: values.into_iter().map(|of| of.into_iter().collect()).collect(),
    })
}

fn world() -> impl Strategy<Value = (DeviceSupply, DeviceDemand)> {
    supply().prop_flat_map(|supply| {
        let devices = supply.devices.len();
        let request = prop::collection::vec(alternative(devices), 1..3);
        let requests = prop::collection::vec(request, 1..4);
        let constraints = prop::collection::vec(constraint(devices), 0..3);
        (Just(supply), requests, constraints, 2..9_usize).prop_map(
            |(supply, requests, constraints, most_devices)| {
                let groups = vec![RequestGroup { requests: 0..requests.len(), most_devices }];
                (supply, DeviceDemand { requests, groups, constraints })
            },
        )
    })
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn the_first_alternatives_are_those_of_brute_force((supply, demand) in world()) {
        match allocate(&supply, &demand, STEPS) {
            SearchResult::Fits(choice) => {
                prop_assert_eq!(check_claims(&supply, &demand, &choice), vec![]);
                prop_assert_eq!(first_alternatives(&supply, &demand), Some(choice.alternatives));
            }
            SearchResult::No => prop_assert_eq!(first_alternatives(&supply, &demand), None),
            SearchResult::Undecided => prop_assert!(false, "{STEPS} steps did not suffice"),
        }
    }
}

#[test]
fn too_few_steps_are_undecided_and_not_a_refusal() {
    let devices = vec![AllocatableDevice::default(); 3];
    let candidates = (0..3).map(|device| CandidateDevice { device, draws: vec![] }).collect();
    let alternative = Alternative { count: 3, candidates, ..Alternative::default() };
    let demand = DeviceDemand { requests: vec![vec![alternative]], ..DeviceDemand::default() };
    let supply = DeviceSupply { counters: vec![], devices };
    assert_eq!(allocate(&supply, &demand, 3), SearchResult::Undecided);
    assert!(matches!(allocate(&supply, &demand, 4), SearchResult::Fits(_)));
}
