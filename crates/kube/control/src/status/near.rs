//! Where a pod must be because others of its gang are: a replacement goes to their domain, by a
//! condition that no owner wrote and that must not be reported as one of theirs.

use std::collections::BTreeSet;

use dovetail_model::requirement::Operator;
use dovetail_model::{NodeCondition, NodeId, NodeName, Requirement};
use dovetail_plan::Engine;

use dovetail_translate::levels::level_of_label;

/// The domains of topology levels that a pod must be in.
pub(super) struct Near<'r> {
    conditions: Vec<&'r NodeCondition>,
    /// The domains for people: `rack a`.
    place: String,
}

impl<'r> Near<'r> {
    /// `None` if the pod may be in any.
    pub(super) fn of(requirement: &'r Requirement) -> Option<Self> {
        let named = requirement.node_conditions.iter().filter_map(|c| Some((c, domain(c)?)));
        let (conditions, mut places): (Vec<_>, Vec<String>) = named.unzip();
        places.dedup();
        let place = places.join(" and ");
        (!conditions.is_empty()).then_some(Self { conditions, place })
    }

    /// What an event says of nodes outside.
    pub(super) fn reason(&self) -> String {
        format!("node(s) were outside {}, the topology domain of its gang", self.place)
    }

    /// The nodes that are in all of the domains.
    pub(super) fn nodes(&self, engine: &Engine) -> BTreeSet<NodeName> {
        let all = (0..engine.supply().node_slots() as u32)
            .filter_map(|slot| engine.supply().node(NodeId(slot)));
        let inside = all.filter(|node| self.conditions.iter().all(|one| one.accepts(node)));
        inside.map(|node| node.name.clone()).collect()
    }
}

/// The domain that a condition asks for, if it is of that kind: its last term names the level.
pub(super) fn domain(condition: &NodeCondition) -> Option<String> {
    let [terms] = condition.any_of.as_slice() else { return None };
    let (last, first) = (terms.last()?, terms.first()?);
    let level = level_of_label(&last.key)?;
    let value = match last.operator {
        Operator::In => last.values.first()?,
        // The node itself stands before it.
        _ => first.values.first()?,
    };
    // A domain without a name of its own is that of a narrower one.
    Some(match value.strip_prefix('~') {
        Some(narrower) => format!("the {level} of {narrower}"),
        None => format!("{level} {value}"),
    })
}
