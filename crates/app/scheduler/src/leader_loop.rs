//! The task of one leadership: it receives, steps and dispatches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dovetail_console::clock::now_ms;
use dovetail_control::Control;
use dovetail_control::control::{Credits, Input, StepOutput};
use dovetail_control::request::Now;
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::unconstrained;
use tracing::info;

use super::first_lists::ListPatience;
use super::log::show;
use super::reading::{Unlisted, WatchReader};
use super::status::ProcessPhase;
use super::wires::{BINDS_AT_ONCE, Wires};
use super::{Options, Shared};
use crate::lead::{Clock, Leadership};

/// Without any news, the loop comes round so often.
const ROUND: Duration = Duration::from_secs(1);
/// What is taken before the next decision, at most.
const BATCH: usize = 10_000;
/// At the end, what is owed is written for so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One leadership.
pub(super) struct LeaderLoop {
    control: Control,
    reading: WatchReader,
    /// `None` in a dry run, which sends nothing.
    wires: Option<Wires>,
    /// Every change since the options were made is new to a leadership.
    policies: Option<watch::Receiver<String>>,
    shared: Arc<Shared>,
    epoch: u64,
    clock: Clock,
    /// What the next step is about.
    inputs: Vec<Input>,
}

impl LeaderLoop {
    /// A leadership that has heard nothing yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        leadership: Arc<dyn Leadership>,
        options: &Options,
        epoch: u64,
    ) -> Self {
        let wires = || Wires::new(shared.clients.clone(), leadership.clone(), epoch, BINDS_AT_ONCE);
        let clock = *leadership.clock();
        Self {
            control: Control::new(options.control()),
            reading: WatchReader::new(shared.clone(), options.watching(), clock),
            wires: (!options.dry_run).then(wires),
            policies: options.policies.clone(),
            clock,
            inputs: vec![Input::Won { epoch }],
            shared,
            epoch,
        }
    }

    /// Reads the world until everything is listed.
    ///
    /// # Errors
    /// When a list has failed for longer than there is patience; without a limit it is tried for
    /// ever.
    pub(super) async fn begin(&mut self, patience: Option<ListPatience>) -> Result<(), Unlisted> {
        self.shared.status.set(ProcessPhase::Listing);
        self.reading.begin(patience).await?;
        // Nothing may be written before the leadership knows that everything was read.
        while !self.step(Credits::default()).decides {
            let input = self.reading.next_or_pause().await;
            self.inputs.extend(input);
            self.take_what_is_there();
            self.reading.tell_refusals();
            self.reading.are_listed(patience)?;
        }
        Ok(())
    }

    /// Decides until it is cancelled.
    pub(super) async fn run(&mut self) {
        info!(epoch = self.epoch, "all objects are listed: scheduling starts");
        self.shared.metrics.lead(Some(self.epoch));
        loop {
            self.shared.status.set(ProcessPhase::Deciding);
            let begun = Instant::now();
            let output = self.step(self.credits());
            self.shared.metrics.cycle(begun.elapsed());
            self.wait(output.wait_ms).await;
            self.take_what_is_there();
            self.reading.tell_refusals();
        }
    }

    /// Begins nothing more, waits for what is on its way, and writes for a while what is owed.
    pub(super) async fn end(mut self) {
        self.shared.metrics.lead(None);
        self.inputs.push(Input::Stop);
        self.wires.iter().for_each(Wires::stop);
        let mut last_words = Duration::MAX;
        loop {
            let announcements = self.credits().announcements;
            let output = self.step(Credits { announcements, ..Credits::default() });
            if output.is_over {
                break;
            }
            // What is on its way to pods ends by its deadline.
            if output.is_idle {
                last_words = last_words.min(LAST_WORDS);
            }
            let begun = Instant::now();
            if tokio::time::timeout(last_words, self.answer()).await.is_err() {
                break;
            }
            last_words = last_words.saturating_sub(begun.elapsed());
        }
        self.inputs.push(Input::End);
        self.step(Credits::default());
    }

    /// Waits for the next answer.
    async fn answer(&mut self) {
        match &mut self.wires {
            Some(wires) => self.inputs.push(Input::Answered(wires.next().await)),
            None => std::future::pending().await,
        }
    }

    fn credits(&self) -> Credits {
        self.wires.as_ref().map_or_else(Credits::default, Wires::credits)
    }

    /// Hands everything that has arrived to the scheduler, and sends what it asks for.
    fn step(&mut self, credits: Credits) -> StepOutput {
        self.hear_of_another_policy();
        let inputs = std::mem::take(&mut self.inputs);
        let now = Now { wall_ms: now_ms(), own_ms: self.clock.now_ms() };
        let mut output = self.control.step(inputs, credits, now);
        show(&output, &self.shared.metrics);
        if let Some(wires) = &mut self.wires {
            output.requests.drain(..).for_each(|request| wires.send(request));
        }
        let binding = self.wires.as_ref().map_or(0, Wires::binding);
        self.shared.metrics.show(output.counts, binding);
        output
    }

    fn hear_of_another_policy(&mut self) {
        let Some(policies) = &mut self.policies else { return };
        // Whoever no longer says anything has changed nothing.
        if policies.has_changed().unwrap_or(false) {
            let policy = policies.borrow_and_update().clone();
            self.inputs.push(Input::ChooseBy { policy });
        }
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, wait_ms: Option<u64>) {
        let pause = wait_ms.map_or(ROUND, |wait_ms| ROUND.min(Duration::from_millis(wait_ms)));
        let wires = &mut self.wires;
        let answer = async {
            match wires {
                Some(wires) => wires.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = answer => self.inputs.push(Input::Answered(answer)),
            input = self.reading.next() => self.inputs.extend(input),
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Takes everything that has arrived, so that one decision is about all of it.
    fn take_what_is_there(&mut self) {
        for _ in 0..BATCH {
            // All that is answered, however much that is.
            let known = |wires: &mut Wires| unconstrained(wires.next()).now_or_never();
            let answer = self.wires.as_mut().and_then(known);
            let read = self.reading.next_at_hand();
            if answer.is_none() && read.is_none() {
                return;
            }
            self.inputs.extend(answer.map(Input::Answered));
            self.inputs.extend(read.flatten());
        }
    }
}
