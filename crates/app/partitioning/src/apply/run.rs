//! One node from step to step.

use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_console::clock::now_ms;
use dovetail_model::MigTable;
use dovetail_sharing::{Next, Record, Seen, Step, is_for_pods, next, waits_for_pods};

use super::Apply;
use super::evict::evict;
use super::replace::settle;

impl Apply<'_> {
    /// Goes on until the change of a node is over, or waits for pods to finish by themselves.
    pub(super) async fn run_to_end(&self, node: &str, table: Option<&MigTable>) -> Result<Record> {
        let run = self.run(node, table).await;
        run.with_context(|| {
            format!(
                "the change of node {node} is not finished, but its state is recorded: run `dovetail partition apply` \
                 again to continue"
            )
        })
    }

    async fn run(&self, node: &str, table: Option<&MigTable>) -> Result<Record> {
        let mut told = String::new();
        let mut held_since_ms = None;
        loop {
            let seen = self.seen(node, table).await?;
            let now_ms = now_ms();
            let record = seen.record.as_ref().context("its change record was removed")?;
            let next = next(&seen, &self.options.timing, now_ms);
            settle(&self.server, record, &next).await?;
            match next {
                Next::Over => return Ok(record.clone()),
                Next::WriteConfig => self.write_layouts(record).await?,
                Next::Write(write) => {
                    if self.sender().write(node, &write).await? {
                        self.sender().told(node, &write.record);
                    }
                }
                Next::Wait { ref why, .. } if is_left(&seen, record, why) => {
                    return Ok(record.clone());
                }
                Next::Wait { until_ms, why } => self.wait(node, until_ms, why, &mut told).await,
                Next::Evict(one) => match evict(&self.sender(), &seen, &one).await? {
                    None => held_since_ms = None,
                    Some(why) => {
                        let since_ms = *held_since_ms.get_or_insert(now_ms);
                        if now_ms >= since_ms + self.options.move_wait_ms {
                            let seen = self.seen(node, table).await?;
                            return seen.record.context("its change record was removed");
                        }
                        let why = format!("to evict {why}");
                        self.wait(node, u64::MAX, why, &mut told).await;
                    }
                },
            }
        }
    }

    /// Pauses until a time, but not for longer than a node is left alone; `told`: what was said
    /// last.
    async fn wait(&self, node: &str, until_ms: u64, why: String, told: &mut String) {
        if why != *told {
            self.app.note(&format!("node {node}: waiting {why}"));
            *told = why;
        }
        let pause_ms = until_ms.saturating_sub(now_ms()).min(self.options.poll_ms);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }

    /// Sees to it that both layouts of a change are in the ConfigMap.
    pub(super) async fn write_layouts(&self, record: &Record) -> Result<()> {
        loop {
            let (mut layouts, is_there) = self.server.layouts(record.by).await?;
            let is_new = layouts.add_both(record.sides(), now_ms());
            if !is_new && is_there
                || self.server.write_layouts(record.by, &layouts, is_there, now_ms()).await?
            {
                return Ok(());
            }
        }
    }
}

/// Whether a change waits for pods that finish by themselves: other nodes do not wait for them, and
/// the next call goes on.
fn is_left(seen: &Seen, record: &Record, why: &str) -> bool {
    match record.step {
        Step::Emptying => !record.has_moves() || waits_for_pods(seen, record),
        _ => is_for_pods(record, why),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_sharing::{Component, Side};

    use super::*;

    #[test]
    fn a_change_that_waits_for_pods_is_left_to_the_next_call() {
        let why = "mig-manager reported `failed`: waiting until n/late finish on its GPUs";
        let record = |step: Step, problem: &str| {
            let side = Side::whole(2, None);
            let begun = Record::begun(Component::MigManager, side.clone(), side, 0);
            Record { step, attempt: 1, problem: problem.to_owned(), ..begun }
        };
        let seen = Seen::default();
        for step in [Step::Clearing, Step::Applying, Step::Reverting] {
            assert!(is_left(&seen, &record(step, why), why), "{step:?}");
            let works = "for mig-manager and the device plugin (pending)";
            assert!(!is_left(&seen, &record(step, why), works), "{step:?}");
        }
        assert!(is_left(&seen, &record(Step::Emptying, ""), "for pods"));
        assert!(!is_left(&seen, &record(Step::Tainted, ""), "until schedulers see the taint"));
    }
}
