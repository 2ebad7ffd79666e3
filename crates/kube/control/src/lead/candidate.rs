//! One candidate for the leadership, as a state machine without clock and without network.
//!
//! Time is the candidate's own monotonic clock, in milliseconds; clocks of two machines are never
//! compared, and the times written into the lease are for people. What makes it safe:
//!
//! - The holder counts from the moment it *sent* its last successful renewal; others count from the
//!   moment they *received* the answer that first showed it. So they count later, whatever the
//!   network did.
//! - The holder begins no write after `renew_deadline`, and no write lives longer than
//!   `write_timeout`; together they are shorter than the lease ([`LeaseTimes::checked`]).
//! - Who acquires waits `write_timeout` once more, then reads the world anew, then writes: what a
//!   slow server still did for the one before is seen.
//! - Every acquisition raises `leaseTransitions`, also that of a lease one held before. It is the
//!   epoch, written into every bind.

use super::Permit;
use super::times::LeaseTimes;

/// What a lease says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseRecord {
    /// Who holds it; empty: nobody.
    pub holder: String,
    /// For how long after a renewal.
    pub lease_ms: u64,
    /// How often it was acquired.
    pub transitions: u64,
}

/// A lease in the server, with the version for optimistic locking.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    /// What it says.
    pub record: LeaseRecord,
    /// `resourceVersion`.
    pub version: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Read the lease and tell [`Candidate::read`].
    Read,
    /// Write the lease (replace this version, or create it) and tell the result.
    Write {
        /// What it shall say.
        record: LeaseRecord,
        /// The version it replaces; `None` creates.
        version: Option<String>,
    },
    /// Ask again at this time.
    Wait {
        /// Own clock.
        until_ms: u64,
    },
}

/// Where a candidate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionPhase {
    /// Somebody else leads, or nobody.
    Following,
    /// It holds the lease and waits for what the one before may still have on its way.
    Settling {
        /// Own clock.
        until_ms: u64,
    },
    /// It must read the world anew, then call [`Candidate::relisted`].
    Relisting { epoch: u64 },
    /// It may write.
    Leading { epoch: u64 },
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    identity: String,
    terms: LeaseTimes,
    seen: Option<ObservedLease>,
    /// Greatest epoch seen. Something is known if the lease has ever been there.
    top_epoch: Option<u64>,
    tenure: Option<Tenure>,
    next_ms: u64,
}

/// What the server last showed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ObservedLease {
    lease: Option<Lease>,
    /// When it was first seen like this.
    since_ms: u64,
    /// Whether it may be acted upon, or has to be read again.
    fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tenure {
    epoch: u64,
    /// When the last successful renewal was sent.
    renewed_ms: u64,
    settles_ms: u64,
    relisted: bool,
}

impl Candidate {
    /// A candidate of this name, which no other process may ever have.
    pub fn new(identity: String, terms: LeaseTimes) -> Self {
        Self { identity, terms, seen: None, top_epoch: None, tenure: None, next_ms: 0 }
    }

    /// Whether a write may begin now, and until when it must be over.
    pub fn permit(&self, now_ms: u64) -> Option<Permit> {
        let tenure = self.tenure.filter(|tenure| tenure.relisted)?;
        (now_ms < self.last_start_ms(tenure)).then(|| Permit {
            epoch: tenure.epoch,
            deadline_ms: now_ms.saturating_add(self.terms.write_timeout_ms),
        })
    }

    /// Where it stands.
    pub fn phase(&self, now_ms: u64) -> ElectionPhase {
        match self.tenure.filter(|tenure| now_ms < self.last_start_ms(*tenure)) {
            None => ElectionPhase::Following,
            Some(tenure) if now_ms < tenure.settles_ms => {
                ElectionPhase::Settling { until_ms: tenure.settles_ms }
            }
            Some(Tenure { epoch, relisted: false, .. }) => ElectionPhase::Relisting { epoch },
            Some(Tenure { epoch, .. }) => ElectionPhase::Leading { epoch },
        }
    }

    /// Who holds the lease, as far as was seen.
    pub fn holder(&self) -> Option<&str> {
        let lease = self.seen.as_ref()?.lease.as_ref()?;
        Some(&lease.record.holder)
    }

