//! The question of which devices the claims of a pod get on a node, as `core/claims` reads it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use dovetail_claims::{
    AllocatableDevice, Alternative, Constraint, DeviceDemand, DeviceSupply, Draw, RequestGroup,
    ValueRule,
};
use dovetail_objects::{
    AskedCount, ClaimConstraint, ClaimRequest, ConstraintRule, DeviceAsked, DeviceAttribute,
    DeviceTaintRule, OfferedDevice, ResourceClaim, ResourceSlice,
};

use crate::candidates::{Asking, candidates};
use crate::catalog::{CandidateNode, Catalog};
use crate::held::{ClaimedDevices, DeviceKey, HeldDevice, HeldPool};
use crate::look::RequestLook;
use crate::offer::{NodeOffer, NumberedDevice, OfferedPool};
use crate::pools::PoolState;

/// Devices that one claim can have (`AllocationResultsMaxSize`).
const MOST_DEVICES: usize = 32;
/// Devices that draw from one counter set for which what each blocks is worked out.
const MOST_WEIGHED: usize = 256;

/// The devices that a node reaches, and what is left of them.
pub struct Reached<'c> {
    pub(crate) catalog: &'c Catalog,
    /// Devices and counters that allocated claims use.
    pub(crate) held: &'c ClaimedDevices,
    pub(crate) place: CandidateNode<'c>,
    pub(crate) offer: Arc<NodeOffer>,
    /// Whether `devices` are all of them, and not just what is left.
    pub(crate) is_whole: bool,
    /// The same with all of them, once a question needs it.
    whole: OnceLock<Box<Self>>,
    /// Slices with devices.
    pub(crate) slices: Vec<&'c ResourceSlice>,
    pub(crate) devices: Vec<ReachedDevice<'c>>,
    pub(crate) counters: Vec<i128>,
    /// Pools of which a counter is overdrawn.
    pub(crate) overdrawn: Vec<bool>,
    /// Whether a look names the counters that exclude devices, which takes time.
    pub(crate) names_counters: bool,
    /// The same as `core/claims` reads it.
    pub(crate) supply: DeviceSupply,
}

/// A device that a node may reach.
pub(crate) struct ReachedDevice<'c> {
    /// Number of its pool.
    pub(crate) pool: usize,
    driver: &'c str,
    pool_name: &'c str,
    pub(crate) slice: &'c ResourceSlice,
    /// The number of the slice among those of the node.
    pub(crate) slice_number: usize,
    /// Its number in the slice.
    pub(crate) at: usize,
    pub(crate) device: &'c OfferedDevice,
    pub(crate) held: Option<&'c HeldDevice>,
    /// Rules that taint it, beside the taints that its driver states.
    pub(crate) taint_rules: Vec<&'c DeviceTaintRule>,
    /// What it draws when it is given away for the first time.
    pub(crate) draws: Arc<[Draw]>,
    /// The counter of each of its capacities, where it can be shared.
    pub(crate) capacity: BTreeMap<&'c str, usize>,
}

/// The question, and what became of each device.
pub(crate) struct AllocationQuestion {
    pub(crate) demand: DeviceDemand,
    /// For each request its claim, its number there, and a look for each alternative.
    pub(crate) requests: Vec<(usize, usize, Vec<RequestLook>)>,
    /// For each constraint of the demand its claim and its number there; `None` for what no claim
    /// states.
    pub(crate) constraints: Vec<Option<(usize, usize)>>,
    /// The first thing that went wrong with a device, in upstream's words.
    pub(crate) failure: Option<String>,
    /// Whether something goes wrong with a device of the node, be it among those that are looked
    /// at or not.
    pub(crate) fails_somewhere: bool,
}

impl<'c> Reached<'c> {
    /// What a node reaches when `held` is what claims have, in the order in which devices are taken
    /// where several fit: those first that leave most of the others free.
    pub fn of(catalog: &'c Catalog, held: &'c ClaimedDevices, place: CandidateNode<'c>) -> Self {
        Self::new(catalog, held, place, true)
    }

    /// The same without the devices that a claim cannot get, because another has them or shared
    /// counters have too little left. [`Reached::allocate`] gives the same answers, but its looks
    /// count only the devices that are left. On a node that is nearly full, there are few to look
    /// at.
    pub fn left_of(
        catalog: &'c Catalog,
        held: &'c ClaimedDevices,
        place: CandidateNode<'c>,
    ) -> Self {
        Self::new(catalog, held, place, false)
    }

