//! Since when all GPUs of an owner are idle: from the last hour backwards, as far as anything can
//! still change.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::Money;
use dovetail_units::amount::{about_usd, gpus};
use dovetail_units::duration::duration_at_least;

use crate::device_time::{DeviceInterval, DeviceState};

/// A device in a stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct SeenDevice<'d> {
    pub device: u32,
    /// Price of it in micro-USD an hour; `None` where nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// What it was, ascending; holders are numbers of pods.
    pub intervals: &'d [DeviceInterval],
}

/// A pod as its owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePod {
    pub owner: u32,
    /// When the pod was made, in ms since 1970: what was before is of another one that had its
    /// name. 0 where nobody knows.
    pub made_ms: u64,
}

/// An owner all of whose GPUs are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleSpell {
    /// Since when, in ms since 1970.
    pub since_ms: u64,
    /// Whether it may be longer: nobody knows what was before.
    pub is_at_least: bool,
    /// How much of GPUs it holds, in thousandths.
    pub gpu_milli: i64,
    /// What they cost since then; `None` where a price is unknown.
    pub cost: Option<Money>,
}

/// A device as one pod holds it.
type Part = (u32, u32);

#[derive(Clone, Copy, Debug)]
struct IdleRun {
    since_ms: u64,
    made_ms: u64,
    gpu_milli: i64,
    price: Option<i64>,
    is_open: bool,
    /// Whether somebody saw what was before.
    is_whole: bool,
}

/// Looks back from a moment.
#[derive(Debug)]
pub struct IdleSearch {
    until_ms: u64,
    /// By part and owner.
    runs: BTreeMap<Part, (u32, IdleRun)>,
    /// Owners that something computes for, or of which nobody knows.
    others: BTreeSet<u32>,
    is_first: bool,
}

impl IdleSearch {
    /// Of the moment until which everything was read.
    pub fn new(until_ms: u64) -> Self {
        Self { until_ms, runs: BTreeMap::new(), others: BTreeSet::new(), is_first: true }
    }