    /// What to do now. The times at which an answer was asked for and came are told with it.
    pub fn next(&mut self, now_ms: u64) -> ElectionStep {
        if self.tenure.is_some_and(|tenure| now_ms >= self.last_start_ms(tenure)) {
            self.tenure = None;
        }
        if now_ms < self.next_ms {
            return ElectionStep::Wait { until_ms: self.next_ms };
        }
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.fresh) else {
            return ElectionStep::Read;
        };
        let Some(lease) = &seen.lease else {
            // Whoever held the lease when it was deleted may not have noticed yet.
            let free_ms = seen.since_ms.saturating_add(self.terms.lease_ms);
            if self.top_epoch.is_some() && now_ms < free_ms {
                return self.read_again(now_ms, free_ms);
            }
            let epoch = self.top_epoch.map_or(0, |top| top.saturating_add(1));
            return ElectionStep::Write { record: self.record(epoch), version: None };
        };
        let record = &lease.record;
        let version = Some(lease.version.clone());
        if let Some(tenure) = self.tenure {
            return ElectionStep::Write { record: self.record(tenure.epoch), version };
        }
        let free_ms = seen.since_ms.saturating_add(record.lease_ms);
        let free = record.holder.is_empty() || record.holder == self.identity || now_ms >= free_ms;
        if !free {
            return self.read_again(now_ms, free_ms);
        }
        // A lease that was deleted and made anew may count from zero.
        let last = self.top_epoch.unwrap_or_default().max(record.transitions);
        ElectionStep::Write { record: self.record(last.saturating_add(1)), version }
    }

    /// The lease was read, or is not there.
    pub fn read(&mut self, now_ms: u64, lease: Option<Lease>) {
        self.top_epoch = self.top_epoch.max(lease.as_ref().map(|lease| lease.record.transitions));
        if !lease.as_ref().is_some_and(|lease| self.is_ours(&lease.record)) {
            self.tenure = None;
        }
        let since_ms = match &self.seen {
            Some(seen) if seen.lease == lease => seen.since_ms,
            _ => now_ms,
        };
        self.seen = Some(ObservedLease { lease, since_ms, fresh: true });
    }

    /// The write of [`ElectionStep::Write`] succeeded; `sent_ms` is when it was begun.
    pub fn written(&mut self, sent_ms: u64, now_ms: u64, lease: Lease) {
        let epoch = lease.record.transitions;
        let renewed = self.tenure.filter(|tenure| tenure.epoch == epoch);
        let renewed = renewed.map(|tenure| Tenure { renewed_ms: sent_ms, ..tenure });
        let tenure = renewed.unwrap_or(Tenure {
            epoch,
            renewed_ms: sent_ms,
            settles_ms: now_ms.saturating_add(self.terms.write_timeout_ms),
            relisted: false,
        });
        let ours = lease.record.holder == self.identity;
        self.tenure = (ours && now_ms < self.last_start_ms(tenure)).then_some(tenure);
        self.top_epoch = self.top_epoch.max(Some(epoch));
        self.seen = Some(ObservedLease { lease: Some(lease), since_ms: now_ms, fresh: true });
        self.next_ms = now_ms.saturating_add(self.terms.retry_ms);
    }

    /// The server refused the write: the lease has changed, or is gone.
    pub fn refused(&mut self, now_ms: u64) {
        self.forget();
        // Soon, but not in a tight loop should the server refuse everything.
        self.next_ms = now_ms.saturating_add(self.terms.retry_ms / 10);
    }

    /// No answer came, or one that says nothing about the lease. The write may have happened.
    pub fn unanswered(&mut self, now_ms: u64) {
        self.forget();
        self.next_ms = now_ms.saturating_add(self.terms.retry_ms);
    }

    /// The world was read anew after settling. Ignored for a leadership that is over.
    pub fn relisted(&mut self, now_ms: u64, epoch: u64) {
        if let Some(tenure) = &mut self.tenure
            && tenure.epoch == epoch
            && now_ms >= tenure.settles_ms
        {
            tenure.relisted = true;
        }
    }

    /// Gives the leadership up: no write may begin from now on, and the caller sends the step when
    /// the last write is over. `None`: there is nothing to give up.
    pub fn resign(&mut self) -> Option<ElectionStep> {
        let tenure = self.tenure.take()?;
        let lease = self.seen.as_ref()?.lease.as_ref()?;
        let record = LeaseRecord { holder: String::new(), ..self.record(tenure.epoch) };
        Some(ElectionStep::Write { record, version: Some(lease.version.clone()) })
    }

    fn last_start_ms(&self, tenure: Tenure) -> u64 {
        tenure.renewed_ms.saturating_add(self.terms.renew_deadline_ms)
    }

    fn record(&self, transitions: u64) -> LeaseRecord {
        LeaseRecord { holder: self.identity.clone(), lease_ms: self.terms.lease_ms, transitions }
    }

    fn is_ours(&self, record: &LeaseRecord) -> bool {
        record.holder == self.identity
            && self.tenure.is_some_and(|tenure| tenure.epoch == record.transitions)
    }

    fn read_again(&mut self, now_ms: u64, at_most_ms: u64) -> ElectionStep {
        self.forget();
        self.next_ms = now_ms.saturating_add(self.terms.retry_ms).min(at_most_ms).max(now_ms + 1);
        ElectionStep::Wait { until_ms: self.next_ms }
    }

    fn forget(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.fresh = false;
        }
    }
}
