//! The times of a leadership, and the inequality that makes them safe.

use thiserror::Error;

/// For how long a lease holds, and when its holder stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTimes {
    /// Others may take the lease this long after they saw its last renewal.
    pub lease_ms: u64,
    /// The holder begins no write this long after it sent its last successful renewal.
    pub renew_deadline_ms: u64,
    /// Time between attempts to renew or to acquire.
    pub retry_ms: u64,
    /// A write that was begun is given up after this time, by us and by the server.
    pub write_timeout_ms: u64,
}

impl Default for LeaseTimes {
    /// The lease, deadline and retry of kube-scheduler, with writes of at most four seconds.
    fn default() -> Self {
        Self {
            lease_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
            write_timeout_ms: 4_000,
        }
    }
}

/// Terms under which two leaders could write at once, or none for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TermsError {
    /// A write could outlive the lease.
    #[error(
        "leader election: a write may start {renew_deadline_ms} ms after a renewal and take \
         {write_timeout_ms} ms, which, with 2% for clock drift, is more than the lease of \
         {lease_ms} ms: lengthen the lease or shorten the other two"
    )]
    WriteOutlivesLease {
        /// See [`LeaseTimes::renew_deadline_ms`].
        renew_deadline_ms: u64,
        /// See [`LeaseTimes::write_timeout_ms`].
        write_timeout_ms: u64,
        /// See [`LeaseTimes::lease_ms`].
        lease_ms: u64,
    },
    /// One lost renewal would end the leadership.
    #[error(
        "leader election: renewals every {retry_ms} ms leave no time for a second attempt before \
         the deadline of {renew_deadline_ms} ms: retry at least twice as often"
    )]
    NoSecondTry {
        /// See [`LeaseTimes::retry_ms`].
        retry_ms: u64,
        /// See [`LeaseTimes::renew_deadline_ms`].
        renew_deadline_ms: u64,
    },
}

impl LeaseTimes {
    /// Accepts terms that are safe.
    ///
    /// # Errors
    /// When a write could outlive the lease, or when there is no time to retry a renewal.
    pub fn checked(self) -> Result<Self, TermsError> {
        let Self { lease_ms, renew_deadline_ms, retry_ms, write_timeout_ms } = self;
        let needed = u128::from(renew_deadline_ms) + u128::from(write_timeout_ms);
        // Clocks of two machines may run apart by 2% of the lease.
        if needed + u128::from(lease_ms.div_ceil(50)) > u128::from(lease_ms) {
            return Err(TermsError::WriteOutlivesLease {
                renew_deadline_ms,
                write_timeout_ms,
                lease_ms,
            });
        }
        if u128::from(retry_ms) * 2 > u128::from(renew_deadline_ms) || retry_ms == 0 {
            return Err(TermsError::NoSecondTry { retry_ms, renew_deadline_ms });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_safe_or_refused() {
        let good = LeaseTimes::default();
        assert_eq!(good.checked(), Ok(good));
        let long_write = LeaseTimes { write_timeout_ms: 4_800, ..good };
        assert!(matches!(long_write.checked(), Err(TermsError::WriteOutlivesLease { .. })));
        let huge = LeaseTimes { renew_deadline_ms: u64::MAX, ..good };
        assert!(huge.checked().is_err());
        let lazy = LeaseTimes { retry_ms: 5_001, ..good };
        assert!(matches!(lazy.checked(), Err(TermsError::NoSecondTry { .. })));
    }
}
