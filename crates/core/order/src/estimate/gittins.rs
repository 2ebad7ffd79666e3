//! How soon a job may be done for the time it is given: the Gittins index.
//!
//! Of a job that has run for some time and may run on for any of several lengths, the index is the
//! best ratio, over all further times, of the chance to end within that time to the time that this
//! takes on average. Serving the greatest index first gives the least mean time in the system of a
//! single server (Gittins 1989; Scully, Harchol-Balter, Scheller-Wolf, SIGMETRICS 2018). What is
//! kept here is its inverse, a time: the smaller goes first. Where all that is known is that the
//! job ends at a given time, this is what remains; where run times have a heavy tail, it grows with
//! the time that the job has run.

use super::buckets::step_ms;

/// How many lengths of run times are told apart.
pub(super) const BUCKETS: usize = 80;
/// The first one: half a minute.
const FIRST_MS: u64 = 30_000;

/// Times of run times between one length and the next, in ms.
#[derive(Clone, Debug)]
pub struct Lengths([u64; BUCKETS]);

impl Lengths {
    /// The lengths, each a quarter of an octave longer than the one before.
    pub fn new() -> Self {
        let edge = |bucket: usize| match bucket {
            0 => 0,
            _ => step_ms(FIRST_MS, bucket - 1),
        };
        Self(std::array::from_fn(edge))
    }

    /// The bucket of a run time; what is longer than all of them is in the last.
    pub fn of(&self, ms: u64) -> usize {
        self.0.partition_point(|edge_ms| *edge_ms <= ms) - 1
    }

    /// Where the next bucket begins; `None` behind the last.
    pub fn end_ms(&self, bucket: usize) -> Option<u64> {
        self.0.get(bucket + 1).copied()
    }

    /// The inverse index at the beginning of each bucket, in ms, from the chance that a job which
    /// reaches a bucket ends in it.
    pub fn inverse_index_ms(&self, hazards: &[f64; BUCKETS]) -> [u64; BUCKETS] {
        let mut inverse = [0; BUCKETS];
        for (from, inverse) in inverse.iter_mut().enumerate() {
            *inverse = self.inverse_from(&hazards[from..], from);
        }
        inverse
    }

    fn inverse_from(&self, hazards: &[f64], from: usize) -> u64 {
        let (mut left, mut spent_ms, mut best_ms) = (1.0, 0.0, f64::MAX);
        for (ahead, hazard) in hazards.iter().enumerate() {
            let bucket = from + ahead;
            // Behind the last edge there is one more length, as long as all before it.
            let end_ms = self.end_ms(bucket).unwrap_or(2 * self.0[BUCKETS - 1]);
            let width_ms = (end_ms - self.0[bucket]) as f64;
            let after = left * (1.0 - hazard);
            // Ends spread evenly over a bucket.
            spent_ms += width_ms * (left + after) / 2.0;
            left = after;
            best_ms = f64::min(best_ms, spent_ms / f64::max(1.0 - left, 1e-12));
            if left < 1e-6 {
                break;
            }
        }
        f64::min(best_ms, u64::MAX as f64 / 2.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_each_other_without_gaps() {
        let lengths = Lengths::new();
        assert_eq!(lengths.of(0), 0);
        for bucket in 0..BUCKETS - 1 {
            let end_ms = lengths.end_ms(bucket).expect("not the last");
            assert_eq!((lengths.of(end_ms - 1), lengths.of(end_ms)), (bucket, bucket + 1));
        }
        assert_eq!(lengths.of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn of_two_lengths_the_short_one_is_tried_and_then_the_long_one_remains() {
        let lengths = Lengths::new();
        let (short, long) = (5, 30);
        let mut hazards = [0.0; BUCKETS];
        (hazards[short], hazards[long]) = (0.5, 1.0);
        let inverse = lengths.inverse_index_ms(&hazards);
        let edge = |bucket: usize| lengths.0[bucket] as f64;
        // Half of the jobs end in the middle of the short bucket; the others take all of it.
        let width = edge(short + 1) - edge(short);
        let try_short = (edge(short) + width * 0.75) / 0.5;
        assert!((inverse[0] as f64 - try_short).abs() < 2.0, "{} {try_short}", inverse[0]);
        // Whoever did not end there runs to the middle of the long one.
        let remains = (edge(long) + edge(long + 1)) / 2.0 - edge(short + 1);
        assert!((inverse[short + 1] as f64 - remains).abs() < 2.0);
    }

    /// The definition, with every time to stop tried on a list of equally likely lengths.
    #[test]
    fn the_index_is_the_best_of_all_times_to_stop() {
        let lengths = Lengths::new();
        let middle = |bucket: usize| (lengths.0[bucket] + lengths.0[bucket + 1]) as f64 / 2.0;
        let ends = [3_usize, 3, 8, 14, 14, 14, 15, 40, 41];
        let mut hazards = [0.0; BUCKETS];
        for (bucket, hazard) in hazards.iter_mut().enumerate() {
            let reach = ends.iter().filter(|end| **end >= bucket).count();
            let here = ends.iter().filter(|end| **end == bucket).count();
            *hazard = if reach > 0 { here as f64 / reach as f64 } else { 1.0 };
        }
        let inverse = lengths.inverse_index_ms(&hazards);
        for (from, inverse) in inverse.into_iter().enumerate().take(42) {
            let done = lengths.0[from] as f64;
            let left: Vec<usize> = ends.iter().copied().filter(|end| *end >= from).collect();
            let ratio = |stop: usize| {
                let stop_at = lengths.0[stop + 1] as f64;
                let ended = left.iter().filter(|end| **end <= stop).count() as f64;
                let spent: f64 = left
                    .iter()
                    .map(|end| if *end <= stop { middle(*end) } else { stop_at } - done)
                    .sum();
                if ended > 0.0 { spent / ended } else { f64::MAX }
            };
            let best = (from..BUCKETS - 1).map(ratio).fold(f64::MAX, f64::min);
            assert!((inverse as f64 / best - 1.0).abs() < 1e-3, "{from}: {inverse} {best}");
        }
    }
}
