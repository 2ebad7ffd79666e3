//! Intervals added up, and priced.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use dovetail_capacity::Imbalance;
use dovetail_model::Money;
use dovetail_model::money::split;

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
}

impl DeviceInterval {
    /// Its size.
    pub fn gpu_milli_ms(&self) -> i128 {
        i128::from(self.gpu_milli) * i128::from(self.span.to_ms - self.span.from_ms)
    }
}
