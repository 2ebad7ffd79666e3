//! Which devices claims get on a node.

use dovetail_claims::{
    DeviceChoice, DeviceDemand, DeviceSupply, SearchResult, ValueRule, allocate as search,
};
use dovetail_model::Quantity;
use dovetail_objects::{
    AllocatedDevice, Allocation, AskedCount, BindingConditions, ConstraintRule, DeviceAsked,
    DeviceToleration, ResourceClaim,
};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::candidates::{Asking, written};
use crate::capacity::taken;
use crate::catalog::{CandidateNode, Catalog};
use crate::held::{ClaimedDevices, DeviceKey};
use crate::look::RequestLook;
use crate::pools::PoolState;
use crate::question::{AllocationQuestion, Reached, full_name, question, value_of};
use crate::written::{config, nodes};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum AllocationOutcome {
    /// What each claim gets.
    Fits(Vec<Allotment>),
    /// They do not fit, whatever is tried. For each request what excludes how many devices.
    No(Vec<RequestLook>),
    /// The steps ran out before it was known.
    Undecided,
    /// What a claim asks for, or what a driver offers, cannot be understood: in upstream's words.
    Error(String),
}

/// What a claim gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allotment {
    pub devices: Vec<GivenDevice>,
    /// What drivers are told, as it is written in an allocation.
    pub config: Vec<Value>,
    /// The node selector of the allocation, as it is written; `None` where every node reaches it.
    pub nodes: Option<Value>,
}

/// A device that a claim gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenDevice {
    /// Name of the request, with that of the alternative after a slash where it has several.
    pub request: String,
    pub device: Option<DeviceKey>,
    /// Whether it only looks on.
    pub is_admin: bool,
    /// Whether it is one share of several.
    pub is_share: bool,
    /// What it takes of it, where it is a share.
    pub consumed: BTreeMap<Box<str>, Quantity>,
    pub tolerations: Vec<DeviceToleration>,
    /// What must come true before its pod is bound.
    pub binding: BindingConditions,
}

impl Allotment {
    /// Whether a device must become ready before its pod is bound.
    pub fn awaits_conditions(&self) -> bool {
        self.devices.iter().any(|given| !given.binding.awaited.is_empty())
    }

    /// As claims say what they have.
    pub fn allocation(&self) -> Allocation {
        let device = |given: &GivenDevice| {
            let DeviceKey { driver, pool, device } = given.device.clone()?;
            Some(AllocatedDevice {
                driver,
                pool,
                device,
                is_admin: given.is_admin,
                consumed: given.consumed.clone(),
                is_share: given.is_share,
                share: Box::default(),
                binding: given.binding.clone(),
            })
        };
        let devices = self.devices.iter().filter_map(device).collect();
        Allocation { devices, ..Allocation::default() }
    }
}

/// What claims get together on a node, when `held` is what others have. At most `steps` states are
/// looked at.
pub fn allocate(
    catalog: &Catalog,
    held: &ClaimedDevices,
    place: CandidateNode<'_>,
    claims: &[&ResourceClaim],
    steps: u64,
) -> AllocationOutcome {
    Reached::of(catalog, held, place).allocate(claims, steps)
}

impl Reached<'_> {
    /// What claims get together of what is left. At most `steps` states are looked at.
    pub fn allocate(&self, claims: &[&ResourceClaim], steps: u64) -> AllocationOutcome {
        if !self.is_whole && !claims.iter().all(|claim| asks_for_what_is_left(claim)) {
            return self.whole().allocate(claims, steps);
        }
        let question = match question(self, claims) {
            Ok(question) => question,
            Err(problem) => return AllocationOutcome::Error(problem),
        };
        // Which device is the first that it goes wrong with, only all of them show.
        if !self.is_whole && question.fails_somewhere {
            return self.whole().allocate(claims, steps);
        }
        match search(&self.supply, &question.demand, steps) {
            SearchResult::Fits(choice) => self.given(&question, &choice, claims),
            SearchResult::Undecided => AllocationOutcome::Undecided,
            SearchResult::No => refusal(self, question, claims),
        }
    }

    /// What is left on the node, in numbers.
    pub fn supply(&self) -> &DeviceSupply {
        &self.supply
    }

    /// What claims ask of it and get, in the same numbers, where [`Reached::allocate`] finds
    /// devices: for a judge, who adds them up again.
    pub fn choice(
        &self,
        claims: &[&ResourceClaim],
        steps: u64,
    ) -> Option<(DeviceDemand, DeviceChoice)> {
        let demand = question(self, claims).ok()?.demand;
        match search(&self.supply, &demand, steps) {
            SearchResult::Fits(choice) => Some((demand, choice)),
            SearchResult::No | SearchResult::Undecided => None,
        }
    }

    fn given(
        &self,
        question: &AllocationQuestion,
        choice: &DeviceChoice,
        claims: &[&ResourceClaim],
    ) -> AllocationOutcome {
        let mut allotments = vec![Allotment::default(); claims.len()];
        for (at, (number, request, _)) in question.requests.iter().enumerate() {
            let claim = claims[*number];
            let request = &claim.asked.requests[*request];
            let asked = &request.alternatives[choice.alternatives[at]];
            let asking = Asking { reached: self, claim, request, asked };
            let given = choice.devices[at].iter().map(|device| given(&asking, *device));
            allotments[*number].devices.extend(given);
        }
        for (number, (claim, allotment)) in claims.iter().zip(&mut allotments).enumerate() {
            let of_claim = question.requests.iter().zip(&choice.alternatives);
            let of_claim = of_claim.filter(|((one, ..), _)| *one == number);
            let chosen: Vec<usize> = of_claim.map(|(_, alternative)| *alternative).collect();
            allotment.config = config(self.catalog, claim, &chosen);
            match nodes(self, &allotment.devices) {
                Ok(nodes) => allotment.nodes = nodes,
                Err(problem) => {
                    let name = &claim.meta.name;
                    return AllocationOutcome::Error(format!(
                        "create NodeSelector for claim {name}: {problem}"
                    ));
                }
            }
        }
        AllocationOutcome::Fits(allotments)
    }
}

