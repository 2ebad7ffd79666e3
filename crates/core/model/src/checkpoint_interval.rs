//! How often a job should save its progress, by how often it is interrupted.

use crate::interruption::InterruptionCost;

/// A declared interval between checkpoints that loses much more than another one would.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalAdvice {
    pub declared_ms: u64,
    /// The interval that loses the least.
    pub best_ms: u64,
    /// Mean time that the job ran between two interruptions, in ms.
    pub between_ms: u64,
    /// Share of the running time that is lost with each of the two: to writing checkpoints, and to
    /// repeating work.
    pub lost_declared: f64,
    pub lost_best: f64,
}

/// Fewer interruptions say little of how often they come.
const LEAST_INTERRUPTIONS: u32 = 3;
/// Between half of the best interval and twice as much little is lost.
const FAR_OFF: u64 = 2;
/// Less than this share of the running time is not worth a change.
const LEAST_SAVED: f64 = 0.01;

impl InterruptionCost {
    /// What another interval between checkpoints would save a job that ran for `ran_ms` in all and
    /// was interrupted so many times meanwhile; `None` if its own is about right, if it saves its
    /// work when it is told to stop, or if it does not declare both the interval and the time to
    /// write a checkpoint.
    pub fn interval_advice(&self, ran_ms: u64, interruptions: u32) -> Option<IntervalAdvice> {
        let declared_ms = self.checkpoint_interval_ms.filter(|ms| *ms > 0)?;
        let writing_ms = self.checkpoint_cost_ms.filter(|ms| *ms > 0)?;
        if interruptions < LEAST_INTERRUPTIONS || self.save_on_notice_ms.is_some() {
            return None;
        }
        let between_ms = ran_ms / u64::from(interruptions);
        let best_ms = best_ms(writing_ms, between_ms)?;
        let is_far_off = declared_ms > best_ms.saturating_mul(FAR_OFF)
            || declared_ms.saturating_mul(FAR_OFF) < best_ms;
        let lost = |interval_ms| lost_share(interval_ms, writing_ms, between_ms);
        let (lost_declared, lost_best) = (lost(declared_ms), lost(best_ms));
        let is_worth_it = is_far_off && lost_declared - lost_best >= LEAST_SAVED;
        let advice = IntervalAdvice { declared_ms, best_ms, between_ms, lost_declared, lost_best };
        is_worth_it.then_some(advice)
    }
}

/// The interval that loses the least, in ms (J. T. Daly, A higher order estimate of the optimum
/// checkpoint interval for restart dumps, 2006, equation 37, after J. W. Young, 1974); `None` if
/// writing takes as long as the job runs between interruptions.
fn best_ms(writing_ms: u64, between_ms: u64) -> Option<u64> {
    let (writing, between) = (writing_ms as f64, between_ms as f64);
    if writing >= between {
        return None;
    }
    let ratio = writing / (2.0 * between);
    let best =
        (2.0 * writing * between).sqrt() * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - writing;
    Some((best as u64).max(1))
}

/// The share of the running time that is lost: a checkpoint in each interval, and on average half
/// of an interval and of the writing at each interruption. All of it at most.
fn lost_share(interval_ms: u64, writing_ms: u64, between_ms: u64) -> f64 {
    let (interval, writing) = (interval_ms as f64, writing_ms as f64);
    let round = interval + writing;
    (writing / round + round / (2.0 * between_ms.max(1) as f64)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    /// Expected time per time of work when interruptions come at random (Daly 2006, equation 20,
    /// without the time to restart, which no interval changes).
    fn expected(interval_ms: u64, writing_ms: u64, between_ms: u64) -> f64 {
        let (interval, writing) = (interval_ms as f64, writing_ms as f64);
        let between = between_ms as f64;
        between / interval * exp_minus_one((interval + writing) / between)
    }

    /// e^x − 1 by its series: the same on every machine.
    fn exp_minus_one(x: f64) -> f64 {
        let terms = (1..60).scan(1.0, |term, number| {
            *term *= x / f64::from(number);
            Some(*term)
        });
        terms.sum()
    }

    #[test]
    fn no_interval_loses_clearly_less_than_the_best() {
        for (writing_s, between_min) in [(5, 60), (20, 360), (60, 30), (120, 1_440), (300, 20)] {
            let (writing, between) = (writing_s * 1_000, between_min * MINUTE_MS);
            let best = best_ms(writing, between).expect("it can be written");
            let least = (1..20_000).map(|step| expected(step * between / 5_000, writing, between));
            let least = least.fold(f64::INFINITY, f64::min);
            let found = expected(best, writing, between);
            assert!(found <= least * 1.002, "{writing_s} s, {between_min} min: {found} {least}");
        }
        assert_eq!(best_ms(MINUTE_MS, MINUTE_MS), None);
    }

    #[test]
    fn only_an_interval_that_is_far_off_and_costs_much_gets_advice() {
        let cost = |interval_s: u64, writing_s: u64| InterruptionCost {
            checkpoint_interval_ms: Some(interval_s * 1_000),
            checkpoint_cost_ms: Some(writing_s * 1_000),
            ..InterruptionCost::default()
        };
        let ran_ms = 20 * 60 * MINUTE_MS;
        // Interrupted every four hours: the best is about 12 minutes.
        let advice = cost(14_400, 20).interval_advice(ran_ms, 5).expect("advice");
        assert_eq!(advice.between_ms, 240 * MINUTE_MS);
        assert!((12..14).contains(&(advice.best_ms / MINUTE_MS)), "{advice:?}");
        assert!(advice.lost_declared > 0.5 && advice.lost_best < 0.06, "{advice:?}");
        assert!(cost(60, 20).interval_advice(ran_ms, 5).is_some());
        for (interval_s, writing_s, interruptions) in [
            (1_000, 20, 5),  // about right
            (14_400, 20, 2), // too few to say
            (14_400, 0, 5),  // how long writing takes is not declared
            (0, 20, 5),
            (54, 1, 5), // far off, but cheap
        ] {
            let advice = cost(interval_s, writing_s).interval_advice(ran_ms, interruptions);
            assert_eq!(advice, None, "{interval_s} {writing_s} {interruptions}");
        }
    }
}
