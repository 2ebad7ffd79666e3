//! What answers are made from.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use anyhow::Result;
use dovetail_account::cost::Paid;
use dovetail_account::device_time::Span;
use dovetail_account::device_time::device_intervals;
use dovetail_account::signal::ActivityRule;
use dovetail_account::utilisation::BusyLevel;
use dovetail_console::app::App;
use dovetail_metrics::kube_state::pod_ends;
use dovetail_metrics::serving::ServingCounter;
use dovetail_sources::prometheus::Asker;
use dovetail_sources::serving;
use dovetail_sources::uses::Uses;

use super::attempts::OfPeriod;
use super::attempts::{RunPods, of_objects};
use super::by_request::ServedByJob;
use super::training::Training;
use super::waits::{self, QueuedPods};
use crate::account::{Account, Basis};
use crate::flags::{AccountFlags, AtMoment, BillSource, BillTerms, parts};
use crate::from_objects::Parts;
use crate::from_prometheus::{BillInputs, Look};
use crate::levels::levels as levels_of;
use crate::statement::{NodeCharges, all_charges};

/// A bill with all that is known of its pods.
pub struct QuestionInput {
    pub account: Account,
    /// Charges with the places of their nodes.
    pub charges: NodeCharges,
    /// How busy each device was while a pod held it.
    pub held: Vec<HeldLevels>,
    /// What levels were read of; `None` where nothing was.
    pub sampled: Option<Sampled>,
    pub training: Training,
    /// Whether it is known which pods stand on which node without holding a GPU.
    pub(crate) knows_tenants: bool,
    /// Pods that may be attempts of runs.
    pub(crate) run_pods: RunPods,
    /// Pods that were asked for.
    pub waits: QueuedPods,
    /// What servers counted, by workload; `None` where nobody was asked.
    pub served: Option<BTreeMap<String, ServedByJob>>,
}

/// A device held by a pod.
pub struct HeldLevels {
    pub pod: u32,
    pub gpu_milli: i64,
    /// Ascending; they do not overlap.
    pub levels: Vec<BusyLevel>,
    /// Whether the device computed for one of several pods: of this one is only known when it did
    /// not, so what is known of it says nothing of the rest.
    pub(crate) is_known_idle_alone: bool,
}

/// Samples.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    pub span: Span,
    pub step_ms: u64,
}

impl QuestionInput {
    /// Whether a pod holds any of a GPU.
    pub(crate) fn has_holders(&self) -> bool {
        let mut paid = self.charges.iter().map(|(_, charge)| charge.paid);
        paid.any(|paid| matches!(paid, Paid::Gpus(state) if state.is_allocated()))
    }

    /// When that is of which an answer says that there was nothing.
    pub fn when(&self) -> &'static str {
        match self.account.basis {
            Basis::RunRate => "in this snapshot",
            _ => "in this period",
        }
    }
}

/// A sample holds so many steps at most.
const MOST_STEPS: u64 = 3;

impl QuestionInput {
    /// Reads everything.
    pub fn of(app: &App, flags: &AccountFlags, terms: &BillTerms) -> Result<Self> {
        let section = &app.settings.cost;
        match flags.source(app, &terms.teams)? {
            BillSource::Moment(mut moment) => {
                let parts = parts(&moment.gathered, &mut moment.told)?;
                let (account, _) = flags.of_moment(app, terms, &moment, &parts, false)?;
                let held = levels_of_moment(&account, &moment, &parts);
                let sampled = moment
                    .uses
                    .as_ref()
                    .map(|uses| Sampled { span: uses.period.span, step_ms: uses.period.step_ms });
                let objects = &moment.gathered;
                let training = Training::of(Some(&objects.facts.workloads));
                Ok(Self {
                    charges: all_charges(&account, terms.method, terms.unused)?,
                    run_pods: of_objects(&account, objects, &terms.teams, &training, section),
                    account,
                    held,
                    sampled,
                    training,
                    knows_tenants: true,
                    waits: waits::of_objects(objects, &parts, &terms.teams),
                    served: None,
                })
            }
            BillSource::Server(mut over) => {
                let (mut account, _, mut look) = flags.over_time(app, terms, &mut over)?;
                let (span, step_ms) = (over.asker.period, over.asker.step_ms);
                let held = levels_over_time(&account, &look, span)?;
                let charges = all_charges(&account, terms.method, terms.unused)?;
                add_pod_ends(&mut over.asker, &mut look, &mut account.notes);
                let objects = over.objects.as_ref().map(|objects| &objects.gathered);
                let sources = BillInputs {
                    teams: &terms.teams,
                    prices: &flags.prices,
                    list_prices: terms.list_prices,
                    settings: &app.settings,
                    gathered: objects,
                    free: &[],
                };
                let waits = waits::over_time(&mut over.asker, &look, &sources, &mut account.notes);
                let served = served(&mut over.asker, &mut account);
                let training = Training::of(objects.map(|objects| &*objects.facts.workloads));
                let of_period = OfPeriod {
                    account: &account,
                    charges: &charges,
                    held: &held,
                    training: &training,
                    kube: &look.kube,
                    objects,
                    section,
                    step_ms,
                };
                Ok(Self {
                    run_pods: of_period.pods(),
                    account,
                    charges,
                    held,
                    sampled: Some(Sampled { span, step_ms }),
                    training,
                    knows_tenants: !look.kube.is_empty(),
                    waits,
                    served: Some(served),
                })
            }
        }
    }
}

/// Asks how pods ended.
fn add_pod_ends(asker: &mut Asker, look: &mut Look, notes: &mut Vec<String>) {
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    match asker.instant(&pod_ends(window_ms), asker.period.to_ms.saturating_sub(1)) {
        Ok(series) => look.kube.take_ends(series),
        Err(error) => notes.push(format!("how pods ended could not be read: {error}")),
    }
}

