//! Where a gang must or should be: all of it by our own annotations, a native PodGroup or one of
//! Volcano; the pods of each set by annotations of Kueue. KAI says it in a group or in annotations.

use dovetail_model::TopologyRequest;
use dovetail_objects::labels::{KAI_PREFERRED, KAI_REQUIRED, KUEUE_PREFERRED, KUEUE_REQUIRED};
use dovetail_objects::{Meta, NetworkTopology, Pod, PodGroup, TopologyConstraint};

use super::{GangName, NotYet, impossible, said};
use crate::levels::KnownLevels;

/// Annotation: the level in one of whose domains all pods must be.
pub(super) const REQUIRED: &str = "dovetail.dev/topology-required";
/// Annotation: the level in one of whose domains they should be.
pub(super) const PREFERRED: &str = "dovetail.dev/topology-preferred";

/// A level, and the setting that asks for it.
struct Ask {
    setting: String,
    level: String,
}

/// Where all pods of a gang must and should be. `object` and `group` describe it, as far as there
/// are any.
pub(super) fn of_gang(
    gang: &GangName,
    object: Option<&Meta>,
    group: Option<&PodGroup>,
    members: &[&Pod],
    levels: KnownLevels<'_>,
) -> Result<TopologyRequest, NotYet> {
    let none = Meta::default();
    let ours = |annotation: &str| {
        let Some(name) = said(gang, object.unwrap_or(&none), members, annotation)? else {
            return Ok(None);
        };
        let level = levels.named(name).map_err(|problem| impossible(gang, problem))?;
        Ok(Some(Ask { setting: format!("annotation {annotation}"), level }))
    };
    let kai = |annotation: &str| {
        let Some(label) = said(gang, object.unwrap_or(&none), members, annotation)? else {
            return Ok(None);
        };
        let level = levels.labelled(label).map_err(|problem| impossible(gang, problem))?;
        Ok(Some(Ask { setting: format!("annotation {annotation}"), level }))
    };
    let mut required = one(gang, ours(REQUIRED)?, kai(KAI_REQUIRED)?)?;
    let mut preferred = one(gang, ours(PREFERRED)?, kai(KAI_PREFERRED)?)?;
    if let Some(group) = group {
        required = one(gang, required, native(gang, group, levels)?)?;
        let (must, should) = volcano(gang, group.network_topology.as_ref(), levels)?;
        required = one(gang, required, must)?;
        preferred = one(gang, preferred, should)?;
        let constraint = constraint(&group.topology_constraint, levels);
        let constraint = constraint.map_err(|problem| impossible(gang, problem))?;
        let setting = || "spec.topologyConstraint".to_owned();
        let ask = |level: Option<String>| level.map(|level| Ask { setting: setting(), level });
        required = one(gang, required, ask(constraint.required))?;
        preferred = one(gang, preferred, ask(constraint.preferred))?;
    }
    // Every member is to be told of a level that its set asks for and that there is not.
    for pod in members.iter().filter(|pod| pod.node.is_empty()) {
        of_set(pod, levels).map_err(|problem| impossible(gang, problem))?;
    }
    let level = |ask: Option<Ask>| ask.map(|ask| ask.level);
    Ok(TopologyRequest { required: level(required), preferred: level(preferred) })
}

/// Where the pods must and should be that are of one set with this one, by annotations of Kueue.
pub fn of_set(pod: &Pod, levels: KnownLevels<'_>) -> Result<TopologyRequest, String> {
    let level = |annotation: &str| {
        pod.meta.annotations.get(annotation).map(|label| levels.labelled(label)).transpose()
    };
    Ok(TopologyRequest { required: level(KUEUE_REQUIRED)?, preferred: level(KUEUE_PREFERRED)? })
}

/// Where the pods of a group or a subgroup of KAI must and should be.
pub(super) fn constraint(
    constraint: &TopologyConstraint,
    levels: KnownLevels<'_>,
) -> Result<TopologyRequest, String> {
    let level = |label: &str| match label.is_empty() {
        true => Ok(None),
        false => levels.labelled(label).map(Some),
    };
    let (required, preferred) = (level(&constraint.required)?, level(&constraint.preferred)?);
    Ok(TopologyRequest { required, preferred })
}

/// The only level that is asked for, or that both ask for.
fn one(gang: &GangName, one: Option<Ask>, other: Option<Ask>) -> Result<Option<Ask>, NotYet> {
    match (one, other) {
        (Some(one), Some(other)) if one.level != other.level => {
            let problem = format!(
                "{} requests topology level {} and {} requests {}: keep only one",
                one.setting, one.level, other.setting, other.level
            );
            Err(impossible(gang, problem))
        }
        (one, other) => Ok(one.or(other)),
    }
}

/// What a native group requires.
fn native(
    gang: &GangName,
    group: &PodGroup,
    levels: KnownLevels<'_>,
) -> Result<Option<Ask>, NotYet> {
    let key = match &*group.topology_keys {
        [] => return Ok(None),
        [key] => key,
        _ => {
            let problem = "it has more than one topology constraint: keep only one".to_owned();
            return Err(impossible(gang, problem));
        }
    };
    let level = levels.labelled(key).map_err(|problem| impossible(gang, problem))?;
    Ok(Some(Ask { setting: "spec.schedulingConstraints".to_owned(), level }))
}

/// What a group of Volcano requires and prefers.
fn volcano(
    gang: &GangName,
    topology: Option<&NetworkTopology>,
    levels: KnownLevels<'_>,
) -> Result<(Option<Ask>, Option<Ask>), NotYet> {
    let found = of_network(topology, levels).map_err(|problem| impossible(gang, problem))?;
    let ask = |level: String| Ask { setting: "spec.networkTopology".to_owned(), level };
    Ok((found.0.map(ask), found.1.map(ask)))
}

/// The levels that Volcano's words require and prefer: tier 1 if it can be, and with mode `hard`
/// none above the highest.
pub(super) fn of_network(
    topology: Option<&NetworkTopology>,
    levels: KnownLevels<'_>,
) -> Result<(Option<String>, Option<String>), String> {
    let Some(topology) = topology else { return Ok((None, None)) };
    let level = |tier: u32| levels.labelled(&hyper_node_label(tier));
    let preferred = Some(level(1)?);
    match (topology.is_hard, topology.highest_tier) {
        (false, _) => Ok((None, preferred)),
        (true, Some(tier)) => Ok((Some(level(tier)?), preferred)),
        (true, None) => {
            Err("spec.networkTopology has mode hard and no highestTierAllowed: set it".to_owned())
        }
    }
}

/// What stands for the label with the name of a node's HyperNode of a tier.
pub fn hyper_node_label(tier: u32) -> String {
    format!("hypernode:{tier}")
}
