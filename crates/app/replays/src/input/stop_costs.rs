//! What it costs to stop jobs and start them again, from flags.

use clap::Args;
use dovetail_settings::errors::UsageError;
use dovetail_trace::StopCosts;
use dovetail_units::duration::parse_duration;

/// The shortest work between two checkpoints.
const LEAST_INTERVAL_MS: u64 = 1_000;

/// Writing a checkpoint takes less than so many times the work that it keeps.
const MOST_COST: u64 = 100;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct StopCostFlags {
    /// timed: work between two checkpoints, for jobs without a value in the trace, such as 10m
    /// [default: no checkpoints]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    checkpoint_interval: Option<u64>,
    /// timed: time to write a checkpoint, for jobs without a value in the trace [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    checkpoint_cost: Option<u64>,
    /// timed: time from the restart of a preempted job until it resumes work, for jobs without a
    /// value in the trace [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    restart_cost: Option<u64>,
    /// timed: time that a job needs to save its work when it is preempted, for jobs without a value
    /// in the trace; a preemption then loses at most this time [default: the job saves no work]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    save_on_notice: Option<u64>,
    /// timed: also charge las, srtf and srsf the checkpoint and restart costs, which their
    /// publications omit
    #[arg(long)]
    charge_baselines: bool,
}

impl StopCostFlags {
    /// The first flag that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--checkpoint-interval", self.checkpoint_interval.is_some()),
            ("--checkpoint-cost", self.checkpoint_cost.is_some()),
            ("--restart-cost", self.restart_cost.is_some()),
            ("--save-on-notice", self.save_on_notice.is_some()),
            ("--charge-baselines", self.charge_baselines),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// Refuses checkpoints for which jobs would hardly do any work: a replay would run for ages.
    ///
    /// # Errors
    /// Names the flag, and what it must be.
    pub fn check(&self) -> Result<(), UsageError> {
        let Some(interval_ms) = self.checkpoint_interval else { return Ok(()) };
        if interval_ms < LEAST_INTERVAL_MS {
            let text = "--checkpoint-interval: must be at least 1s; without checkpoints, omit it";
            return Err(UsageError(text.to_owned()));
        }
        let cost_ms = self.checkpoint_cost.unwrap_or(0);
        if cost_ms >= interval_ms.saturating_mul(MOST_COST) {
            return Err(UsageError(format!(
                "--checkpoint-cost: must be less than {MOST_COST} times --checkpoint-interval: \
                 jobs would do almost nothing but write checkpoints"
            )));
        }
        Ok(())
    }

    /// Whether published orders are charged.
    pub fn charges_baselines(&self) -> bool {
        self.charge_baselines
    }

    /// What stops cost where the trace does not say.
    pub fn costs(&self) -> StopCosts {
        StopCosts {
            checkpoint_interval_ms: self.checkpoint_interval,
            checkpoint_cost_ms: self.checkpoint_cost,
            restart_cost_ms: self.restart_cost,
            save_on_notice_ms: self.save_on_notice,
        }
    }
}
