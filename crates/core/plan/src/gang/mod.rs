//! Placing a whole job: all of its smallest size or nothing.
//!
//! Every attempt is a transaction; a failed one is rolled back at the cost of its own changes.
//! Where a level of the topology is required, domains with enough room are tried from the smallest
//! up. Where one is preferred, the job goes into one domain if one has room (the smallest such),
//! else into as few as possible inside the narrowest wider domain with room: the largest first, and
//! the smallest that suffices for the rest, which is optimal in number for identical pods.

mod request;
mod topology;

pub use request::UnknownLevel;
pub(crate) use request::{Gang, GangSet};

use std::collections::BTreeMap;

use dovetail_model::{
    Bounds, Charge, HeldDevices, HoldingId, HoldingPhase, JobId, NodeId, Owner, PodId,
    ReservationId,
};

use dovetail_finder::Finder;
use dovetail_policy::Policy;
use dovetail_state::State;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// One pod with the place it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPod {
    pub pod: PodId,
    pub node: NodeId,
    /// Its devices; on a node with counted devices the kubelet chooses which.
    pub devices: HeldDevices,
    /// What it holds from now on.
    pub holding: HoldingId,
}

/// The hands of a decision: the state it changes, who scores and who searches.
pub(crate) struct Placer<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) policy: &'a mut dyn Policy,
    pub(crate) finder: &'a mut dyn Finder,
    pub(crate) job: JobId,
    pub(crate) phase: HoldingPhase,
    pub(crate) reservation: Option<ReservationId>,
    /// Most to add beyond the smallest size.
    pub(crate) growth_limit: Bounds,
    placed: Vec<PlacedPod>,
    /// Where the pods of each set went, so that it grows there.
    scopes: BTreeMap<u16, Scope>,
}

/// Some pods of one set.
#[derive(Clone, Copy, Debug)]
struct SetPart<'g> {
    set: &'g GangSet,
    count: u32,
    /// The search is already inside the levels that the set itself asks for.
    at_own_levels: bool,
}

impl SetPart<'_> {
    /// The part as it is searched at the set's own levels; `None` if it has none or is there
    /// already.
    fn own_levels(&self) -> Option<Self> {
        let own = self.set.has_topology() && !self.at_own_levels;
        own.then_some(Self { at_own_levels: true, ..*self })
    }
}

impl<'a> Placer<'a> {
    pub(crate) fn new(
        state: &'a mut State,
        policy: &'a mut dyn Policy,
        finder: &'a mut dyn Finder,
        job: JobId,
    ) -> Self {
        Self {
            state,
            policy,
            finder,
            job,
            phase: HoldingPhase::Assumed,
            reservation: None,
            growth_limit: Bounds::default(),
            placed: Vec::new(),
            scopes: BTreeMap::new(),
        }
    }

