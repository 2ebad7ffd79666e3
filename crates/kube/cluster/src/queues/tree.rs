//! The tree of queues: what is wrong with it, and each queue in the words of the engine.

use std::collections::BTreeMap;

use dovetail_model::{Bounds, Quantity};
use dovetail_objects::{LabelSelector, Queue};
use dovetail_units::duration::parse_duration;
use thiserror::Error;

use super::amounts::{amount_of, bounds, by_model, can_be_bounded, plain, resource};
use super::{DEFAULT_QUEUE, engine_name};
use dovetail_translate::Rules;

/// Why a queue takes no pods. What its pods hold already counts as ever.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueueProblem {
    /// The queue above it is not there.
    #[error("its parent {parent} does not exist: create it, or name another in spec.parent")]
    ParentMissing { parent: String },
    /// It is above itself.
    #[error("its parents form a cycle ({circle}): remove spec.parent from one of them")]
    Circle {
        /// The names on the way from the queue back to the first one that comes again.
        circle: String,
    },
    /// More is promised below it than it has.
    #[error(
        "its child queues are guaranteed {sum} {resource} in total, but the queue itself only \
         {most}: raise its guarantee or lower theirs"
    )]
    PromisesTooMuch {
        resource: String,
        /// What is guaranteed below it.
        sum: String,
        /// What it is guaranteed itself.
        most: String,
    },
    /// It bounds what nobody can hold in a queue.
    #[error(
        "{field} names {resource}, which queues do not limit: name cpu, memory, {gpus} or another \
         extended resource, or remove it"
    )]
    NotBounded {
        field: &'static str,
        /// What it names.
        resource: String,
        /// The resource of whole GPUs.
        gpus: String,
    },
    /// What says whose pods it takes is not understood.
    #[error("spec.namespaceSelector: {problem}: until it is corrected, it selects no namespace")]
    SelectorUnreadable { problem: String },
    /// After how long its usage counts half cannot be read.
    #[error("spec.halfLife: {problem}: write it as 12h or 7d, or remove it")]
    HalfLifeUnreadable { problem: String },
    /// It names a resource in two ways.
    #[error("{field} sets {resource} twice, once with the prefix `requests.`: keep one")]
    Twice { field: &'static str, resource: String },
    /// Something is wrong with a queue above it.
    #[error("its ancestor queue {above} is not ready: {problem}")]
    Above { above: String, problem: Box<QueueProblem> },
}

impl QueueProblem {
    /// The reason of the condition `Ready`, in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ParentMissing { .. } => "ParentMissing",
            Self::Circle { .. } => "CircleOfParents",
            Self::PromisesTooMuch { .. } => "GuaranteesAboveParent",
            Self::SelectorUnreadable { .. } => "NamespaceSelectorUnreadable",
            Self::HalfLifeUnreadable { .. } => "HalfLifeUnreadable",
            Self::NotBounded { .. } | Self::Twice { .. } => "ResourceNotBounded",
            Self::Above { .. } => "QueueAboveNotReady",
        }
    }
}

/// A queue in the words of the engine.
pub fn queue(queue: &Queue, rules: &Rules) -> dovetail_model::Queue {
    let parent = (!queue.parent.is_empty()).then(|| engine_name(&queue.parent));
    dovetail_model::Queue {
        parent,
        guaranteed: bounds(&queue.guaranteed, rules),
        borrows: queue.borrows.unwrap_or(rules.queues_borrow),
        weight: queue.weight,
        priority: queue.priority,
        limit: Bounds { by_model: by_model(&queue.limit_by_model), ..bounds(&queue.limit, rules) },
        half_life_ms: parse_duration(&queue.half_life).ok(),
        ..dovetail_model::Queue::named(&engine_name(&queue.meta.name))
    }
}

/// The queues with which something is wrong.
pub fn problems(
    queues: &BTreeMap<Box<str>, Queue>,
    rules: &Rules,
) -> BTreeMap<Box<str>, QueueProblem> {
    let own = |name: &str| own_problem(name, queues, rules);
    let mut found = BTreeMap::new();
    for name in queues.keys() {
        let above = || {
            let mut above = way_up(name, queues).into_iter().skip(1);
            above.find_map(|above| {
                let problem = Box::new(own(above)?);
                Some(QueueProblem::Above { above: above.to_owned(), problem })
            })
        };
        let selector = || unreadable_selector(queues.get(name)?);
        found.extend(
            own(name).or_else(above).or_else(selector).map(|problem| (name.clone(), problem)),
        );
    }
    found
}

