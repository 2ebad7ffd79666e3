//! Generated streams against the model they are drawn from, and against themselves.
//!
//! Tolerances are five standard deviations of the figure in question, so that a sound generator
//! fails about once in 1.7 million comparisons, and the seeds are fixed.

use dovetail_trace::stats::{TraceStats, describe};
use dovetail_trace::synth::{SizeModel, SynthConfig, SynthProfile, Synthetic, synth};
use dovetail_trace::{RecordedOutcome, Trace, TraceError, TraceJob, write_cluster, write_trace};
use sha2::{Digest, Sha256};

const SIGMAS: f64 = 5.0;

fn config(seed: u64, profile: SynthProfile) -> SynthConfig {
    let (nodes, load) = match profile {
        SynthProfile::Sharing => (40, 0.5),
        _ => (300, 0.8),
    };
    SynthConfig { seed, nodes, days: 28, load, profile }
}

/// A count out of `trials` is where a probability says.
fn binomial(what: &str, count: f64, trials: f64, probability: f64) {
    let sd = (trials * probability * (1.0 - probability)).sqrt().max(1.0);
    let off = (count - trials * probability).abs() / sd;
    assert!(off < SIGMAS, "{what}: {count} of {trials}, expected {probability}: {off:.1} sigmas");
}

#[test]
fn streams_follow_their_model() {
    for profile in [SynthProfile::Mixed, SynthProfile::Training, SynthProfile::Sharing] {
        for seed in 1..=4 {
            let world = synth(&config(seed, profile)).expect("world");
            let stats = describe(&world.trace, Some(&world.cluster));
            let what = format!("{} {seed}", profile.name());
            let jobs = stats.jobs as f64;
            let off = (jobs - world.model.expected_jobs).abs() / world.model.expected_jobs.sqrt();
            assert!(off < SIGMAS && jobs > 20_000.0, "{what}: {jobs} jobs, {off:.1} sigmas");
            totals_follow(&what, &world, &stats);
            shares_follow(&what, &world, &stats);
            for size in &world.model.sizes {
                run_times_follow(&what, &world.trace, size);
            }
        }
    }
}

fn totals_follow(what: &str, world: &Synthetic, stats: &TraceStats) {
    let (hours, model) = (stats.gpu_hours.expect("GPU-hours"), &world.model);
    let off = (hours - model.expected_gpu_hours).abs() / model.gpu_hours_sd;
    assert!(off < SIGMAS, "{what}: {hours} GPU-hours, {off:.1} sigmas");
}

/// GPU-time demanded before the end of the stream over the GPU-time there is, job by job.
fn load_inside(world: &Synthetic, days: u64) -> f64 {
    let end_ms = days * 86_400_000;
    let inside = |job: &TraceJob| {
        let left_ms = end_ms - job.submit_ms;
        job.total_gpu_milli() * u128::from(job.duration_ms.expect("run time").min(left_ms))
    };
    let demand: u128 = world.trace.jobs.iter().map(inside).sum();
    demand as f64 / (world.cluster.total_gpus() as f64 * 1000.0 * end_ms as f64)
}

#[test]
fn the_load_is_the_demand_that_can_run_inside_the_stream() {
    for profile in [SynthProfile::Mixed, SynthProfile::Training, SynthProfile::Sharing] {
        for (nodes, days, load) in [(40, 5, 0.7), (40, 28, 1.1), (300, 14, 0.9)] {
            let world = |seed| synth(&SynthConfig { seed, nodes, days, load, profile });
            let seeds = if nodes < 100 { 1..=24 } else { 1..=6 };
            let loads: Vec<f64> =
                seeds.map(|seed| load_inside(&world(seed).expect("world"), days.into())).collect();
            let count = loads.len() as f64;
            let mean = loads.iter().sum::<f64>() / count;
            let variance = loads.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (count - 1.0);
            let tolerance = SIGMAS * (variance / count).sqrt();
            let what = format!("{} {nodes} nodes {days} days", profile.name());
            assert!((mean - load).abs() < tolerance, "{what}: {mean} for {load}, +-{tolerance}");
            assert!(tolerance < load / 4.0, "{what}: +-{tolerance} could not tell");
        }
    }
}

fn shares_follow(what: &str, world: &Synthetic, stats: &TraceStats) {
    let (jobs, model) = (stats.jobs as f64, &world.model);
    let arrivals = stats.arrivals.as_ref().expect("arrivals");
    for (hour, share) in model.hour_of_day_share.iter().enumerate() {
        let count = arrivals.hour_of_day_share[hour] * jobs;
        binomial(&format!("{what} hour {hour}"), count, jobs, *share);
    }
    let weekend = (arrivals.day_of_week_share[5] + arrivals.day_of_week_share[6]) * jobs;
    binomial(&format!("{what} weekend"), weekend, jobs, 2.0 * 0.755 / 7.0);
    for (outcome, share) in [
        (RecordedOutcome::Failed, model.failed_share),
        (RecordedOutcome::Killed, model.killed_share),
    ] {
        let found = stats.outcomes.iter().find(|group| group.outcome == outcome);
        let count = found.map_or(0.0, |group| group.jobs as f64);
        binomial(&format!("{what} {outcome:?}"), count, jobs, share);
    }
    let queues = stats.queues.as_ref().expect("queues");
    assert_eq!((queues.count, queues.largest[0].name.as_str()), (15, "team-01"));
    binomial(
        &format!("{what} queue"),
        queues.largest[0].jobs as f64,
        jobs,
        model.largest_queue_share,
    );
    let estimates = stats.estimates.expect("estimates");
    binomial(
        &format!("{what} estimates"),
        estimates.estimated_share * jobs,
        jobs,
        model.estimated_share,
    );
    assert!(estimates.ratio_p50 > 1.0, "{what}: people say too much");
}

