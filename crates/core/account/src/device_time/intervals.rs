//! Histories cut into intervals of one state.

use dovetail_model::FreeCause;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use super::history::{ActiveWork, DeviceHistory, HistoryError, HoldingTime, Span, WorkSpan};
use super::share::parts_milli;
use crate::signal::{Activity, ActivitySegment, Signal};

/// What a part of a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceState {
    /// Lost, or on a node that is not ready.
    Unavailable,
    /// Held by nobody; `None` if nobody knows why.
    Free(Option<FreeCause>),
    /// Held by a pod that is not ready yet.
    Provisioning,
    /// Held by a ready pod whose gang is not.
    GangWait,
    Active(ActiveWork),
    /// Held and not computing.
    Idle,
    /// Held, and nobody knows; or nobody knows who held it.
    Unknown,
}

impl DeviceState {
    /// Whether somebody holds it.
    pub fn is_allocated(self) -> bool {
        !matches!(self, Self::Unavailable | Self::Free(_))
    }

    /// Whether time in this state is waste: idle, provisioning, gang-wait, repeated work, billed
    /// but unavailable, free with a cause that is waste. What nobody knows is not counted as waste.
    pub fn is_waste(self) -> bool {
        match self {
            Self::Unavailable | Self::Provisioning | Self::GangWait | Self::Idle => true,
            Self::Active(work) => work == ActiveWork::Repeated,
            Self::Free(cause) => cause.is_some_and(FreeCause::is_waste),
            Self::Unknown => false,
        }
    }

    /// Name in every output, for example `free_no_demand` or `active_repeated`.
    pub fn name(self) -> String {
        let plain = match self {
            Self::Free(None) => "free_of_unknown_cause",
            Self::Free(Some(cause)) => return format!("free_{}", cause.name()),
            Self::Unavailable => "unavailable",
            Self::Provisioning => "provisioning",
            Self::GangWait => "gang_wait",
            Self::Active(ActiveWork::Useful) => "active_useful",
            Self::Active(ActiveWork::Checkpointing) => "active_checkpointing",
            Self::Active(ActiveWork::Repeated) => "active_repeated",
            Self::Active(ActiveWork::NotSeparable) => "active_not_separable",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        };
        plain.to_owned()
    }
}

/// A part of a device in one state for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInterval {
    pub span: Span,
    /// How much of the device.
    pub gpu_milli: i64,
    pub state: DeviceState,
    /// Who holds it; `None` while it is unavailable, because it computes for nobody, and where
    /// nobody knows.
    pub holder: Option<u32>,
    /// The signal that active or idle rests on.
    pub signal: Option<Signal>,
}

/// Everything one device was during a period, by time and then by holder. At every moment the
/// intervals are the whole device.
///
/// # Errors
/// See [`HistoryError`].
pub fn device_intervals(
    device: &DeviceHistory,
    period: Span,
) -> Result<Vec<DeviceInterval>, HistoryError> {
    device.check()?;
    let from_ms = period.from_ms.max(device.installed.from_ms);
    let to_ms = period.to_ms.min(device.installed.to_ms);
    let cuts = cuts(device, from_ms, to_ms);
    let mut order: Vec<&HoldingTime> = device.holdings.iter().collect();
    order.sort_by_key(|holding| (holding.held.from_ms, holding.holder));
    let (mut coming, mut live) = (order.into_iter().peekable(), Vec::<Live<'_>>::new());
    let mut unavailable = Cursor::new(&device.unavailable, |span| *span);
    let mut unseen = Cursor::new(&device.unseen, |span| *span);
    let mut causes = Cursor::new(&device.free_causes, |cause| cause.span);
    let mut found = Merged::default();
    for pair in cuts.windows(2) {
        let span = Span { from_ms: pair[0], to_ms: pair[1] };
        while let Some(next) = coming.next_if(|next| next.held.from_ms <= span.from_ms) {
            live.push(Live::new(next));
        }
        live.retain(|live| live.holding.held.to_ms > span.from_ms);
        let whole = |state| DeviceInterval {
            span,
            gpu_milli: WHOLE_DEVICE_MILLI,
            state,
            holder: None,
            signal: None,
        };
        if unavailable.at(span.from_ms).is_some() {
            found.add(whole(DeviceState::Unavailable));
            continue;
        }
        let units: Vec<i128> = live.iter().map(|live| live.units).collect();
        let (parts, free_milli) = parts_milli(&units);
        for (live, gpu_milli) in live.iter_mut().zip(parts) {
            let (state, signal) = live.state(span.from_ms);
            let holder = Some(live.holding.holder);
            found.add(DeviceInterval { span, gpu_milli, state, holder, signal });
        }
        let cause = causes.at(span.from_ms).map(|cause| cause.cause);
        let rest = match unseen.at(span.from_ms) {
            Some(_) => DeviceState::Unknown,
            None => DeviceState::Free(cause),
        };
        found.add(DeviceInterval { gpu_milli: free_milli, ..whole(rest) });
    }
    Ok(found.finish())
}

/// Every moment at which something may change, with both ends; ascending, each once.
fn cuts(device: &DeviceHistory, from_ms: u64, to_ms: u64) -> Vec<u64> {
    let mut cuts = vec![from_ms, to_ms];
    let mut add = |span: Span| cuts.extend([span.from_ms, span.to_ms]);
    device.unavailable.iter().copied().for_each(&mut add);
    device.unseen.iter().copied().for_each(&mut add);
    device.free_causes.iter().for_each(|cause| add(cause.span));
    for holding in &device.holdings {
        add(holding.held);
        holding.work.iter().for_each(|work| add(work.span));
        holding.activity.iter().for_each(|segment| add(span_of_segment(segment)));
        holding.ready_ms.iter().chain(&holding.gang_ready_ms).for_each(|at_ms| {
            add(Span { from_ms: *at_ms, to_ms: *at_ms });
        });
    }
    cuts.retain(|at_ms| (from_ms..=to_ms).contains(at_ms));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// A place in an ascending list of spans that only moves forward.
struct Cursor<'a, T> {
    list: &'a [T],
    span_of: fn(&T) -> Span,
}

impl<'a, T> Cursor<'a, T> {
    fn new(list: &'a [T], span_of: fn(&T) -> Span) -> Self {
        Self { list, span_of }
    }

    /// What lies at a moment, which never goes back.
    fn at(&mut self, at_ms: u64) -> Option<&'a T> {
        while let Some((first, rest)) = self.list.split_first() {
            let span = (self.span_of)(first);
            if span.to_ms > at_ms {
                return (span.from_ms <= at_ms).then_some(first);
            }
            self.list = rest;
        }
        None
    }
}

