//! Run times in buckets: four to an octave.

/// Powers of the fourth root of two, in thousandths.
const QUARTERS: [u64; 4] = [1_000, 1_189, 1_414, 1_682];

/// Where a step ends, in ms, of steps of which the first ends at `first_ms`.
pub(super) const fn step_ms(first_ms: u64, step: usize) -> u64 {
    (first_ms * QUARTERS[step % 4] / 1_000) << (step / 4)
}

/// How many buckets of estimates there are, from a second on; the last one, from 160 days, has no
/// upper bound.
pub(super) const BUCKETS: usize = 96;

/// The longest run time of a bucket, in ms.
pub(super) fn upper_ms(bucket: usize) -> u64 {
    step_ms(1_000, bucket)
}

/// The shortest run time beyond a bucket, in ms; `None` for the last one.
pub(super) fn beyond_ms(bucket: usize) -> Option<u64> {
    (bucket < BUCKETS - 1).then(|| upper_ms(bucket) + 1)
}

/// The bucket of a run time.
pub(super) fn of(run_ms: u64) -> usize {
    let octave = (run_ms / 1_000).checked_ilog2().unwrap_or(0) as usize;
    let first = (4 * octave).min(BUCKETS - 1);
    (first..BUCKETS - 1).find(|bucket| run_ms <= upper_ms(*bucket)).unwrap_or(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_time_is_in_the_first_bucket_that_is_long_enough() {
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(of(upper_ms(bucket)), bucket);
            assert_eq!(of(upper_ms(bucket) + 1), bucket + 1);
            assert_eq!(beyond_ms(bucket).map(of), Some(bucket + 1));
        }
        assert_eq!(beyond_ms(BUCKETS - 1), None);
        assert_eq!((of(0), of(u64::MAX)), (0, BUCKETS - 1));
    }
}
