//! Pods as parts of runs: from the bill of a period, or from objects that are still there.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_inventory::facts::{Gathered, PodLife};
use dovetail_metrics::kube_state::{KubeState, label};
use dovetail_model::Money;
use dovetail_phases::runs::{PodEnd, RunOwner, RunPod};
use dovetail_settings::cost::CostSection;

use super::asked::HeldLevels;
use super::training::Training;
use crate::account::Account;
use crate::account::CostPod;
use crate::from_objects::words;
use crate::names::{CLASS, RUN};
use crate::statement::NodeCharges;
use crate::teams::{Labels, Teams};
use crate::usage::grouping::owner_name;

/// Pods that may be attempts.
pub struct RunPods {
    pub pods: Vec<RunPod>,
    pub teams: Vec<Option<String>>,
    /// Whether they are what the bill has; else what objects tell.
    pub(crate) is_of_bill: bool,
    /// Pods with GPUs of which nobody knows how much they held.
    pub left_out: usize,
}

/// The first experiment that a label names.
fn experiment(section: &CostSection, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let keys = section.experiment_labels.iter().flatten();
    keys.filter_map(|key| value(key)).find(|value| !value.is_empty())
}

/// From objects: what pods held since they got their node, at its price.
pub fn of_objects(
    account: &Account,
    gathered: &Gathered,
    teams: &Teams,
    training: &Training,
    section: &CostSection,
) -> RunPods {
    let prices: BTreeMap<&str, Option<i64>> = account
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.price.usd_micros_per_gpu_hour))
        .collect();
    let spaces: BTreeMap<&str, &Labels> =
        gathered.facts.namespaces.iter().map(|space| (&*space.name, &space.labels)).collect();
    let none = Labels::new();
    let now_ms = gathered.facts.now_ms;
    let mut found = RunPods { pods: Vec::new(), teams: Vec::new(), is_of_bill: false, left_out: 0 };
    let placed = gathered.lives.iter().filter(|life| life.node.is_some());
    let trains = |life: &&PodLife| {
        training.is(&words(&life.owner), life.labels.get(CLASS).map(String::as_str))
    };
    for life in placed.filter(trains) {
        let to_ms = if life.has_succeeded.is_some() { life.ended_ms } else { Some(now_ms) };
        let (Some(from_ms), Some(to_ms), Some(gpu_milli)) =
            (life.scheduled_ms, to_ms, life.gpu_milli)
        else {
            found.left_out += 1;
            continue;
        };
        let held = Span { from_ms, to_ms: to_ms.max(from_ms) };
        let gpu_milli_ms = i128::from(gpu_milli) * i128::from(held.to_ms - held.from_ms);
        let price = life.node.as_deref().and_then(|node| *prices.get(node)?);
        let space = spaces.get(&*life.namespace).copied().unwrap_or(&none);
        found.teams.push(teams.team(&life.namespace, space, &life.labels));
        found.pods.push(RunPod {
            held: Some(held),
            end: end_of(life).unwrap_or(PodEnd::Open),
            gpu_milli_ms,
            cost: price.map(|price| Money::of_gpu_time(gpu_milli_ms, price)),
            ..named(life, section)
        });
    }
    found
}

/// A pod as objects name it.
fn named(life: &PodLife, section: &CostSection) -> RunPod {
    let value = |key: &str| life.labels.get(key).filter(|value| !value.is_empty()).cloned();
    RunPod {
        namespace: life.namespace.clone(),
        name: life.pod.clone(),
        owner: RunOwner { kind: life.owner.kind.clone(), name: life.owner.name.clone() },
        owner_uid: life.owner_uid.clone(),
        is_by_timetable: life.is_by_timetable,
        run: value(RUN),
        experiment: experiment(section, value),
        ..RunPod::default()
    }
}

fn end_of(life: &PodLife) -> Option<PodEnd> {
    Some(if life.has_succeeded? { PodEnd::Completed } else { PodEnd::Failed })
}

