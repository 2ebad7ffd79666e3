//! Exporters looked at again and again, beside everything else: what a server would do, where there
//! is none.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_metrics::scrape::Scrapes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::refused_in_words;
use super::targets::{self, ANSWER_WITHIN, ExporterTarget};
use crate::kubeconfig::ConnectionFlags;

/// Exporters of a namespace come and go with its nodes: they are looked for again after so long.
const FIND_AGAIN_MS: u64 = 300_000;
/// More samples are not held while nobody takes them, as when a ledger cannot be written: about
/// half a gigabyte.
const MOST_SAMPLES: usize = 20_000_000;
/// More distinct things are not told.
const MOST_TOLD: usize = 100;

/// Looks at exporters until it is dropped; what they said waits here until it is forgotten.
pub struct Lookout {
    seen: Arc<Mutex<LookoutState>>,
    began_ms: u64,
    /// Looks end when it is gone.
    _stop: watch::Sender<()>,
}

/// How many exporters answered the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExporterCounts {
    pub answering: usize,
    pub silent: usize,
}

#[derive(Default)]
struct LookoutState {
    scrapes: Scrapes,
    standing: Option<ExporterCounts>,
}

impl Lookout {
    /// Begins to look, every `step_ms`, at moments that are multiples of it.
    ///
    /// # Errors
    /// An address that is none.
    pub fn start(
        urls: &[String],
        namespaces: &[String],
        cluster: Option<ConnectionFlags>,
        step_ms: u64,
    ) -> Result<Self> {
        let targets = targets::at(urls)?;
        let runtime = connection_runtime()?;
        let seen = Arc::new(Mutex::new(LookoutState::default()));
        let (stop, stopped) = watch::channel(());
        let looker = Looker {
            named: targets.len(),
            targets,
            namespaces: namespaces.to_vec(),
            cluster,
            find_again_ms: 0,
            step_ms,
            seen: Arc::clone(&seen),
            silent: BTreeSet::new(),
            standing: None,
            told: BTreeSet::new(),
        };
        let began_ms = now_ms() / step_ms * step_ms;
        std::thread::spawn(move || runtime.block_on(looker.look_on(stopped)));
        Ok(Self { seen, began_ms, _stop: stop })
    }

    /// When it began to look.
    pub fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// All that was seen and not forgotten.
    pub fn seen(&self) -> Scrapes {
        lock(&self.seen).scrapes.clone()
    }

    /// Forgets what was seen before a moment.
    pub fn forget_before(&self, at_ms: u64) {
        lock(&self.seen).scrapes.forget_before(at_ms as i64);
    }

    /// Who answered the last look; `None` before the first.
    pub fn standing(&self) -> Option<ExporterCounts> {
        lock(&self.seen).standing
    }
}

/// Who looks, on a thread of its own.
struct Looker {
    /// Those with an address, and behind them those of the namespaces.
    targets: Vec<ExporterTarget>,
    named: usize,
    namespaces: Vec<String>,
    cluster: Option<ConnectionFlags>,
    find_again_ms: u64,
    step_ms: u64,
    seen: Arc<Mutex<LookoutState>>,
    /// Names of those that were silent at the last look: they are asked last.
    silent: BTreeSet<String>,
    standing: Option<ExporterCounts>,
    told: BTreeSet<String>,
}

impl Looker {
    async fn look_on(mut self, mut stopped: watch::Receiver<()>) {
        let mut last_ms = 0;
        loop {
            let now_ms = now_ms();
            let at_ms = now_ms / self.step_ms * self.step_ms;
            // A clock that was set back waits until time has caught up; what begins late ends too
            // early.
            if at_ms > last_ms && now_ms - at_ms <= self.step_ms / 2 {
                last_ms = at_ms;
                self.find(at_ms).await;
                self.look(at_ms).await;
            }
            let pause = Duration::from_millis(self.step_ms - self::now_ms() % self.step_ms);
            // Nothing is ever sent: the end is that nobody could.
            if tokio::time::timeout(pause, stopped.changed()).await.is_ok() {
                return;
            }
        }
    }

    /// Finds who runs in the namespaces. Where that cannot be known, who was found before is asked
    /// on.
    async fn find(&mut self, at_ms: u64) {
        if self.namespaces.is_empty() || at_ms < self.find_again_ms {
            return;
        }
        let found = targets::running_in(&self.namespaces, self.cluster.as_ref());
        match tokio::time::timeout(ANSWER_WITHIN, found).await {
            Ok(Ok(found)) => {
                found.told.into_iter().for_each(|text| self.tell(text));
                if found.is_whole {
                    self.targets.truncate(self.named);
                    self.targets.extend(found.targets);
                    self.find_again_ms = at_ms + FIND_AGAIN_MS;
                }
            }
            Ok(Err(error)) => self.tell(format!("cannot find exporters: {error:#}")),
            Err(_) => {
                self.tell("cannot find exporters: the API server does not answer".to_owned());
            }
        }
    }

    async fn look(&mut self, at_ms: u64) {
        let mut order: Vec<usize> = (0..self.targets.len()).collect();
        order.sort_by_key(|place| self.silent.contains(self.targets[*place].name()));
        let left_ms = (at_ms + self.step_ms).saturating_sub(now_ms());
        let end = Instant::now() + Duration::from_millis(left_ms * 9 / 10);
        let mut scrapes = Scrapes::default();
        let order = order.into_iter();
        let said = targets::look(&self.targets, order, at_ms as i64, end, &mut scrapes).await;
        if let Some(refused) = scrapes.refused() {
            self.tell(format!(
                "skipped lines in the output of GPU exporters; first: {}",
                refused_in_words(refused)
            ));
        }
        let silent = || said.iter().zip(&self.targets).filter(|(said, _)| said.is_err());
        let names = silent().map(|(_, target)| target.name().to_owned()).collect();
        let problem = silent().find_map(|(said, _)| said.clone().err());
        let answering = said.iter().filter(|said| said.is_ok()).count();
        let standing = ExporterCounts { answering, silent: said.len() - answering };
        self.silent = names;
        self.tell_change(standing, problem);
        let mut seen = lock(&self.seen);
        seen.standing = Some(standing);
        seen.scrapes.append(scrapes);
        if seen.scrapes.samples() > MOST_SAMPLES {
            let kept_ms = self.step_ms * 10;
            seen.scrapes.forget_before(at_ms.saturating_sub(kept_ms) as i64);
            tracing::warn!("data of exporters cannot be written to the ledger and is lost");
        }
    }

    fn tell_change(&mut self, standing: ExporterCounts, problem: Option<String>) {
        if self.standing.replace(standing) == Some(standing) {
            return;
        }
        let ExporterCounts { answering, silent } = standing;
        let all = counted(answering + silent, "exporter");
        match problem {
            Some(problem) => tracing::warn!(
                "{silent} of {all} did not answer, so the use of their GPUs is unknown: {}",
                plain(&problem)
            ),
            None => tracing::info!("{all} scraped without errors"),
        }
    }

    /// Tells something once.
    fn tell(&mut self, text: String) {
        if self.told.len() < MOST_TOLD && !self.told.contains(&text) {
            tracing::warn!("{text}");
            self.told.insert(text);
        }
    }
}

fn lock(seen: &Mutex<LookoutState>) -> MutexGuard<'_, LookoutState> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
