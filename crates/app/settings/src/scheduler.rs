//! The section `[scheduler]` of the settings file: what `dovetail scheduler` does, for clusters
//! that start it without flags.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use clap::ValueEnum;
use dovetail_cluster::world::{Patience, VolumePatience};
use dovetail_order::{ModelWeights, PRESETS, Turns};
use dovetail_plan::Order;
use dovetail_policy::named::POLICIES;
use dovetail_translate::levels::{LevelLabels, TopologyLevels};
use serde::Deserialize;

use super::kubernetes_names::{
    address, extended_resource, label_key, label_value, scheduler_name, split_lease,
};
use super::weights::Weights;

/// What the section can say. Flags of `dovetail scheduler` are stronger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSection {
    /// Pods that name this scheduler are placed.
    pub scheduler_name: Option<String>,
    /// The Lease, as namespace/name.
    pub lease: Option<String>,
    /// Whether only the holder of the Lease writes.
    pub leader_election: Option<bool>,
    /// Where probes and metrics are answered.
    pub listen: Option<String>,
    /// How nodes are chosen.
    pub policy: Option<String>,
    /// Who goes first of those that wait.
    pub order: Option<Order>,
    /// What order `dovetail` is for.
    pub preset: Option<String>,
    /// What order `dovetail` does differently from the preset.
    pub weights: Option<Weights>,
    /// How many pending jobs have a reservation at a time, at most one of each queue.
    pub reserve_heads: Option<u32>,
    /// Labels that a node must have for pods to be placed there.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// The extended resource whose units are whole GPUs.
    pub device_resource: Option<String>,
    /// The topology levels above the node, widest first.
    pub topology: Option<Vec<LevelSection>>,
    /// Whether pods of lower priority are stopped when there is no room.
    pub preemption: Option<bool>,
    /// Whether pods of other schedulers may be stopped, too.
    pub preempt_foreign: Option<bool>,
    /// Whether Jobs and JobSets that choose so are suspended in place of evicting their pods.
    pub suspend: Option<bool>,
    /// Whether no pod is preempted beyond what PodDisruptionBudgets allow.
    pub respect_pdb: Option<bool>,
    /// A gang that has its smallest size starts when no further pod has appeared for so long.
    pub(crate) gang_quiet_ms: Option<u64>,
    /// A gang that got only a part of its nodes is given up after so long.
    pub(crate) gang_complete_within_ms: Option<u64>,
    /// For how long room is kept for a lost member of a gang that runs.
    pub(crate) gang_keep_for_ms: Option<u64>,
    /// A decision whose pods' claims have no volumes yet is undone after so long.
    pub(crate) volume_wait_ms: Option<u64>,
    /// Declared times to write a checkpoint and to restart count as no longer than this.
    pub(crate) max_declared_loss_ms: Option<u64>,
    pub log_level: Option<LogLevel>,
    /// Write the log as one JSON object per line instead of text.
    pub log_json: Option<bool>,
}

/// One topology level.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSection {
    name: String,
    labels: Vec<String>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// What holds where nobody says anything.
pub const SCHEDULER_NAME: &str = "dovetail";
/// Namespace and name of the lease, by default.
pub const LEASE: &str = "kube-system/dovetail";
/// Where probes and metrics are answered, by default.
pub const LISTEN: &str = "127.0.0.1:10251";
/// The policy that scores nodes, by default.
pub const POLICY: &str = "dovetail";
/// The scheduling order, by default.
pub const ORDER: Order = Order::DominantShare;
const HOUR_MS: u64 = 3_600_000;
/// The resource by which pods request whole GPUs, by default.
pub const DEVICE_RESOURCE: &str = labels::NVIDIA_GPU;

impl SchedulerSection {
    /// Refuses what no scheduler could start with, or what no cluster can have: the key, and what
    /// is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        type Rule = fn(&str) -> Result<(), &'static str>;
        let texts: [(&'static str, &Option<String>, Rule); 4] = [
            ("scheduler_name", &self.scheduler_name, scheduler_name),
            ("lease", &self.lease, |text| split_lease(text).map(drop)),
            ("listen", &self.listen, address),
            ("device_resource", &self.device_resource, extended_resource),
        ];
        for (key, text, rule) in texts {
            let Some(text) = text else { continue };
            rule(text).map_err(|expected| (key, format!("{text:?}: expected {expected}")))?;
        }
        for (label, value) in self.node_selector.iter().flatten() {
            let wrong = label_key(label).and_then(|()| label_value(value)).err();
            if let Some(expected) = wrong {
                return Err((
                    "node_selector",
                    format!("{{ {label:?} = {value:?} }}: expected {expected}"),
                ));
            }
        }
        self.check_patience()?;
        if let Some(policy) = &self.policy
            && !POLICIES.iter().any(|(name, _)| name == policy)
        {
            let names = POLICIES.map(|(name, _)| name).join(", ");
            return Err(("policy", format!("{policy:?}: expected one of {names}")));
        }
        if let Some(preset) = &self.preset
            && !PRESETS.iter().any(|(name, ..)| name == preset)
        {
            let names = PRESETS.map(|(name, ..)| name).join(", ");
            return Err(("preset", format!("{preset:?}: expected one of {names}")));
        }
        self.levels().map(drop).map_err(|problem| ("topology", problem))
    }

