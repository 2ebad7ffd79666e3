//! Drives a candidate against the API server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dovetail_apiserver::perform;
use dovetail_console::clock::now_ms;
use dovetail_control::answer::Answered;
use dovetail_control::lead::{
    Candidate, ElectionPhase, ElectionStep, LeaseAnswer, LeaseName, LeaseRecord, LeaseTimes,
    Permit, TermsError, Trouble,
};
use dovetail_control::repeats::Repeats;
use dovetail_control::request::ApiRequest;
use kube::Client;
use tokio::sync::watch;
use tracing::{info, warn};

use super::Leadership;
use super::clock::Clock;

/// Keeps the leadership, or waits for it. Shared between the task that runs [`Keeper::run`] and all
/// who write.
pub struct Keeper {
    candidate: Mutex<Candidate>,
    clock: Clock,
    terms: LeaseTimes,
    place: LeaseName,
    client: Client,
    phase: watch::Sender<ElectionPhase>,
    server: String,
    /// What keeps it from the lease, and which of that was told.
    trouble: Mutex<(Option<String>, Repeats<()>)>,
}

impl Keeper {
    /// A keeper that has not asked yet. `identity` must be unique among all processes ever;
    /// `client` should serve the lease alone, so that nothing delays a renewal. `server` is its
    /// address, for people.
    ///
    /// # Errors
    /// When the terms are not safe.
    pub fn new(
        client: Client,
        server: String,
        place: LeaseName,
        identity: String,
        terms: LeaseTimes,
        clock: Clock,
    ) -> Result<Self, TermsError> {
        let candidate = Mutex::new(Candidate::new(identity, terms.checked()?));
        let phase = watch::Sender::new(ElectionPhase::Following);
        let trouble = Mutex::default();
        Ok(Self { candidate, clock, terms, place, client, phase, server, trouble })
    }

    /// Runs for the leadership until cancelled.
    pub async fn run(&self) {
        loop {
            let step = self.lock().next(self.clock.now_ms());
            self.tell();
            match step {
                ElectionStep::Wait { until_ms } => self.pause(until_ms).await,
                ElectionStep::Read => self.read().await,
                ElectionStep::Write { record, version } => {
                    self.write(&record, version.as_deref()).await
                }
            }
            self.tell();
        }
    }

    /// Changes of where this process stands. Also moves when a leadership ends by the clock.
    pub fn phases(&self) -> watch::Receiver<ElectionPhase> {
        self.phase.subscribe()
    }

    /// Who holds the lease, as far as was seen; empty if nobody does.
    pub fn holder(&self) -> Option<String> {
        self.lock().holder().map(str::to_owned)
    }

    /// What has kept this process from reading or writing the lease since it last could, for
    /// people.
    pub fn trouble(&self) -> Option<String> {
        self.troubles().0.clone()
    }

    /// To be called when everything was read anew after [`ElectionPhase::Relisting`].
    pub fn relisted(&self, epoch: u64) {
        self.lock().relisted(self.clock.now_ms(), epoch);
        self.tell();
    }

    /// Gives the leadership up, so that another need not wait for the lease to end. To be called
    /// when [`Keeper::run`] was cancelled and the last write is over.
    pub async fn resign(&self) {
        let step = self.lock().resign();
        self.tell();
        if let Some(ElectionStep::Write { record, version }) = step {
            // Without an answer the others wait until the lease ends.
            _ = self.put(&record, version.as_deref()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Candidate> {
        self.candidate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn troubles(&self) -> MutexGuard<'_, (Option<String>, Repeats<()>)> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether the server has said something about the lease; warns if not, but not at each
    /// attempt.
    fn note(&self, what: &str, answer: &LeaseAnswer) {
        let (known, repeats) = &mut *self.troubles();
        let LeaseAnswer::Nothing(trouble) = answer else {
            if known.take().is_some() {
                info!("the API server responds to lease requests again");
            }
            return;
        };
        let text = trouble.told(what, &self.place, &self.server);
        if repeats.is_due((), &text, self.clock.now_ms()) {
            warn!("{text}");
        }
        *known = Some(text);
    }

    fn tell(&self) {
        let phase = self.lock().phase(self.clock.now_ms());
        self.phase.send_if_modified(|told| std::mem::replace(told, phase) != phase);
    }

    /// Waits, but wakes when the phase changes by itself.
    async fn pause(&self, until_ms: u64) {
        let settled_ms = match self.lock().phase(self.clock.now_ms()) {
            ElectionPhase::Settling { until_ms } => until_ms,
            _ => u64::MAX,
        };
        let until_ms = until_ms.min(settled_ms);
        tokio::time::sleep(self.clock.until(until_ms).max(Duration::from_millis(1))).await;
    }

    async fn read(&self) {
        let answered = self.send(self.place.read()).await;
        let answer = answered.map_or_else(LeaseAnswer::Nothing, |one| self.place.of_read(&one));
        self.note("read", &answer);
        let now_ms = self.clock.now_ms();
        let mut candidate = self.lock();
        match answer {
            LeaseAnswer::Lease(lease) => candidate.read(now_ms, Some(lease)),
            LeaseAnswer::Missing => candidate.read(now_ms, None),
            LeaseAnswer::Changed | LeaseAnswer::Nothing(_) => candidate.unanswered(now_ms),
        }
    }

    async fn write(&self, record: &LeaseRecord, version: Option<&str>) {
        let sent_ms = self.clock.now_ms();
        let answered = self.put(record, version).await;
        let of_write = |one| self.place.of_write(version.is_none(), &one);
        let answer = answered.map_or_else(LeaseAnswer::Nothing, of_write);
        self.note("write", &answer);
        let now_ms = self.clock.now_ms();
        let mut candidate = self.lock();
        match answer {
            LeaseAnswer::Lease(lease) => candidate.written(sent_ms, now_ms, lease),
            LeaseAnswer::Missing => candidate.read(now_ms, None),
            LeaseAnswer::Changed => candidate.refused(now_ms),
            LeaseAnswer::Nothing(_) => candidate.unanswered(now_ms),
        }
    }

    async fn put(&self, record: &LeaseRecord, version: Option<&str>) -> Result<Answered, Trouble> {
        self.send(self.place.write(record, version, now_ms())).await
    }

    /// One request, over in one retry period.
    async fn send(&self, request: ApiRequest) -> Result<Answered, Trouble> {
        let limit_ms = self.terms.retry_ms;
        let answer = perform(&self.client, request, None);
        let answered = tokio::time::timeout(Duration::from_millis(limit_ms), answer).await;
        answered.map_err(|_| Trouble::Late { limit_ms })
    }
}

impl Leadership for Keeper {
    fn permit(&self) -> Option<Permit> {
        self.lock().permit(self.clock.now_ms())
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
