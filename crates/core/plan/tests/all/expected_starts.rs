//! Expected starts: from run times that users state, and corrected by what earlier ones came to.

use dovetail_model::job::EstimateSource;
use dovetail_model::{Estimate, Job, Node, Snapshot};
use dovetail_plan::{Foresight, PastForecasts};

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

#[test]
fn forecasts_that_came_true_are_not_corrected() {
    let mut past = PastForecasts::default();
    for ms in 1..500 {
        past.came_true([Some(ms * 7_001), Some(ms * 7_001)], ms * 7_001);
    }
    let expected = [Some(1_234_567), Some(1_234_567)];
    assert_eq!(past.corrected(expected), expected);
}

#[test]
fn starts_that_came_twice_as_late_double_the_next_median() {
    let mut past = PastForecasts::default();
    for at in 0..100 {
        let after_ms = if at % 10 == 9 { 6_000_000 } else { 2_000_000 };
        past.came_true([Some(1_000_000), Some(2_000_000)], after_ms);
    }
    let [p50_ms, p90_ms] = past.corrected([Some(1_100_000), Some(2_200_000)]);
    assert_eq!(p50_ms, Some(2_200_000));
    assert_eq!(p90_ms, Some(6_600_000));
    assert_eq!(past.corrected([None, None]), [None, None]);
}