    /// Places the gang's smallest size, then as many more as it can use and the cluster can give.
    /// `None`: it does not fit, and nothing has changed.
    pub(crate) fn place(mut self, gang: &Gang) -> Option<Vec<PlacedPod>> {
        if let Some(set) = gang.only_pod() {
            let fits = self.place_pod(set, Scope::Everywhere);
            return fits.then_some(self.placed);
        }
        let mut parts: Vec<SetPart<'_>> = gang
            .sets
            .iter()
            .map(|set| SetPart { set, count: set.min, at_own_levels: false })
            .collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.set.weight));
        let placed = self.attempt(|placer| {
            placer.place_at(Scope::Everywhere, gang.required, gang.preferred, &parts)
        });
        if !placed {
            return None;
        }
        self.grow(gang);
        Some(self.placed)
    }

    /// Runs an attempt; if it fails, everything it did is undone.
    fn attempt(&mut self, action: impl FnOnce(&mut Self) -> bool) -> bool {
        let mark = self.state.begin();
        let (placed, scopes) = (self.placed.len(), self.scopes.clone());
        if action(self) {
            self.state.commit(mark);
            return true;
        }
        self.state.rollback(mark);
        self.placed.truncate(placed);
        self.scopes = scopes;
        false
    }

    /// Places each part by itself in the scope, the parts in their order.
    fn place_flat(&mut self, scope: Scope, parts: &[SetPart<'_>]) -> bool {
        parts.iter().all(|part| {
            if part.count == 0 {
                self.scopes.insert(part.set.pod_set, scope);
                return true;
            }
            if let Some(own) = part.own_levels() {
                return self.place_at(scope, part.set.required, part.set.preferred, &[own]);
            }
            self.scopes.insert(part.set.pod_set, scope);
            self.place_pods(part.set, scope, part.count) == part.count
        })
    }

    /// Places up to `count` pods one after another; returns how many fitted.
    fn place_pods(&mut self, set: &GangSet, scope: Scope, count: u32) -> u32 {
        (0..count).take_while(|_| self.place_pod(set, scope)).count() as u32
    }

    #[inline]
    fn place_pod(&mut self, set: &GangSet, scope: Scope) -> bool {
        let best = self.finder.best(self.state, self.policy, set.shape, scope);
        let Some(node) = best else { return false };
        let before = self.placed.iter().filter(|placed| placed.pod.pod_set == set.pod_set).count();
        let pod = PodId {
            job: self.job,
            pod_set: set.pod_set,
            ordinal: set.first_ordinal + before as u32,
        };
        let devices = self.policy.devices(self.state, set.shape, node);
        let holding = self.hold(set.shape, pod, node, devices.clone());
        self.placed.push(PlacedPod { pod, node, devices, holding });
        true
    }

    fn hold(
        &mut self,
        shape: ShapeId,
        pod: PodId,
        node: NodeId,
        devices: HeldDevices,
    ) -> HoldingId {
        let shape = self.state.shapes.get(shape);
        let record = HoldingRecord {
            node,
            owner: Owner::Pod(pod),
            phase: self.phase,
            reservation: self.reservation,
            amounts: shape.demand.amounts.clone(),
            devices,
            counts_into: shape.counts_into.clone(),
            attachments: shape.demand.attachments.clone(),
        };
        self.state.hold(record)
    }

    /// Adds pods beyond the smallest size, set by set, where the set already is and within the
    /// limit.
    fn grow(&mut self, gang: &Gang) {
        let mut left = std::mem::take(&mut self.growth_limit);
        // Of several models it is not known which one pods get: each counts for every one.
        for set in &gang.sets {
            let asked = self.of_any_model(set, &left);
            left.by_model.iter_mut().for_each(|(model, left)| {
                let each = asked.by_model.get(model).copied().unwrap_or(0);
                *left = left.saturating_sub(each.saturating_mul(i64::from(set.min)));
            });
        }
        for set in &gang.sets {
            let mut charge = self.state.shapes.get(set.shape).charge.clone();
            charge.by_model.extend(self.of_any_model(set, &left).by_model);
            let mut more = set.max.saturating_sub(set.min);
            for (axis, left) in left.iter() {
                let each = charge.get(&axis);
                if each > 0 {
                    more = more.min(u32::try_from(left.max(0) / each).unwrap_or(u32::MAX));
                }
            }
            let placed = self.grow_set(set, more);
            for (axis, amount) in left.clone().iter() {
                let taken = charge.get(&axis).saturating_mul(i64::from(placed));
                left.set(&axis, amount.saturating_sub(taken));
            }
        }
    }

    /// What a pod of a set that may have several models counts of each of those that are limited;
    /// nothing of another set.
    fn of_any_model(&self, set: &GangSet, limit: &Bounds) -> Charge {
        let shape = self.state.shapes.get(set.shape);
        let models = &shape.requirement.gpu_models;
        let may_have = |model: &&String| models.is_empty() || models.contains(*model);
        let limited = limit.by_model.keys().filter(|_| models.len() != 1).filter(may_have);
        let by_model = limited.map(|model| (model.clone(), shape.gpu_milli)).collect();
        Charge { by_model, ..Charge::default() }
    }

    /// Adds up to `more` pods to a set; the first pod of a set that has none yet chooses its
    /// domain.
    fn grow_set(&mut self, set: &GangSet, more: u32) -> u32 {
        let scope_of = |placer: &Self| placer.scopes.get(&set.pod_set).copied();
        let scope = scope_of(self).unwrap_or(Scope::Everywhere);
        if set.min > 0 || set.required.is_none() || more == 0 {
            return self.place_pods(set, scope, more);
        }
        let first = SetPart { set, count: 1, at_own_levels: true };
        let begun = self.attempt(|p| p.place_at(scope, set.required, set.preferred, &[first]));
        if !begun {
            return 0;
        }
        let scope = scope_of(self).unwrap_or(scope);
        1 + self.place_pods(set, scope, more - 1)
    }
}
