//! How often one address may ask.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So many questions at once.
const BURST: u32 = 40;
/// So many a second in the long run.
const PER_SECOND: u32 = 10;
/// More addresses are not told apart: further ones share one account.
const MOST_ADDRESSES: usize = 1024;

/// An account for each address that asked lately.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    accounts: BTreeMap<IpAddr, RateAllowance>,
    of_all_others: Option<RateAllowance>,
}

#[derive(Clone, Copy, Debug)]
struct RateAllowance {
    /// Thousandths of a question that may be asked.
    left_milli: u64,
    at: Instant,
}

impl Rates {
    /// Whether one more question may be asked now; if not, when.
    pub(crate) fn take(&mut self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        if !self.accounts.contains_key(&address) && self.accounts.len() >= MOST_ADDRESSES {
            // Who has asked nothing for long is known no better than who never did.
            self.accounts.retain(|_, account| !account.is_full(now));
        }
        let fresh = RateAllowance { left_milli: u64::from(BURST) * 1000, at: now };
        let is_known = self.accounts.contains_key(&address);
        let account = match is_known || self.accounts.len() < MOST_ADDRESSES {
            true => self.accounts.entry(address).or_insert(fresh),
            false => self.of_all_others.get_or_insert(fresh),
        };
        account.take(now)
    }
}

impl RateAllowance {
    fn at(&self, now: Instant) -> u64 {
        let ms = now.saturating_duration_since(self.at).as_millis();
        // A question a second is a thousandth each ms.
        let earned = u64::try_from(ms).unwrap_or(u64::MAX).saturating_mul(u64::from(PER_SECOND));
        self.left_milli.saturating_add(earned).min(u64::from(BURST) * 1000)
    }

    fn is_full(&self, now: Instant) -> bool {
        self.at(now) == u64::from(BURST) * 1000
    }

    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let left = self.at(now);
        let Some(rest) = left.checked_sub(1000) else {
            let ms = (1000 - left).div_ceil(u64::from(PER_SECOND));
            return Err(Duration::from_millis(ms));
        };
        *self = Self { left_milli: rest, at: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_waits_and_nobody_else_does() {
        let (mut rates, begin) = (Rates::default(), Instant::now());
        let (greedy, modest) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let answered = (0..100).filter(|_| rates.take(greedy, begin).is_ok()).count();
        assert_eq!(answered, BURST as usize);
        assert_eq!(rates.take(greedy, begin), Err(Duration::from_millis(100)));
        assert_eq!(rates.take(modest, begin), Ok(()));
        // Refused questions cost nothing: after ten seconds the account is as full as it can be.
        let later = begin + Duration::from_secs(10);
        let answered = (0..100).filter(|_| rates.take(greedy, later).is_ok()).count();
        assert_eq!(answered, BURST as usize);
    }

    #[test]
    fn many_addresses_take_no_more_memory() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let of = |number: u32| IpAddr::from(number.to_be_bytes());
        let answered = (0..5000).filter(|number| rates.take(of(*number), now).is_ok()).count();
        assert_eq!(rates.accounts.len(), MOST_ADDRESSES);
        assert_eq!(answered, MOST_ADDRESSES + BURST as usize);
        // Later those that were quiet are forgotten.
        let later = now + Duration::from_secs(60);
        assert_eq!(rates.take(of(9000), later), Ok(()));
        assert_eq!(rates.accounts.len(), 1);
    }
}
