//! Intervals added up, and priced.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use dovetail_capacity::Imbalance;
use dovetail_model::money::split;
use dovetail_model::{FreeCause, Money};

use super::history::{DeviceHistory, Span};
use super::intervals::{DeviceInterval, DeviceState};
use crate::price::{Amount, Priced};

/// A quantity of device-time by state. In milli-GPU × ms unless priced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTime<N> {
    /// All there was, counted apart from the states.
    pub installed: N,
    /// By state; a state of nothing is left out.
    pub by_state: BTreeMap<DeviceState, N>,
}

impl<N: Copy + Default + AddAssign> DeviceTime<N> {
    /// Of one state.
    pub fn of(&self, state: DeviceState) -> N {
        self.by_state.get(&state).copied().unwrap_or_default()
    }

    /// Of all states with a property, such as [`DeviceState::is_waste`].
    pub fn of_all(&self, has: impl Fn(DeviceState) -> bool) -> N {
        let mut sum = N::default();
        self.by_state.iter().filter(|(state, _)| has(**state)).for_each(|(_, part)| sum += *part);
        sum
    }

    /// Held by somebody.
    pub fn allocated(&self) -> N {
        self.of_all(DeviceState::is_allocated)
    }

    /// Held by nobody, whatever the cause.
    pub fn free(&self) -> N {
        self.of_all(|state| matches!(state, DeviceState::Free(_)))
    }

    /// Computing, whatever for.
    pub fn active(&self) -> N {
        self.of_all(|state| matches!(state, DeviceState::Active(_)))
    }

    /// What nobody knows: held without a signal, or free without a cause. A statement about waste
    /// is blind here.
    pub fn unknown(&self) -> N {
        self.of_all(|state| matches!(state, DeviceState::Unknown | DeviceState::Free(None)))
    }

    /// Adds all of another account.
    pub fn add(&mut self, other: &Self) {
        self.installed += other.installed;
        other.by_state.iter().for_each(|(state, amount)| self.add_to(*state, *amount));
    }

    /// Checks that the states are all there was, in the number that `of` reads off a quantity.
    pub fn check(&self, of: impl Fn(N) -> i128) -> Result<(), Imbalance> {
        let sum = self.by_state.values().map(|amount| of(*amount)).sum();
        match of(self.installed) {
            have if have == sum => Ok(()),
            have => Err(Imbalance { part: "installed device-time", have, sum }),
        }
    }

    fn add_to(&mut self, state: DeviceState, amount: N) {
        *self.by_state.entry(state).or_default() += amount;
    }
}

impl DeviceTime<i128> {
    /// The account of one device over a period, from its intervals.
    pub fn of_device(device: &DeviceHistory, period: Span, intervals: &[DeviceInterval]) -> Self {
        let from_ms = period.from_ms.max(device.installed.from_ms);
        let to_ms = period.to_ms.min(device.installed.to_ms);
        let whole = i128::from(dovetail_model::device::WHOLE_DEVICE_MILLI);
        let installed = whole * i128::from(to_ms.saturating_sub(from_ms));
        let mut account = Self { installed, ..Self::default() };
        for interval in intervals {
            account.add_to(interval.state, interval.gpu_milli_ms());
        }
        account
    }

    /// The account in money: the total once, rounded to the micro-dollar, the states by largest
    /// remainders.
    pub fn priced(&self, price: &Priced) -> DeviceTime<Amount> {
        let weights: Vec<i128> = self.by_state.values().copied().collect();
        let (total, parts) = match price {
            Priced::Known(known) if !weights.is_empty() => {
                let total = Money::of_gpu_time(self.installed, known.usd_micros_per_gpu_hour);
                (total, split(total, &weights))
            }
            _ => (Money::ZERO, vec![Money::ZERO; weights.len()]),
        };
        let is_priced = matches!(price, Priced::Known(_));
        let states = self.by_state.iter().zip(parts);
        let amounts =
            states.map(|((state, time), part)| (*state, Amount::of(*time, part, is_priced)));
        DeviceTime {
            installed: Amount::of(self.installed, total, is_priced),
            by_state: amounts.collect(),
        }
    }

    /// Waste without the headroom, in milli-GPU × ms. `headroom_gpu_milli_ms` is what
    /// [`headroom_gpu_milli_ms`] finds for the devices of this account.
    pub fn waste(&self, headroom_gpu_milli_ms: i128) -> i128 {
        let no_demand = self.of(DeviceState::Free(Some(FreeCause::NoDemand)));
        self.of_all(DeviceState::is_waste) - headroom_gpu_milli_ms.clamp(0, no_demand)
    }
}

impl DeviceInterval {
    /// Its size.
    pub fn gpu_milli_ms(&self) -> i128 {
        i128::from(self.gpu_milli) * i128::from(self.span.to_ms - self.span.from_ms)
    }
}

/// How much of the time free without demand is headroom: at every moment as much as is free for
/// want of demand, up to `headroom_gpu_milli` over all devices together.
pub fn headroom_gpu_milli_ms<'a>(
    intervals: impl Iterator<Item = &'a DeviceInterval>,
    headroom_gpu_milli: i64,
) -> i128 {
    let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
    let no_demand = DeviceState::Free(Some(FreeCause::NoDemand));
    for interval in intervals.filter(|interval| interval.state == no_demand) {
        *steps.entry(interval.span.from_ms).or_default() += interval.gpu_milli;
        *steps.entry(interval.span.to_ms).or_default() -= interval.gpu_milli;
    }
    let (mut sum, mut level_milli, mut since_ms) = (0, 0, 0);
    for (at_ms, step) in steps {
        let headroom = i64::min(level_milli, headroom_gpu_milli.max(0));
        sum += i128::from(headroom) * i128::from(at_ms - since_ms);
        level_milli += step;
        since_ms = at_ms;
    }
    sum
}
