//! What GPUs do, from exporters that are asked directly: where no server keeps their series.
//!
//! | module | what |
//! |---|---|
//! | `targets` | how each is reached, and one look at all of them |
//! | `lookout` | looks again and again, beside everything else |

pub mod lookout;
pub mod targets;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{ArgAction, Args};
use dovetail_account::device_time::Span;
use dovetail_account::signal::ActivityRule;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_facts::UsagePeriod;
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::exporter::ObservedTime;
use dovetail_metrics::scrape::{RefusedLines, Scrapes};
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::errors::UsageError;
use tokio::time::Instant;

use self::targets::{ANSWER_WITHIN, ExporterTarget};
use crate::kubeconfig::ConnectionFlags;
use crate::own_time::OwnTime;
use crate::uses::Uses;
use crate::uses_of_server::of_pods;

pub use self::lookout::{ExporterCounts, Lookout};

/// Said where GPUs are seen and no holder of one.
pub const NO_POD_IS_NAMED: &str = "exporters report no pod for any GPU: either all GPUs are free, or the \
                                   exporters do not map GPUs to pods (for dcgm-exporter, set \
                                   DCGM_EXPORTER_KUBERNETES=true)";

/// Flags as written.
#[derive(Debug, Args)]
pub struct ExporterFlags {
    /// URL of a GPU exporter to read instead of Prometheus: http://HOST:PORT; repeatable
    #[arg(long, value_name = "URL", action = ArgAction::Append, conflicts_with = "usage")]
    exporter: Vec<String>,
    /// Namespace of the GPU exporters to read through the API server, instead of Prometheus;
    /// repeatable
    #[arg(long, value_name = "NAMESPACE", action = ArgAction::Append)]
    #[arg(conflicts_with_all = ["usage", "from", "example"])]
    exporters_in: Vec<String>,
    /// How long to scrape exporters, such as 1m or 10m
    #[arg(long, value_name = "DURATION", default_value = "1m", alias = "look-for")]
    scrape_for: DurationFlag,
    /// Time between two scrapes of exporters, such as 15s
    #[arg(long, value_name = "DURATION", default_value = "15s", alias = "look-every")]
    scrape_every: DurationFlag,
}

/// What exporters said for a while.
pub struct Looked {
    time: ObservedTime,
    period: UsagePeriod,
    exporters: usize,
}

impl Looked {
    /// Their samples by pod.
    pub fn uses(mut self, gathered: &Gathered) -> Uses {
        let span = self.period.span;
        let source = counted(self.exporters, "exporter");
        let own = OwnTime::of(gathered, span.to_ms - span.from_ms);
        let left_out = own.keep_time(&mut self.time, &source);
        let of_pods = of_pods(&self.time, span.to_ms);
        Uses { period: self.period, of_pods, series: Vec::new(), source, left_out }
    }
}

/// What came of the looks.
#[derive(Default)]
struct Looks {
    scrapes: Scrapes,
    /// Whether each target answered, by place, and why it did not the last time.
    answers: BTreeMap<usize, Result<(), String>>,
}

impl ExporterFlags {
    /// Whether any is named.
    pub fn are_given(&self) -> bool {
        !self.exporter.is_empty() || !self.exporters_in.is_empty()
    }

    /// Looks at all exporters for a while.
    ///
    /// # Errors
    /// Flags that cannot be, a connection that cannot be used, and exporters of which not one
    /// answers.
    pub fn read(&self, app: &App, cluster: Option<&ConnectionFlags>) -> Result<Looked> {
        let every_ms = self.scrape_every.ms;
        if every_ms < 1_000 {
            let text = "--scrape-every: must be at least 1s: exporters do not update their values \
                 more often";
            return Err(UsageError(text.into()).into());
        }
        let count = (self.scrape_for.ms / every_ms).max(1);
        let runtime = connection_runtime()?;
        let (targets, looks, from_ms) = runtime.block_on(async {
            let targets = self.targets(app, cluster).await?;
            let (looks, from_ms) = look(&targets, count, Duration::from_millis(every_ms)).await;
            anyhow::Ok((targets, looks, from_ms))
        })?;
        tell(app, &targets, &looks)?;
        let span = Span { from_ms, to_ms: from_ms + count * every_ms };
        let (observation, _) = looks.scrapes.observation();
        let time = observation.histories(span, every_ms, &ActivityRule::default());
        if time.holders.is_empty() && !time.devices.is_empty() {
            app.note(NO_POD_IS_NAMED);
        }
        let period = UsagePeriod { span, step_ms: every_ms };
        Ok(Looked { time, period, exporters: targets.len() })
    }

    async fn targets(
        &self,
        app: &App,
        cluster: Option<&ConnectionFlags>,
    ) -> Result<Vec<ExporterTarget>> {
        let mut all = targets::at(&self.exporter)?;
        let found = targets::running_in(&self.exporters_in, cluster).await?;
        found.told.iter().for_each(|text| app.note(text));
        all.extend(found.targets);
        Ok(all)
    }
}

/// Asks all of them so often, and when the first look was.
async fn look(targets: &[ExporterTarget], count: u64, every: Duration) -> (Looks, u64) {
    let mut looks = Looks::default();
    let from_ms = now_ms();
    let mut clock = tokio::time::interval(every);
    for round in 0..count {
        clock.tick().await;
        let at_ms = (from_ms + round * every.as_millis() as u64) as i64;
        // Each has its own time to answer in; all of them together have enough.
        let end = Instant::now() + ANSWER_WITHIN * (targets.len() as u32).max(1);
        let said = targets::look(targets, 0..targets.len(), at_ms, end, &mut looks.scrapes).await;
        for (place, taken) in said.into_iter().enumerate() {
            // Who answered once is not told as silent.
            let known = looks.answers.entry(place).or_insert_with(|| taken.clone());
            if taken.is_ok() {
                *known = taken;
            }
        }
    }
    (looks, from_ms)
}

/// Says who did not answer; an error where nobody did.
fn tell(app: &App, targets: &[ExporterTarget], looks: &Looks) -> Result<()> {
    let silent: Vec<&String> = looks.answers.values().filter_map(|a| a.as_ref().err()).collect();
    if let (Some(first), true) = (silent.first(), silent.len() == targets.len()) {
        let first = plain(first);
        let told = match targets.len() {
            1 => first,
            count => format!("none of {count} exporters has GPU metrics; the first: {first}"),
        };
        return Err(anyhow!("{told}; check --exporter or --exporters-in"));
    }
    if let Some(first) = silent.first() {
        app.note(&format!(
            "{} of {} did not answer, so their GPUs are unmeasured: {}",
            silent.len(),
            counted(targets.len(), "exporter"),
            plain(first)
        ));
    }
    if let Some(refused) = looks.scrapes.refused() {
        let lines = counted(usize::try_from(refused.count).unwrap_or(usize::MAX), "line");
        app.note(&format!("{lines} of exporter output skipped: {}", refused_in_words(refused)));
    }
    Ok(())
}

/// The first line that was left out.
fn refused_in_words(refused: &RefusedLines) -> String {
    format!("line {} of {} {}", refused.line, plain(&refused.source), refused.problem)
}
