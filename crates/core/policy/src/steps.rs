//! How many pods of each kind an amount carries, looked up instead of divided.

/// Amounts of a resource are told apart only where one more pod of some kind fits.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Ascending; an amount is at the step of how many of these it reaches.
    thresholds: Vec<i64>,
    /// Steps at or below the lower end of each bucket of the amount, so that few are compared.
    first_step: Vec<u16>,
    bucket: i64,
    /// Pods by step and kind.
    pods: Vec<u8>,
    kinds: usize,
}

/// Buckets of the amount.
const BUCKETS: i64 = 1 << 12;
/// Most thresholds: steps are numbers of 16 bits.
const MOST_THRESHOLDS: usize = 60_000;

impl Steps {
    /// `asked` is what a pod of each kind asks for; more than `deepest` pods are not told apart.
    pub(crate) fn new(asked: &[i64], deepest: u8) -> Self {
        let multiples = |amount: &i64| {
            let amount = *amount;
            (1..=i64::from(deepest)).map(move |pods| amount.saturating_mul(pods))
        };
        let mut thresholds: Vec<i64> =
            asked.iter().filter(|amount| **amount > 0).flat_map(multiples).collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        thresholds.truncate(MOST_THRESHOLDS);
        let last = thresholds.last().copied().unwrap_or(0);
        let bucket = last / BUCKETS + 1;
        let below = |amount: i64| thresholds.partition_point(|step| *step <= amount) as u16;
        let first_step = (0..=last / bucket).map(|number| below(number * bucket)).collect();
        let carried = |amount: i64, asked: &i64| match *asked {
            0 => u8::MAX,
            asked if amount / asked >= i64::from(deepest) => u8::MAX,
            asked => (amount / asked) as u8,
        };
        let amounts = std::iter::once(&0).chain(&thresholds);
        let pods = amounts.flat_map(|amount| asked.iter().map(|asked| carried(*amount, asked)));
        Self { pods: pods.collect(), first_step, bucket, kinds: asked.len(), thresholds }
    }

    #[inline]
    pub(crate) fn step(&self, amount: i64) -> u16 {
        if amount <= 0 {
            return 0;
        }
        let bucket = usize::try_from(amount / self.bucket).unwrap_or(usize::MAX);
        let Some(first) = self.first_step.get(bucket) else { return self.thresholds.len() as u16 };
        let mut step = usize::from(*first);
        while self.thresholds.get(step).is_some_and(|next| *next <= amount) {
            step += 1;
        }
        step as u16
    }

    /// How many pods of each kind an amount at this step carries; [`u8::MAX`] is any number.
    #[inline]
    pub(crate) fn pods(&self, step: u16) -> &[u8] {
        &self.pods[usize::from(step) * self.kinds..][..self.kinds]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_a_division_says() {
        let asked = [0, 3, 7, 1000, i64::MAX / 2];
        let steps = Steps::new(&asked, 16);
        for amount in (0..300).chain([999, 1000, 1999, 16_000, i64::MAX]) {
            let pods = steps.pods(steps.step(amount));
            for (asked, pods) in asked.iter().zip(pods) {
                let fit = if *asked == 0 { i64::MAX } else { amount / asked };
                let expected = if fit >= 16 { u8::MAX } else { fit as u8 };
                assert_eq!(*pods, expected, "{amount} over {asked}");
            }
        }
    }
}
