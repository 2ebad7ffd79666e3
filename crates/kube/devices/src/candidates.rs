//! The devices that one alternative of a request may have, and what excludes the others.

use dovetail_claims::{Alternative, CandidateDevice, Draw};
use dovetail_objects::{
    AskedCount, ClaimRequest, DeviceAsked, DeviceReach, DeviceTaint, ResourceClaim,
    TaintEffectOfDevice,
};

use crate::capacity::{Taken, taken};
use crate::catalog::{Answers, is_reached};
use crate::look::{Exclusion, RequestLook};
use crate::question::{Reached, ReachedDevice, full_name};

/// One alternative of a request, on a node.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a, 'c> {
    pub(crate) reached: &'a Reached<'c>,
    pub(crate) claim: &'a ResourceClaim,
    pub(crate) request: &'a ClaimRequest,
    pub(crate) asked: &'a DeviceAsked,
}

/// A selector, and what it says of devices.
struct EvaluatedSelector {
    /// Whether it is one of the class, and not of the request.
    is_of_class: bool,
    number: usize,
    /// By the number of the slice.
    by_slice: Vec<Answers>,
}

/// An alternative as `core/claims` reads it.
pub(crate) struct FoundAlternative {
    pub(crate) alternative: Alternative,
    pub(crate) look: RequestLook,
    /// The first thing that went wrong with a device, in upstream's words.
    pub(crate) failure: Option<String>,
    /// Whether something goes wrong with a device of the node, be it among those that are looked
    /// at or not.
    pub(crate) fails_somewhere: bool,
}

/// The first device, in the order of its driver, whose policy cannot represent what a request asks
/// for.
struct UnusableAmount {
    place: (usize, usize),
    problem: String,
}

/// The devices it may have; `count` is how many it wants, `None` all that it could have if nobody
/// had any.
pub(crate) fn candidates(
    asking: &Asking<'_, '_>,
    count: Option<usize>,
) -> Result<FoundAlternative, String> {
    let asked = asking.asked;
    let mut look = RequestLook {
        claim: asking.claim.meta.name.clone(),
        request: asking.written_name().into(),
        class: asked.class.clone(),
        reached: asking.reached.devices.len(),
        ..RequestLook::default()
    };
    let selectors = asking.selectors();
    let mut failure: Option<String> = None;
    let mut unusable: Option<UnusableAmount> = None;
    let mut selectable = 0;
    let mut candidates = Vec::new();
    for (device, one) in asking.reached.devices.iter().enumerate() {
        let found = asking.selectable(one, &selectors, &mut unusable).and_then(|taken| {
            selectable += 1;
            asking.free(one, &taken)?;
            let draws = taken.iter().filter_map(|(name, amount)| {
                let counter = *one.capacity.get(&**name)?;
                Some(Draw { counter, amount: amount.to_billionths() })
            });
            Ok(CandidateDevice { device, draws: draws.collect() })
        });
        match found {
            Ok(candidate) => candidates.push(candidate),
            Err(why) => {
                if let Exclusion::Failed(problem) = &why {
                    failure = failure.or_else(|| Some(problem.clone()));
                }
                *look.excluded.entry(why).or_default() += 1;
            }
        }
    }
    if let (None, Some(problem)) = (count, &failure) {
        return Err(problem.clone());
    }
    if let (Some(count), Some(unusable)) = (count, unusable.filter(|_| asking.is_tried_first())) {
        // Upstream takes devices in the order of their drivers, and gives up at this one.
        let places = candidates.iter().map(|one| asking.reached.devices[one.device].place());
        if places.filter(|place| *place < unusable.place).count() < count {
            return Err(unusable.problem);
        }
    }
    look.wanted = count.unwrap_or(selectable);
    let alternative = Alternative {
        // Who wants all wants one at least: without any it cannot be served.
        count: if count.is_none() { selectable.max(1) } else { look.wanted },
        is_each_once: true,
        only_looks_on: asked.is_admin(),
        candidates,
    };
    let fails_somewhere = asking.fails_somewhere(&selectors);
    Ok(FoundAlternative { alternative, look, failure, fails_somewhere })
}

