//! Wasted time of devices, and what it costs.

use std::ops::{Add, Sub};

use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_model::Money;
use dovetail_model::money::MS_PER_HOUR;

/// An interval of a device; only those whose state is waste can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWaste {
    /// Number of the device.
    pub device: u32,
    pub interval: DeviceInterval,
    /// What a GPU-hour of it costs; `None` if nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// Since when it is in its state; `None` if nobody knows.
    pub since_ms: Option<u64>,
}

impl DeviceWaste {
    /// In milli-GPU × ms.
    pub fn time(&self) -> i128 {
        let span = self.interval.span;
        i128::from(self.interval.gpu_milli) * i128::from(span.to_ms - span.from_ms)
    }
}

/// Device-time with what the priced part of it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PricedTime {
    pub gpu_milli_ms: i128,
    /// The part that has a price.
    pub priced_gpu_milli_ms: i128,
    /// Milli-GPU × ms × micro-USD per GPU-hour, not yet rounded.
    price_units: i128,
}

impl PricedTime {
    /// What the priced part costs, cut off to the micro-dollar, so that findings together never
    /// cost more than the waste they share; `None` if there is time and none of it has a price.
    pub fn cost(self) -> Option<Money> {
        let unknown = self.gpu_milli_ms > 0 && self.priced_gpu_milli_ms == 0;
        let micros = self.price_units / (1000 * MS_PER_HOUR);
        (!unknown).then(|| Money::micros(micros as i64))
    }

    /// Adds a part of a device.
    pub fn add_interval(&mut self, waste: &DeviceWaste) {
        let interval = waste.interval;
        self.add_part(interval.gpu_milli, interval.span, waste.usd_micros_per_gpu_hour);
    }

    /// Adds a part of a device for a span, at a price where it has one.
    pub fn add_part(&mut self, gpu_milli: i64, span: Span, usd_micros_per_gpu_hour: Option<i64>) {
        let time = i128::from(gpu_milli) * i128::from(span.to_ms - span.from_ms);
        self.add_time(time, usd_micros_per_gpu_hour);
    }

    /// Adds so many milli-GPU × ms that cost so much together; `None` is no price.
    pub fn add_charge(&mut self, time: i128, cost: Option<Money>) {
        self.gpu_milli_ms += time;
        if let Some(cost) = cost {
            self.priced_gpu_milli_ms += time;
            self.price_units += i128::from(cost.usd_micros) * 1000 * MS_PER_HOUR;
        }
    }

    /// The same in whole micro-dollars, and in no more than so many.
    pub fn at_most(mut self, most: Money) -> Self {
        let unit = 1000 * MS_PER_HOUR;
        self.price_units = (self.price_units / unit).min(i128::from(most.usd_micros)) * unit;
        self
    }

    /// Adds so many milli-GPU × ms.
    pub fn add_time(&mut self, time: i128, usd_micros_per_gpu_hour: Option<i64>) {
        self.gpu_milli_ms += time;
        if let Some(price) = usd_micros_per_gpu_hour {
            self.priced_gpu_milli_ms += time;
            self.price_units += time * i128::from(price);
        }
    }
}

impl Add for PricedTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            gpu_milli_ms: self.gpu_milli_ms + other.gpu_milli_ms,
            priced_gpu_milli_ms: self.priced_gpu_milli_ms + other.priced_gpu_milli_ms,
            price_units: self.price_units + other.price_units,
        }
    }
}

impl Sub for PricedTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            gpu_milli_ms: self.gpu_milli_ms - other.gpu_milli_ms,
            priced_gpu_milli_ms: self.priced_gpu_milli_ms - other.priced_gpu_milli_ms,
            price_units: self.price_units - other.price_units,
        }
    }
}
