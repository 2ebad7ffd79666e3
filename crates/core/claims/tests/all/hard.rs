//! A100s whose driver offers each slice at each place (KEP-4815), and the requests that
//! kube-scheduler 1.37's allocator gives up or takes long for: the worlds of `hard.csv`, by hand.

use dovetail_check::check_claims;
use dovetail_claims::{
    AllocatableDevice, Alternative, CandidateDevice, Constraint, DeviceDemand, DeviceSupply, Draw,
    SearchResult, ValueRule, allocate,
};

/// Name, compute slices, memory slices, and where it may start (NVIDIA's table for A100-40GB).
const PROFILES: [(&str, i128, usize, &[usize]); 5] = [
    ("1g", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
    ("2g", 2, 2, &[0, 2, 4]),
    ("3g", 3, 4, &[0, 4]),
    ("4g", 4, 4, &[0]),
    ("7g", 7, 8, &[0]),
];
const STEPS: u64 = 10_000;

struct Gpus {
    supply: DeviceSupply,
    /// GPU and profile of each device.
    of: Vec<(usize, &'static str)>,
}

/// GPUs of which the first `whole` are held as one device each.
fn gpus(count: usize, whole: usize) -> Gpus {
    let mut gpus = Gpus { supply: DeviceSupply::default(), of: Vec::new() };
    for gpu in 0..count {
        let first = gpu * 9;
        let is_free = i128::from(gpu >= whole);
        gpus.supply.counters.push(7 * is_free);
        gpus.supply.counters.extend([is_free; 8]);
        for (profile, compute, slices, starts) in PROFILES {
            for start in starts {
                let memory = (*start..start + slices)
                    .map(|slice| Draw { counter: first + 1 + slice, amount: 1 });
                let draws = memory.chain([Draw { counter: first, amount: compute }]).collect();
                gpus.supply.devices.push(AllocatableDevice { is_shared: false, draws });
                gpus.of.push((gpu, profile));
            }
        }
    }
    gpus
}

/// One request for each profile, all on one GPU if `of_one_gpu`.
fn demand(gpus: &Gpus, wanted: &[(&str, usize)], of_one_gpu: bool) -> DeviceDemand {
    let request = |(profile, count): &(&str, usize)| {
        let of = gpus.of.iter().enumerate().filter(|(_, (_, of))| of == profile);
        let candidates = of.map(|(device, _)| CandidateDevice { device, draws: vec![] }).collect();
        vec![Alternative { count: *count, candidates, ..Alternative::default() }]
    };
    let parents = gpus.of.iter().map(|(gpu, _)| vec![*gpu as u32]).collect();
    let covers = (0..wanted.len()).map(|request| (request, None)).collect();
    let matching = Constraint { rule: ValueRule::Match, covers, values: parents };
    DeviceDemand {
        requests: wanted.iter().map(request).collect(),
        groups: vec![],
        constraints: of_one_gpu.then_some(matching).into_iter().collect(),
    }
}

/// Whether it fits, and the steps it took.
fn answer(gpus: &Gpus, demand: &DeviceDemand) -> bool {
    match allocate(&gpus.supply, demand, STEPS) {
        SearchResult::Fits(choice) => {
            assert_eq!(check_claims(&gpus.supply, demand, &choice), vec![]);
            true
        }
        SearchResult::No => false,
        SearchResult::Undecided => panic!("{STEPS} steps did not suffice"),
    }
}

#[test]
fn claims_that_upstream_gives_up_are_decided_within_few_steps() {
    for (wanted, count, of_one_gpu, fits) in [
        (&[("1g", 9), ("4g", 3)][..], 3, false, true),
        (&[("1g", 22)], 3, false, false),
        (&[("1g", 15)], 2, false, false),
        (&[("1g", 8)], 8, true, false),
        (&[("1g", 6), ("4g", 2)], 2, false, true),
        (&[("1g", 2), ("2g", 2), ("4g", 2)], 2, false, true),
        (&[("1g", 3), ("4g", 1)], 8, true, true),
        // Not of the list: the compute slices are one too few, the places would do.
        (&[("1g", 10), ("4g", 3)], 3, false, false),
        (&[("3g", 3), ("4g", 3), ("1g", 1)], 3, false, false),
        (&[("3g", 3), ("4g", 3)], 3, false, true),
    ] {
        let gpus = gpus(count, 0);
        let demand = demand(&gpus, wanted, of_one_gpu);
        assert_eq!(answer(&gpus, &demand), fits, "{wanted:?} on {count}");
    }
    for (whole, fits) in [(8, false), (4, true), (0, true)] {
        let gpus = gpus(8, whole);
        assert_eq!(answer(&gpus, &demand(&gpus, &[("1g", 1)], false)), fits, "{whole} held");
    }
}
