//! Questions to the ledger, one at a time, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::split::SplitMethod;
use dovetail_store::{
    Address, Party, Store, StoreError, SumQuery, SumRow, UsedRow, default_method,
};
use dovetail_units::duration::duration;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::allocation::{AllocationResponse, Ask, TooLong, entries};

/// Which team a party is; `None` if nothing names it.
pub type TeamOf = Box<dyn Fn(&Party) -> Option<String> + Send>;

/// A question waits this long for its answer, those before it included.
const PATIENCE: Duration = Duration::from_secs(50);
/// More questions do not wait.
const MOST_WAITING: usize = 16;

/// A ledger that is read.
pub struct LedgerBooks {
    work: mpsc::Sender<LedgerTask>,
    is_busy: Arc<AtomicBool>,
}

/// A question without an answer.
#[derive(Debug, Error)]
pub enum BooksError {
    /// The ledger cannot answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Others are asking, or the answer takes too long.
    #[error("too many requests at once, or too large ones: request less data, or retry later")]
    Busy,
}

enum LedgerTask {
    Check(oneshot::Sender<Result<(), BooksError>>),
    Allocation {
        ask: Ask,
        now_ms: u64,
        reply: oneshot::Sender<Result<AllocationResponse, BooksError>>,
    },
}

/// What the thread has.
struct LedgerReader {
    store: Store,
    /// The split method of the settings; where there is none, what the rows allow.
    method: Option<SplitMethod>,
    team: TeamOf,
}

impl LedgerBooks {
    /// Opens a ledger, and makes it where there is none. It is read until this is dropped.
    ///
    /// # Errors
    /// A ledger that cannot be opened.
    pub fn open(
        address: &Address,
        method: Option<SplitMethod>,
        team: TeamOf,
    ) -> Result<Self, StoreError> {
        let (opened, open) = std::sync::mpsc::sync_channel(1);
        let (work, waiting) = mpsc::channel(MOST_WAITING);
        let is_busy = Arc::new(AtomicBool::new(false));
        let (of_thread, at) = (Arc::clone(&is_busy), address.clone());
        let lost =
            |why: &str| StoreError::Lost { address: address.to_string(), why: why.to_owned() };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let store = match runtime.block_on(Store::open(&at)) {
                Ok(store) => store,
                Err(error) => {
                    // Who opens it waits for this.
                    _ = opened.send(Err(error));
                    return;
                }
            };
            _ = opened.send(Ok(()));
            runtime.block_on(LedgerReader { store, method, team }.answer(waiting, &of_thread));
        });
        open.recv().unwrap_or_else(|_| Err(lost("no thread for the connection")))?;
        Ok(Self { work, is_busy })
    }

    /// Whether the ledger can be read.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn check(&self) -> Result<(), BooksError> {
        // Where a question is being answered, it can be.
        if self.is_busy.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.ask(LedgerTask::Check(reply), answer).await
    }

    /// An answer in OpenCost's form; `now_ms` is the present.
    ///
    /// # Errors
    /// See [`BooksError`].
    pub async fn allocation(
        &self,
        ask: &Ask,
        now_ms: u64,
    ) -> Result<AllocationResponse, BooksError> {
        let (reply, answer) = oneshot::channel();
        self.ask(LedgerTask::Allocation { ask: ask.clone(), now_ms, reply }, answer).await
    }

    async fn ask<T>(
        &self,
        work: LedgerTask,
        answer: oneshot::Receiver<Result<T, BooksError>>,
    ) -> Result<T, BooksError> {
        self.work.try_send(work).map_err(|_| BooksError::Busy)?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(BooksError::Busy),
        }
    }
}

impl LedgerReader {
    async fn answer(mut self, mut waiting: mpsc::Receiver<LedgerTask>, is_busy: &AtomicBool) {
        while let Some(work) = waiting.recv().await {
            is_busy.store(true, Ordering::Relaxed);
            match work {
                // Nobody waits for it any more.
                LedgerTask::Allocation { reply, .. } if reply.is_closed() => {}
                LedgerTask::Allocation { ask, now_ms, reply } => {
                    _ = reply.send(self.allocation(&ask, now_ms).await);
                }
                LedgerTask::Check(reply) => {
                    let checked = self.store.clusters().await;
                    _ = reply.send(checked.map(|_| ()).map_err(BooksError::from));
                }
            }
            is_busy.store(false, Ordering::Relaxed);
        }
    }

    async fn allocation(
        &mut self,
        ask: &Ask,
        now_ms: u64,
    ) -> Result<AllocationResponse, BooksError> {
        let detail = ask.detail();
        let mut steps: Vec<(Span, Vec<SumRow>, Vec<UsedRow>)> = Vec::new();
        for step in &ask.steps {
            let question = SumQuery {
                cluster: None,
                from_hour: step.from_ms / HOUR_MS,
                to_hour: step.to_ms / HOUR_MS,
                detail,
            };
            let rows = self.store.sums(&question).await?;
            steps.push((*step, rows, self.store.used(&question).await?));
        }
        let all = steps.iter().flat_map(|(_, rows, _)| rows);
        let method = self.method.unwrap_or_else(|| default_method(all));
        let mut data = Vec::with_capacity(steps.len());
        let mut count = 0;
        for (step, rows, used) in &steps {
            let read = (rows.as_slice(), used.as_slice());
            let found =
                entries(*step, read, &ask.aggregate, ask.has_idle, method, &self.team, count)?;
            count += found.len();
            data.push(found);
        }
        let told = [ask.ahead_in_words(), self.never_read(ask, now_ms).await?];
        let told: Vec<String> = told.into_iter().flatten().collect();
        let warning = (!told.is_empty()).then(|| told.join("; "));
        let message =
            format!("method {}, at the prices in force when the usage was recorded", method.id());
        Ok(AllocationResponse { code: 200, data, message, warning })
    }

    /// What of the window nobody read, in words.
    async fn never_read(&mut self, ask: &Ask, now_ms: u64) -> Result<Option<String>, StoreError> {
        let (Some(first), Some(last)) = (ask.steps.first(), ask.steps.last()) else {
            return Ok(None);
        };
        let window = Span { from_ms: first.from_ms, to_ms: last.to_ms.min(now_ms) };
        let clusters = self.store.clusters().await?;
        if clusters.is_empty() {
            return Ok(Some("the ledger is empty".to_owned()));
        }
        let mut told = Vec::new();
        for name in clusters {
            let missing = self.store.missing(&name, None, window).await?;
            let ms: u64 = missing.iter().map(|span| span.to_ms - span.from_ms).sum();
            // What is running is read in a moment.
            if ms >= HOUR_MS {
                told.push(format!("{name}: {}", duration(ms)));
            }
        }
        let words = told.join(", ");
        Ok((!told.is_empty()).then(|| format!("no data, so not included in any amount: {words}")))
    }
}