    /// Times that would leave pods lying for hours, or give a gang up before it can be bound, are
    /// mistakes.
    fn check_patience(&self) -> Result<(), (&'static str, String)> {
        let times = [
            ("gang_quiet_ms", self.gang_quiet_ms, 0..=HOUR_MS),
            ("gang_complete_within_ms", self.gang_complete_within_ms, 1_000..=24 * HOUR_MS),
            ("gang_keep_for_ms", self.gang_keep_for_ms, 0..=HOUR_MS),
            ("volume_wait_ms", self.volume_wait_ms, 1_000..=24 * HOUR_MS),
            ("max_declared_loss_ms", self.max_declared_loss_ms, 0..=24 * HOUR_MS),
        ];
        for (key, time_ms, possible) in times {
            if let Some(time_ms) = time_ms.filter(|time_ms| !possible.contains(time_ms)) {
                let (least, most) = (possible.start(), possible.end());
                let expected = format!("expected {least} to {most} milliseconds");
                return Err((key, format!("{time_ms}: {expected}")));
            }
        }
        Ok(())
    }

    /// How long gangs are waited for.
    pub fn patience(&self) -> Patience {
        let default = Patience::default();
        Patience {
            quiet_ms: self.gang_quiet_ms.unwrap_or(default.quiet_ms),
            complete_within_ms: self.gang_complete_within_ms.unwrap_or(default.complete_within_ms),
            keep_for_ms: self.gang_keep_for_ms.unwrap_or(default.keep_for_ms),
        }
    }

    /// How long volumes are waited for.
    pub fn volume_patience(&self) -> VolumePatience {
        let default = VolumePatience::default();
        VolumePatience { wait_ms: self.volume_wait_ms.unwrap_or(default.wait_ms) }
    }

    /// The longest declared time to write a checkpoint or to restart that is believed, in ms.
    pub fn max_declared_loss_ms(&self) -> u64 {
        self.max_declared_loss_ms.unwrap_or(HOUR_MS)
    }

    /// Weights of order `dovetail`: those of the preset, except for those that the file gives.
    pub fn turns(&self) -> Turns {
        self.weights.clone().unwrap_or_default().turns(self.preset.as_deref())
    }

    /// What GPUs of some models count in the usage of queues.
    pub fn model_weights(&self) -> ModelWeights {
        self.weights.as_ref().map(Weights::model_weights).unwrap_or_default()
    }

    /// The topology levels: those of the file, or the standard ones.
    pub fn levels(&self) -> Result<TopologyLevels, String> {
        let Some(levels) = &self.topology else { return Ok(TopologyLevels::default()) };
        let level = |level: &LevelSection| LevelLabels {
            name: level.name.clone(),
            labels: level.labels.clone(),
        };
        TopologyLevels::new(levels.iter().map(level).collect())
    }

    /// Every setting with its value and whether the file gives it, in the order of the
    /// documentation.
    pub fn lines(&self) -> Vec<(&'static str, String, bool)> {
        let text = |name, value: &Option<String>, default: &str| {
            (name, value.clone().unwrap_or_else(|| default.to_owned()), value.is_some())
        };
        let switch = |name, value: Option<bool>, default: bool| {
            (name, value.unwrap_or(default).to_string(), value.is_some())
        };
        let patience = self.patience();
        let time =
            |name, given: Option<u64>, time_ms: u64| (name, time_ms.to_string(), given.is_some());
        let labels = self.node_selector.iter().flatten();
        let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
        let selector = if labels.is_empty() { "every node".to_owned() } else { labels.join(",") };
        let levels = self.levels().unwrap_or_default();
        let levels = levels.names().collect::<Vec<_>>().join(", ");
        let weights = if self.weights.is_some() { "custom" } else { "those of the preset" };
        let level = self.log_level.unwrap_or_default().to_possible_value();
        let level = level.map(|value| value.get_name().to_owned()).unwrap_or_default();
        vec![
            text("scheduler.scheduler_name", &self.scheduler_name, SCHEDULER_NAME),
            text("scheduler.lease", &self.lease, LEASE),
            switch("scheduler.leader_election", self.leader_election, true),
            text("scheduler.listen", &self.listen, LISTEN),
            text("scheduler.policy", &self.policy, POLICY),
            (
                "scheduler.order",
                self.order.unwrap_or(ORDER).name().to_owned(),
                self.order.is_some(),
            ),
            text("scheduler.preset", &self.preset, PRESETS[0].0),
            ("scheduler.weights", weights.to_owned(), self.weights.is_some()),
            (
                "scheduler.reserve_heads",
                self.reserve_heads.unwrap_or(0).to_string(),
                self.reserve_heads.is_some(),
            ),
            ("scheduler.node_selector", selector, self.node_selector.is_some()),
            text("scheduler.device_resource", &self.device_resource, DEVICE_RESOURCE),
            ("scheduler.topology", levels, self.topology.is_some()),
            switch("scheduler.preemption", self.preemption, true),
            switch("scheduler.preempt_foreign", self.preempt_foreign, false),
            switch("scheduler.respect_pdb", self.respect_pdb, false),
            switch("scheduler.suspend", self.suspend, true),
            time("scheduler.gang_quiet_ms", self.gang_quiet_ms, patience.quiet_ms),
            time(
                "scheduler.gang_complete_within_ms",
                self.gang_complete_within_ms,
                patience.complete_within_ms,
            ),
            time("scheduler.gang_keep_for_ms", self.gang_keep_for_ms, patience.keep_for_ms),
            time("scheduler.volume_wait_ms", self.volume_wait_ms, self.volume_patience().wait_ms),
            time("scheduler.max_declared_loss_ms", self.max_declared_loss_ms, HOUR_MS),
            ("scheduler.log_level", level, self.log_level.is_some()),
            switch("scheduler.log_json", self.log_json, false),
        ]
    }
}