impl Asking<'_, '_> {
    /// Whether no other alternative is tried before it.
    fn is_tried_first(&self) -> bool {
        !self.request.is_list || self.request.alternatives.first() == Some(self.asked)
    }

    /// Whether it could have a device if nobody had any, and what it takes of its capacity; notes a
    /// device that is free and cannot represent that, if none before it is known.
    fn selectable(
        &self,
        one: &ReachedDevice<'_>,
        selectors: &[EvaluatedSelector],
        unusable: &mut Option<UnusableAmount>,
    ) -> Result<Taken, Exclusion> {
        let features = self.reached.catalog.features();
        if !features.binding_conditions && !one.device.binding.awaited.is_empty() {
            return Err(Exclusion::SwitchedOff);
        }
        self.selected(one, selectors)?;
        if one.slice.reach == DeviceReach::EachDevice
            && !is_reached(&one.device.reach, self.reached.place)
        {
            return Err(Exclusion::Reach);
        }
        if !features.consumable_capacity {
            return Ok(Taken::new());
        }
        let taken = taken(self.asked.capacity.as_ref(), one.device, features.fractional_ranges);
        let taken = taken.map_err(|problem| {
            let of = self.name();
            let device = match self.asked.count {
                AskedCount::All => one.device.name.to_string(),
                _ => written(one),
            };
            let problem = format!("{of}: checking capacity for device {device}: {problem}");
            let place = one.place();
            let is_before = unusable.as_ref().is_none_or(|known| place < known.place);
            // Upstream skips a device that is in use before it looks at amounts.
            if is_before && !self.is_in_use(one) {
                *unusable = Some(UnusableAmount { place, problem: problem.clone() });
            }
            Exclusion::Failed(problem)
        })?;
        let fits = |taken: &Taken| {
            let mut each = taken.iter();
            each.all(|(name, amount)| !amount.is_more_than(one.device.capacity[name].value))
        };
        taken.filter(fits).ok_or(Exclusion::Capacity)
    }

    /// The selectors of class and request, with what they say of the devices of each slice.
    fn selectors(&self) -> Vec<EvaluatedSelector> {
        let Reached { catalog, slices, .. } = self.reached;
        let class = catalog.class(&self.asked.class);
        let of_class = class.map(|class| &*class.selectors).unwrap_or_default();
        let both = [(true, of_class), (false, &*self.asked.selectors)];
        let all = both.into_iter().flat_map(|(is_of_class, selectors)| {
            selectors.iter().enumerate().map(move |(number, text)| (is_of_class, number, text))
        });
        let selector = |(is_of_class, number, text): (bool, usize, &String)| {
            let by_slice = slices.iter().map(|slice| catalog.meeting(slice, text)).collect();
            EvaluatedSelector { is_of_class, number, by_slice }
        };
        all.map(selector).collect()
    }

    /// Whether a device meets the selectors.
    fn selected(
        &self,
        one: &ReachedDevice<'_>,
        selectors: &[EvaluatedSelector],
    ) -> Result<(), Exclusion> {
        for selector in selectors {
            let number = selector.number;
            match &selector.by_slice[one.slice_number].each[one.at] {
                Ok(true) => {}
                Ok(false) if selector.is_of_class => return Err(Exclusion::Class),
                Ok(false) => return Err(Exclusion::Selector(number)),
                Err(problem) => {
                    let of = match selector.is_of_class {
                        true => format!("class {}: selector #{number}", self.asked.class),
                        false => format!("claim {}: selector #{number}", full_name(self.claim)),
                    };
                    let on = match problem.starts_with("CEL compile") {
                        true => String::new(),
                        false => format!(" on device {}", written(one)),
                    };
                    return Err(Exclusion::Failed(format!("{of}{on}: {problem}")));
                }
            }
        }
        Ok(())
    }

