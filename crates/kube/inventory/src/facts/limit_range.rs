//! LimitRanges of a namespace: which amounts of CPU, memory and other resources the API server lets
//! containers and pods have.

use std::collections::BTreeMap;

use dovetail_facts::{Container, ContainerKind};
use dovetail_model::Quantity;
use dovetail_objects::json::{JsonQuantity, nullable};
use serde::Deserialize;

use super::lenient::lenient;
use crate::dump::{RawObject, Skipped};

type Amounts = BTreeMap<String, JsonQuantity>;

/// What containers and pods of a namespace may request.
#[derive(Clone, Debug)]
pub struct LimitRange {
    name: String,
    items: Vec<LimitItem>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LimitItem {
    #[serde(rename = "type", deserialize_with = "nullable")]
    of: String,
    #[serde(deserialize_with = "nullable")]
    min: Amounts,
    #[serde(deserialize_with = "nullable")]
    max: Amounts,
    #[serde(deserialize_with = "nullable")]
    default: Amounts,
    #[serde(deserialize_with = "nullable")]
    default_request: Amounts,
    #[serde(deserialize_with = "nullable")]
    max_limit_request_ratio: Amounts,
}

/// What the containers of a template ask for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TemplateAmounts {
    #[serde(deserialize_with = "nullable")]
    spec: SpecAmounts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecAmounts {
    /// Those of the pod as a whole.
    #[serde(deserialize_with = "nullable")]
    resources: RequestsAndLimits,
    #[serde(deserialize_with = "nullable")]
    containers: Vec<ContainerAmounts>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<ContainerAmounts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerAmounts {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    restart_policy: String,
    #[serde(deserialize_with = "nullable")]
    resources: RequestsAndLimits,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RequestsAndLimits {
    #[serde(deserialize_with = "nullable")]
    requests: Amounts,
    #[serde(deserialize_with = "nullable")]
    limits: Amounts,
}

impl LimitRange {
    /// Reads one.
    ///
    /// # Errors
    /// If a field has another shape than it should.
    pub(super) fn read(raw: &RawObject<'_>) -> Result<Self, Skipped> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Whole {
            #[serde(deserialize_with = "nullable")]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            limits: Vec<LimitItem>,
        }
        let Whole { spec } = lenient(raw)?;
        Ok(Self { name: raw.name.to_owned(), items: spec.limits })
    }

    /// Why the API server would reject a pod of a template, in words. `None` if it would not.
    pub fn rejects(&self, template: &TemplateAmounts) -> Option<String> {
        let of_container = |item: &LimitItem| {
            let mut all = template.spec.containers.iter().chain(&template.spec.init_containers);
            all.find_map(|of| {
                item.problem(&of.resources, &format!("container {}", of.name))
                    .or_else(|| item.limit_below_request(of))
            })
        };
        let problem = self.items.iter().find_map(|item| match item.of.as_str() {
            "Container" => of_container(item),
            "Pod" => item.problem(&template.total(), "the sum of the containers"),
            _ => None,
        })?;
        Some(format!("LimitRange {} {problem}", self.name))
    }
}

impl LimitItem {
    /// What it asks of these amounts that they do not meet.
    fn problem(&self, has: &RequestsAndLimits, what: &str) -> Option<String> {
        let amount = |of: &Amounts, name: &str| of.get(name).map(|amount| amount.0);
        let both = |name: &str| {
            let parts = [("request", &has.requests), ("limit", &has.limits)];
            parts.map(|(part, of)| (part, amount(of, name)))
        };
        let too_little = self.min.iter().find_map(|(name, JsonQuantity(min))| {
            let is_bad = |(part, amount): &(&str, Option<Quantity>)| match amount {
                Some(amount) => min.is_more_than(*amount),
                None => *part == "request",
            };
            let (part, _) = both(name).into_iter().find(is_bad)?;
            Some(format!("requires a {name} {part} of at least {min} for {what}"))
        });
        let too_much = || {
            self.max.iter().find_map(|(name, JsonQuantity(max))| {
                let is_bad = |(part, amount): &(&str, Option<Quantity>)| match amount {
                    Some(amount) => amount.is_more_than(*max),
                    None => *part == "limit",
                };
                let (part, _) = both(name).into_iter().find(is_bad)?;
                Some(format!("requires a {name} {part} of at most {max} for {what}"))
            })
        };
        let too_far_apart = || {
            self.max_limit_request_ratio.iter().find_map(|(name, JsonQuantity(most))| {
                let (request, limit) = (amount(&has.requests, name), amount(&has.limits, name));
                let is_good = request.zip(limit).is_some_and(|(request, limit)| {
                    // Both sides in billionths of billionths.
                    let allowed = request.to_billionths().saturating_mul(most.to_billionths());
                    let limit = limit.to_billionths();
                    request.to_billionths() > 0
                        && limit > 0
                        && limit.saturating_mul(1_000_000_000) <= allowed
                });
                let text = || {
                    format!(
                        "requires a {name} limit of at most {most} times the request for {what}"
                    )
                };
                (!is_good).then(text)
            })
        };
        too_little.or_else(too_much).or_else(too_far_apart)
    }

    /// A limit that it fills in and that is less than what the container requests.
    fn limit_below_request(&self, of: &ContainerAmounts) -> Option<String> {
        self.default.iter().find_map(|(name, JsonQuantity(default))| {
            let RequestsAndLimits { requests, limits } = &of.resources;
            let (request, limit) = (requests.get(name)?.0, limits.get(name)?.0);
            let is_filled_in = !limit.is_more_than(*default) && !default.is_more_than(limit);
            (is_filled_in && request.is_more_than(limit)).then(|| {
                let container = &of.name;
                format!(
                    "sets a default {name} limit of {limit}, less than the request of {request}, for container \
                     {container}"
                )
            })
        })
    }

    /// Fills in what a container leaves open, as the API server does when a pod is created.
    fn fill(&self, amounts: &mut RequestsAndLimits) {
        let limits = self.default.iter().chain(&self.max);
        let requests = self.default_request.iter().chain(&self.default);
        let requests = requests.chain(&self.max).chain(&self.min);
        for (name, amount) in requests {
            amounts.requests.entry(name.clone()).or_insert(*amount);
        }
        for (name, amount) in limits {
            amounts.limits.entry(name.clone()).or_insert(*amount);
        }
    }
}

impl TemplateAmounts {
    /// The amounts of a template, with what LimitRanges of its namespace fill in. `None` if the
    /// template cannot be read.
    pub fn read(template: &str, ranges: &[LimitRange]) -> Option<Self> {
        let read: Self = serde_json::from_str(template).ok()?;
        Some(read.filled_in(ranges))
    }

    /// Those of a new pod like one that is there. What a LimitRange once filled in counts as
    /// written.
    pub(crate) fn of(containers: &[Container], ranges: &[LimitRange]) -> Self {
        let mut spec = SpecAmounts::default();
        for container in containers {
            let requests = written(&container.requests);
            let resources = RequestsAndLimits { requests, limits: written(&container.limits) };
            let (place, restart_policy) = match container.kind {
                ContainerKind::Main => (&mut spec.containers, ""),
                ContainerKind::Init => (&mut spec.init_containers, ""),
                ContainerKind::Sidecar => (&mut spec.init_containers, "Always"),
            };
            let (name, restart_policy) = (container.name.clone(), restart_policy.to_owned());
            place.push(ContainerAmounts { name, restart_policy, resources });
        }
        Self { spec }.filled_in(ranges)
    }

    /// As the API server admits it: defaults of LimitRanges stand where nothing does.
    fn filled_in(mut self, ranges: &[LimitRange]) -> Self {
        let items = ranges.iter().flat_map(|range| &range.items);
        let items: Vec<&LimitItem> = items.filter(|item| item.of == "Container").collect();
        let SpecAmounts { containers, init_containers, .. } = &mut self.spec;
        for container in containers.iter_mut().chain(init_containers) {
            let amounts = &mut container.resources;
            // A limit without a request is the request, too.
            for (name, limit) in &amounts.limits {
                amounts.requests.entry(name.clone()).or_insert(*limit);
            }
            items.iter().for_each(|item| item.fill(amounts));
        }
        self
    }

    /// The first container without a value that a quota of this resource requires each container
    /// to have: quotas of CPU and memory do so, others do not.
    pub(crate) fn lacks(&self, resource: &str) -> Option<&str> {
        let (is_limit, name) = match resource.split_once('.') {
            Some(("limits", name)) => (true, name),
            Some(("requests", name)) => (false, name),
            _ => (false, resource),
        };
        let has = |of: &RequestsAndLimits| match is_limit {
            true => of.limits.contains_key(name),
            false => of.requests.contains_key(name),
        };
        let SpecAmounts { resources, containers, init_containers } = &self.spec;
        if !["cpu", "memory"].contains(&name) || has(resources) {
            return None;
        }
        let mut all = containers.iter().chain(init_containers);
        all.find(|of| !has(&of.resources)).map(|of| of.name.as_str())
    }

    /// The limits of a pod as quotas count them: CPU in thousandths, all else in whole units.
    pub fn limits(&self) -> BTreeMap<String, i64> {
        let amount = |(name, JsonQuantity(amount)): (String, JsonQuantity)| {
            let counted = if name == "cpu" { amount.to_milli() } else { amount.to_units() };
            (name, counted)
        };
        self.total().limits.into_iter().map(amount).collect()
    }

    /// The sum over the containers that run side by side, or what the largest init container needs.
    fn total(&self) -> RequestsAndLimits {
        let mut total = RequestsAndLimits::default();
        let is_beside = |of: &&ContainerAmounts| of.restart_policy == "Always";
        let beside = self.spec.init_containers.iter().filter(is_beside);
        for container in self.spec.containers.iter().chain(beside) {
            let ContainerAmounts { resources, .. } = container;
            combine(&mut total.requests, &resources.requests, Quantity::saturating_add);
            combine(&mut total.limits, &resources.limits, Quantity::saturating_add);
        }
        let larger =
            |one: Quantity, other: Quantity| if other.is_more_than(one) { other } else { one };
        for container in self.spec.init_containers.iter().filter(|of| !is_beside(of)) {
            let ContainerAmounts { resources, .. } = container;
            combine(&mut total.requests, &resources.requests, larger);
            combine(&mut total.limits, &resources.limits, larger);
        }
        total
    }
}

/// Takes more amounts into others; where both have one, `of_both` says what it comes to.
fn combine(into: &mut Amounts, more: &Amounts, of_both: impl Fn(Quantity, Quantity) -> Quantity) {
    for (name, JsonQuantity(amount)) in more {
        let place = into.entry(name.clone());
        let place = place.and_modify(|known| known.0 = of_both(known.0, *amount));
        place.or_insert(JsonQuantity(*amount));
    }
}

/// Amounts as a template has them: CPU is in thousandths, all else in whole units.
fn written(amounts: &BTreeMap<String, i64>) -> Amounts {
    let amount = |(name, amount): (&String, &i64)| {
        let quantity = match name.as_str() {
            "cpu" => Quantity::milli(*amount),
            "memory" | "ephemeral-storage" => Quantity::bytes(*amount),
            _ => Quantity::units(*amount),
        };
        (name.clone(), JsonQuantity(quantity))
    };
    amounts.iter().map(amount).collect()
}
