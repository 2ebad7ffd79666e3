//! Policies that cannot be followed: two on one node, profiles that no GPU has, layouts that a
//! node's GPUs cannot have, fields that are not applied yet. Nothing changes under such a policy.

use dovetail_model::MigTable;
use dovetail_objects::Labels;
use thiserror::Error;

use crate::policy::SharingPolicy;

/// A node with GPUs.
#[derive(Clone, Copy, Debug)]
pub struct GpuNode<'n> {
    pub name: &'n str,
    pub labels: &'n Labels,
    /// How its GPUs can be cut, if that is known.
    pub table: Option<&'n MigTable>,
}

/// Why a policy is not followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Two policies select one node.
    #[error("policies {first} and {second} both select node {node}: change one nodeSelector")]
    Overlap { first: String, second: String, node: String },
    /// No GPU model has the profile.
    #[error("spec.profiles[{place}]: no GPU has a profile {profile}")]
    UnknownProfile { place: usize, profile: String },
    /// The GPUs of a selected node have none of the profiles.
    #[error(
        "node {node}: {model} has none of the profiles {profiles}: name profiles of this model, or exclude \
         the node by nodeSelector"
    )]
    ImpossibleLayout { node: String, model: String, profiles: String },
    /// A field that is not applied yet.
    #[error("spec.{field}: this version does not apply it: remove it (mode: mig is applied)")]
    NotApplied { field: &'static str },
    /// An object that cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

impl Problem {
    /// The reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Overlap { .. } => "Overlap",
            Self::UnknownProfile { .. } => "UnknownProfile",
            Self::ImpossibleLayout { .. } => "ImpossibleLayout",
            Self::NotApplied { .. } => "NotApplied",
            Self::Unreadable(_) => "Unreadable",
        }
    }
}

/// What is wrong with each policy, in their order.
pub fn problems(
    policies: &[SharingPolicy],
    nodes: &[GpuNode<'_>],
    tables: &[MigTable],
) -> Vec<Option<Problem>> {
    let of = |policy| overlap(policy, policies, nodes).or_else(|| alone(policy, nodes, tables));
    policies.iter().map(of).collect()
}

fn overlap(
    policy: &SharingPolicy,
    all: &[SharingPolicy],
    nodes: &[GpuNode<'_>],
) -> Option<Problem> {
    let both = |other: &&SharingPolicy| {
        let selected = |node: &&GpuNode<'_>| {
            let label = |key: &str| node.labels.get(key);
            policy.spec.selects(label) && other.spec.selects(label)
        };
        let node = nodes.iter().find(selected)?;
        let mut names = [policy.name.clone(), other.name.clone()];
        names.sort();
        let [first, second] = names;
        Some(Problem::Overlap { first, second, node: node.name.to_owned() })
    };
    all.iter().filter(|other| other.name != policy.name).find_map(|other| both(&other))
}

fn alone(policy: &SharingPolicy, nodes: &[GpuNode<'_>], tables: &[MigTable]) -> Option<Problem> {
    let spec = &policy.spec;
    if let Some(field) = spec.not_applied() {
        return Some(Problem::NotApplied { field });
    }
    for (place, profile) in spec.profiles.iter().enumerate() {
        if tables.iter().all(|table| table.profile(profile).is_none()) {
            return Some(Problem::UnknownProfile { place, profile: profile.clone() });
        }
    }
    let selected = nodes.iter().filter(|node| spec.selects(|key| node.labels.get(key)));
    let known = selected.filter_map(|node| Some((node, node.table?)));
    let cannot = |table: &MigTable| {
        !spec.profiles.is_empty()
            && spec.profiles.iter().all(|profile| table.profile(profile).is_none())
    };
    let mut impossible = known.filter(|(_, table)| cannot(table));
    impossible.next().map(|(node, table)| Problem::ImpossibleLayout {
        node: node.name.to_owned(),
        model: table.name.clone(),
        profiles: spec.profiles.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, spec: Value) -> SharingPolicy {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        serde_json::from_value(object).expect("a policy")
    }

    #[test]
    fn a_policy_that_cannot_be_followed_says_why_and_names_both() {
        let labels = |pool: &str| -> Labels {
            serde_json::from_value(json!({"pool": pool})).expect("labels")
        };
        let (a, b) = (labels("a"), labels("b"));
        let tables: Vec<MigTable> = MigTable::all().collect();
        let table = MigTable::of_model("A100-80GB");
        let nodes = [
            GpuNode { name: "n-a", labels: &a, table: table.as_ref() },
            GpuNode { name: "n-b", labels: &b, table: table.as_ref() },
        ];
        let told = |specs: &[(&str, Value)]| -> Vec<String> {
            let policies: Vec<SharingPolicy> =
                specs.iter().map(|(name, spec)| policy(name, spec.clone())).collect();
            let found = problems(&policies, &nodes, &tables).into_iter();
            found.map(|problem| problem.map_or(String::new(), |one| one.to_string())).collect()
        };
        let on = |pool: &str| json!({"mode": "mig", "nodeSelector": {"pool": pool}});
        assert_eq!(told(&[("x", on("a")), ("y", on("b"))]), ["", ""]);
        let all = json!({"mode": "mig"});
        let both = "policies x and y both select node n-a: change one nodeSelector";
        assert_eq!(told(&[("y", all), ("x", on("a"))]), [both, both]);
        let with = |profile: &str| json!({"mode": "mig", "profiles": [profile]});
        assert_eq!(
            told(&[("x", with("9g.99gb"))]),
            ["spec.profiles[0]: no GPU has a profile 9g.99gb"]
        );
        let impossible = &told(&[("x", with("1g.5gb"))])[0];
        assert!(impossible.starts_with("node n-a: A100-80GB has none of the profiles 1g.5gb"));
        let mps = json!({"mode": "mps"});
        assert!(told(&[("x", mps)])[0].starts_with("spec.mode: this version does not apply it"));
    }
}
