//! Models that are served, prices elsewhere, and jobs that hang.

use dovetail_account::device_time::Span;
use dovetail_facts::{CheapestRegion, Facts, Hang, ServedModel};

use super::{Case, HOUR_MS, NOW_MS, SERVE, TRAIN, healthy, label, used};
use crate::checks::audit;

/// Servers of a model of 8 billion weights that are asked so often.
pub(super) fn asked(facts: &mut Facts, requests: u64, bits: Option<u32>) {
    let serve = &mut facts.workloads[SERVE];
    serve.requests_per_day = Some(requests);
    serve.template.model = Some(ServedModel { weights_millions: Some(8_000), bits });
}

/// Servers of so many weights on a GPU with 64,000 MiB, which compute for so long of the day.
pub(super) fn sized(facts: &mut Facts, weights_millions: u64, active_ms: u64) {
    label(facts, "nvidia.com/gpu.memory", "64000");
    let model = ServedModel { weights_millions: Some(weights_millions), bits: None };
    facts.workloads[SERVE].template.model = Some(model);
    used(facts, SERVE, &[active_ms]);
}

/// GPUs that cost so much where they are cheapest, and $7 here.
pub(super) fn cheaper(facts: &mut Facts, there_usd_micros_per_gpu_hour: i64) {
    facts.nodes[0].cheapest_region = Some(CheapestRegion {
        here: "eu-1".into(),
        here_usd_micros_per_gpu_hour: 7_000_000,
        there: "us-1".into(),
        there_usd_micros_per_gpu_hour,
        as_of: Some("2026-08-03".into()),
    });
}

/// Training whose members waited for each other for so long.
pub(super) fn hung(facts: &mut Facts, length_ms: u64) {
    used(facts, TRAIN, &[24 * HOUR_MS; 4]);
    let longest = Span { from_ms: NOW_MS - length_ms, to_ms: NOW_MS };
    let gpu_milli_ms = i128::from(length_ms) * 8_000;
    facts.workloads[TRAIN].hang = Some(Hang { longest, gpu_milli_ms });
}

pub(super) const MODELS: [Case; 2] = [
    ("MOD-01", |f| asked(f, 100_001, Some(16)), |f| asked(f, 100_001, Some(8))),
    // 16 bits of a quarter of 64,000 MiB are 8,388.608 million weights.
    ("MOD-02", |f| sized(f, 8_388, 11 * HOUR_MS), |f| sized(f, 8_389, 11 * HOUR_MS)),
];

#[test]
fn a_model_that_is_asked_seldom_or_needs_the_speed_has_no_finding() {
    let none = |change: fn(&mut Facts)| {
        let mut facts = healthy();
        change(&mut facts);
        assert_eq!(audit(&facts), []);
    };
    none(|f| asked(f, 100_000, None));
    none(|f| sized(f, 8_388, 12 * HOUR_MS));
    // Nobody knows the model, or the memory.
    none(|f| {
        asked(f, 100_001, None);
        f.workloads[SERVE].template.model = None;
    });
    none(|f| {
        sized(f, 1_000, 0);
        f.nodes[0].node.labels.remove("nvidia.com/gpu.memory");
        f.workloads[SERVE].pods.iter_mut().for_each(|pod| pod.uses.clear());
    });
}

#[test]
fn evidence_says_what_a_finding_rests_on() {
    let told = |change: fn(&mut Facts)| {
        let mut facts = healthy();
        change(&mut facts);
        let found = audit(&facts);
        let evidence = found.iter().flat_map(|finding| &finding.evidence);
        evidence.map(|of| format!("{}: {}", of.what, of.value)).collect::<Vec<String>>()
    };
    let wanted = [
        "price of a GPU-hour here: $7.00 in eu-1",
        "price of a GPU-hour where it is cheapest: $5.00 in us-1",
        // Two dollars for 720 hours.
        "pays back if at most this much data moves: 14400 GB per GPU in 30 days, at an assumed \
         $0.10 per GB",
        "list prices of: 2026-08-03",
    ];
    assert_eq!(told(|f| cheaper(f, 5_000_000)), wanted);
    let wanted = [
        "still hung: 90 min, and hangs now",
        "GPU-hours of all its hangs: 12.0",
        "measured: 24 h in steps of 60 s",
    ];
    assert_eq!(told(|f| hung(f, 90 * 60_000)), wanted);
    let wanted = [
        "requests per day: 250000",
        "bits per weight: 16, assumed",
        "weights, according to the model's name: 8 billion",
    ];
    assert_eq!(told(|f| asked(f, 250_000, None)), wanted);
}