    fn new(
        catalog: &'c Catalog,
        held: &'c ClaimedDevices,
        place: CandidateNode<'c>,
        is_whole: bool,
    ) -> Self {
        let offer = catalog.offer(place);
        // A slice that is gone or different has another offer.
        let slices = offer.slices.iter().filter_map(|name| catalog.slice(name)).collect();
        let mut reached = Self {
            catalog,
            held,
            place,
            is_whole,
            whole: OnceLock::new(),
            overdrawn: Vec::new(),
            names_counters: false,
            slices,
            devices: Vec::new(),
            counters: offer.shape.counters.clone(),
            supply: DeviceSupply::default(),
            offer,
        };
        reached.add_devices();
        let shared = reached.offer.shape.shared.iter();
        let is_overdrawn =
            |of: &Range<usize>| reached.counters[of.clone()].iter().any(|left| *left < 0);
        reached.overdrawn = shared.map(is_overdrawn).collect();
        reached.sort();
        reached.supply = reached.as_supply();
        reached
    }

    /// The same with all devices of the node, which is worked out once.
    pub fn whole(&self) -> &Self {
        let whole = || Box::new(Self::of(self.catalog, self.held, self.place));
        if self.is_whole { self } else { self.whole.get_or_init(whole) }
    }

    /// The node.
    pub fn place(&self) -> CandidateNode<'c> {
        self.place
    }

    /// Takes what is held from the counters, and adds the devices of all pools.
    fn add_devices(&mut self) {
        let offer = Arc::clone(&self.offer);
        let catalog = self.catalog;
        let rules = |pool: &OfferedPool| catalog.taint_rules_of(&pool.driver, &pool.name);
        let rules: Vec<Vec<&'c DeviceTaintRule>> = offer.pools.iter().map(rules).collect();
        let held = self.take_held();
        for (numbered, held) in offer.shape.devices.iter().zip(held) {
            if self.is_whole || self.is_left(numbered, held) {
                let device = self.device(numbered, held, &rules[numbered.pool]);
                self.devices.push(device);
            }
        }
    }

    /// Takes what claims have from the counters; who has each device, by its number.
    fn take_held(&mut self) -> Vec<Option<&'c HeldDevice>> {
        let offer = Arc::clone(&self.offer);
        let held = self.held;
        let of_pool = |pool: &OfferedPool| held.pool(&pool.driver, &pool.name);
        let pools: Vec<Option<&'c HeldPool>> = offer.pools.iter().map(of_pool).collect();
        for other in &offer.elsewhere {
            if pools[other.pool].is_some_and(|held| held.contains_key(&other.name)) {
                self.draw(&other.draws);
            }
        }
        let mut by_number = vec![None; offer.shape.devices.len()];
        for (pool, numbers) in pools.into_iter().zip(&offer.shape.numbers) {
            for (number, held) in self.held_of(pool, numbers) {
                self.take(&offer.shape.devices[number], held);
                by_number[number] = Some(held);
            }
        }
        by_number
    }

    /// The devices of a pool that claims have, of which it has these numbers: looked for from the
    /// side on which there are fewer.
    fn held_of(
        &self,
        pool: Option<&'c HeldPool>,
        numbers: &Range<usize>,
    ) -> Vec<(usize, &'c HeldDevice)> {
        let Some(held) = pool else { return Vec::new() };
        let shape = &self.offer.shape;
        let name = |number: usize| &*self.offered(&shape.devices[number]).name;
        if held.len() > numbers.len() {
            let of_number = |number| Some((number, held.get(name(number))?));
            return numbers.clone().filter_map(of_number).collect();
        }
        let by_name = &self.offer.by_name[numbers.clone()];
        let number_of = |wanted: &str| {
            let found = by_name.binary_search_by(|number| name(*number as usize).cmp(wanted));
            found.ok().map(|at| by_name[at] as usize)
        };
        held.iter().filter_map(|(name, held)| Some((number_of(name)?, held))).collect()
    }

    /// Takes from the counters what who has a device takes of it.
    fn take(&mut self, numbered: &NumberedDevice, held: &HeldDevice) {
        self.draw(&numbered.draws);
        let device = self.offered(numbered);
        if !device.is_for_several {
            return;
        }
        for (name, counter) in device.capacity.keys().zip(numbered.first_capacity..) {
            self.counters[counter] -= held.consumed.get(name).copied().unwrap_or(0);
        }
    }

    /// What its driver says of a device.
    fn offered(&self, numbered: &NumberedDevice) -> &'c OfferedDevice {
        &self.slices[numbered.slice].devices[numbered.at]
    }

    /// Whether a claim may get a device, or it matters to what is asked all the same.
    fn is_left(&self, numbered: &NumberedDevice, held: Option<&HeldDevice>) -> bool {
        !numbered.is_plain || (held.is_none() && self.have_left(&numbered.draws))
    }

    /// Whether counters have as much left.
    fn have_left(&self, draws: &[Draw]) -> bool {
        draws.iter().all(|draw| self.counters[draw.counter] >= draw.amount)
    }

    fn device(
        &self,
        numbered: &NumberedDevice,
        held: Option<&'c HeldDevice>,
        rules: &[&'c DeviceTaintRule],
    ) -> ReachedDevice<'c> {
        let NumberedDevice { pool, slice: slice_number, at, draws, first_capacity, .. } = numbered;
        let slice = self.slices[*slice_number];
        let device = &slice.devices[*at];
        let mut capacity = BTreeMap::new();
        if device.is_for_several {
            capacity.extend(device.capacity.keys().map(|name| &**name).zip(*first_capacity..));
        }
        ReachedDevice {
            pool: *pool,
            driver: &slice.driver,
            pool_name: &slice.pool.name,
            slice,
            slice_number: *slice_number,
            at: *at,
            device,
            taint_rules: tainting(rules, &device.name),
            held,
            draws: Arc::clone(draws),
            capacity,
        }
    }

    fn draw(&mut self, draws: &[Draw]) {
        for draw in draws {
            self.counters[draw.counter] -= draw.amount;
        }
    }

    fn sort(&mut self) {
        let lost = self.lost();
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        let last = |at: usize| !self.devices[at].device.binding.awaited.is_empty();
        order.sort_by_key(|at| (last(*at), lost[*at], *at));
        let mut devices: Vec<Option<ReachedDevice<'c>>> =
            std::mem::take(&mut self.devices).into_iter().map(Some).collect();
        self.devices = order.into_iter().filter_map(|at| devices[at].take()).collect();
    }

    /// For each device that is free, how many others would not fit any more if it were given away.
    pub(crate) fn lost(&self) -> Vec<usize> {
        let fits = |at: usize, left: &[i128]| {
            self.devices[at].draws.iter().all(|draw| left[draw.counter] >= draw.amount)
        };
        let mut lost = vec![0; self.devices.len()];
        let is_free = |at: &usize| self.devices[*at].held.is_none() && fits(*at, &self.counters);
        let free: Vec<usize> = (0..self.devices.len()).filter(is_free).collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); self.counters.len()];
        for at in &free {
            for draw in self.devices[*at].draws.iter() {
                users[draw.counter].push(*at);
            }
        }
        // What is left of counters after one of them was given away.
        let mut left = self.counters.clone();
        // For which of them a device was counted last.
        let mut seen = vec![usize::MAX; self.devices.len()];
        for at in free {
            let draws = &self.devices[at].draws;
            draws.iter().for_each(|draw| left[draw.counter] -= draw.amount);
            let near = draws.iter().map(|draw| &users[draw.counter]);
            for one in near.filter(|users| users.len() <= MOST_WEIGHED).flatten() {
                if seen[*one] != at {
                    seen[*one] = at;
                    lost[at] += usize::from(!fits(*one, &left));
                }
            }
            draws.iter().for_each(|draw| left[draw.counter] += draw.amount);
        }
        lost
    }

    fn as_supply(&self) -> DeviceSupply {
        let features = self.catalog.features();
        let is_shared =
            |one: &ReachedDevice<'_>| one.device.is_for_several && features.consumable_capacity;
        let device = |one: &ReachedDevice<'_>| AllocatableDevice {
            is_shared: is_shared(one),
            // Who shares it already has drawn for all.
            draws: match is_shared(one) && one.held.is_some() {
                true => Vec::new(),
                false => one.draws.to_vec(),
            },
        };
        DeviceSupply {
            counters: self.counters.clone(),
            devices: self.devices.iter().map(device).collect(),
        }
    }
}