/// What a bill of a period is joined with.
pub struct OfPeriod<'p> {
    pub account: &'p Account,
    pub charges: &'p NodeCharges,
    pub held: &'p [HeldLevels],
    pub training: &'p Training,
    pub kube: &'p KubeState,
    pub objects: Option<&'p Gathered>,
    pub section: &'p CostSection,
    pub step_ms: u64,
}

impl OfPeriod<'_> {
    /// What pods held and cost in the bill, with all that is known of whose they are.
    pub fn pods(&self) -> RunPods {
        let lives = self.objects.iter().flat_map(|objects| &objects.lives);
        let lives: BTreeMap<(&str, &str), &PodLife> =
            lives.map(|life| ((&*life.namespace, &*life.pod), life)).collect();
        let mut pods: Vec<RunPod> = Vec::with_capacity(self.account.pods.len());
        for pod in &self.account.pods {
            // Objects are of now, and of the last of that name.
            let is_last = pod.turn == self.kube.last_turn(&pod.namespace, &pod.name);
            let life = lives.get(&(&*pod.namespace, &*pod.name)).filter(|_| is_last);
            let named = match life {
                Some(life) => named(life, self.section),
                None => self.named(pod),
            };
            let known = life.and_then(|life| end_of(life));
            let end = known.or_else(|| self.end_of(pod)).unwrap_or_default();
            pods.push(RunPod { end, cost: Some(Money::ZERO), ..named });
        }
        self.add_times(&mut pods);
        for (_, charge) in self.charges {
            let Some(pod) = charge.holder.and_then(|pod| pods.get_mut(pod as usize)) else {
                continue;
            };
            pod.gpu_milli_ms += charge.gpu_milli_ms;
            pod.cost = pod.cost.zip(charge.cost).map(|(sum, more)| sum + more);
        }
        let of_training = pods.into_iter().zip(&self.account.pods);
        let of_training = of_training.filter(|(_, pod)| self.training.is(&pod.job, None));
        let (pods, teams) = of_training.map(|(run, pod)| (run, pod.team.clone())).unzip();
        RunPods { pods, teams, is_of_bill: true, left_out: 0 }
    }

    /// From the first moment with a device to the last; who holds one at the end has not ended.
    fn add_times(&self, pods: &mut [RunPod]) {
        for held in self.held {
            let (Some(pod), Some(first), Some(last)) =
                (pods.get_mut(held.pod as usize), held.levels.first(), held.levels.last())
            else {
                continue;
            };
            let (from_ms, to_ms) = (first.span.from_ms, last.span.to_ms);
            let span = pod.held.get_or_insert(Span { from_ms, to_ms });
            span.from_ms = span.from_ms.min(from_ms);
            span.to_ms = span.to_ms.max(to_ms);
        }
        let open_ms = self.account.span.to_ms.saturating_sub(2 * self.step_ms);
        for pod in pods.iter_mut().filter(|pod| pod.end == PodEnd::Unknown) {
            if pod.held.is_some_and(|held| held.to_ms > open_ms) {
                pod.end = PodEnd::Open;
            }
        }
    }

    /// A pod as series name it, else by its name.
    fn named(&self, pod: &CostPod) -> RunPod {
        let seen = self.kube.pod_in_turn(&pod.namespace, &pod.name, pod.turn);
        let value = |key: &str| label(&seen?.labels, key);
        let (owner, is_by_timetable) =
            match self.kube.run_owner(&pod.namespace, &pod.name, pod.turn) {
                Some(((kind, name), is_by_timetable)) => (RunOwner { kind, name }, is_by_timetable),
                None => (
                    RunOwner { kind: String::new(), name: owner_name(&pod.name).to_owned() },
                    false,
                ),
            };
        RunPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            owner,
            is_by_timetable,
            run: value(RUN),
            experiment: experiment(self.section, value),
            ..RunPod::default()
        }
    }

    fn end_of(&self, pod: &CostPod) -> Option<PodEnd> {
        let seen = self.kube.pod_in_turn(&pod.namespace, &pod.name, pod.turn)?;
        Some(if seen.has_succeeded? { PodEnd::Completed } else { PodEnd::Failed })
    }
}