fn of_size<'t>(trace: &'t Trace, size: &SizeModel) -> Vec<&'t TraceJob> {
    let same = |job: &&TraceJob| {
        (job.pod_count, job.gpu_count, job.is_share())
            == (size.pods, size.gpus_per_pod, size.is_share)
    };
    trace.jobs.iter().filter(same).collect()
}

/// The sample's quantiles stand where the model's distribution function says, for completed jobs.
fn run_times_follow(what: &str, trace: &Trace, size: &SizeModel) {
    let jobs = of_size(trace, size);
    let what = format!("{what}, {} x {} GPUs", size.pods, size.gpus_per_pod);
    binomial(&what, jobs.len() as f64, trace.jobs.len() as f64, size.job_share);
    let completed = jobs.iter().filter(|job| job.outcome == RecordedOutcome::Completed);
    let seconds: Vec<f64> =
        completed.filter_map(|job| job.duration_ms).map(|ms| ms as f64 / 1000.0).collect();
    for quantile in [size.run_time_p50_s, size.run_time_p90_s, size.run_time_p99_s] {
        // Run times are rounded to seconds, so the half second above counts as below.
        let below = seconds.iter().filter(|s| **s <= quantile.floor()).count() as f64;
        let probability = size.probability_up_to(quantile.floor() + 0.5);
        binomial(&format!("{what} up to {quantile} s"), below, seconds.len() as f64, probability);
    }
}

#[test]
fn every_job_fits_the_cluster_it_was_made_for() {
    for nodes in [1, 2, 3, 7, 20, 150] {
        for profile in [SynthProfile::Mixed, SynthProfile::Training, SynthProfile::Sharing] {
            let config = SynthConfig { seed: 9, nodes, days: 14, load: 0.5, profile };
            let world = synth(&config).expect("world");
            assert_eq!(world.cluster.nodes.len(), nodes as usize);
            for job in &world.trace.jobs {
                let hosts = world.cluster.nodes.iter().filter(|node| {
                    let model = node.gpu_model.as_ref().expect("model");
                    let places = (node.gpu_count / job.gpu_count.max(1)) as usize;
                    places > 0
                        && node.cpu_milli >= job.cpu_milli
                        && node.memory_bytes >= job.memory_bytes
                        && (job.gpu_models.is_empty() || job.gpu_models.contains(model))
                });
                assert!(hosts.count() >= job.pod_count as usize, "{nodes} nodes: {job:?}");
            }
        }
    }
}

fn bytes(config: &SynthConfig) -> (Vec<u8>, Vec<u8>) {
    let world = synth(config).expect("world");
    let (mut jobs, mut nodes) = (Vec::new(), Vec::new());
    write_trace(&world.trace, &mut jobs).expect("jobs");
    write_cluster(&world.cluster, &mut nodes).expect("nodes");
    (jobs, nodes)
}

#[test]
fn the_same_settings_give_the_same_bytes_everywhere() {
    let small = |seed, profile| SynthConfig { seed, nodes: 40, days: 7, load: 0.7, profile };
    for (profile, golden) in [
        (SynthProfile::Mixed, "dc859c6525c5b0c7"),
        (SynthProfile::Training, "554a57b6e21891fc"),
        (SynthProfile::Sharing, "c8d5e7583839bc5a"),
    ] {
        let (jobs, nodes) = bytes(&small(7, profile));
        let hash: String = Sha256::new().chain_update(&jobs).chain_update(&nodes).finalize()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hash, golden, "{}", profile.name());
        assert_ne!(bytes(&small(8, profile)).0, jobs, "another seed gives other jobs");
    }
}

#[test]
fn impossible_settings_are_refused() {
    let good = SynthConfig { seed: 1, nodes: 10, days: 1, load: 0.5, profile: SynthProfile::Mixed };
    let cases = [
        ("nodes", SynthConfig { nodes: 0, ..good }),
        ("days", SynthConfig { days: 0, ..good }),
        ("days", SynthConfig { days: 4000, ..good }),
        ("load", SynthConfig { load: 0.0, ..good }),
        ("load", SynthConfig { load: f64::NAN, ..good }),
        ("load", SynthConfig { nodes: 100_000, days: 3650, load: 10.0, ..good }),
        ("days", SynthConfig { nodes: 1, load: 1e-9, ..good }),
    ];
    for (wanted, config) in cases {
        match synth(&config) {
            Err(TraceError::Synth { setting, .. }) => assert_eq!(setting, wanted),
            other => panic!("{config:?}: {:?}", other.map(|world| world.trace.jobs.len())),
        }
    }
}
