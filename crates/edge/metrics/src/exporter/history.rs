//! What was observed, as device histories for the ledger.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceHistory, HoldingTime, Share, Span};
use dovetail_account::rollup::Coverage;
use dovetail_account::signal::{
    Activity, ActivityRule, ActivityVerdict, Mixed, activity_over, judge, mig_compute_slices, mixed,
};

use super::observation::{DeviceName, DeviceObservation, Look, Observation};
use super::open_time::OpenTime;
use super::origin::{DeviceHolder, MigSlice};

/// Compute slices of a device that can be cut.
const MIG_SLICES: u32 = 7;

/// All devices of an observation.
#[derive(Debug)]
pub struct ObservedTime {
    /// Devices by node and name.
    pub devices: Vec<ObservedDevice>,
    /// Holders; their places are the numbers in the histories.
    pub holders: Vec<DeviceHolder>,
    /// How far active time may be off because a step stands for several samples.
    pub(super) active_open: OpenTime,
}

/// Why a holder that series name is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HolderDoubt {
    /// It was on another node.
    Elsewhere,
    /// It was on the node, and asked for no device.
    AsksForNone,
    /// The same, and every node has one of it: it is who was scraped, and nobody held the device.
    Scraped,
}

/// A holder that was named on a node where it cannot have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    pub node: String,
    pub device: String,
    pub holder: DeviceHolder,
    /// When it was named.
    pub held: Span,
    /// Why it cannot have been.
    pub doubt: HolderDoubt,
}

/// A device and what is known of it.
#[derive(Debug)]
pub struct ObservedDevice {
    pub node: String,
    /// Its name on the node.
    pub device: String,
    /// Its model, as the exporter writes it.
    pub model: Option<String>,
    /// Whether an exporter spoke of it; else it is what a node has beside those.
    pub is_measured: bool,
    /// Who held it and what it did.
    pub history: DeviceHistory,
}

impl ObservedTime {
    /// How far the active time of a period may be from that of all samples in it, in milli-GPU ×
    /// ms, beside what is reported as unknown. Besides steps with samples on both sides of the
    /// threshold and missing ones, each begin and end of a holder is known to one step, and so is
    /// what a holder did at the ends of the period: the mean that stands for a step is that of the
    /// step before it.
    pub fn active_within(&self, period: Span, step_ms: u64) -> i128 {
        const WHOLE: i128 = 1000;
        // What no exporter measures is reported as unknown.
        let measured = || self.devices.iter().filter(|device| device.is_measured);
        let holdings = || measured().flat_map(|device| &device.history.holdings);
        let at_begin =
            holdings().filter(|time| time.held.from_ms <= period.from_ms).count() as i128;
        let at_end = holdings().filter(|time| time.held.to_ms >= period.to_ms).count() as i128;
        let changes = i128::from(self.holder_changes(period));
        let step = WHOLE * i128::from(step_ms);
        let over = self.active_open.over + (changes + at_begin) * step;
        let under = self.active_open.under + (changes + at_end) * step;
        over.max(under)
    }

    /// Takes holders off devices that they cannot have had: nobody knows who had the device then,
    /// but where it was who was scraped. Answers with what was taken, without these.
    pub fn distrust(
        &mut self,
        doubt: impl Fn(&str, &DeviceHolder, Span) -> Option<HolderDoubt>,
    ) -> Vec<Misplaced> {
        let mut taken = Vec::new();
        let holders = &self.holders;
        for ObservedDevice { node, device, history, .. } in &mut self.devices {
            let mut unseen: Coverage = history.unseen.iter().copied().collect();
            history.holdings.retain(|time| {
                let holder = holders.get(time.holder as usize);
                let doubted = holder.and_then(|who| Some((who, doubt(node, who, time.held)?)));
                let Some((holder, doubt)) = doubted else { return true };
                if doubt == HolderDoubt::Scraped {
                    return false;
                }
                unseen.add(time.held);
                taken.push(Misplaced {
                    node: node.clone(),
                    device: device.clone(),
                    holder: holder.clone(),
                    held: time.held,
                    doubt,
                });
                false
            });
            history.unseen = unseen.spans().collect();
        }
        taken
    }

    /// From when until when exporters spoke of any device; `None` where none did.
    pub fn heard(&self) -> Option<Span> {
        let measured = || self.devices.iter().filter(|device| device.is_measured);
        let spans = || measured().map(|device| device.history.installed);
        let from_ms = spans().map(|span| span.from_ms).min()?;
        Some(Span { from_ms, to_ms: spans().map(|span| span.to_ms).max()? })
    }

    /// Begins and ends of holders within a period, those at its ends left out. When each happened
    /// is known to one interval.
    pub fn holder_changes(&self, period: Span) -> u64 {
        let holdings = self.devices.iter().flat_map(|device| &device.history.holdings);
        let inside = |at_ms: u64| u64::from(at_ms > period.from_ms && at_ms < period.to_ms);
        holdings.map(|time| inside(time.held.from_ms) + inside(time.held.to_ms)).sum()
    }
}

