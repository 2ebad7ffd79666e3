//! Expected starts: from run times that users state, and corrected by what earlier ones came to.

use dovetail_model::job::EstimateSource;
use dovetail_model::{Estimate, Event, Job, JobId, Node, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{
    Engine, Foresight, OctaveCorrection, PastForecasts, PolicySpec, StartCorrections,
};

use crate::by_hand::{World, asks, placed, whole};

/// A node is free when the job on it ends, of which both quantiles of its run time are stated.
#[test]
fn starts_have_the_quantiles_that_run_times_have() {
    let (p50_ms, p90_ms) = (3_600_000, 10_000_000);
    let nodes = vec![Node::plain("n0", 64_000, 1_000, 8, "H100")];
    let mut world = World::of(&Snapshot { nodes, ..Snapshot::default() });
    let stated = |job: &mut Job| {
        job.estimate = Some(Estimate { p50_ms, p90_ms, source: EstimateSource::User });
    };
    assert_eq!(placed(&world.submit(stated, asks(whole(8)))).len(), 1);
    assert_eq!(placed(&world.submit(stated, asks(whole(8)))).len(), 0);
    let foresight = Foresight { draws: 2_000, ..Foresight::default() };
    let starts = foresight.expected_starts(&world.engines[0]);
    let [start] = starts.as_slice() else { panic!("{starts:?}") };
    for (expected, stated) in [(start.p50_ms, p50_ms), (start.p90_ms, p90_ms)] {
        let part = expected.expect("it is known") as f64 / stated as f64;
        // The spread of a quantile of so many draws.
        assert!((0.92..1.08).contains(&part), "{start:?}");
    }
}

/// A job that needs all GPUs starts when the last of eight jobs ends. They came together, so they
/// run for about as long as each other: the last of them is no later than any.
#[test]
fn jobs_of_a_burst_run_for_about_as_long() {
    let (p50_ms, p90_ms) = (3_600_000, 10_000_000);
    let nodes = vec![Node::plain("n0", 64_000, 1_000, 8, "H100")];
    let mut world = World::of(&Snapshot { nodes, ..Snapshot::default() });
    let stated = |job: &mut Job| {
        job.estimate = Some(Estimate { p50_ms, p90_ms, source: EstimateSource::User });
    };
    for _ in 0..8 {
        assert_eq!(placed(&world.submit(stated, asks(whole(1)))).len(), 1);
    }
    assert_eq!(placed(&world.submit(stated, asks(whole(8)))).len(), 0);
    let foresight = Foresight { draws: 500, ..Foresight::default() };
    let starts = foresight.expected_starts(&world.engines[0]);
    let [start] = starts.as_slice() else { panic!("{starts:?}") };
    for (expected, stated) in [(start.p50_ms, p50_ms), (start.p90_ms, p90_ms)] {
        let part = expected.expect("it is known") as f64 / stated as f64;
        assert!((0.85..1.15).contains(&part), "{start:?}");
    }
}

/// What is drawn for a burst does not change when its first job ends, nor with a restart.
#[test]
fn the_plays_of_a_burst_stay_the_same_when_its_first_job_ends() {
    let nodes = vec![Node::plain("n0", 64_000, 1_000, 8, "H100")];
    let mut world = World::of(&Snapshot { nodes, ..Snapshot::default() });
    let stated = |job: &mut Job| {
        let (p50_ms, p90_ms) = (3_600_000, 10_000_000);
        job.estimate = Some(Estimate { p50_ms, p90_ms, source: EstimateSource::User });
    };
    for _ in 0..2 {
        assert_eq!(placed(&world.submit(stated, asks(whole(1)))).len(), 1);
    }
    assert_eq!(placed(&world.submit(stated, asks(whole(8)))).len(), 0);
    world.now_ms = 600_000;
    world.step(Event::Tick);
    let plays = |engine: &Engine| -> Vec<Vec<(JobId, u64)>> {
        (0..8).map(|draw| Foresight::default().play_once(engine, draw).starts).collect()
    };
    // Both jobs end at the same time in a play: one of them says as much as both.
    let before = plays(&world.engines[0]);
    assert!(before.iter().all(|starts| matches!(starts.as_slice(), [(JobId(3), _)])), "{before:?}");
    world.end(1);
    assert_eq!(plays(&world.engines[0]), before);
    let config = EngineConfig { policy: PolicySpec::named("best-fit"), ..EngineConfig::default() };
    let snapshot = world.engines[0].snapshot();
    let restored = Engine::new(config, &snapshot).expect("its own snapshot");
    assert_eq!(restored.snapshot().bursts, snapshot.bursts);
    assert_eq!(plays(&restored), before);
}

/// A forecast of a job that starts so long after it.
fn came_true(past: &mut PastForecasts, job: u64, expected_ms: [Option<u64>; 2], after_ms: u64) {
    past.forecast(vec![(JobId(job), expected_ms)], 0);
    past.started(JobId(job), after_ms);
}

#[test]
fn forecasts_that_came_true_are_not_corrected() {
    let mut past = PastForecasts::default();
    for job in 1..500 {
        let ms = job * 7_001;
        came_true(&mut past, job, [Some(ms), Some(ms)], ms);
    }
    let expected = [Some(1_234_567), Some(1_234_567)];
    assert_eq!(past.corrections(10_000_000).corrected(expected), expected);
}

#[test]
fn starts_that_came_twice_as_late_double_the_next_median() {
    let mut past = PastForecasts::default();
    for job in 0..100 {
        let after_ms = if job % 10 == 9 { 6_000_000 } else { 2_000_000 };
        came_true(&mut past, job, [Some(1_000_000), Some(2_000_000)], after_ms);
    }
    let corrections = past.corrections(6_000_000);
    let [p50_ms, p90_ms] = corrections.corrected([Some(1_100_000), Some(2_200_000)]);
    assert_eq!(p50_ms, Some(2_200_000));
    // Nine of ten started after twice the time, at most one tenth after six times: the 90th
    // percentile of the ratios to the expected one is 1.
    assert_eq!(p90_ms, Some(2_200_000));
    assert_eq!(corrections.corrected([None, None]), [None, None]);
}

/// Earlier versions also learned factors that make the 90th percentile earlier.
#[test]
fn no_stored_correction_makes_a_90th_percentile_earlier() {
    let stored = OctaveCorrection { octave: 19, p50_permille: 2_000, p90_permille: 500 };
    let corrections = StartCorrections(vec![stored]);
    let corrected = corrections.corrected([Some(1_000_000), Some(4_000_000)]);
    assert_eq!(corrected, [Some(2_000_000), Some(4_000_000)]);
}

/// Three of ten came true by their median: that may be chance.
#[test]
fn a_median_is_corrected_only_where_few_or_most_came_true_by_it() {
    let expected = [Some(1_000_000), Some(4_000_000)];
    let corrected = |came_true_in_time: u64| {
        let mut past = PastForecasts::default();
        for job in 0..100 {
            let after_ms = if job < came_true_in_time { 500_000 } else { 2_000_000 };
            came_true(&mut past, job, expected, after_ms);
        }
        past.corrections(2_000_000).corrected(expected)
    };
    assert_eq!(corrected(10), [Some(2_000_000), expected[1]]);
    assert_eq!(corrected(30), expected);
    assert_eq!(corrected(70), expected);
    // The 90th percentile never gets earlier.
    assert_eq!(corrected(90), [Some(500_000), expected[1]]);
}

/// Half of the jobs start when they were expected to. The others are still pending after four times
/// as long: those that started do not stand for all.
#[test]
fn pending_jobs_count_for_as_long_as_they_were_seen() {
    let mut past = PastForecasts::default();
    for job in 0..50 {
        came_true(&mut past, job, [Some(1_000_000), Some(1_000_000)], 1_000_000);
    }
    let expected = [Some(1_000_000), Some(1_000_000)];
    assert_eq!(past.corrections(4_000_000).corrected(expected), expected);
    for job in 50..100 {
        past.forecast(vec![(JobId(job), expected)], 0);
    }
    assert_eq!(past.corrections(4_000_000).corrected(expected), [Some(1_000_000), Some(4_000_000)]);
    // They leave without a start: how long they were seen no longer grows.
    (50..100).for_each(|job| past.left(JobId(job), 5_000_000));
    assert_eq!(past.corrections(9_000_000).corrected(expected), [Some(1_000_000), Some(5_000_000)]);
}

/// The next leader has no forecasts yet, and corrects by what the last one learned.
#[test]
fn corrections_outlive_the_forecasts_that_they_were_learned_from() {
    let mut past = PastForecasts::default();
    let expected = [Some(1_000_000), Some(1_000_000)];
    (0..50).for_each(|job| came_true(&mut past, job, expected, 3_000_000));
    let mut next = PastForecasts::after(past.corrections(0));
    assert_eq!(next.corrections(0).corrected(expected), [Some(3_000_000), Some(3_000_000)]);
    (0..50).for_each(|job| came_true(&mut next, job, expected, 1_000_000));
    assert_eq!(next.corrections(0).corrected(expected), expected);
}
