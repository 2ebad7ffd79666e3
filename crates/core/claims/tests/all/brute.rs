//! Every choice tried in turn, without bounds, classes or memory.

use dovetail_check::check_claims;
use dovetail_claims::{DeviceChoice, DeviceDemand, DeviceSupply};

/// The first alternatives with valid devices, found by trying everything.
pub(crate) fn first_alternatives(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
) -> Option<Vec<usize>> {
    let mut choice = DeviceChoice::default();
    try_alternatives(supply, demand, &mut choice).then_some(choice.alternatives)
}

fn try_alternatives(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    choice: &mut DeviceChoice,
) -> bool {
    let number = choice.alternatives.len();
    if number == demand.requests.len() {
        choice.devices = vec![Vec::new(); number];
        return try_devices(supply, demand, choice, 0, 0);
    }
    for at in 0..demand.requests[number].len() {
        choice.alternatives.push(at);
        if try_alternatives(supply, demand, choice) {
            return true;
        }
        choice.alternatives.truncate(number);
    }
    false
}

/// Fills the requests from this one on, with candidates from this one on.
fn try_devices(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    choice: &mut DeviceChoice,
    request: usize,
    from: usize,
) -> bool {
    let Some(of) = demand.requests.get(request) else {
        return check_claims(supply, demand, choice).is_empty();
    };
    let alternative = &of[choice.alternatives[request]];
    if choice.devices[request].len() == alternative.count {
        return try_devices(supply, demand, choice, request + 1, 0);
    }
    for at in from..alternative.candidates.len() {
        choice.devices[request].push(alternative.candidates[at].device);
        // The same one again where it may be shared: the judge refuses it elsewhere.
        if try_devices(supply, demand, choice, request, at) {
            return true;
        }
        choice.devices[request].pop();
    }
    false
}
