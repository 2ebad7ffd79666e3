//! Queues: the tree of teams, with what each is given of the cluster.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::QueueName;
use crate::job::Job;
use crate::requirement::Requirement;

/// One node of the tree of teams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Name, unique.
    pub name: QueueName,
    /// Parent; `None` hangs below the root.
    #[serde(default)]
    pub parent: Option<QueueName>,
    /// Quota that is never lent for good. Of what is named here the queue and all below it hold no
    /// more, unless it borrows.
    #[serde(default)]
    pub guaranteed: Bounds,
    /// Whether it may hold more than its quota while that is free.
    #[serde(default)]
    pub borrows: bool,
    /// Share of what is not enough for all: a queue of weight 2 holds twice as much as one of
    /// weight 1.
    #[serde(default = "one")]
    pub weight: u32,
    /// Never more than this.
    #[serde(default)]
    pub limit: Bounds,
    /// After so long, what it used counts half. `None` is as for its parent, and as the order says
    /// above all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life_ms: Option<u64>,
    /// Higher is given first of what is left beyond quotas (preset `kai`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

fn one() -> u32 {
    1
}

impl Queue {
    /// A queue below the root that is given nothing in particular and may hold anything.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            parent: None,
            guaranteed: Bounds::default(),
            borrows: false,
            weight: 1,
            limit: Bounds::default(),
            half_life_ms: None,
            priority: 0,
        }
    }

    /// Most that it may hold of something, and by what; `None` is no bound.
    pub fn most(&self, axis: &Axis) -> Option<(i64, BoundBy)> {
        let guaranteed = self.guaranteed.get(axis).filter(|_| !self.borrows);
        let limit = self.limit.get(axis).map(|limit| (limit, BoundBy::Limit));
        let guaranteed = guaranteed.map(|most| (most, BoundBy::Guaranteed));
        guaranteed.into_iter().chain(limit).min_by_key(|(most, _)| *most)
    }

    /// Everything of which it is given a bounded amount.
    pub fn bounded(&self) -> impl Iterator<Item = Axis> {
        let both = [&self.guaranteed, &self.limit].into_iter().flat_map(Bounds::iter);
        let axes: std::collections::BTreeSet<Axis> = both.map(|(axis, _)| axis).collect();
        axes.into_iter()
    }
}

/// What a queue has used of the cluster, older use counting less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUsage {
    pub queue: QueueName,
    /// Whether it is of its own jobs alone, without the queues below it.
    #[serde(default)]
    pub is_own: bool,
    /// The whole cluster for a second is a billion. Of each moment it counts the greatest part of
    /// anything that the queue held.
    pub used: u64,
    /// As of when.
    pub at_ms: u64,
}

/// What keeps a queue from holding more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// Its quota, as it does not borrow.
    Guaranteed,
    Limit,
}

/// Something that queues are given amounts of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// GPUs, in thousandths.
    Gpu,
    /// CPU, in thousandths of a core.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// An extended resource, in whole units.
    Extended(String),
    /// GPUs of one model, in thousandths.
    GpuModel(String),
}

impl fmt::Display for Axis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::GpuModel(model) = self {
            return write!(out, "milli-GPU of {model}");
        }
        out.write_str(match self {
            Self::Gpu => "milli-GPU",
            Self::Cpu => "milli-CPU",
            Self::Memory => "bytes of memory",
            Self::Extended(name) | Self::GpuModel(name) => name,
        })
    }
}

/// Amounts by what they are of. What is not named is not bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// GPUs, in thousandths.
    pub gpu_milli: Option<i64>,
    /// CPU, in thousandths of a core.
    pub cpu_milli: Option<i64>,
    pub memory_bytes: Option<i64>,
    /// Extended resources by name, in whole units.
    pub extended: BTreeMap<String, i64>,
    /// GPUs by model, in thousandths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_model: BTreeMap<String, i64>,
}

impl Bounds {
    /// An amount of GPUs, in thousandths, or none.
    pub fn gpus(gpu_milli: Option<i64>) -> Self {
        Self { gpu_milli, ..Self::default() }
    }

    /// The amount of something, if it is named.
    pub fn get(&self, axis: &Axis) -> Option<i64> {
        match axis {
            Axis::Gpu => self.gpu_milli,
            Axis::Cpu => self.cpu_milli,
            Axis::Memory => self.memory_bytes,
            Axis::Extended(name) => self.extended.get(name).copied(),
            Axis::GpuModel(name) => self.by_model.get(name).copied(),
        }
    }