impl Observation {
    /// The histories of all devices within a period. A device is there from its first sample to the
    /// end of its last: before and after nobody saw it. Samples lie `interval_ms` apart.
    pub fn histories(&self, period: Span, interval_ms: u64, rule: &ActivityRule) -> ObservedTime {
        let mut numbers = BTreeMap::new();
        let mut devices = Vec::new();
        let mut active_open = OpenTime::default();
        for (name, observed) in &self.devices {
            let time = Time { period, interval_ms, rule };
            if let Some(history) = time.history(name, observed, &mut numbers, &mut active_open) {
                let DeviceName { node, device } = name.clone();
                devices.push(ObservedDevice {
                    node,
                    device,
                    model: observed.model.clone(),
                    is_measured: true,
                    history,
                });
            }
        }
        let mut holders: Vec<(u32, DeviceHolder)> = numbers
            .into_iter()
            .map(|(holder, number): (&DeviceHolder, u32)| (number, holder.clone()))
            .collect();
        holders.sort_by_key(|(number, _)| *number);
        let holders = holders.into_iter().map(|(_, holder)| holder).collect();
        ObservedTime { devices, holders, active_open }
    }
}

/// What is known of (a slice of) a device, and who held it, by time.
type Looks<'o> = Vec<(u64, Look<'o>)>;

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
        observed: &'o DeviceObservation,
        numbers: &mut BTreeMap<&'o DeviceHolder, u32>,
        active_open: &mut OpenTime,
    ) -> Option<DeviceHistory> {
        let slices: BTreeSet<Option<&MigSlice>> =
            observed.held.keys().map(|(slice, _)| slice.as_ref()).collect();
        let inside = |at_ms: i64| {
            let at_ms = u64::try_from(at_ms).ok()?;
            (self.period.from_ms..self.period.to_ms).contains(&at_ms).then_some(at_ms)
        };
        let by_slice = slices.into_iter().map(|slice| {
            let looks = observed.looks(slice).into_iter();
            let looks = looks.filter_map(|(at_ms, look)| Some((inside(at_ms)?, look)));
            (slice, looks.collect())
        });
        let by_slice: Vec<(Option<&MigSlice>, Looks<'o>)> = by_slice.collect();
        let times: BTreeSet<u64> =
            by_slice.iter().flat_map(|(_, looks)| looks).map(|(at_ms, _)| *at_ms).collect();
        let (first_ms, last_ms) = (*times.first()?, *times.last()?);
        let gaps = self.gaps(&times);
        let (mut holdings, mut unseen) = (Vec::new(), Coverage::default());
        for (slice, looks) in &by_slice {
            let steps: Vec<SampleInterval> =
                looks.iter().map(|(_, look)| self.step(look)).collect();
            *active_open += self.active_open(looks, &steps, &gaps, weight_milli(*slice));
            let held = self.holdings((looks, &steps), &gaps, &share(*slice), numbers, &mut unseen);
            holdings.extend(held);
        }
        Some(DeviceHistory {
            name: format!("{}/{}", name.node, name.device),
            installed: Span { from_ms: first_ms, to_ms: self.end_of(last_ms) },
            unavailable: Vec::new(),
            free_causes: Vec::new(),
            unseen: unseen.spans().collect(),
            holdings,
        })
    }

    /// When nothing was heard of a device between two of its samples, by the second one.
    fn gaps(&self, times: &BTreeSet<u64>) -> BTreeMap<u64, Span> {
        let pairs = times.iter().zip(times.iter().skip(1));
        let late = pairs.filter(|(before_ms, at_ms)| *at_ms - *before_ms > self.longest_ms());
        late.map(|(before_ms, at_ms)| {
            (*at_ms, Span { from_ms: self.end_of(*before_ms), to_ms: *at_ms })
        })
        .collect()
    }

    /// Two samples further apart have a gap between them.
    fn longest_ms(&self) -> u64 {
        self.interval_ms.saturating_mul(u64::from(self.rule.max_gap_intervals))
    }

    /// A sample stands for one interval.
    fn end_of(&self, at_ms: u64) -> u64 {
        at_ms.saturating_add(self.interval_ms).min(self.period.to_ms)
    }

    /// What a step was. Where some of its samples were active, that part of it is, and stands
    /// first: nobody knows when it was.
    fn step(&self, look: &Look<'_>) -> SampleInterval {
        let of_samples = mixed(&look.moment, &look.peaks, self.rule);
        let Some(Mixed { above, below, share }) = of_samples else {
            let verdict = judge(&look.moment, self.rule);
            return SampleInterval { first: verdict, then: None, open: OpenTime::default() };
        };
        let active_ms = u128::from(self.interval_ms) * u128::from(share.likely) / 1_000_000;
        // In whole seconds, as ledgers keep time best.
        let active_ms = (active_ms as u64 + 500) / 1000 * 1000;
        let active_ms = active_ms.min(self.interval_ms);
        // Whose time it was nobody knows where several hold the device: it is reported as unknown.
        let open = match above.activity {
            Activity::Active => OpenTime::of_mixed(self.interval_ms, active_ms, share, 1),
            _ => OpenTime::default(),
        };
        match active_ms {
            0 => SampleInterval { first: below, then: None, open },
            all if all == self.interval_ms => SampleInterval { first: above, then: None, open },
            _ => SampleInterval { first: above, then: Some((active_ms, below)), open },
        }
    }

    /// How far active time may be off within steps that somebody held, and between them.
    fn active_open(
        &self,
        looks: &[(u64, Look<'_>)],
        steps: &[SampleInterval],
        gaps: &BTreeMap<u64, Span>,
        gpu_milli: i64,
    ) -> OpenTime {
        let mut sum = OpenTime::default();
        for (index, ((at_ms, look), step)) in looks.iter().zip(steps).enumerate() {
            if look.holders.is_empty() {
                continue;
            }
            let OpenTime { over, under } = step.open;
            let (over, under) = (over * i128::from(gpu_milli), under * i128::from(gpu_milli));
            sum += OpenTime { over, under };
            let next = looks.get(index + 1);
            // While nothing was heard of the device its time is reported as unknown.
            let Some((next_ms, _)) = next.filter(|next| !gaps.contains_key(&next.0)) else {
                continue;
            };
            let apart_ms = next_ms - at_ms;
            let last = step.then.map_or(step.first, |(_, verdict)| verdict);
            let stands_in = (apart_ms <= self.longest_ms()).then_some(last);
            let gap_ms = apart_ms.saturating_sub(self.interval_ms);
            sum += OpenTime::of_gap(gap_ms, stands_in, gpu_milli);
        }
        sum
    }

    /// Who held it: from the first sample that names a holder to the first that does not, or to the
    /// end of the last where the next comes too late. Where nothing was heard of the device for so
    /// long, who held it before and after did so meanwhile, and nobody knows what it did; of any
    /// other nobody knows when it came or went.
    fn holdings<'o>(
        &self,
        (looks, steps): (&Looks<'o>, &[SampleInterval]),
        gaps: &BTreeMap<u64, Span>,
        share: &Share,
        numbers: &mut BTreeMap<&'o DeviceHolder, u32>,
        unseen: &mut Coverage,
    ) -> Vec<HoldingTime> {
        let longest_ms = self.longest_ms();
        let mut done = Vec::new();
        let mut open: BTreeMap<&DeviceHolder, Vec<(u64, ActivityVerdict)>> = BTreeMap::new();
        for (index, (at_ms, Look { holders, .. })) in looks.iter().enumerate() {
            let late = index > 0 && at_ms - looks[index - 1].0 > longest_ms;
            let gap = gaps.get(at_ms).filter(|_| late);
            if let Some(gap) = gap
                && !open.keys().eq(holders.iter())
            {
                unseen.add(*gap);
            }
            let stays =
                |holder: &&DeviceHolder| holders.contains(holder) && (!late || gap.is_some());
            let over: Vec<&DeviceHolder> =
                open.keys().copied().filter(|holder| !stays(holder)).collect();
            for holder in over {
                let samples = open.remove(holder).unwrap_or_default();
                let end_ms = match (late, index) {
                    (true, 1..) => self.end_of(looks[index - 1].0),
                    _ => *at_ms,
                };
                done.push((holder, samples, end_ms));
            }
            for holder in holders {
                open.entry(holder).or_default().extend(steps[index].verdicts(*at_ms));
            }
        }
        let end_ms = looks.last().map_or(0, |(at_ms, _)| self.end_of(*at_ms));
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
        samples: &[(u64, ActivityVerdict)],
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

/// What a device was from one sample to the next.
struct SampleInterval {
    first: ActivityVerdict,
    /// What it was after so many ms, if that was something else.
    then: Option<(u64, ActivityVerdict)>,
    /// How far its active time may be off, for a thousandth of a GPU.
    open: OpenTime,
}

impl SampleInterval {
    fn verdicts(&self, at_ms: u64) -> impl Iterator<Item = (u64, ActivityVerdict)> {
        let then = self.then.map(|(after_ms, verdict)| (at_ms + after_ms, verdict));
        std::iter::once((at_ms, self.first)).chain(then)
    }
}

/// What a slice weighs at most.
fn weight_milli(slice: Option<&MigSlice>) -> i64 {
    match share(slice) {
        Share::MigSlices { slices, of } => i64::from((1000 * slices).div_ceil(of.max(1))),
        _ => 1000,
    }
}

/// A profile that nobody knows is taken for the smallest slice.
fn share(slice: Option<&MigSlice>) -> Share {
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
