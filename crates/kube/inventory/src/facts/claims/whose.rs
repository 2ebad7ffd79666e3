//! Whose devices are meant, as far as that is known: those of some drivers of GPUs, and whether
//! they may be others'.

use super::driver::{DRIVERS, GpuDriver};

/// Drivers whose devices may be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::facts) struct Whose {
    of_gpus: [bool; DRIVERS.len()],
    /// Of any driver that is not among them.
    of_others: bool,
}

impl Default for Whose {
    fn default() -> Self {
        Self::ANYBODY
    }
}

impl Whose {
    pub(super) const ANYBODY: Self = Self { of_gpus: [true; DRIVERS.len()], of_others: true };

    pub(super) fn of(driver: &GpuDriver) -> Self {
        Self { of_others: false, ..Self::named(|name| name == driver.name) }
    }

    /// Those of drivers whose name is such a one; others' may be among them.
    pub(super) fn named(is_such: impl Fn(&str) -> bool) -> Self {
        Self { of_gpus: DRIVERS.each_ref().map(|driver| is_such(driver.name)), of_others: true }
    }

    /// Those of the driver of that name.
    pub(super) fn exactly(name: &str) -> Self {
        GpuDriver::named(name).map_or(Self::named(|_| false), Self::of)
    }

    /// Those that both mean.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            of_gpus: std::array::from_fn(|at| self.of_gpus[at] && other.of_gpus[at]),
            of_others: self.of_others && other.of_others,
        }
    }

    /// Those that one of them means.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            of_gpus: std::array::from_fn(|at| self.of_gpus[at] || other.of_gpus[at]),
            of_others: self.of_others || other.of_others,
        }
    }

    /// Whether there may be GPUs among them.
    pub(super) fn may_be_gpus(self) -> bool {
        self.of_gpus.contains(&true)
    }

    /// The one driver whose devices they are, if that is known.
    pub(super) fn only(self) -> Option<&'static GpuDriver> {
        let mut drivers = self.drivers();
        let first = drivers.next()?;
        (!self.of_others && drivers.next().is_none()).then_some(first)
    }

    /// Whether what is counted under that name may be among them.
    pub(super) fn may_be(self, resource: &str) -> bool {
        match DRIVERS.iter().position(|driver| driver.calls(resource)) {
            Some(at) => self.of_gpus[at],
            None => self.of_others,
        }
    }

    /// As a selector that means the same; empty for anybody's.
    pub(super) fn as_selector(self) -> String {
        let compared = |sign: &str, is_meant: bool| {
            let all = DRIVERS.iter().zip(self.of_gpus).filter(|(_, meant)| *meant == is_meant);
            all.map(|(driver, _)| format!("device.driver {sign} '{}'", driver.name))
                .collect::<Vec<_>>()
        };
        match (self.may_be_gpus(), self.of_others) {
            // The name of none of them.
            (false, _) => "device.driver == 'other'".to_owned(),
            (true, true) => compared("!=", false).join(" && "),
            (true, false) => match compared("==", true) {
                one if one.len() == 1 => one.concat(),
                several => format!("({})", several.join(" || ")),
            },
        }
    }

    fn drivers(self) -> impl Iterator<Item = &'static GpuDriver> {
        DRIVERS.iter().zip(self.of_gpus).filter(|(_, meant)| *meant).map(|(driver, _)| driver)
    }
}