    /// Names an amount.
    pub fn set(&mut self, axis: &Axis, amount: i64) {
        match axis {
            Axis::Gpu => self.gpu_milli = Some(amount),
            Axis::Cpu => self.cpu_milli = Some(amount),
            Axis::Memory => self.memory_bytes = Some(amount),
            Axis::Extended(name) => drop(self.extended.insert(name.clone(), amount)),
            Axis::GpuModel(name) => drop(self.by_model.insert(name.clone(), amount)),
        }
    }

    /// Everything that is named.
    pub fn iter(&self) -> impl Iterator<Item = (Axis, i64)> {
        let plain = [
            (Axis::Gpu, self.gpu_milli),
            (Axis::Cpu, self.cpu_milli),
            (Axis::Memory, self.memory_bytes),
        ];
        let plain = plain.into_iter().filter_map(|(axis, amount)| Some((axis, amount?)));
        let extended = self.extended.iter();
        let extended = extended.map(|(name, amount)| (Axis::Extended(name.clone()), *amount));
        let by_model = self.by_model.iter();
        let by_model = by_model.map(|(name, amount)| (Axis::GpuModel(name.clone()), *amount));
        plain.chain(extended).chain(by_model)
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What pods count for their queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    /// GPUs, in thousandths.
    pub gpu_milli: i64,
    /// CPU, in thousandths of a core.
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// Extended resources by name, in whole units.
    pub extended: BTreeMap<String, i64>,
    /// GPUs by model, in thousandths; a pod that may have several models counts for the one it
    /// gets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_model: BTreeMap<String, i64>,
}

impl Charge {
    /// What one pod counts.
    pub fn of(requirement: &Requirement) -> Self {
        let gpu_milli = requirement.gpu_milli();
        let only = requirement.gpu_models.first().filter(|_| requirement.gpu_models.len() == 1);
        let only = only.filter(|_| gpu_milli != 0);
        Self {
            gpu_milli,
            by_model: only.map(|model| (model.clone(), gpu_milli)).into_iter().collect(),
            cpu_milli: requirement.resources.cpu_milli,
            memory_bytes: requirement.resources.memory_bytes,
            extended: requirement.resources.extended.clone(),
        }
    }

    /// What a job counts at its smallest size.
    pub fn of_smallest(job: &Job) -> Self {
        let mut charge = Self::default();
        for set in &job.pod_sets {
            charge.add_times(&Self::of(&set.requirement), i64::from(set.min));
        }
        charge
    }

    /// The amount of something.
    pub fn get(&self, axis: &Axis) -> i64 {
        match axis {
            Axis::Gpu => self.gpu_milli,
            Axis::Cpu => self.cpu_milli,
            Axis::Memory => self.memory_bytes,
            Axis::Extended(name) => self.extended.get(name).copied().unwrap_or(0),
            Axis::GpuModel(name) => self.by_model.get(name).copied().unwrap_or(0),
        }
    }

    /// Names the amount of something.
    pub fn set(&mut self, axis: &Axis, amount: i64) {
        match axis {
            Axis::Gpu => self.gpu_milli = amount,
            Axis::Cpu => self.cpu_milli = amount,
            Axis::Memory => self.memory_bytes = amount,
            Axis::Extended(name) => drop(self.extended.insert(name.clone(), amount)),
            Axis::GpuModel(name) => drop(self.by_model.insert(name.clone(), amount)),
        }
    }

    /// Everything of which there is any.
    pub fn iter(&self) -> impl Iterator<Item = (Axis, i64)> {
        let plain = [
            (Axis::Gpu, self.gpu_milli),
            (Axis::Cpu, self.cpu_milli),
            (Axis::Memory, self.memory_bytes),
        ];
        let extended = self.extended.iter();
        let extended = extended.map(|(name, amount)| (Axis::Extended(name.clone()), *amount));
        let by_model = self.by_model.iter();
        let by_model = by_model.map(|(name, amount)| (Axis::GpuModel(name.clone()), *amount));
        plain.into_iter().chain(extended).chain(by_model).filter(|(_, amount)| *amount != 0)
    }

    /// Adds `times` × `other` in place; what becomes 0 is not named. Absurd amounts, which no node
    /// has, stop at the limits of their type.
    pub fn add_times(&mut self, other: &Self, times: i64) {
        let add = |sum: &mut i64, amount: i64| {
            *sum = sum.saturating_add(amount.saturating_mul(times));
        };
        add(&mut self.gpu_milli, other.gpu_milli);
        add(&mut self.cpu_milli, other.cpu_milli);
        add(&mut self.memory_bytes, other.memory_bytes);
        let named = [(&mut self.extended, &other.extended), (&mut self.by_model, &other.by_model)];
        for (sums, amounts) in named {
            for (name, amount) in amounts {
                let sum = sums.entry(name.clone()).or_default();
                add(sum, *amount);
                if *sum == 0 {
                    sums.remove(name);
                }
            }
        }
    }
}