fn own_problem(
    name: &str,
    queues: &BTreeMap<Box<str>, Queue>,
    rules: &Rules,
) -> Option<QueueProblem> {
    let queue = queues.get(name)?;
    let way = way_up(name, queues);
    let last = way.last().and_then(|last| queues.get(*last))?;
    let closes = way.iter().position(|above| **above == *last.parent);
    if closes == Some(0) {
        let circle = [way.join(" → "), name.to_owned()].join(" → ");
        return Some(QueueProblem::Circle { circle });
    }
    let parent = &queue.parent;
    let is_there = |name: &str| name == DEFAULT_QUEUE || queues.contains_key(name);
    if !parent.is_empty() && !is_there(parent) {
        return Some(QueueProblem::ParentMissing { parent: parent.to_string() });
    }
    wrong_resource(queue, rules)
        .or_else(|| promises_too_much(queue, queues, rules))
        .or_else(|| unreadable_half_life(queue))
}

fn unreadable_half_life(queue: &Queue) -> Option<QueueProblem> {
    let said = Some(&queue.half_life).filter(|said| !said.is_empty())?;
    let problem = parse_duration(said).err()?.to_string();
    Some(QueueProblem::HalfLifeUnreadable { problem })
}

/// What is wrong with the selector of a queue. It is no matter of the queues below: each has one of
/// its own.
fn unreadable_selector(queue: &Queue) -> Option<QueueProblem> {
    match &queue.namespaces {
        LabelSelector::Unreadable(problem) => {
            Some(QueueProblem::SelectorUnreadable { problem: problem.to_string() })
        }
        LabelSelector::Nothing | LabelSelector::Of(_) => None,
    }
}

/// The first resource that a queue names in vain or twice.
fn wrong_resource(queue: &Queue, rules: &Rules) -> Option<QueueProblem> {
    let fields = [("spec.guaranteed", &queue.guaranteed), ("spec.limit", &queue.limit)];
    fields.into_iter().find_map(|(field, amounts)| {
        amounts.keys().find_map(|name| {
            let resource = plain(name);
            if !can_be_bounded(name, rules) {
                let gpus = rules.device_resource.clone();
                return Some(QueueProblem::NotBounded { field, resource: name.to_string(), gpus });
            }
            let is_twice = **name != *resource && amounts.contains_key(resource);
            is_twice.then(|| QueueProblem::Twice { field, resource: resource.to_owned() })
        })
    })
}

/// The first resource of which more is guaranteed below a queue than the queue itself is
/// guaranteed.
fn promises_too_much(
    queue: &Queue,
    queues: &BTreeMap<Box<str>, Queue>,
    rules: &Rules,
) -> Option<QueueProblem> {
    let below = || queues.values().filter(|below| below.parent == queue.meta.name);
    bounds(&queue.guaranteed, rules).iter().find_map(|(axis, _)| {
        let of = |queue: &Queue| amount_of(&axis, &queue.guaranteed, rules);
        let (most, sum) = (of(queue)?, below().filter_map(of).reduce(Quantity::saturating_add)?);
        sum.is_more_than(most).then(|| QueueProblem::PromisesTooMuch {
            resource: resource(&axis, rules).to_owned(),
            sum: sum.to_string(),
            most: most.to_string(),
        })
    })
}

