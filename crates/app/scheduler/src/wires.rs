//! Performs the requests of one leadership, each while this process leads and no longer than it
//! may.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dovetail_apiserver::client::Clients;
use dovetail_apiserver::perform;
use dovetail_control::answer::{Answered, NoAnswer};
use dovetail_control::control::Credits;
use dovetail_control::request::{ApiRequest, ApiResponse, RequestClass};
use kube::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::lead::Leadership;

/// Bind requests at the server at any time.
pub(crate) const BINDS_AT_ONCE: usize = 64;
/// Requests about pods other than binds on their way at once.
const ORDERS_AT_ONCE: usize = 32;
/// Requests about claims on their way at once: as many as binds, for two of them come before each
/// bind of a pod with a claim.
const CLAIMS_AT_ONCE: usize = 64;
/// Announcements on their way at once.
const ANNOUNCEMENTS_AT_ONCE: usize = 32;
/// A read is given up after this time.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests that are not answered.
pub struct Wires {
    shared: Arc<Shared>,
    running: JoinSet<(RequestClass, ApiResponse)>,
    /// What may begin now.
    credits: Credits,
}

/// What every request needs.
struct Shared {
    clients: Clients,
    leadership: Arc<dyn Leadership>,
    epoch: u64,
    /// Binds beyond those at the server wait here, so that none of them waits for a decision.
    slots: Semaphore,
    /// Binds at the server.
    binding: AtomicUsize,
    /// No write begins any more.
    is_stopped: AtomicBool,
}

impl Wires {
    /// Wires within one leadership, with at most so many binds at the server.
    pub fn new(
        clients: Clients,
        leadership: Arc<dyn Leadership>,
        epoch: u64,
        binds_at_once: usize,
    ) -> Self {
        let credits = Credits {
            binds: 2 * binds_at_once,
            orders: ORDERS_AT_ONCE,
            claims: CLAIMS_AT_ONCE,
            announcements: ANNOUNCEMENTS_AT_ONCE,
        };
        let shared = Shared {
            clients,
            leadership,
            epoch,
            slots: Semaphore::new(binds_at_once),
            binding: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), running: JoinSet::new(), credits }
    }

    /// How many requests of each class may begin now.
    pub fn credits(&self) -> Credits {
        self.credits
    }

    /// Binds at the server now.
    pub fn binding(&self) -> usize {
        self.shared.binding.load(Ordering::Relaxed)
    }

    /// Begins a request.
    pub fn send(&mut self, request: ApiRequest) {
        if let Some(credit) = self.credit(request.class) {
            *credit = credit.saturating_sub(1);
        }
        let shared = self.shared.clone();
        self.running.spawn(async move { (request.class, shared.perform(request).await) });
    }

    /// The next answer; waits for ever while nothing is on its way.
    pub async fn next(&mut self) -> ApiResponse {
        loop {
            match self.running.join_next().await {
                Some(Ok((class, answer))) => {
                    if let Some(credit) = self.credit(class) {
                        *credit += 1;
                    }
                    return answer;
                }
                // A panic in a task of ours is reported by the runtime.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Begins no bind any more that still waits here.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Release);
    }

    fn credit(&mut self, class: RequestClass) -> Option<&mut usize> {
        match class {
            RequestClass::Bind => Some(&mut self.credits.binds),
            RequestClass::Read | RequestClass::Lease => None,
            RequestClass::Order => Some(&mut self.credits.orders),
            RequestClass::Claim => Some(&mut self.credits.claims),
            RequestClass::Announcement => Some(&mut self.credits.announcements),
        }
    }
}

impl Shared {
    async fn perform(&self, request: ApiRequest) -> ApiResponse {
        match request.class {
            RequestClass::Read | RequestClass::Lease => self.read(request).await,
            RequestClass::Bind => {
                // Nobody closes the semaphore.
                let _slot = self.slots.acquire().await;
                if self.is_stopped.load(Ordering::Acquire) {
                    return self.unsent(request.number);
                }
                self.binding.fetch_add(1, Ordering::Relaxed);
                let answer = self.write(request, &self.clients.binds, true).await;
                self.binding.fetch_sub(1, Ordering::Relaxed);
                answer
            }
            RequestClass::Announcement => {
                self.write(request, &self.clients.announcements, true).await
            }
            RequestClass::Order | RequestClass::Claim => {
                self.write(request, &self.clients.rest, false).await
            }
        }
    }

    /// A write, over by the deadline of its permit. Where that is told to the server, an eighth is
    /// left for the way there: it counts from the arrival of the request.
    async fn write(&self, request: ApiRequest, client: &Client, tells_server: bool) -> ApiResponse {
        let permit = self.leadership.permit().filter(|permit| permit.epoch == self.epoch);
        let Some(permit) = permit else { return self.unsent(request.number) };
        let limit = self.leadership.clock().until(permit.deadline_ms);
        let timeout_ms = tells_server.then(|| (limit - limit / 8).as_millis());
        self.within(limit, permit.deadline_ms, request, client, timeout_ms).await
    }

    async fn read(&self, request: ApiRequest) -> ApiResponse {
        let over_ms = self.leadership.clock().now_ms();
        self.within(READ_TIMEOUT, over_ms, request, &self.clients.rest, None).await
    }

    async fn within(
        &self,
        limit: Duration,
        over_ms: u64,
        request: ApiRequest,
        client: &Client,
        timeout_ms: Option<u128>,
    ) -> ApiResponse {
        let (number, clock) = (request.number, self.leadership.clock());
        let sent_ms = clock.now_ms();
        let sent = perform(client, request, timeout_ms);
        let answered: Answered = tokio::time::timeout(limit, sent).await.unwrap_or_else(|_| {
            let error = format!("no answer within {} ms", limit.as_millis());
            Err(NoAnswer { unsent: false, error })
        });
        let took_ms = clock.now_ms().saturating_sub(sent_ms);
        ApiResponse { number, answered: Some(answered), took_ms, over_ms }
    }

    fn unsent(&self, number: u64) -> ApiResponse {
        ApiResponse {
            number,
            answered: None,
            took_ms: 0,
            over_ms: self.leadership.clock().now_ms(),
        }
    }
}