impl ReachedDevice<'_> {
    pub(crate) fn key(&self) -> DeviceKey {
        DeviceKey {
            driver: self.driver.into(),
            pool: self.pool_name.into(),
            device: self.device.name.clone(),
        }
    }

    /// Its place in the order in which drivers offer the devices of a node.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.slice_number, self.at)
    }

    pub(crate) fn is(&self, key: &DeviceKey) -> bool {
        let DeviceKey { driver, pool, device } = key;
        (self.driver, self.pool_name, &self.device.name) == (driver, pool, device)
    }
}

/// Those of the rules of a pool that taint one of its devices.
fn tainting<'c>(rules: &[&'c DeviceTaintRule], device: &str) -> Vec<&'c DeviceTaintRule> {
    let is_for_device = |rule: &&DeviceTaintRule| {
        rule.selector.as_ref().is_some_and(|selector| selector.is_for_device(device))
    };
    rules.iter().copied().filter(is_for_device).collect()
}

/// The question of what claims get together; an error in upstream's words where they cannot be
/// understood.
pub(crate) fn question(
    reached: &Reached<'_>,
    claims: &[&ResourceClaim],
) -> Result<AllocationQuestion, String> {
    let catalog = reached.catalog;
    let mut question = AllocationQuestion {
        demand: DeviceDemand::default(),
        requests: Vec::new(),
        constraints: Vec::new(),
        failure: None,
        fails_somewhere: false,
    };
    for (number, claim) in claims.iter().enumerate() {
        let first = question.demand.requests.len();
        let mut least = 0_usize;
        for (at, request) in claim.asked.requests.iter().enumerate() {
            understood(catalog, claim, request)?;
            let mut looks = Vec::new();
            let mut alternatives: Vec<Alternative> = Vec::new();
            for asked in &request.alternatives {
                let asking = Asking { reached, claim, request, asked };
                let count = count(&asking)?;
                let found = candidates(&asking, count)?;
                question.failure = question.failure.take().or(found.failure);
                question.fails_somewhere |= found.fails_somewhere;
                looks.push(found.look);
                alternatives.push(found.alternative);
            }
            let fewest = alternatives.iter().zip(&looks).map(|(_, look)| look.wanted).min();
            let fewest = fewest.unwrap_or(0);
            if fewest > MOST_DEVICES - least {
                return Err(format!(
                    "claim {}, request {}: adding {fewest} devices exceeds the claim limit of {MOST_DEVICES}, with \
                     {least} already accounted for",
                    full_name(claim),
                    request.name
                ));
            }
            least += fewest;
            question.demand.requests.push(alternatives);
            question.requests.push((number, at, looks));
        }
        let requests = first..question.demand.requests.len();
        question.demand.groups.push(RequestGroup { requests, most_devices: MOST_DEVICES });
        for (at, constraint) in claim.asked.constraints.iter().enumerate() {
            let rule = match &constraint.rule {
                ConstraintRule::Match(name) => (ValueRule::Match, &**name),
                ConstraintRule::Distinct(name) => (ValueRule::Distinct, &**name),
                ConstraintRule::Other => {
                    let claim = full_name(claim);
                    return Err(format!(
                        "claim {claim}, constraint #{at}: empty constraint (unsupported constraint type?)"
                    ));
                }
            };
            question.demand.constraints.push(restricted(reached, claim, first, constraint, rule));
            question.constraints.push(Some((number, at)));
        }
        question.demand.constraints.extend(apart(reached, claim, first));
        question.constraints.resize(question.demand.constraints.len(), None);
    }
    Ok(question)
}