    /// Takes the stretch of time before all that was taken; `of_pod` knows whose a pod is. Answers
    /// whether an earlier one can change anything.
    pub fn look_back(
        &mut self,
        devices: &[SeenDevice<'_>],
        of_pod: impl Fn(u32) -> Option<IdlePod>,
    ) -> bool {
        let mut reached: BTreeSet<Part> = BTreeSet::new();
        for seen in devices {
            for pod in seen.intervals.iter().filter_map(|i| i.holder).collect::<BTreeSet<_>>() {
                let part = (seen.device, pod);
                if self.is_first {
                    self.begin(seen, pod, of_pod(pod));
                }
                if self.extend(seen, pod) {
                    reached.insert(part);
                }
            }
        }
        // Where another part of the device's time ends, a run began.
        let ends = devices.iter().flat_map(|seen| {
            seen.intervals.iter().map(|interval| (seen.device, interval.span.to_ms))
        });
        let ends: BTreeSet<(u32, u64)> = ends.collect();
        for (part, (_, run)) in &mut self.runs {
            run.is_whole |= run.since_ms < self.until_ms && ends.contains(&(part.0, run.since_ms));
            run.is_open &= reached.contains(part);
        }
        self.is_first = false;
        let others = &self.others;
        self.runs.values().any(|(owner, run)| run.is_open && !others.contains(owner))
    }

    /// What a pod has of a device at the last moment.
    fn begin(&mut self, seen: &SeenDevice<'_>, pod: u32, of_pod: Option<IdlePod>) {
        let now = |i: &&DeviceInterval| i.holder == Some(pod) && i.span.to_ms >= self.until_ms;
        let held: Vec<&DeviceInterval> = seen.intervals.iter().filter(now).collect();
        let (Some(IdlePod { owner, made_ms }), false) = (of_pod, held.is_empty()) else { return };
        if held.iter().any(|interval| interval.state != DeviceState::Idle) {
            self.others.insert(owner);
            return;
        }
        let gpu_milli = held.iter().map(|interval| interval.gpu_milli).sum();
        let price = seen.usd_micros_per_gpu_hour;
        let since_ms = self.until_ms;
        let run = IdleRun { since_ms, made_ms, gpu_milli, price, is_open: true, is_whole: false };
        self.runs.insert((seen.device, pod), (owner, run));
    }

    /// Follows an idle part back through a stretch of time; whether it reaches its begin.
    fn extend(&mut self, seen: &SeenDevice<'_>, pod: u32) -> bool {
        let Some((_, run)) = self.runs.get_mut(&(seen.device, pod)) else { return false };
        if !run.is_open {
            return false;
        }
        let begin_ms = seen.intervals.iter().map(|i| i.span.from_ms).min().unwrap_or(0);
        let of_pod: Vec<&DeviceInterval> =
            seen.intervals.iter().filter(|i| i.holder == Some(pod)).collect();
        // The last moment at which the pod did something else with it.
        let other = of_pod.iter().filter(|i| i.state != DeviceState::Idle);
        let other_ms = other.map(|i| i.span.to_ms).max().unwrap_or(0);
        let mut idle: Vec<&&DeviceInterval> =
            of_pod.iter().filter(|i| i.state == DeviceState::Idle).collect();
        idle.sort_by_key(|i| std::cmp::Reverse((i.span.to_ms, i.span.from_ms)));
        for interval in idle {
            if interval.span.to_ms < run.since_ms {
                break;
            }
            let from_ms = interval.span.from_ms.max(other_ms).max(run.made_ms);
            run.since_ms = run.since_ms.min(from_ms);
        }
        run.is_whole |= run.made_ms > 0 && run.since_ms == run.made_ms;
        run.since_ms <= begin_ms && run.since_ms < self.until_ms
    }

    /// Owners all of whose GPUs are idle, each since the last of them became it.
    pub fn spells(self) -> BTreeMap<u32, IdleSpell> {
        let mut by_owner: BTreeMap<u32, Vec<IdleRun>> = BTreeMap::new();
        for (owner, run) in self.runs.into_values() {
            by_owner.entry(owner).or_default().push(run);
        }
        by_owner.retain(|owner, _| !self.others.contains(owner));
        let spell = |runs: Vec<IdleRun>| {
            let since_ms = runs.iter().map(|run| run.since_ms).max().unwrap_or(self.until_ms);
            let ms = i128::from(self.until_ms - since_ms);
            let cost = |run: &IdleRun| {
                Some(Money::of_gpu_time(i128::from(run.gpu_milli) * ms, run.price?))
            };
            let costs: Option<Vec<Money>> = runs.iter().map(cost).collect();
            IdleSpell {
                since_ms,
                is_at_least: runs.iter().any(|run| !run.is_whole && run.since_ms == since_ms),
                gpu_milli: runs.iter().map(|run| run.gpu_milli).sum(),
                cost: costs.map(|costs| costs.into_iter().sum()),
            }
        };
        by_owner.into_iter().map(|(owner, runs)| (owner, spell(runs))).collect()
    }
}

/// A spell in words: "6 h idle, $41".
pub fn idle_text(spell: &IdleSpell, now_ms: u64) -> String {
    let at_least = if spell.is_at_least { "at least " } else { "" };
    let length = duration_at_least(now_ms.saturating_sub(spell.since_ms));
    let cost = match spell.cost {
        Some(cost) => format!(", {} at list prices", about_usd(cost)),
        None => ", price unknown".to_owned(),
    };
    format!(
        "{at_least}{length} idle{cost}: {} allocated, none active. For information only: nothing was changed. To \
         free them until they are needed again, use a queued job or a smaller replica count; to turn these \
         notices off, set the annotation dovetail.dev/ignore: idle-notice.",
        gpus(spell.gpu_milli)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_time::{ActiveWork, Span};

    const HOUR: u64 = 3_600_000;

    fn interval(from: u64, to: u64, state: DeviceState, pod: Option<u32>) -> DeviceInterval {
        let span = Span { from_ms: from * HOUR / 4, to_ms: to * HOUR / 4 };
        DeviceInterval { span, gpu_milli: 1000, state, holder: pod, signal: None }
    }

    /// Hours, the last first, each with its devices; times in quarters of an hour.
    fn search(
        until: u64,
        hours: &[Vec<(u32, Vec<DeviceInterval>)>],
    ) -> (BTreeMap<u32, IdleSpell>, usize) {
        search_of_made(until, hours, 0)
    }

    /// The same with pods that were all made at a moment.
    fn search_of_made(
        until: u64,
        hours: &[Vec<(u32, Vec<DeviceInterval>)>],
        made: u64,
    ) -> (BTreeMap<u32, IdleSpell>, usize) {
        let made_ms = made * HOUR / 4;
        let mut search = IdleSearch::new(until * HOUR / 4);
        let mut looked = 0;
        for hour in hours {
            looked += 1;
            let devices: Vec<SeenDevice<'_>> = hour
                .iter()
                .map(|(device, intervals)| SeenDevice {
                    device: *device,
                    usd_micros_per_gpu_hour: (*device != 9).then_some(4_000_000),
                    intervals,
                })
                .collect();
            // Pods 10 and 11 belong to owner 1, pod 20 to owner 2, and so on.
            if !search.look_back(&devices, |pod| Some(IdlePod { owner: pod / 10, made_ms })) {
                break;
            }
        }
        (search.spells(), looked)
    }

    #[test]
    fn an_owner_is_idle_since_the_last_of_its_gpus_became_it() {
        use DeviceState::{Free, Idle, Unknown};
        let active = DeviceState::Active(ActiveWork::NotSeparable);
        let last = vec![
            (1, vec![interval(8, 12, Idle, Some(10))]),
            (2, vec![interval(8, 9, active, Some(11)), interval(9, 12, Idle, Some(11))]),
            (3, vec![interval(8, 12, Idle, Some(20))]),
            (4, vec![interval(8, 12, active, Some(20))]),
            (5, vec![interval(8, 11, Idle, Some(30)), interval(11, 12, Unknown, Some(30))]),
            (6, vec![interval(8, 11, Idle, Some(40)), interval(11, 12, Free(None), None)]),
            (7, vec![interval(8, 10, Idle, Some(51)), interval(10, 12, Idle, Some(50))]),
            (8, vec![interval(8, 12, Idle, Some(60))]),
            (9, vec![interval(8, 12, Idle, Some(70))]),
        ];
        let before = vec![
            (1, vec![interval(4, 8, Idle, Some(10))]),
            (8, vec![interval(4, 5, active, Some(60)), interval(5, 8, Idle, Some(60))]),
            // A hole: nobody knows what was in it.
            (9, vec![interval(4, 7, Idle, Some(70))]),
        ];
        let first = vec![(1, vec![interval(0, 4, Idle, Some(10))])];
        let (found, looked) = search(12, &[last, before, first]);
        let spell = |since: u64, gpus: i64, usd_quarters: Option<i64>| IdleSpell {
            since_ms: since * HOUR / 4,
            is_at_least: false,
            gpu_milli: gpus * 1000,
            cost: usd_quarters.map(|quarters| Money::micros(quarters * 1_000_000)),
        };
        let of_hole = IdleSpell { is_at_least: true, ..spell(8, 1, None) };
        let expected = [
            (1, spell(9, 2, Some(6))),
            (5, spell(10, 1, Some(2))),
            (6, spell(5, 1, Some(7))),
            (7, of_hole),
        ];
        assert_eq!(found, BTreeMap::from(expected));
        assert_eq!(looked, 3);
    }

    /// A pod of a StatefulSet, or one of its own, that is made anew has the name of the one before.
    #[test]
    fn what_was_before_a_pod_was_made_is_not_told_of_it() {
        use DeviceState::Idle;
        let hour = |from| vec![(1, vec![interval(from, from + 4, Idle, Some(10))])];
        let hours = [hour(8), hour(4), hour(0)];
        let of = |made| {
            let (found, looked) = search_of_made(12, &hours, made);
            (found[&1].since_ms * 4 / HOUR, found[&1].is_at_least, found[&1].cost, looked)
        };
        let usd = |usd: i64| Some(Money::micros(usd * 1_000_000));
        assert_eq!(of(0), (0, true, usd(12), 3));
        assert_eq!(of(6), (6, false, usd(6), 2));
        assert_eq!(of(9), (9, false, usd(3), 1));
        // Read until a moment before it was made: nothing is known of it yet.
        assert_eq!(of(13).0, 12);
    }

    #[test]
    fn nobody_looks_further_than_anything_can_change() {
        use DeviceState::Idle;
        let short = vec![(1, vec![interval(10, 12, Idle, Some(10))])];
        let of_another = vec![(1, vec![interval(4, 8, Idle, Some(10))])];
        // The device was seen from its begin: the hour before is looked at, and has nothing that
        // touches.
        let (found, looked) = search(12, &[short, of_another.clone(), of_another]);
        assert_eq!((found[&1].since_ms, looked), (10 * HOUR / 4, 2));
        let long = vec![(1, vec![interval(8, 12, Idle, Some(10))])];
        let (found, _) = search(12, &[long]);
        assert!(found[&1].is_at_least);
        let text = idle_text(&found[&1], 12 * HOUR / 4);
        assert!(
            text.starts_with("at least 60 min idle, $4 at list prices: 1 GPU allocated"),
            "{text}"
        );
        assert!(text.len() < 1024);
    }
}
