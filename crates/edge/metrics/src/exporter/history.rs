//! What was observed, as device histories for the ledger.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_ledger::device_time::{DeviceHistory, HoldingTime, Share, Span};
use dovetail_ledger::signal::{
    ActivityRule, Moment, Verdict, activity_over, judge, mig_compute_slices,
};

use super::observation::{DeviceName, Observation, Observed};
use super::origin::{Holder, Slice};

/// Compute slices of a device that can be cut.
const MIG_SLICES: u32 = 7;

/// All devices of an observation.
#[derive(Debug)]
pub struct ObservedTime {
    /// Devices by node and name.
    pub devices: Vec<ObservedDevice>,
    /// Holders; their places are the numbers in the histories.
    pub holders: Vec<Holder>,
}

/// A device and what is known of it.
#[derive(Debug)]
pub struct ObservedDevice {
    /// Its node.
    pub node: String,
    /// Its name on the node.
    pub device: String,
    /// Its model, as the exporter writes it.
    pub model: Option<String>,
    /// Who held it and what it did.
    pub history: DeviceHistory,
}

impl ObservedTime {
    /// Begins and ends of holders within a period, those at its ends left out. When each happened is known to one
    /// interval.
    pub fn holder_changes(&self, period: Span) -> u64 {
        let holdings = self.devices.iter().flat_map(|device| &device.history.holdings);
        let inside = |at_ms: u64| u64::from(at_ms > period.from_ms && at_ms < period.to_ms);
        holdings.map(|time| inside(time.held.from_ms) + inside(time.held.to_ms)).sum()
    }
}

impl Observation {
    /// The histories of all devices within a period. A device is there from its first sample to the end of
    /// its last: before and after nobody saw it. Samples lie `interval_ms` apart.
    pub fn histories(&self, period: Span, interval_ms: u64, rule: &ActivityRule) -> ObservedTime {
        let mut numbers = BTreeMap::new();
        let mut devices = Vec::new();
        for (name, observed) in &self.devices {
            let time = Time { period, interval_ms, rule };
            if let Some(history) = time.history(name, observed, &mut numbers) {
                let DeviceName { node, device } = name.clone();
                devices.push(ObservedDevice {
                    node,
                    device,
                    model: observed.model.clone(),
                    history,
                });
            }
        }
        let mut holders: Vec<(u32, Holder)> = numbers
            .into_iter()
            .map(|(holder, number): (&Holder, u32)| (number, holder.clone()))
            .collect();
        holders.sort_by_key(|(number, _)| *number);
        ObservedTime { devices, holders: holders.into_iter().map(|(_, holder)| holder).collect() }
    }
}

/// How time is cut.
struct Time<'a> {
    period: Span,
    interval_ms: u64,
    rule: &'a ActivityRule,
}

impl Time<'_> {
    fn history<'o>(
        &self,
        name: &DeviceName,
        observed: &'o Observed,
        numbers: &mut BTreeMap<&'o Holder, u32>,
    ) -> Option<DeviceHistory> {
        let slices: BTreeSet<Option<&Slice>> =
            observed.held.keys().map(|(slice, _)| slice.as_ref()).collect();
        let mut installed: Option<Span> = None;
        let mut holdings = Vec::new();
        for slice in slices {
            let moments = observed.moments(slice);
            let inside = |at_ms: i64| {
                let at_ms = u64::try_from(at_ms).ok()?;
                (self.period.from_ms..self.period.to_ms).contains(&at_ms).then_some(at_ms)
            };
            let moments: Vec<(u64, (Moment, Vec<&Holder>))> = moments
                .into_iter()
                .filter_map(|(at_ms, moment)| Some((inside(at_ms)?, moment)))
                .collect();
            let (Some(first), Some(last)) = (moments.first(), moments.last()) else { continue };
            let seen = Span { from_ms: first.0, to_ms: self.end_of(last.0) };
            installed = Some(installed.map_or(seen, |before| Span {
                from_ms: before.from_ms.min(seen.from_ms),
                to_ms: before.to_ms.max(seen.to_ms),
            }));
            holdings.extend(self.holdings(&moments, &share(slice), numbers));
        }
        Some(DeviceHistory {
            name: format!("{}/{}", name.node, name.device),
            installed: installed?,
            unavailable: Vec::new(),
            free_causes: Vec::new(),
            holdings,
        })
    }

    /// A sample stands for one interval.
    fn end_of(&self, at_ms: u64) -> u64 {
        at_ms.saturating_add(self.interval_ms).min(self.period.to_ms)
    }

    /// Who held it: from the first sample that names a holder to the first that does not, or to the end of
    /// the last where the next comes too late.
    fn holdings<'o>(
        &self,
        moments: &[(u64, (Moment, Vec<&'o Holder>))],
        share: &Share,
        numbers: &mut BTreeMap<&'o Holder, u32>,
    ) -> Vec<HoldingTime> {
        let longest_ms = self.interval_ms.saturating_mul(u64::from(self.rule.max_gap_intervals));
        let mut done = Vec::new();
        let mut open: BTreeMap<&Holder, Vec<(u64, Verdict)>> = BTreeMap::new();
        for (index, (at_ms, (moment, holders))) in moments.iter().enumerate() {
            let verdict = judge(moment, self.rule);
            let late = index > 0 && at_ms - moments[index - 1].0 > longest_ms;
            let over: Vec<&Holder> =
                open.keys().copied().filter(|holder| late || !holders.contains(holder)).collect();
            for holder in over {
                let samples = open.remove(holder).unwrap_or_default();
                let end_ms = match (late, index) {
                    (true, 1..) => self.end_of(moments[index - 1].0),
                    _ => *at_ms,
                };
                done.push((holder, samples, end_ms));
            }
            for holder in holders {
                open.entry(holder).or_default().push((*at_ms, verdict));
            }
        }
        let end_ms = moments.last().map_or(0, |(at_ms, _)| self.end_of(*at_ms));
        done.extend(open.into_iter().map(|(holder, samples)| (holder, samples, end_ms)));
        done.into_iter()
            .map(|(holder, samples, end_ms)| {
                let next = numbers.len() as u32;
                let number = *numbers.entry(holder).or_insert(next);
                self.holding(number, &samples, end_ms, share)
            })
            .collect()
    }

    fn holding(
        &self,
        holder: u32,
        samples: &[(u64, Verdict)],
        end_ms: u64,
        share: &Share,
    ) -> HoldingTime {
        let from_ms = samples.first().map_or(end_ms, |(at_ms, _)| *at_ms);
        let held = Span { from_ms, to_ms: end_ms };
        HoldingTime {
            holder,
            share: share.clone(),
            held,
            // Exporters name a holder when its container runs; what was before nobody saw.
            ready_ms: Some(from_ms),
            gang_ready_ms: Some(from_ms),
            activity: activity_over(samples, (from_ms, end_ms), self.interval_ms, self.rule),
            work: Vec::new(),
        }
    }
}

/// A profile that nobody knows is taken for the smallest slice.
fn share(slice: Option<&Slice>) -> Share {
    match slice {
        None => Share::Whole,
        Some(slice) => {
            let slices = mig_compute_slices(&slice.profile).unwrap_or(1);
            Share::MigSlices { slices, of: MIG_SLICES }
        }
    }
}

#[cfg(test)]
mod tests;
