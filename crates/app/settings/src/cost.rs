//! The section `[cost]` of the settings file: who is which team, and what a bill is split by.

use std::collections::BTreeMap;

use clap::ValueEnum;
use dovetail_account::split::SplitMethod;
use dovetail_model::Money;
use dovetail_price::{LabelPairs, OwnedMachine, OwnedNodes, PriceBook, parse_usd_micros};
use serde::Deserialize;

use super::prices::label_pairs;
use crate::errors::UsageError;

/// What the section can say. Flags of `dovetail cost` are stronger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSection {
    pub cluster: Option<String>,
    /// How a node's price is split.
    pub method: Option<String>,
    /// List price of a vCPU-hour, such as "0.04".
    pub usd_per_vcpu_hour: Option<String>,
    /// List price of a GiB-hour of memory.
    pub usd_per_gib_hour: Option<String>,
    /// Labels that name the team, the first that is there counts.
    pub team_labels: Option<Vec<String>>,
    /// Whose labels are looked at first.
    pub team_from: Option<TeamFrom>,
    /// Teams by namespace, where `*` stands for anything.
    pub teams: Option<BTreeMap<String, String>>,
    /// Labels of pods that name the experiment whose attempts are one run; the first that is there
    /// counts.
    pub experiment_labels: Option<Vec<String>>,
    /// What teams may cost in a month, such as "20000", in USD.
    pub budgets: Option<BTreeMap<String, String>>,
    /// Machines of one's own.
    pub hardware: Option<Vec<Hardware>>,
}

/// Whose labels name the team first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum TeamFrom {
    /// The namespace's, then the pod's
    #[default]
    Namespace,
    /// The pod's, then the namespace's
    Pod,
}

impl TeamFrom {
    /// The name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Pod => "pod",
        }
    }
}

/// A kind of machine that was bought. Amounts are written as text, such as "280000" or "0.12".
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    pub gpu_model: String,
    /// GPUs of one machine.
    pub gpus: u32,
    /// What one machine costs, installed.
    pub(crate) capex_usd: String,
    /// Over how many years it is written off.
    pub years: u32,
    /// What it draws on average.
    pub(crate) watts: u32,
    /// Power of the building for each unit of power of the machine, such as "1.4".
    pub(crate) pue: String,
    /// Price of a kWh.
    pub(crate) usd_per_kwh: String,
    /// Only nodes of this provider: `aws`, `gcp`, `azure`, or what stands before `://` in their
    /// providerID.
    pub provider: Option<String>,
    /// Only nodes with labels, any of these: `KEY=VALUE`, several joined by commas; `*` is any
    /// value.
    pub nodes: Option<Vec<String>>,
}

/// A field of a machine that cannot be taken.
pub struct BadHardware {
    /// Place of the machine among those of the file.
    pub number: usize,
    /// The field; none where it is about the machine.
    pub field: Option<&'static str>,
    pub problem: String,
}

impl Hardware {
    /// The machine, and which nodes are such machines.
    fn read(&self) -> Result<(OwnedMachine, OwnedNodes), (&'static str, String)> {
        let amount = |name: &'static str, text: &str| {
            parse_usd_micros(text).map_err(|problem| (name, problem))
        };
        let machine = OwnedMachine {
            capex_usd_micros: amount("capex_usd", &self.capex_usd)?,
            gpus: self.gpus,
            years: self.years,
            watts: self.watts,
            pue_millionths: parse_usd_micros(&self.pue).map_err(|_| {
                let text = &self.pue;
                (
                    "pue",
                    format!(
                        "`{text}` is not a PUE (power usage effectiveness): write a number of at \
                         least 1 with at most six decimal places, such as 1.4"
                    ),
                )
            })?,
            usd_micros_per_kwh: amount("usd_per_kwh", &self.usd_per_kwh)?,
        };
        machine.check_pue().map_err(|problem| ("pue", problem))?;
        let labels = self.labels().map_err(|problem| ("nodes", problem))?;
        Ok((machine, OwnedNodes { provider: self.provider.clone(), labels }))
    }

    fn labels(&self) -> Result<Vec<LabelPairs>, String> {
        self.nodes.iter().flatten().map(|text| label_pairs(text)).collect()
    }
}

/// Where a machine stands.
pub fn place(number: usize) -> String {
    format!("cost.hardware, number {}", number + 1)
}

fn budget(text: &str) -> Result<Money, String> {
    match parse_usd_micros(text)? {
        0 => Err("a budget cannot be 0; omit it".to_owned()),
        usd_micros => Ok(Money::micros(usd_micros)),
    }
}

impl CostSection {
    /// Refuses what no bill could be split by.
    pub fn check(&self) -> Result<(), String> {
        if let Some(method) = &self.method {
            method
                .parse::<SplitMethod>()
                .map_err(|problem| format!("cost.method = \"{method}\": {problem}"))?;
        }
        let amounts = [
            ("usd_per_vcpu_hour", &self.usd_per_vcpu_hour),
            ("usd_per_gib_hour", &self.usd_per_gib_hour),
        ];
        for (name, text) in amounts {
            if let Some(text) = text {
                parse_usd_micros(text).map_err(|problem| format!("cost.{name}: {problem}"))?;
            }
        }
        if amounts[0].1.is_some() != amounts[1].1.is_some() {
            return Err("cost: set both usd_per_vcpu_hour and usd_per_gib_hour, or neither".into());
        }
        for (team, text) in self.budgets.iter().flatten() {
            budget(text).map_err(|problem| format!("cost.budgets.\"{team}\": {problem}"))?;
        }
        for (namespace, team) in self.teams.iter().flatten() {
            if team.is_empty() {
                return Err(format!("cost.teams.\"{namespace}\" = \"\": name a team"));
            }
        }
        Ok(())
    }