/// What keeps a request from being understood.
fn understood(
    catalog: &Catalog,
    claim: &ResourceClaim,
    request: &ClaimRequest,
) -> Result<(), String> {
    let features = catalog.features();
    let of = |name: &str| format!("claim {}, request {name}", full_name(claim));
    if request.is_list && !features.prioritized_lists {
        let of = of(&request.name);
        return Err(format!(
            "{of}: has subrequests, but the DRAPrioritizedList feature is disabled"
        ));
    }
    for asked in &request.alternatives {
        let name = if request.is_list { &asked.name } else { &request.name };
        let of = of(name);
        if let Some(field) = asked.unknown.first() {
            return Err(format!("{of}: field {field} is not understood"));
        }
        if asked.capacity.is_some() && !features.consumable_capacity {
            let kind = if request.is_list { "subrequest" } else { "request" };
            return Err(format!(
                "claim {}, {kind} {name}: has capacity requests, but the DRAConsumableCapacity feature is disabled",
                full_name(claim)
            ));
        }
        if let Some(number) = asked.selectors.iter().position(String::is_empty) {
            return Err(format!(
                "{of}, selector #{number}: CEL expression empty (unsupported selector type?)"
            ));
        }
        if asked.admin_access.is_some() && !features.admin_access {
            return Err(format!("{of}: admin access is requested, but the feature is disabled"));
        }
        if asked.class.is_empty() {
            return Err(format!("{of}: missing device class name (unsupported request type?)"));
        }
        if catalog.class(&asked.class).is_none() {
            let class = &asked.class;
            return Err(format!("{of}: could not retrieve device class {class}: not found"));
        }
        if let AskedCount::Other(mode) = &asked.count {
            return Err(format!("{of}: unsupported count mode {mode}"));
        }
    }
    Ok(())
}

