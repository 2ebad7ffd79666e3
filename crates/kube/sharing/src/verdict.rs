//! Policies that cannot be followed: two on one node, profiles that no GPU has, layouts that a
//! node's GPUs cannot have. Nothing changes under such a policy.

use dovetail_model::labels::{AMD_PRODUCT, NVIDIA_PRODUCT};
use dovetail_model::{MigTable, gpu_model};
use dovetail_objects::Labels;
use thiserror::Error;

use crate::amd::Partition;
use crate::latency_query;
use crate::policy::{Mode, Moves, PolicySpec, SharingPolicy};
use crate::spec_rules::broken_rule;

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
    #[error("spec.profiles[{place}]: unknown profile {profile}: no supported GPU model has it")]
    UnknownProfile { place: usize, profile: String },
    /// The GPUs of a selected node have none of the profiles.
    #[error(
        "node {node}: {model} supports none of the profiles {profiles}: set spec.profiles to profiles that this \
         model supports, or exclude the node with spec.nodeSelector"
    )]
    ImpossibleLayout { node: String, model: String, profiles: String },
    /// The GPUs of a selected node cannot be partitioned in this way.
    #[error(
        "node {node}: AMD documents no partition {partition} of {model}: set spec.partition to one of {known}, or \
         exclude the node with spec.nodeSelector"
    )]
    ImpossiblePartition { node: String, model: String, partition: Partition, known: String },
    /// A field that the mode does not have, or that it needs.
    #[error("spec.{field}: {why}")]
    WrongField { field: String, why: String },
    /// An object that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It could not be followed to the end.
    #[error("{0}")]
    Failed(String),
}

impl Problem {
    /// The field that it is about; `None` if it is about several, or about nodes.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::UnknownProfile { place, .. } => Some(format!("spec.profiles[{place}]")),
            Self::WrongField { field, .. } => Some(format!("spec.{field}")),
            _ => None,
        }
    }

    /// The reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Overlap { .. } => "Overlap",
            Self::UnknownProfile { .. } => "UnknownProfile",
            Self::ImpossibleLayout { .. } | Self::ImpossiblePartition { .. } => "ImpossibleLayout",
            Self::WrongField { .. } => "WrongField",
            Self::Unreadable(_) => "Unreadable",
            Self::Failed(_) => "ApplyFailed",
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

/// What is wrong with a policy by itself, whatever the nodes are.
pub fn of_spec(spec: &PolicySpec, tables: &[MigTable]) -> Option<Problem> {
    let wrong =
        |field: &str, why: String| Some(Problem::WrongField { field: field.to_owned(), why });
    let mode = spec.mode.word();
    let is_shared = matches!(spec.mode, Mode::TimeSlicing | Mode::Mps);
    if let Some((field, why)) = broken_rule(spec) {
        return wrong(&field, why);
    }
    if is_shared && spec.replicas.is_none() {
        return wrong("replicas", format!("mode {mode} needs the number of pods on a GPU"));
    }
    if !is_shared && (spec.replicas.is_some() || !spec.classes.is_empty()) {
        let field = if spec.replicas.is_some() { "replicas" } else { "classes" };
        return wrong(field, format!("mode {mode} does not use {field}: remove the field"));
    }
    if spec.mode != Mode::Mig && !spec.profiles.is_empty() {
        return wrong("profiles", format!("mode {mode} does not use profiles: remove the field"));
    }
    if let Some(problem) = of_partition(spec) {
        return Some(problem);
    }
    let query = spec.guard.as_ref().and_then(|guard| latency_query::problem(&guard.query));
    if let Some(problem) = query {
        return wrong("guard.query", problem);
    }
    for (place, profile) in spec.profiles.iter().enumerate() {
        if tables.iter().all(|table| table.named(profile, tables).is_none()) {
            return Some(Problem::UnknownProfile { place, profile: profile.clone() });
        }
        if spec.profiles[..place].contains(profile) {
            let why = format!("{profile} is listed twice: remove one");
            return wrong(&format!("profiles[{place}]"), why);
        }
    }
    None
}

/// What is wrong with the fields of mode amd-partition.
fn of_partition(spec: &PolicySpec) -> Option<Problem> {
    let (mode, is_amd) = (spec.mode.word(), spec.mode == Mode::AmdPartition);
    let (field, why) = match spec.partition {
        None if is_amd => ("partition", "needs the partition of each GPU, such as cpx_nps4"),
        Some(_) if !is_amd => ("partition", "does not partition AMD GPUs: remove the field"),
        _ if !is_amd => return None,
        _ if spec.keep_whole > 0 => ("keepWhole", "changes all GPUs of a node: remove the field"),
        _ if spec.moves != Moves::Never => ("moves", "moves no pods: remove the field"),
        _ => return None,
    };
    Some(Problem::WrongField { field: field.to_owned(), why: format!("mode {mode} {why}") })
}