/// Asks what inference servers counted in the pods of the account, by workload.
fn served(asker: &mut Asker, account: &mut Account) -> BTreeMap<String, ServedByJob> {
    let served = serving::read(asker, &mut account.notes);
    let mut by_job: BTreeMap<String, ServedByJob> = BTreeMap::new();
    for pod in &account.pods {
        let Some(of_pod) = served.pods.get(&(pod.namespace.clone(), pod.name.clone())) else {
            continue;
        };
        let of_job = by_job.entry(pod.job.clone()).or_default();
        of_job.servers.insert(of_pod.server.name());
        of_job.models.extend(of_pod.models.iter().cloned());
        for (counted, count) in &of_pod.counts {
            let sum = match counted {
                ServingCounter::Requests => &mut of_job.requests,
                ServingCounter::PromptTokens | ServingCounter::GeneratedTokens => {
                    &mut of_job.tokens
                }
            };
            *sum.get_or_insert(0.0) += count;
        }
    }
    by_job
}

/// Numbers of pods by namespace, name and which of that name they are.
fn numbers(account: &Account) -> BTreeMap<(&str, &str, u32), u32> {
    let pods = (0..).zip(&account.pods);
    pods.map(|(number, pod)| ((&*pod.namespace, &*pod.name, pod.turn), number)).collect()
}

/// Levels from a file, of pods that hold GPUs now.
fn levels_of_moment(account: &Account, moment: &AtMoment, parts: &Parts<'_>) -> Vec<HeldLevels> {
    let Some(uses) = &moment.uses else { return Vec::new() };
    let numbers = numbers(account);
    let series: BTreeMap<(&str, &str, &str), Vec<BusyLevel>> = uses
        .series
        .iter()
        .map(|series| {
            let namespace = series.namespace.as_deref().unwrap_or_default();
            let samples = series.activity.iter();
            let samples = samples.map(|sample| (sample.at_ms, sample.activity_micro_percent));
            ((namespace, &*series.pod, &*series.gpu), levels(samples.collect(), uses))
        })
        .collect();
    let mut held = Vec::new();
    for part in parts.iter().flatten() {
        let Some(of) = part.held.map(|held| &moment.gathered.moment.held[held]) else { continue };
        let namespace = &*moment.gathered.facts.workloads[of.workload].owner.namespace;
        let Some(pod) = numbers.get(&(namespace, &*of.pod, 0)) else { continue };
        let levels = part.used.and_then(|used| series.get(&(namespace, &*of.pod, &*used.gpu)));
        let unknown = || vec![BusyLevel { span: uses.period.span, micro_percent: None }];
        let mut levels = levels.cloned().unwrap_or_else(unknown);
        if part.used.is_some_and(|used| used.is_of_several) {
            // For whom a device of several pods computed nobody knows.
            let most = ActivityRule::default().threshold_micro_percent;
            for level in &mut levels {
                level.micro_percent = level.micro_percent.filter(|level| *level <= most);
            }
        }
        let is_known_idle_alone =
            part.used.is_some_and(|used| used.is_of_several && used.for_any_holder_ms > 0);
        held.push(HeldLevels { pod: *pod, gpu_milli: part.gpu_milli, levels, is_known_idle_alone });
    }
    held
}

/// Each sample holds until the next, for three steps at most; the rest to the end is unknown.
fn levels(samples: Vec<(u64, u32)>, uses: &Uses) -> Vec<BusyLevel> {
    let end_ms = uses.period.span.to_ms;
    let step_ms = uses.period.step_ms;
    let mut levels = Vec::with_capacity(samples.len());
    for (place, (at_ms, micro_percent)) in samples.iter().enumerate() {
        let next_ms = samples.get(place + 1).map_or(end_ms, |next| next.0);
        let is_late = next_ms.saturating_sub(*at_ms) > MOST_STEPS * step_ms;
        let known_ms = if is_late { at_ms + step_ms } else { next_ms };
        let span = |from_ms, to_ms| Span { from_ms, to_ms };
        levels
            .push(BusyLevel { span: span(*at_ms, known_ms), micro_percent: Some(*micro_percent) });
        levels.push(BusyLevel { span: span(known_ms, next_ms), micro_percent: None });
    }
    levels.retain(|level| level.span.from_ms < level.span.to_ms);
    levels
}

/// Levels from the series of exporters: what is held is what the bill has.
fn levels_over_time(account: &Account, look: &Look, period: Span) -> Result<Vec<HeldLevels>> {
    let numbers = numbers(account);
    let mut held = Vec::new();
    for device in &look.seen.time.devices {
        let mut of_holding: BTreeMap<(u32, i64), Vec<BusyLevel>> = BTreeMap::new();
        let mut of_several: BTreeSet<u32> = BTreeSet::new();
        for interval in device_intervals(&device.history, period)? {
            let Some(number) = interval.holder else { continue };
            let Some(holder) = look.seen.time.holders.get(number as usize) else { continue };
            let key = (&*holder.namespace, &*holder.pod, holder.turn);
            let Some(pod) = numbers.get(&key) else { continue };
            let (found, is_shared) = levels_of(&device.history, &interval);
            if is_shared {
                of_several.insert(*pod);
            }
            of_holding.entry((*pod, interval.gpu_milli)).or_default().extend(found);
        }
        let of_device = of_holding.into_iter();
        held.extend(of_device.map(|((pod, gpu_milli), levels)| HeldLevels {
            pod,
            gpu_milli,
            levels,
            is_known_idle_alone: of_several.contains(&pod),
        }));
    }
    Ok(held)
}