/// How many devices; `None` is all, which needs all pools to be whole.
fn count(asking: &Asking<'_, '_>) -> Result<Option<usize>, String> {
    if let AskedCount::Exactly(count) = asking.asked.count {
        return Ok(Some(usize::try_from(count).unwrap_or(0)));
    }
    let not_whole = asking.reached.offer.pools.iter().find(|pool| !pool.is_usable());
    let Some(pool) = not_whole else { return Ok(None) };
    let state = match pool.state {
        PoolState::Incomplete => "being updated",
        PoolState::Invalid | PoolState::Usable => "invalid",
    };
    let of = asking.name();
    let pool = pool.id();
    Err(format!("{of}: asks for all devices, but resource pool {pool} is currently {state}"))
}

/// A rule about an attribute of devices of a claim.
fn restricted(
    reached: &Reached<'_>,
    claim: &ResourceClaim,
    first: usize,
    constraint: &ClaimConstraint,
    (rule, attribute): (ValueRule, &str),
) -> Constraint {
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut number = |value: String| {
        let next = numbers.len() as u32;
        *numbers.entry(value).or_insert(next)
    };
    let values = reached.devices.iter().map(|one| {
        let value = value_of(one, attribute);
        value.map(&mut number).into_iter().collect()
    });
    let values = values.collect();
    let covers = claim.asked.requests.iter().enumerate().flat_map(|(at, request)| {
        let names = |name: &str| constraint.requests.iter().any(|one| **one == *name);
        let whole = constraint.requests.is_empty() || names(&request.name);
        let of = |asked: &DeviceAsked| names(&format!("{}/{}", request.name, asked.name));
        let parts = request.alternatives.iter().enumerate();
        let parts = parts.filter(move |(_, asked)| !whole && of(asked));
        let parts: Vec<_> = parts.map(|(number, _)| (first + at, Some(number))).collect();
        whole.then_some((first + at, None)).into_iter().chain(parts)
    });
    Constraint { rule, covers: covers.collect(), values }
}

/// Requests of one claim never share a device, those that only look on included.
fn apart(reached: &Reached<'_>, claim: &ResourceClaim, first: usize) -> Option<Constraint> {
    let requests = &claim.asked.requests;
    let mut alternatives = requests.iter().flat_map(|request| &request.alternatives);
    if requests.len() < 2 || !alternatives.any(DeviceAsked::is_admin) {
        return None;
    }
    Some(Constraint {
        rule: ValueRule::Distinct,
        covers: (first..first + requests.len()).map(|request| (request, None)).collect(),
        values: (0..reached.devices.len() as u32).map(|number| vec![number]).collect(),
    })
}

/// The value of an attribute of a device, with its type; the driver's own names may be written with
/// or without it.
pub(crate) fn value_of(one: &ReachedDevice<'_>, attribute: &str) -> Option<String> {
    let attributes = &one.device.attributes;
    let own = || {
        let (driver, id) = attribute.split_once('/')?;
        (driver == one.driver).then(|| attributes.get(id))?
    };
    match attributes.get(attribute).or_else(own)? {
        DeviceAttribute::Text(text) => Some(format!("s{text}")),
        DeviceAttribute::Number(number) => Some(format!("i{number}")),
        DeviceAttribute::Truth(truth) => Some(format!("b{truth}")),
        DeviceAttribute::Version(text) => Some(format!("v{text}")),
        DeviceAttribute::List(_) | DeviceAttribute::Other => None,
    }
}

/// Namespace and name of a claim.
pub(crate) fn full_name(claim: &ResourceClaim) -> String {
    match &*claim.meta.namespace {
        "" => claim.meta.name.to_string(),
        namespace => format!("{namespace}/{}", claim.meta.name),
    }
}
