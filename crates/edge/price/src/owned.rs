//! Machines that were bought: what an hour of one of their GPUs costs.

use crate::usd::format_usd_micros;

const HOURS_PER_YEAR: i128 = 8760;

/// Nothing but the machine itself.
const LEAST_PUE_MILLIONTHS: i64 = 1_000_000;

/// A machine of one's own. What it cost is spread over all hours of its life, used or not: how much
/// of them is used is what a bill shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedMachine {
    /// What it cost, installed, in micro-USD.
    pub capex_usd_micros: i64,
    /// GPUs in it, at least 1.
    pub gpus: u32,
    /// Years over which it is written off, at least 1.
    pub years: u32,
    /// What it draws on average.
    pub watts: u32,
    /// Power of the building for each unit of power of the machine, in millionths: 1,400,000 is a
    /// PUE of 1.4.
    pub pue_millionths: i64,
    /// Price of a kWh in micro-USD.
    pub usd_micros_per_kwh: i64,
}

impl OwnedMachine {
    /// (capex / (years × 8760) + kW × PUE × price of a kWh) / GPUs, half up to the micro-dollar.
    pub fn usd_micros_per_gpu_hour(&self) -> i64 {
        let life_hours = i128::from(self.years.max(1)) * HOURS_PER_YEAR;
        // Watts × millionths × micro-USD, over 1000 W and a million.
        let energy_unit = 1000 * 1_000_000;
        let energy = i128::from(self.watts)
            * i128::from(self.pue_millionths)
            * i128::from(self.usd_micros_per_kwh);
        let numerator = i128::from(self.capex_usd_micros) * energy_unit + energy * life_hours;
        let divisor = life_hours * energy_unit * i128::from(self.gpus.max(1));
        i64::try_from((numerator + divisor / 2) / divisor).unwrap_or(i64::MAX)
    }

    /// Whether the building takes at least what the machine takes.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check_pue(&self) -> Result<(), String> {
        if self.pue_millionths >= LEAST_PUE_MILLIONTHS {
            return Ok(());
        }
        let pue = format_usd_micros(self.pue_millionths);
        Err(format!(
            "{pue} is below 1: a data center uses at least the power of its machines; 1.00 counts \
             only the machine"
        ))
    }

    /// The formula with its numbers.
    pub(crate) fn formula(&self) -> String {
        let Self { gpus, years, watts, .. } = self;
        format!(
            "own machine: (${} / ({years} years × 8760 h) + {watts} W × PUE {} × ${} per kWh) / {gpus} GPUs",
            format_usd_micros(self.capex_usd_micros),
            format_usd_micros(self.pue_millionths),
            format_usd_micros(self.usd_micros_per_kwh)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_are_still_a_price() {
        let most = OwnedMachine {
            capex_usd_micros: i64::MAX,
            gpus: 1,
            years: 1,
            watts: u32::MAX,
            pue_millionths: 1_000_000_000_000,
            usd_micros_per_kwh: 1_000_000_000_000,
        };
        assert!(most.usd_micros_per_gpu_hour() > 0);
    }
}
