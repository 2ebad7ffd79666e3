//! How many devices of a class are free on a node, where pods take them one by one.

use dovetail_objects::{ClaimContents, ClaimRequest, DeviceAsked, ResourceClaim};

use crate::candidates::{Asking, candidates};
use crate::catalog::{CandidateNode, Catalog};
use crate::held::ClaimedDevices;
use crate::question::Reached;

/// As many claims of one device of a class as a node can serve one after the other, when `held` is
/// what others have. Devices that several claims may share count once.
pub fn free_of_class(
    catalog: &Catalog,
    held: &ClaimedDevices,
    place: CandidateNode<'_>,
    class: &str,
) -> usize {
    if catalog.class(class).is_none() {
        return 0;
    }
    let reached = Reached::left_of(catalog, held, place);
    let asked = DeviceAsked { class: class.into(), ..DeviceAsked::default() };
    let alternatives = vec![asked.clone()];
    let request = ClaimRequest { alternatives, ..ClaimRequest::default() };
    let asked_for = ClaimContents { requests: vec![request.clone()], ..ClaimContents::default() };
    let claim = ResourceClaim { asked: asked_for, ..ResourceClaim::default() };
    let (claim, request, asked) = (&claim, &request, &asked);
    let asking = Asking { reached: &reached, claim, request, asked };
    let Ok(found) = candidates(&asking, Some(1)) else { return 0 };
    let mut candidates = found.alternative.candidates;
    // Those first that leave most of the others free, be they ready at once or under conditions.
    let lost = reached.lost();
    candidates.sort_by_key(|one| (lost[one.device], reached.devices[one.device].place()));
    let mut counters = reached.counters.clone();
    let mut free = 0;
    for candidate in candidates {
        let device = &reached.devices[candidate.device];
        let draws = device.draws.iter().filter(|_| device.held.is_none()).chain(&candidate.draws);
        if draws.clone().all(|draw| counters[draw.counter] >= draw.amount) {
            draws.for_each(|draw| counters[draw.counter] -= draw.amount);
            free += 1;
        }
    }
    free
}