    /// Refuses machines without a price of an hour.
    pub(crate) fn check_hardware(&self) -> Result<(), BadHardware> {
        let bad = |number, field, problem| BadHardware { number, field, problem };
        let mut book = PriceBook::default();
        for (number, machine) in self.hardware.iter().flatten().enumerate() {
            let read = machine.read().map_err(|(field, problem)| bad(number, Some(field), problem));
            let (owned, nodes) = read?;
            let added = book.with_owned(&machine.gpu_model, owned, nodes, &place(number));
            book = added.map_err(|error| bad(number, None, error.to_string()))?;
        }
        Ok(())
    }

    /// Labels that name the machine of a node, for readers that must ask for them by name.
    pub fn hardware_labels(&self) -> Vec<String> {
        let labels = self.hardware.iter().flatten().filter_map(|machine| machine.labels().ok());
        let keys = |pairs: LabelPairs| pairs.keys().map(str::to_owned).collect::<Vec<_>>();
        labels.flatten().flat_map(keys).collect()
    }

    /// A price book with the machines that were bought.
    ///
    /// # Errors
    /// An amount that is none, or a model that is there twice.
    pub fn machines(&self, mut book: PriceBook) -> Result<PriceBook, UsageError> {
        for (number, machine) in self.hardware.iter().flatten().enumerate() {
            let (owned, nodes) = machine.read().map_err(|(field, problem)| {
                UsageError(format!("{}: {field}: {problem}", place(number)))
            })?;
            let added = book.with_owned(&machine.gpu_model, owned, nodes, &place(number));
            book = added.map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(book)
    }

    /// The note where the section splits the price of a node otherwise than `dovetail audit` does,
    /// for which GPUs carry all of it.
    pub fn without_effect_on_audit(&self) -> Option<String> {
        let method = self.method.as_ref().and_then(|name| name.parse::<SplitMethod>().ok());
        let set = [
            ("cost.method", method.is_some_and(|method| method != SplitMethod::AllIn)),
            ("cost.usd_per_vcpu_hour", self.usd_per_vcpu_hour.is_some()),
            ("cost.usd_per_gib_hour", self.usd_per_gib_hour.is_some()),
        ];
        let set: Vec<&str> =
            set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
        let verb = if set.len() == 1 { "has" } else { "have" };
        (!set.is_empty()).then(|| {
            format!(
                "{} {verb} no effect on `dovetail audit`, which assigns the whole price of a node \
                 to its GPUs (method all-in) and no price to nodes without GPUs; `dovetail cost` \
                 and `dovetail serve` apply these settings",
                set.join(", ")
            )
        })
    }

    /// What teams may cost in a month.
    pub fn budgets_usd_micros(&self) -> BTreeMap<String, Money> {
        // What the file says was looked at when it was read.
        let budgets = self.budgets.iter().flatten();
        budgets.filter_map(|(team, text)| Some((team.clone(), budget(text).ok()?))).collect()
    }

    /// Every setting with its value and whether the file gives it, in the order of the
    /// documentation.
    pub fn lines(&self) -> Vec<(&'static str, String, bool)> {
        let text = |name, value: &Option<String>, default: &str| {
            (name, value.clone().unwrap_or_else(|| default.to_owned()), value.is_some())
        };
        let labels = self.team_labels.as_ref().map(|labels| labels.join(","));
        let experiments = self.experiment_labels.as_ref().map(|labels| labels.join(","));
        let count = |count: usize| if count == 0 { "none".to_owned() } else { count.to_string() };
        vec![
            text("cost.cluster", &self.cluster, "UID of the kube-system namespace"),
            text("cost.method", &self.method, "residual with list prices, else all-in"),
            text("cost.usd_per_vcpu_hour", &self.usd_per_vcpu_hour, "unknown"),
            text("cost.usd_per_gib_hour", &self.usd_per_gib_hour, "unknown"),
            text("cost.team_labels", &labels, "team,cost-center,owner,..."),
            (
                "cost.team_from",
                self.team_from.unwrap_or_default().name().to_owned(),
                self.team_from.is_some(),
            ),
            (
                "cost.teams",
                count(self.teams.as_ref().map_or(0, BTreeMap::len)),
                self.teams.is_some(),
            ),
            text("cost.experiment_labels", &experiments, "none"),
            (
                "cost.budgets",
                count(self.budgets.as_ref().map_or(0, BTreeMap::len)),
                self.budgets.is_some(),
            ),
            (
                "cost.hardware",
                count(self.hardware.as_ref().map_or(0, Vec::len)),
                self.hardware.is_some(),
            ),
        ]
    }
}