    /// Whether a selector cannot be evaluated for a device of the node that meets those before it.
    fn fails_somewhere(&self, selectors: &[EvaluatedSelector]) -> bool {
        let has_failed = |one: &EvaluatedSelector| one.by_slice.iter().any(|of| of.has_failed);
        let fails = |slice: usize, at: usize| {
            let mut answers = selectors.iter().map(|one| &one.by_slice[slice].each[at]);
            matches!(answers.find(|answer| !matches!(answer, Ok(true))), Some(Err(_)))
        };
        let mut slices = self.reached.slices.iter().enumerate();
        selectors.iter().any(has_failed)
            && slices.any(|(number, slice)| (0..slice.devices.len()).any(|at| fails(number, at)))
    }

    /// Whether several claims can have a device.
    fn is_shared(&self, one: &ReachedDevice<'_>) -> bool {
        one.device.is_for_several && self.reached.catalog.features().consumable_capacity
    }

    /// Whether others have a device, and it cannot have it beside them.
    fn is_in_use(&self, one: &ReachedDevice<'_>) -> bool {
        let is_in_use = one.held.is_some_and(|held| match self.is_shared(one) {
            true => held.alone > 0,
            false => held.alone > 0 || held.shares > 0 || !held.consumed.is_empty(),
        });
        is_in_use && !self.asked.is_admin()
    }

    /// Whether it can have a device now.
    fn free(&self, one: &ReachedDevice<'_>, taken: &Taken) -> Result<(), Exclusion> {
        let features = self.reached.catalog.features();
        if self.is_in_use(one) {
            return Err(Exclusion::InUse);
        }
        let left = |name: &str| one.capacity.get(name).map(|at| self.reached.counters[*at]);
        let is_short = taken
            .iter()
            .any(|(name, amount)| left(name).is_some_and(|left| left < amount.to_billionths()));
        if self.is_shared(one) && is_short {
            return Err(Exclusion::Capacity);
        }
        if !one.device.draws.is_empty() {
            if !features.partitionable_devices {
                return Err(Exclusion::SwitchedOff);
            }
            let draws = one.held.is_none();
            let is_short = one
                .draws
                .iter()
                .any(|draw| draws && self.reached.counters[draw.counter] < draw.amount);
            if self.reached.overdrawn[one.pool] || is_short {
                let names = self.reached.names_counters;
                let name = names.then(|| self.reached.short_counter(one)).flatten();
                return Err(Exclusion::Counters(name.map(Box::from)));
            }
        }
        match self.untolerated(one).filter(|_| features.device_taints) {
            Some(taint) => Err(taint),
            None => Ok(()),
        }
    }

    /// The first taint that keeps it from a device: of its driver, then of rules.
    fn untolerated(&self, one: &ReachedDevice<'_>) -> Option<Exclusion> {
        let tolerated = |taint: &DeviceTaint| {
            taint.effect == TaintEffectOfDevice::None
                || self.asked.tolerations.iter().any(|toleration| toleration.accepts(taint))
        };
        let of_driver = one.device.taints.iter().map(|taint| (taint, None));
        let of_rules = one.taint_rules.iter().map(|rule| (&rule.taint, Some(&rule.meta.name)));
        let (taint, rule) = of_driver.chain(of_rules).find(|(taint, _)| !tolerated(taint))?;
        Some(Exclusion::Taint { taint: taint.clone(), rule: rule.cloned() })
    }

    /// As upstream names it in errors.
    pub(crate) fn name(&self) -> String {
        let name = if self.request.is_list { &self.asked.name } else { &self.request.name };
        format!("claim {}, request {name}", full_name(self.claim))
    }

    /// As allocations name it.
    pub(crate) fn written_name(&self) -> String {
        match self.request.is_list {
            true => format!("{}/{}", self.request.name, self.asked.name),
            false => self.request.name.to_string(),
        }
    }
}

/// As upstream writes a device.
pub(crate) fn written(one: &ReachedDevice<'_>) -> String {
    let crate::DeviceKey { driver, pool, device } = one.key();
    format!("{driver}/{pool}/{device}")
}