fn span_of_segment(segment: &ActivitySegment) -> Span {
    Span { from_ms: segment.from_ms, to_ms: segment.to_ms }
}

/// A holding while it lasts.
struct Live<'a> {
    holding: &'a HoldingTime,
    units: i128,
    activity: Cursor<'a, ActivitySegment>,
    work: Cursor<'a, WorkSpan>,
}

impl<'a> Live<'a> {
    fn new(holding: &'a HoldingTime) -> Self {
        let activity = Cursor::new(&holding.activity, span_of_segment);
        let work = Cursor::new(&holding.work, |work| work.span);
        let units = holding.share.units().expect("shares were checked");
        Self { holding, units, activity, work }
    }

    fn state(&mut self, at_ms: u64) -> (DeviceState, Option<Signal>) {
        let is_past = |moment: Option<u64>| moment.is_some_and(|moment| moment <= at_ms);
        if !is_past(self.holding.ready_ms) {
            return (DeviceState::Provisioning, None);
        }
        if !is_past(self.holding.gang_ready_ms) {
            return (DeviceState::GangWait, None);
        }
        let Some(verdict) = self.activity.at(at_ms).map(|segment| segment.verdict) else {
            return (DeviceState::Unknown, None);
        };
        let state = match verdict.activity {
            Activity::Idle => DeviceState::Idle,
            Activity::Unknown => DeviceState::Unknown,
            Activity::Active => {
                let work = self.work.at(at_ms).map_or(ActiveWork::NotSeparable, |span| span.work);
                DeviceState::Active(work)
            }
        };
        (state, verdict.signal)
    }
}

/// Intervals joined where nothing changes but the time, in one order: lists that say the same are
/// equal.
pub(crate) fn joined(mut intervals: Vec<DeviceInterval>) -> Vec<DeviceInterval> {
    let order = |interval: &DeviceInterval| {
        let DeviceInterval { span, gpu_milli, state, holder, signal } = *interval;
        (span.from_ms, holder.is_none(), holder, state, signal, gpu_milli, span.to_ms)
    };
    intervals.sort_by_key(order);
    let mut merged = Merged::default();
    intervals.into_iter().for_each(|interval| merged.add(interval));
    let mut joined = merged.finish();
    joined.sort_by_key(order);
    joined
}

/// Intervals as they come, joined where nothing changes but the time.
#[derive(Default)]
struct Merged {
    done: Vec<DeviceInterval>,
    open: Vec<DeviceInterval>,
}

impl Merged {
    fn add(&mut self, new: DeviceInterval) {
        if new.gpu_milli == 0 {
            return;
        }
        let same = |open: &&mut DeviceInterval| {
            let is_next = open.span.to_ms == new.span.from_ms;
            is_next && **open == DeviceInterval { span: open.span, ..new }
        };
        if let Some(open) = self.open.iter_mut().find(same) {
            open.span.to_ms = new.span.to_ms;
            return;
        }
        let ended = |open: &mut DeviceInterval| open.span.to_ms < new.span.from_ms;
        self.done.extend(self.open.extract_if(.., ended));
        self.open.push(new);
    }

    fn finish(mut self) -> Vec<DeviceInterval> {
        self.done.append(&mut self.open);
        self.done.sort_by_key(|interval| {
            (interval.span.from_ms, interval.holder.is_none(), interval.holder, interval.state)
        });
        self.done
    }
}