/// A queue and those above it, up to the first that comes again.
fn way_up<'a>(name: &'a str, queues: &'a BTreeMap<Box<str>, Queue>) -> Vec<&'a str> {
    let mut way = vec![name];
    let mut next = queues.get(name);
    while let Some(queue) = next.filter(|queue| !way.contains(&&*queue.parent)) {
        next = queues.get(&queue.parent);
        if next.is_some() {
            way.push(&queue.parent);
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(queues: &[(&str, Value)]) -> BTreeMap<String, String> {
        let queues = queues.iter().map(|(name, spec)| {
            let object = json!({"metadata": {"name": name}, "spec": spec});
            (Box::from(*name), serde_json::from_value(object).unwrap())
        });
        let found = problems(&queues.collect(), &Rules::default());
        found.into_iter().map(|(name, problem)| (name.into(), problem.to_string())).collect()
    }

    fn expected(problems: &[(&str, &str)]) -> BTreeMap<String, String> {
        problems.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    #[test]
    fn a_tree_without_faults_has_none() {
        let gpus = |count: &str| json!({"nvidia.com/gpu": count});
        let found = read(&[
            ("all", json!({"guaranteed": gpus("8")})),
            ("one", json!({"parent": "all", "guaranteed": gpus("5"), "limit": gpus("9")})),
            ("two", json!({"parent": "all", "guaranteed": gpus("3")})),
            ("below-default", json!({"parent": "default", "guaranteed": gpus("3")})),
        ]);
        assert_eq!(found, expected(&[]));
    }

    #[test]
    fn a_resource_that_would_bound_nothing_is_named() {
        let found = read(&[
            (
                "quota",
                json!({"limit": {"requests.nvidia.com/gpu": 1, "requests.cpu": "1", "rdma/hca": 2}}),
            ),
            ("pods", json!({"limit": {"pods": 1}})),
            ("counted", json!({"guaranteed": {"count/pods": 1}})),
            ("disk", json!({"limit": {"requests.ephemeral-storage": "1Gi"}})),
            (
                "class",
                json!({"limit": {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}}),
            ),
            ("twice", json!({"limit": {"cpu": 1, "requests.cpu": 2}})),
        ]);
        let named: Vec<(&str, bool)> =
            found.iter().map(|(name, text)| (&**name, text.contains("do not limit"))).collect();
        let all =
            [("class", true), ("counted", true), ("disk", true), ("pods", true), ("twice", false)];
        assert_eq!(named, all);
        assert_eq!(
            found["pods"],
            "spec.limit names pods, which queues do not limit: name cpu, memory, nvidia.com/gpu or \
             another extended resource, or remove it"
        );
        let quota =
            json!({"metadata": {"name": "q"}, "spec": {"limit": {"requests.nvidia.com/gpu": 1}}});
        let quota: Queue = serde_json::from_value(quota).unwrap();
        assert_eq!(queue(&quota, &Rules::default()).limit.gpu_milli, Some(1_000));
    }

    #[test]
    fn a_queue_that_does_not_say_borrows_where_borrowed_quota_is_reclaimed() {
        for (said, borrows_if_reclaimed) in [
            (json!({}), [false, true]),
            (json!({"borrowing": null}), [false, true]),
            (json!({"borrowing": "Never"}), [false, false]),
            (json!({"borrowing": "WhenFree"}), [true, true]),
        ] {
            let object = json!({"metadata": {"name": "q"}, "spec": said});
            let object: Queue = serde_json::from_value(object).unwrap();
            let borrows = [false, true].map(|queues_borrow| {
                queue(&object, &Rules { queues_borrow, ..Rules::default() }).borrows
            });
            assert_eq!(borrows, borrows_if_reclaimed, "{said}");
        }
    }

    #[test]
    fn a_selector_that_is_not_understood_is_told_on_its_queue_alone() {
        let like =
            json!({"matchExpressions": [{"key": "team", "operator": "Like", "values": ["a"]}]});
        let found = read(&[
            ("all", json!({"namespaceSelector": like})),
            ("one", json!({"parent": "all", "namespaceSelector": {}})),
            ("orphan", json!({"parent": "gone", "namespaceSelector": like})),
        ]);
        let selector = "spec.namespaceSelector: `team Like` has an unknown operator: until it is \
                        corrected, it selects no namespace";
        let orphan = "its parent gone does not exist: create it, or name another in spec.parent";
        assert_eq!(found, expected(&[("all", selector), ("orphan", orphan)]));
    }

    #[test]
    fn what_is_wrong_names_both_sides_and_the_way_out() {
        let found = read(&[
            ("a", json!({"parent": "b"})),
            ("b", json!({"parent": "a"})),
            ("below-a", json!({"parent": "a"})),
            ("orphan", json!({"parent": "gone"})),
            ("poor", json!({"guaranteed": {"cpu": 2, "nvidia.com/gpu": 9}})),
            ("one", json!({"parent": "poor", "guaranteed": {"cpu": "1500m"}})),
            ("two", json!({"parent": "poor", "guaranteed": {"cpu": "1"}})),
        ]);
        let circle = "its parents form a cycle (b → a → b): remove spec.parent from one of them";
        let too_much = "its child queues are guaranteed 2500m cpu in total, but the queue itself \
             only 2: raise its guarantee or lower theirs";
        assert_eq!(
            found,
            expected(&[
                ("a", "its parents form a cycle (a → b → a): remove spec.parent from one of them"),
                ("b", circle),
                (
                    "below-a",
                    "its ancestor queue a is not ready: its parents form a cycle (a → b → a): \
                     remove spec.parent from one of them"
                ),
                (
                    "orphan",
                    "its parent gone does not exist: create it, or name another in spec.parent"
                ),
                ("poor", too_much),
                ("one", &format!("its ancestor queue poor is not ready: {too_much}")),
                ("two", &format!("its ancestor queue poor is not ready: {too_much}")),
            ])
        );
    }
}
