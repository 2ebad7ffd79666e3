//! Progress on standard error: only on a terminal, and only for work that lasts.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that appears when the work turns out to last.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: OnceLock<()>,
    is_watched: bool,
}

impl Progress {
    /// Work of so many steps.
    pub fn new(what: &'static str, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = "{msg} [{wide_bar:.dim}] {human_pos}/{human_len}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        let is_watched = std::io::stderr().is_terminal();
        Self { bar, started: Instant::now(), shown: OnceLock::new(), is_watched }
    }

    /// Work whose end is not known: what is done is counted.
    pub fn counting(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg}: {human_pos}, {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let is_watched = std::io::stderr().is_terminal();
        Self { bar, started: Instant::now(), shown: OnceLock::new(), is_watched }
    }

    /// Work that is part of other work, which shows its own progress.
    pub fn silent() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            started: Instant::now(),
            shown: OnceLock::new(),
            is_watched: false,
        }
    }

    /// Some steps are done.
    pub fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        if self.is_watched && self.shown.get().is_none() && self.started.elapsed() > PATIENCE {
            self.shown.get_or_init(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
