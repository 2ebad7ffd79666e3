//! The first alternatives that can be served, in the order of the requests: a later request gets a
//! worse alternative before an earlier one does.

use crate::demand::{DeviceChoice, DeviceDemand, DeviceSupply, SearchResult};
use crate::search::{FoundDevices, search};

/// Devices for a demand, with the first alternatives in the order of the requests that can be
/// served together. At most `steps` states are looked at.
pub fn allocate(supply: &DeviceSupply, demand: &DeviceDemand, steps: u64) -> SearchResult {
    let mut left = steps;
    let mut chosen = Vec::new();
    match choose(supply, demand, &mut chosen, &mut left) {
        FoundDevices::Devices(devices) => {
            SearchResult::Fits(DeviceChoice { alternatives: chosen, devices, steps: steps - left })
        }
        FoundDevices::No => SearchResult::No,
        FoundDevices::Undecided => SearchResult::Undecided,
    }
}

/// Extends the chosen alternatives to all requests. What cannot be served for the first requests
/// alone cannot be served with more of them.
fn choose(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    chosen: &mut Vec<usize>,
    left: &mut u64,
) -> FoundDevices {
    let number = chosen.len();
    let Some(alternatives) = demand.requests.get(number) else {
        return search(supply, demand, chosen, left);
    };
    let is_last = number + 1 == demand.requests.len();
    for at in 0..alternatives.len() {
        chosen.push(at);
        let found = match is_within_groups(demand, chosen) {
            false => FoundDevices::No,
            true if is_last || alternatives.len() == 1 => choose(supply, demand, chosen, left),
            true => match search(supply, demand, chosen, left) {
                FoundDevices::Devices(_) => choose(supply, demand, chosen, left),
                found => found,
            },
        };
        match found {
            FoundDevices::No => chosen.truncate(number),
            found => return found,
        }
    }
    FoundDevices::No
}

/// Whether no claim gets more devices than it may have.
fn is_within_groups(demand: &DeviceDemand, chosen: &[usize]) -> bool {
    demand.groups.iter().all(|group| {
        let of = |request: usize| demand.requests[request][chosen[request]].count;
        let requests = group.requests.start..group.requests.end.min(chosen.len());
        requests.map(of).fold(0, usize::saturating_add) <= group.most_devices
    })
}