fn given(asking: &Asking<'_, '_>, device: usize) -> GivenDevice {
    let one = &asking.reached.devices[device];
    let features = asking.reached.catalog.features();
    let is_share = one.device.is_for_several && features.consumable_capacity;
    let takes = is_share && !one.device.capacity.is_empty();
    let consumed = takes.then(|| {
        let taken = taken(asking.asked.capacity.as_ref(), one.device, features.fractional_ranges);
        taken.ok().flatten()
    });
    GivenDevice {
        request: asking.written_name(),
        device: Some(one.key()),
        is_admin: asking.asked.is_admin(),
        is_share,
        consumed: consumed.flatten().unwrap_or_default(),
        tolerations: asking.asked.tolerations.clone(),
        binding: one.device.binding.clone(),
    }
}

/// Why there is nothing: where something could not be understood, that is the reason.
fn refusal(
    reached: &Reached<'_>,
    question: AllocationQuestion,
    claims: &[&ResourceClaim],
) -> AllocationOutcome {
    if let Some(problem) = question.failure {
        return AllocationOutcome::Error(problem);
    }
    if let Some(problem) = contradiction(reached, &question, claims) {
        return AllocationOutcome::Error(problem);
    }
    if reached.offer.pools.iter().any(|pool| pool.state == PoolState::Invalid) {
        return AllocationOutcome::Error("invalid resource pools were encountered".to_owned());
    }
    AllocationOutcome::No(question.requests.into_iter().flat_map(|(.., looks)| looks).collect())
}

/// A request for all devices that are free and break a constraint: no node ever serves it.
fn contradiction(
    reached: &Reached<'_>,
    question: &AllocationQuestion,
    claims: &[&ResourceClaim],
) -> Option<String> {
    for (at, (number, request, _)) in question.requests.iter().enumerate() {
        let claim = claims[*number];
        let request = &claim.asked.requests[*request];
        let [asked] = &*request.alternatives else { continue };
        let [alternative] = &*question.demand.requests[at] else { continue };
        if !is_for_all(asked) || alternative.candidates.len() < alternative.count {
            continue;
        }
        for constraint in question.demand.constraints.iter().filter(|one| one.covers(at, 0)) {
            let mut names = claim.asked.constraints.iter().filter_map(|one| match &one.rule {
                ConstraintRule::Match(name) => Some(&**name),
                _ => None,
            });
            if constraint.rule != ValueRule::Match {
                continue;
            }
            let broken = names.find_map(|name| {
                let mut devices: Vec<_> =
                    alternative.candidates.iter().map(|one| &reached.devices[one.device]).collect();
                devices.sort_by_cached_key(|one| one.key());
                let first = value_of(devices.first()?, name);
                devices.into_iter().find(|one| {
                    let value = value_of(one, name);
                    value.is_none() || value != first
                })
            });
            if let Some(device) = broken {
                return Some(format!(
                    "claim {}, request {}: cannot add device {} because a claim constraint would not be satisfied",
                    full_name(claim),
                    request.name,
                    written(device)
                ));
            }
        }
    }
    None
}

/// Whether devices that no claim can get make no difference to a claim: it wants a number of
/// devices for itself, and states no amounts.
fn asks_for_what_is_left(claim: &ResourceClaim) -> bool {
    let mut asked = claim.asked.requests.iter().flat_map(|request| &request.alternatives);
    asked.all(|asked| {
        let is_counted = matches!(asked.count, AskedCount::Exactly(_));
        is_counted && !asked.is_admin() && asked.capacity.is_none()
    })
}

fn is_for_all(asked: &DeviceAsked) -> bool {
    asked.count == AskedCount::All
}
