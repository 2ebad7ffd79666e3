//! One node from step to step.

use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_model::MigTable;
use dovetail_sharing::{Next, Record, Step, Write, next};
use serde_json::Value;

use super::Apply;

impl Apply<'_> {
    /// Goes on until the change of a node is over, or waits for pods to finish by themselves.
    pub(super) async fn run_to_end(&self, node: &str, table: Option<&MigTable>) -> Result<Record> {
        let run = self.run(node, table).await;
        run.with_context(|| {
            format!(
                "the change of node {node} is not over; its state is recorded: run `dovetail partition apply` again to \
                 continue"
            )
        })
    }

    async fn run(&self, node: &str, table: Option<&MigTable>) -> Result<Record> {
        let mut told = String::new();
        loop {
            let seen = self.server.seen(node, table, &self.options.timing).await?;
            let now_ms = now_ms();
            let record = seen.record.as_ref().context("its record was removed by others")?;
            match next(&seen, &self.options.timing, now_ms) {
                Next::Over => return Ok(record.clone()),
                Next::WriteConfig => self.write_layouts(record).await?,
                Next::Write(write) => {
                    if self.write(node, &write).await? {
                        self.told(node, &write.record);
                    }
                }
                Next::Wait { .. } if record.step == Step::Emptying => return Ok(record.clone()),
                Next::Wait { until_ms, why } => {
                    if why != told {
                        self.app.note(&format!("node {node}: waiting {why}"));
                        told = why;
                    }
                    let pause_ms = until_ms.saturating_sub(now_ms).min(self.options.poll_ms);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
            }
        }
    }

    /// Sees to it that both layouts of a change are in the ConfigMap.
    pub(super) async fn write_layouts(&self, record: &Record) -> Result<()> {
        loop {
            let (mut layouts, is_there) = self.server.layouts(record.by).await?;
            let is_new = layouts.add_both(record, now_ms());
            if !is_new && is_there
                || self.server.write_layouts(record.by, &layouts, is_there, now_ms()).await?
            {
                return Ok(());
            }
        }
    }

    /// Sends a write to a node, its event first; `false` if the node has changed in between.
    pub(super) async fn write(&self, node: &str, write: &Write) -> Result<bool> {
        if let Some(event) = &write.event {
            self.tell(event).await;
        }
        self.server.write(node, write).await
    }

    /// Creates an event. One that is refused is only noted: nodes change all the same.
    pub(super) async fn tell(&self, event: &Value) {
        if let Err(error) = self.server.create_event(event).await {
            let object = &event["involvedObject"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, name, reason) =
                (text(&object["kind"]), text(&object["name"]), text(&event["reason"]));
            let about = plain(&format!("{kind} {name}")).to_string();
            self.app.note(&format!("event {reason} about {about} was not created: {error:#}"));
        }
    }

    pub(super) fn told(&self, node: &str, record: &Record) {
        let problem = match record.problem.is_empty() {
            true => String::new(),
            false => format!(" ({})", record.problem),
        };
        self.app.note(&format!("node {node}: {}{problem}", record.step.word()));
    }
}
