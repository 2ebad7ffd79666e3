//! GPU-time: exact sums whatever the period, causes exact at every change and never older than the
//! period.

use dovetail_capacity::{ClockError, UsageIntegral};
use dovetail_cases::cases;
use dovetail_model::FreeCause::*;
use dovetail_model::{Event, FreeCause, JobId};
use proptest::prelude::*;

use crate::oracle::judge;
use crate::properties::{Reader, happen, random_world};
use crate::world::{cluster, gang, node, submit, whole};

fn check_run(draw: &[u32]) -> Result<(), TestCaseError> {
    let mut draw = Reader(draw.iter());
    let mut engine = random_world(&mut draw);
    let (mut exact, mut sampled) = (
        UsageIntegral::new(&engine, 0, 0).expect("in order"),
        UsageIntegral::new(&engine, 0, 500).expect("in order"),
    );
    let (mut next_job, mut now_ms) = (0, 0);
    let mut expected = (0i128, 0i128, 0i128);
    let mut free: std::collections::BTreeMap<(String, FreeCause), i128> = Default::default();
    for _ in 0..12 {
        let later_ms = now_ms + u64::from(draw.below(3)) * 200;
        let verdict = judge(&mut engine);
        let elapsed = i128::from(later_ms - now_ms);
        expected.0 += i128::from(verdict.installed) * elapsed;
        expected.1 += i128::from(verdict.unavailable) * elapsed;
        expected.2 += i128::from(verdict.allocated) * elapsed;
        for (key, milli) in verdict.free {
            *free.entry(key).or_default() += i128::from(milli) * elapsed;
        }
        now_ms = later_ms;
        exact.advance(&mut engine, now_ms).expect("in order");
        sampled.advance(&mut engine, now_ms).expect("in order");
        happen(&mut engine, &mut draw, &mut next_job, now_ms);
    }
    let (usage, sampled) = (exact.usage(), sampled.usage());
    prop_assert_eq!(usage.check(), Ok(()));
    prop_assert_eq!(sampled.check(), Ok(()));
    for usage in [&usage, &sampled] {
        let total = &usage.total_gpu_milli_ms;
        prop_assert_eq!((total.installed, total.unavailable, total.allocated), expected);
    }
    for (model, states) in &usage.models_gpu_milli_ms {
        for cause in FreeCause::ALL {
            let expected = free.get(&(model.clone(), cause)).copied().unwrap_or(0);
            prop_assert_eq!(states.free_by(cause), expected, "{} {}", model, cause.name());
        }
        let other = &sampled.models_gpu_milli_ms[model];
        prop_assert_eq!(states.free, other.free);
        prop_assert_eq!(&states.allocated_by_queue, &other.allocated_by_queue);
        for cause in [DrainingOrCordoned, Starting] {
            prop_assert_eq!(states.free_by(cause), other.free_by(cause));
        }
    }
    prop_assert!(sampled.cause_samples <= usage.cause_samples);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(500) })]

    #[test]
    fn gpu_time_is_the_sum_over_moments(draw in prop::collection::vec(any::<u32>(), 60..400)) {
        check_run(&draw)?;
    }
}

#[test]
fn a_judgement_is_never_older_than_the_period() {
    let mut engine = cluster(vec![node("n", 4)]);
    let mut account = UsageIntegral::new(&engine, 0, 1_000).expect("in order");
    submit(&mut engine, gang(1, whole(3), 1));
    account.advance(&mut engine, 10).expect("in order");
    // From 10 ms on two GPUs wait and one is free; the judgement of 0 ms holds until 1,000 ms at
    // most.
    engine.step(Event::Tick, 10).expect("in order");
    submit(&mut engine, gang(2, whole(2), 1));
    account.advance(&mut engine, 900).expect("in order");
    engine.step(Event::Tick, 900).expect("in order");
    // Nothing happens for a day: the state at 900 ms is judged, and holds from there.
    account.advance(&mut engine, 86_400_000).expect("in order");
    let usage = account.usage();
    assert_eq!(usage.check(), Ok(()));
    let total = &usage.total_gpu_milli_ms;
    assert_eq!(total.free_by(NoDemand), 900 * 1_000);
    assert_eq!(total.free_by(Fragmented), (86_400_000 - 900) * 1_000);
    assert_eq!(total.allocated_by_queue[""], 86_400_000 * 3_000);
    assert_eq!(usage.cause_samples, 2);
}

#[test]
fn what_opens_within_a_period_is_judged_at_once() {
    let mut engine = cluster(vec![node("n", 1)]);
    submit(&mut engine, gang(1, whole(1), 1));
    let mut account = UsageIntegral::new(&engine, 0, 1_000_000).expect("in order");
    account.advance(&mut engine, 10).expect("in order");
    engine.step(Event::ended(JobId(1)), 10).expect("it runs");
    account.advance(&mut engine, 30).expect("in order");
    let total = account.usage().total_gpu_milli_ms;
    assert_eq!((total.allocated, total.free_by(NoDemand)), (10_000, 20_000));
}

#[test]
fn time_out_of_order_is_refused() {
    let mut engine = cluster(vec![node("n", 1)]);
    let mut account = UsageIntegral::new(&engine, 0, 0).expect("in order");
    account.advance(&mut engine, 10).expect("in order");
    let back = account.advance(&mut engine, 9);
    assert_eq!(back, Err(ClockError::WentBack { now_ms: 10, told_ms: 9 }));
    engine.step(Event::Tick, 20).expect("in order");
    let late = account.advance(&mut engine, 20);
    assert_eq!(late, Err(ClockError::EngineAhead { now_ms: 10, engine_ms: 20 }));
}
