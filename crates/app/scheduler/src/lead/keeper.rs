//! Drives a candidate against the API server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dovetail_apiserver::client::send;
use dovetail_control::answer::message;
use dovetail_control::lead::{Candidate, Lease, Permit, Phase, Record, Step, Terms, TermsError};
use dovetail_control::repeats::Repeats;
use hyper::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

use super::Leadership;
use super::clock::Clock;
use super::lease::{from_json, to_json};
use super::trouble::Trouble;

/// Where the lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
}

/// Keeps the leadership, or waits for it. Shared between the task that runs [`Keeper::run`] and all
/// who write.
pub struct Keeper {
    candidate: Mutex<Candidate>,
    clock: Clock,
    terms: Terms,
    place: LeaseName,
    client: Client,
    phase: watch::Sender<Phase>,
    server: String,
    /// What keeps it from the lease, and which of that was told.
    trouble: Mutex<(Option<String>, Repeats<()>)>,
}

/// What a request to the server came to.
enum Answer {
    Lease(Lease),
    Missing,
    Refused,
    /// Nothing that says anything about the lease.
    Nothing(Trouble),
}

impl Keeper {
    /// A keeper that has not asked yet. `identity` must be unique among all processes ever; `client`
    /// should serve the lease alone, so that nothing delays a renewal. `server` is its address, for people.
    ///
    /// # Errors
    /// When the terms are not safe.
    pub fn new(
        client: Client,
        server: String,
        place: LeaseName,
        identity: String,
        terms: Terms,
        clock: Clock,
    ) -> Result<Self, TermsError> {
        let candidate = Mutex::new(Candidate::new(identity, terms.checked()?));
        let phase = watch::Sender::new(Phase::Following);
        let trouble = Mutex::default();
        Ok(Self { candidate, clock, terms, place, client, phase, server, trouble })
    }

    /// Runs for the leadership until cancelled.
    pub async fn run(&self) {
        loop {
            let step = self.lock().next(self.clock.now_ms());
            self.tell();
            match step {
                Step::Wait { until_ms } => self.pause(until_ms).await,
                Step::Read => self.read().await,
                Step::Write { record, version } => self.write(&record, version.as_deref()).await,
            }
            self.tell();
        }
    }

    /// Changes of where this process stands. Also moves when a leadership ends by the clock.
    pub fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Who holds the lease, as far as was seen; empty if nobody does.
    pub fn holder(&self) -> Option<String> {
        self.lock().holder().map(str::to_owned)
    }

    /// What has kept this process from reading or writing the lease since it last could, for people.
    pub fn trouble(&self) -> Option<String> {
        self.troubles().0.clone()
    }

    /// To be called when everything was read anew after [`Phase::Relisting`].
    pub fn relisted(&self, epoch: u64) {
        self.lock().relisted(self.clock.now_ms(), epoch);
        self.tell();
    }

    /// Gives the leadership up, so that another need not wait for the lease to end. To be called when
    /// [`Keeper::run`] was cancelled and the last write is over.
    pub async fn resign(&self) {
        let step = self.lock().resign();
        self.tell();
        if let Some(Step::Write { record, version }) = step {
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

    /// Notes whether the server has said something about the lease; warns if not, but not at each attempt.
    fn note(&self, what: &str, answer: &Answer) {
        let (known, repeats) = &mut *self.troubles();
        let Answer::Nothing(trouble) = answer else {
            if known.take().is_some() {
                info!("the API server answers about the lease again");
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
            Phase::Settling { until_ms } => until_ms,
            _ => u64::MAX,
        };
        let until_ms = until_ms.min(settled_ms);
        tokio::time::sleep(self.clock.until(until_ms).max(Duration::from_millis(1))).await;
    }

    async fn read(&self) {
        let answer = self.send(Method::GET, &self.path(), None).await;
        self.note("read", &answer);
        let now_ms = self.clock.now_ms();
        let mut candidate = self.lock();
        match answer {
            Answer::Lease(lease) => candidate.read(now_ms, Some(lease)),
            Answer::Missing => candidate.read(now_ms, None),
            Answer::Refused | Answer::Nothing(_) => candidate.unanswered(now_ms),
        }
    }

    async fn write(&self, record: &Record, version: Option<&str>) {
        let sent_ms = self.clock.now_ms();
        let answer = match self.put(record, version).await {
            Answer::Missing if version.is_none() => Answer::Nothing(Trouble::NoNamespace),
            answer => answer,
        };
        self.note("write", &answer);
        let now_ms = self.clock.now_ms();
        let mut candidate = self.lock();
        match answer {
            Answer::Lease(lease) => candidate.written(sent_ms, now_ms, lease),
            Answer::Missing => candidate.read(now_ms, None),
            Answer::Refused => candidate.refused(now_ms),
            Answer::Nothing(_) => candidate.unanswered(now_ms),
        }
    }

    async fn put(&self, record: &Record, version: Option<&str>) -> Answer {
        let LeaseName { namespace, name } = &self.place;
        let body = to_json(name, namespace, record, version);
        match version {
            Some(_) => self.send(Method::PUT, &self.path(), Some(&body)).await,
            None => self.send(Method::POST, &self.folder(), Some(&body)).await,
        }
    }

    fn folder(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.place.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.place.name)
    }

    /// One request, over in one retry period.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json").body(Body::from(bytes));
        let limit_ms = self.terms.retry_ms;
        let answer = send(&self.client, request);
        match tokio::time::timeout(Duration::from_millis(limit_ms), answer).await {
            Ok(Ok((200 | 201, _, body))) => match serde_json::from_slice(&body) {
                Ok(lease) => Answer::Lease(from_json(&lease)),
                Err(_) => Answer::Nothing(Trouble::Unreadable),
            },
            Ok(Ok((404, _, _))) => Answer::Missing,
            Ok(Ok((409, _, _))) => Answer::Refused,
            Ok(Ok((code, _, body))) => {
                Answer::Nothing(Trouble::Refused { code, message: message(&body) })
            }
            Ok(Err(none)) => Answer::Nothing(Trouble::NoAnswer(none.error)),
            Err(_) => Answer::Nothing(Trouble::Late { limit_ms }),
        }
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