/// A node whose AMD GPUs have no such partition.
fn impossible_partition(spec: &PolicySpec, nodes: &[GpuNode<'_>]) -> Option<Problem> {
    let partition = spec.partition?;
    let selected = nodes.iter().filter(|node| spec.selects(|key| node.labels.get(key)));
    selected.into_iter().find_map(|node| {
        let model = gpu_model(node.labels.get(AMD_PRODUCT)?)?;
        let known = Partition::of_model(model);
        let words: Vec<String> = known.iter().map(ToString::to_string).collect();
        (!known.is_empty() && !known.contains(&partition)).then(|| Problem::ImpossiblePartition {
            node: node.name.to_owned(),
            model: model.to_owned(),
            partition,
            known: words.join(", "),
        })
    })
}

fn alone(policy: &SharingPolicy, nodes: &[GpuNode<'_>], tables: &[MigTable]) -> Option<Problem> {
    let spec = &policy.spec;
    if let Some(problem) = of_spec(spec, tables) {
        return Some(problem);
    }
    if let Some(problem) = impossible_partition(spec, nodes) {
        return Some(problem);
    }
    let selected = nodes.iter().filter(|node| spec.selects(|key| node.labels.get(key)));
    let known = selected.filter_map(|node| Some((node, node.table?)));
    let cannot = |table: &MigTable| {
        !spec.profiles.is_empty()
            && spec.profiles.iter().all(|profile| table.named(profile, tables).is_none())
    };
    let mut impossible = known.filter(|(_, table)| cannot(table));
    impossible.next().map(|(node, table)| {
        // A table is named for one of the models that it is of.
        let model = node.labels.get(NVIDIA_PRODUCT).and_then(gpu_model);
        Problem::ImpossibleLayout {
            node: node.name.to_owned(),
            model: model.unwrap_or(&table.name).to_owned(),
            profiles: spec.profiles.join(", "),
        }
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
            ["spec.profiles[0]: unknown profile 9g.99gb: no supported GPU model has it"]
        );
        let impossible = &told(&[("x", with("1g.5gb"))])[0];
        assert!(impossible.starts_with("node n-a: A100-80GB supports none of the profiles 1g.5gb"));
        // One table is of both models.
        let product = json!({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"});
        let product: Labels = serde_json::from_value(product).expect("labels");
        let h100 = [GpuNode { name: "h", labels: &product, table: table.as_ref() }];
        let policies = [policy("x", with("1g.5gb"))];
        let told_of_h100 =
            problems(&policies, &h100, &tables)[0].clone().expect("it is impossible");
        let told_of_h100 = told_of_h100.to_string();
        assert!(told_of_h100.starts_with("node h: H100 supports none"), "{told_of_h100}");
        // The H200 has it, whatever the A100 has that is nearly as large.
        let of_h200 = &told(&[("x", with("1g.18gb"))])[0];
        assert!(of_h200.starts_with("node n-a: A100-80GB supports none of the profiles 1g.18gb"));
        assert_eq!(told(&[("x", with("3g.39gb"))]), [""]);
        let wrong = |spec: Value, start: &str| {
            let problem = &told(&[("x", spec)])[0];
            assert!(problem.starts_with(start), "{problem}");
        };
        wrong(json!({"mode": "mps"}), "spec.replicas: mode mps needs");
        wrong(json!({"mode": "mps", "replicas": 49}), "spec.replicas: 49: must be 2 to 48");
        wrong(
            json!({"mode": "mig", "classes": ["batch"]}),
            "spec.classes: mode mig does not use classes: remove the field",
        );
        wrong(
            json!({"mode": "time-slicing", "replicas": 4, "profiles": ["1g.10gb"]}),
            "spec.profiles: mode time-slicing does not use",
        );
        let none = json!({"movedGpuSecondsPerHour": 0});
        wrong(
            json!({"mode": "mig", "moves": "restartable", "budget": none}),
            "spec.budget.movedGpuSecondsPerHour: 0: must be 1 to 1000000",
        );
        let guarded = |guard: Value| json!({"mode": "mig", "guard": guard});
        wrong(guarded(json!({"hours": 48})), "spec.guard.hours: 48: must be 2 to 24");
        wrong(guarded(json!({"query": "up"})), "spec.guard.query: it has no $window");
        assert_eq!(told(&[("x", guarded(json!({})))]), [""]);
        let twice = json!({"mode": "mig", "profiles": ["1g.10gb", "1g.10gb"]});
        wrong(twice, "spec.profiles[1]: 1g.10gb is listed twice");
        assert_eq!(told(&[("x", json!({"mode": "time-slicing", "replicas": 4}))]), [""]);
    }

    #[test]
    fn a_partition_is_one_that_the_model_has_in_the_mode_that_needs_it() {
        let labels: Labels =
            serde_json::from_value(json!({AMD_PRODUCT: "AMD_Instinct_MI325X_OAM"}))
                .expect("labels");
        let nodes = [GpuNode { name: "n", labels: &labels, table: None }];
        let told = |spec: Value| {
            let found = problems(&[policy("x", spec)], &nodes, &[]);
            found[0].as_ref().map_or(String::new(), ToString::to_string)
        };
        let amd = |partition: &str| json!({"mode": "amd-partition", "partition": partition});
        assert_eq!(told(amd("cpx_nps1")), "");
        let none = told(amd("cpx_nps4"));
        assert!(
            none.starts_with("node n: AMD documents no partition cpx_nps4 of MI325X"),
            "{none}"
        );
        let wrong = |spec: Value, start: &str| {
            let problem = told(spec);
            assert!(problem.starts_with(start), "{problem}");
        };
        wrong(json!({"mode": "amd-partition"}), "spec.partition: mode amd-partition needs");
        wrong(json!({"mode": "mig", "partition": "cpx_nps1"}), "spec.partition: mode mig does not");
        for (field, value) in [("keepWhole", json!(1)), ("moves", json!("restartable"))] {
            let mut spec = amd("cpx_nps1");
            spec[field] = value;
            wrong(spec, &format!("spec.{field}: mode amd-partition"));
        }
    }
}
