//! How machines are bought, by a bill.

use std::collections::BTreeSet;

use super::bill::{Bill, BillLine, Cost};
use crate::focus::Pricing;

/// From the weakest on: of as much time, or cost, the last one holds.
const KINDS: [Pricing; 3] = [Pricing::Standard, Pricing::Dynamic, Pricing::Committed];

impl Bill {
    /// How a machine is bought: what is said of most of its billed time; of as much time the
    /// committed. `None` where nothing is said of any of it.
    pub fn bought(&self, machine: usize) -> Option<Pricing> {
        self.bought_in(machine, 0, u64::MAX)
    }

    /// The same of a span of time.
    ///
    /// Traffic, disks and licences stand under the machine's own name, several lines an hour and on
    /// demand whatever the machine is: of each moment only lines of the machine itself are asked,
    /// where the file says which these are, else the lines are weighed by what they cost.
    pub fn bought_in(&self, machine: usize, from_ms: u64, to_ms: u64) -> Option<Pricing> {
        let lines = self.of_machines.get(&machine)?;
        let mut inside: Vec<(u64, u64, &BillLine)> = Vec::new();
        for line in lines.iter().filter(|line| line.touches(from_ms, to_ms)) {
            inside.push((line.from_ms.max(from_ms), line.to_ms.min(to_ms), line));
        }
        inside.sort_by_key(|(from_ms, _, _)| *from_ms);
        let ends = inside.iter().flat_map(|(from_ms, to_ms, _)| [*from_ms, *to_ms]);
        let ends: Vec<u64> = ends.collect::<BTreeSet<u64>>().into_iter().collect();
        let mut told_ms = [0_u128; KINDS.len()];
        let (mut coming, mut there) = (inside.into_iter().peekable(), Vec::new());
        for part in ends.windows(2) {
            there.retain(|(_, to_ms, _)| *to_ms > part[0]);
            while let Some(line) = coming.next_if(|(from_ms, _, _)| *from_ms <= part[0]) {
                there.push(line);
            }
            let then: Vec<&BillLine> = there.iter().map(|(_, _, line)| *line).collect();
            let kind = kind_of(&then);
            if let Some(place) = KINDS.iter().position(|known| kind == Some(*known)) {
                told_ms[place] += u128::from(part[1] - part[0]);
            }
        }
        let most = KINDS.into_iter().zip(told_ms).max_by_key(|(_, ms)| *ms)?;
        (most.1 > 0).then_some(most.0)
    }
}

/// What lines of one moment say: those of the machine itself, where there are any, and of these the
/// kind on which most is spent. `None` where that is spent on what says nothing.
fn kind_of(lines: &[&BillLine]) -> Option<Pricing> {
    let is_told = lines.iter().any(|line| line.is_of_machine);
    let mut spent: [Option<i128>; KINDS.len() + 1] = [None; KINDS.len() + 1];
    for line in lines.iter().filter(|line| line.is_of_machine || !is_told) {
        // Nothing said comes first, so that of as much cost anything that is said holds.
        let place = KINDS.iter().position(|kind| line.bought == Some(*kind));
        *spent[place.map_or(0, |place| place + 1)].get_or_insert(0) += line.hourly_pico();
    }
    let there = spent.into_iter().enumerate();
    let there = there.filter_map(|(place, pico)| Some((place, pico?)));
    let (place, _) = there.max_by_key(|(_, pico)| *pico)?;
    KINDS.get(place.checked_sub(1)?).copied()
}

impl BillLine {
    /// What it would come to for an hour at list prices, by which all kinds are alike, or amortised
    /// where that is more: time that is paid in advance may have either of them alone.
    fn hourly_pico(&self) -> i128 {
        const HOUR_MS: i128 = 3_600_000;
        let said = [Cost::List, Cost::Effective].map(|cost| self.pico[cost as usize].unwrap_or(0));
        let most = said.into_iter().max().unwrap_or(0);
        let length_ms = i128::from(self.to_ms - self.from_ms).max(1);
        most / length_ms * HOUR_MS + most % length_ms * HOUR_MS / length_ms
    }
}
