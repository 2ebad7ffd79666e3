//! Requirements become shapes: everything that one names gets a number.

use std::sync::Arc;

use dovetail_model::{
    Charge, CounterRule, DeviceRequest, Preferred, Requirement, RuleCause, RuleKind,
};
use smallvec::SmallVec;

use crate::State;
use crate::cause::Cause;
use crate::device::need::{DeviceNeed, InternedRequest};
use crate::names::Names;
use crate::scopes::Scope;
use crate::shapes::{Demand, Rule, Shape, ShapeId};

impl State {
    /// The number of a requirement.
    pub fn intern_shape(&mut self, requirement: &Arc<Requirement>) -> ShapeId {
        if let Some(number) = self.shapes.numbers.find(requirement) {
            return ShapeId(number);
        }
        let demand = demand_of(requirement, self);
        let (demand_id, _) = self.shapes.demands.intern(&demand);
        let images = self.images.list_of(requirement, &self.nodes);
        let imageless = images.map(|_| self.intern_shape(&Arc::new(without_images(requirement))));
        let counts_into =
            requirement.counts_into.iter().map(|name| self.counters.selector(name)).collect();
        let number = ShapeId(self.shapes.numbers.intern(requirement).0);
        self.shapes.shapes.push(Shape {
            requirement: Arc::clone(requirement),
            gpu_milli: self.devices.need(demand.need).gpu_milli(),
            charge: Charge::of(requirement),
            demand,
            demand_id,
            images,
            imageless: imageless.unwrap_or(number),
            counts_into,
        });
        number
    }
}

fn demand_of(requirement: &Requirement, state: &mut State) -> Demand {
    let rules = requirement.rules.iter().map(|rule| Rule::of(requirement, rule, state));
    let mut rules: SmallVec<[Rule; 1]> = rules.collect();
    rules.sort_by_key(|rule| rule.cause);
    let need = DeviceNeed::of(requirement, &mut state.names);
    Demand {
        amounts: state.names.amounts(&requirement.resources),
        need: state.devices.intern_need(&need),
        mask: state.masks.intern(requirement),
        rules,
        attachments: state.names.attached(&requirement.attachments),
        liking: state.preferences.liking_of(requirement, &mut state.counters, &state.nodes),
    }
}

impl Rule {
    fn of(requirement: &Requirement, rule: &CounterRule, state: &mut State) -> Self {
        let scope = Scope::of(requirement, rule.scope);
        let ranked = matches!(rule.kind, RuleKind::Spread { .. });
        let (selector, label) = (&rule.selector, &rule.label);
        Self {
            counter: state.counters.intern(&state.nodes, selector, label, scope.as_ref(), ranked),
            kind: rule.kind.clone(),
            cause: cause_of(rule),
            counts_itself: requirement.counts_into.times(&rule.selector),
        }
    }
}

impl DeviceNeed {
    fn of(requirement: &Requirement, names: &mut Names) -> Self {
        let mut models: SmallVec<[u32; 4]> =
            requirement.gpu_models.iter().map(|m| names.models.intern(m).0).collect();
        models.sort_unstable();
        let request = match &requirement.device {
            DeviceRequest::None => InternedRequest::None,
            DeviceRequest::Whole { count, same_island } => {
                InternedRequest::Whole { count: *count, same_island: *same_island }
            }
            DeviceRequest::Share { compute_milli, memory_bytes } => InternedRequest::Share {
                compute_milli: *compute_milli,
                memory_bytes: *memory_bytes,
            },
            DeviceRequest::Replicas { count } => InternedRequest::Replicas { count: *count },
            DeviceRequest::Slice { profile } => InternedRequest::Slice { profile: profile.clone() },
            DeviceRequest::Counters { amounts } => InternedRequest::Counters {
                amounts: amounts
                    .iter()
                    .map(|(name, amount)| (names.counters.intern(name).0, *amount))
                    .collect(),
            },
        };
        if request == InternedRequest::None {
            models.clear();
        }
        let min_memory_bytes =
            if request == InternedRequest::None { 0 } else { requirement.min_device_memory_bytes };
        Self { request, models, min_memory_bytes }
    }
}

fn without_images(requirement: &Requirement) -> Requirement {
    let mut requirement = requirement.clone();
    let names_images = |to: &Preferred| matches!(to, Preferred::Images(names) if !names.is_empty());
    requirement.preferences.retain(|preference| !names_images(&preference.to));
    requirement
}

/// The cause a broken rule is known by. What a rule asks goes before what it comes from, because
/// that decides which events can help.
fn cause_of(rule: &CounterRule) -> Cause {
    match (&rule.kind, rule.cause) {
        (RuleKind::Spread { .. }, _) => Cause::Spread,
        (RuleKind::Affinity, _) => Cause::Affinity,
        (RuleKind::AntiAffinity, RuleCause::HostPort) => Cause::HostPort,
        (RuleKind::AntiAffinity, RuleCause::DiskConflict) => Cause::DiskConflict,
        (RuleKind::AntiAffinity, RuleCause::ReadWriteOncePod) => Cause::ReadWriteOncePod,
        (RuleKind::AntiAffinity, RuleCause::ExistingAntiAffinity) => Cause::ExistingAntiAffinity,
        (RuleKind::AntiAffinity, RuleCause::SharedGpus) => Cause::SharedGpus,
        (RuleKind::AntiAffinity, _) => Cause::AntiAffinity,
        (RuleKind::AtMost { .. }, _) => Cause::DeviceClaims,
    }
}
