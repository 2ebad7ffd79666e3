//! Changes of node pools: a patch where the pool is an object of the cluster, else a command of its
//! provider.

use std::collections::BTreeSet;

use dovetail_audit::{Finding, PatchChange, is_name, taint_text};
use dovetail_facts::{Facts, Node, ObjectRef};
use dovetail_model::{Taint, TaintEffect};

use super::command::CommandWords;
use super::edit::Edits;
use super::form::NodeChange;
use super::json::Json;
use super::source::{PathStep, SourceObject};
use super::template::toleration;

/// Nodes that one command names.
const MOST_NODES: usize = 50;

/// The one that nobody but the reader knows.
const CLUSTER: &str = "CLUSTER";

fn path(fields: &[&str]) -> Vec<PathStep> {
    fields.iter().map(|name| PathStep::Field((*name).to_owned())).collect()
}

/// Makes a change of a NodePool of Karpenter; `false` if it has nothing to change.
pub(super) fn change(source: &SourceObject, change: &PatchChange, edits: &mut Edits) -> bool {
    let now = edits.applied(source);
    match change {
        PatchChange::TaintNodes { taint } => {
            let mut taints = now.at(&TAINTS).map(|list| list.items().to_vec()).unwrap_or_default();
            if taints.iter().any(|item| is_taint(item, taint)) {
                return false;
            }
            taints.push(written(taint));
            edits.set_whole(path(&TAINTS), taints);
            true
        }
        PatchChange::RenameTaint { taint, key } => {
            let mut taints = now.at(&TAINTS).map(|list| list.items().to_vec()).unwrap_or_default();
            let Some(old) = taints.iter_mut().find(|item| is_taint(item, taint)) else {
                return false;
            };
            *old = written(&Taint { key: key.clone(), ..taint.clone() });
            edits.set_whole(path(&TAINTS), taints);
            true
        }
        PatchChange::RemoveEmptyNodes => {
            let text = |field: &str| now.at(&["spec", "disruption", field]).and_then(Json::text);
            let removes = ["WhenEmpty", "WhenEmptyOrUnderutilized", "WhenUnderutilized"];
            let policy = text("consolidationPolicy");
            let is_on = policy.is_some_and(|policy| removes.contains(&policy));
            if is_on && text("consolidateAfter").is_some_and(|after| after != "Never") {
                return false;
            }
            let place = |field: &str| path(&["spec", "disruption", field]);
            // The other policies also evict the pods of underutilized nodes.
            if policy != Some("WhenEmpty") {
                edits.set(place("consolidationPolicy"), "WhenEmpty".into());
            }
            edits.set(place("consolidateAfter"), "5m".into());
            true
        }
        PatchChange::LetNodesGo { annotation } => {
            let place = ["spec", "template", "metadata", "annotations", annotation];
            if now.at(&place).is_none() {
                return false;
            }
            edits.remove(path(&place));
            true
        }
        _ => false,
    }
}

const TAINTS: [&str; 4] = ["spec", "template", "spec", "taints"];

fn is_taint(item: &Json, taint: &Taint) -> bool {
    let known = toleration(item);
    let text = |field: &str| item.get(field).and_then(Json::text).unwrap_or_default();
    text("key") == taint.key && text("value") == taint.value && known.effect == Some(taint.effect)
}

fn written(taint: &Taint) -> Json {
    let mut fields = vec![
        ("key".to_owned(), Json::from(taint.key.as_str())),
        ("effect".to_owned(), taint.effect.name().into()),
    ];
    if !taint.value.is_empty() {
        fields.push(("value".to_owned(), taint.value.as_str().into()));
    }
    Json::Object(fields.into_iter().collect())
}

/// A change as a command on the pool's nodes, or of whoever runs the pool.
pub(super) fn command(
    facts: &Facts,
    finding: &Finding,
    change: &PatchChange,
) -> Option<CommandWords> {
    let pool = &finding.object;
    let nodes = nodes_meant(&finding.affected, change);
    let (named, more) = nodes.split_at(nodes.len().min(MOST_NODES));
    let mut warnings = Vec::new();
    if !more.is_empty() {
        warnings.push(format!("{} more nodes are affected", more.len()));
    }
    let kubectl = |verb: &[&str], behind: &[&str]| -> Option<Vec<String>> {
        let words = ["kubectl"].iter().chain(verb).chain(named).chain(behind);
        (!named.is_empty()).then(|| words.map(|word| (*word).to_owned()).collect())
    };
    let told = |words: Vec<String>, effect| {
        Some(CommandWords { words, effect, warnings: warnings.clone(), nodes: None })
    };
    let named_nodes = || named.iter().map(|name| (*name).to_owned()).collect();
    match change {
        PatchChange::Uncordon { .. } => {
            told(kubectl(&["uncordon"], &[])?, "none; the nodes accept new pods again")
        }
        PatchChange::Drain => {
            let mut told = told(
                kubectl(&["drain"], &["--ignore-daemonsets"])?,
                "all pods of the nodes except those of DaemonSets are evicted, within disruption budgets",
            )?;
            told.nodes =
                Some(NodeChange { nodes: named_nodes(), drained: true, ..NodeChange::default() });
            Some(told)
        }
        PatchChange::LetNodesGo { annotation } => {
            let key = format!("{annotation}-");
            told(
                kubectl(&["annotate", "nodes"], &[&key])?,
                "none at first; the autoscaler may remove the nodes when no pod needs them",
            )
        }
        PatchChange::TaintNodes { taint } if pool.kind == "Node" => {
            let words = kubectl(&["taint", "nodes"], &[&taint_text(taint)])?;
            let mut told = told(words, "none; running pods stay")?;
            told.warnings.push(
                "a node that registers again has only the taints of its kubelet (registerWithTaints): set the taint \
                 there too"
                    .to_owned(),
            );
            told.nodes = Some(tainted(named_nodes(), taint));
            Some(told)
        }
        PatchChange::TaintNodes { taint } => {
            let words = managed_taints(facts, pool, taint)?;
            let mut told =
                told(words, "none at first on EKS and GKE; AKS may replace the nodes of the pool")?;
            told.nodes = Some(tainted(nodes_of(facts, pool), &with_value(taint)));
            Some(told)
        }
        PatchChange::RemoveEmptyNodes => shrunk(facts, finding),
        _ => None,
    }
}

/// Names of the nodes that a change is about.
fn nodes_meant<'o>(affected: &'o [ObjectRef], change: &PatchChange) -> Vec<&'o str> {
    let is_meant = |node: &&ObjectRef| match change {
        PatchChange::Uncordon { nodes } => nodes.contains(&node.name),
        _ => true,
    };
    let nodes = affected.iter().filter(|object| object.kind == "Node" && is_name(object));
    nodes.filter(is_meant).map(|node| node.name.as_str()).collect()
}

fn nodes_of(facts: &Facts, pool: &ObjectRef) -> Vec<String> {
    let of_pool = facts.nodes.iter().filter(|node| node.pool == *pool);
    of_pool.map(|node| node.node.name.to_string()).collect()
}

/// A taint as providers set it: they want a value.
fn with_value(taint: &Taint) -> Taint {
    let value = if taint.value.is_empty() { "true".to_owned() } else { taint.value.clone() };
    Taint { value, ..taint.clone() }
}

fn tainted(nodes: Vec<String>, taint: &Taint) -> NodeChange {
    NodeChange { nodes, added: vec![taint.clone()], ..NodeChange::default() }
}

/// What a change of a NodePool of Karpenter changes of its nodes: those of the pool get the taints
/// of its template.
pub(super) fn node_change(
    facts: &Facts,
    source: &SourceObject,
    after: &Json,
) -> Option<NodeChange> {
    if source.object.kind != "NodePool" {
        return None;
    }
    let taints = |content: &Json| -> Vec<Taint> {
        let list = content.at(&TAINTS).map(Json::items).unwrap_or_default();
        list.iter().filter_map(read).collect()
    };
    let (before, after) = (taints(&source.content), taints(after));
    let only = |these: &[Taint], others: &[Taint]| -> Vec<Taint> {
        these.iter().filter(|taint| !others.contains(taint)).cloned().collect()
    };
    let (added, removed) = (only(&after, &before), only(&before, &after));
    let has_some = !added.is_empty() || !removed.is_empty();
    has_some.then(|| NodeChange {
        nodes: nodes_of(facts, &source.object),
        added,
        removed,
        drained: false,
    })
}

/// A taint as it is written; `None` if its effect is unknown.
fn read(item: &Json) -> Option<Taint> {
    let text = |field: &str| item.get(field).and_then(Json::text).unwrap_or_default().to_owned();
    let effect = toleration(item).effect?;
    Some(Taint { key: text("key"), value: text("value"), effect })
}

/// Taints that a provider gives the nodes of a pool: where the command replaces them, with those
/// that are there.
fn managed_taints(facts: &Facts, pool: &ObjectRef, taint: &Taint) -> Option<Vec<String>> {
    let name = pool.name.as_str();
    let of_pool = |node: &&Node| node.pool == *pool;
    let is_own = |old: &&Taint| {
        !old.key.contains("kubernetes.io/") && !old.key.contains("cloud.google.com/")
    };
    let taints = facts.nodes.iter().filter(of_pool).flat_map(|node| &node.node.taints);
    let old: BTreeSet<&Taint> = taints.filter(is_own).collect();
    let all = || {
        // Providers want a value.
        let text = |taint: &Taint| {
            let value = if taint.value.is_empty() { "true" } else { &taint.value };
            format!("{}={value}:{}", taint.key, taint.effect.name())
        };
        let texts: Vec<String> = old.iter().copied().chain([taint]).map(text).collect();
        texts.join(",")
    };
    let words: Vec<String> = match pool.kind.as_str() {
        "EKSNodegroup" => {
            let effect = match taint.effect {
                TaintEffect::NoSchedule => "NO_SCHEDULE",
                TaintEffect::NoExecute => "NO_EXECUTE",
                TaintEffect::PreferNoSchedule => "PREFER_NO_SCHEDULE",
            };
            let value = if taint.value.is_empty() { "true" } else { &taint.value };
            let taints =
                format!("addOrUpdateTaints=[{{key={},value={value},effect={effect}}}]", taint.key);
            let head = ["aws", "eks", "update-nodegroup-config", "--cluster-name", CLUSTER];
            let behind = ["--nodegroup-name", name, "--taints", &taints];
            head.iter().chain(&behind).map(|word| (*word).to_owned()).collect()
        }
        "GKENodePool" => {
            let taints = format!("--node-taints={}", all());
            let words = [
                "gcloud",
                "container",
                "node-pools",
                "update",
                name,
                "--cluster",
                CLUSTER,
                &taints,
            ];
            words.map(str::to_owned).to_vec()
        }
        "AKSNodePool" => {
            let head = ["az", "aks", "nodepool", "update", "--resource-group", "GROUP"];
            let taints = all();
            let behind = ["--cluster-name", CLUSTER, "--name", name, "--node-taints", &taints];
            head.iter().chain(&behind).map(|word| (*word).to_owned()).collect()
        }
        _ => return None,
    };
    Some(words)
}

/// Nodes that an autoscaler does not remove because of an annotation, by name.
pub(super) fn held_by_annotation(facts: &Facts) -> BTreeSet<&str> {
    let held = facts.nodes.iter().filter(|node| node.scale_down_held_by.is_some());
    held.map(|node| &*node.node.name).collect()
}

/// Lets a managed pool shrink: to nothing, or by the empty nodes alone where work needs some of
/// them, because a minimum counts all nodes of the pool.
fn shrunk(facts: &Facts, finding: &Finding) -> Option<CommandWords> {
    let pool = &finding.object;
    let held = held_by_annotation(facts);
    let goes = |name: &str| !finding.stays.contains(name) && !held.contains(name);
    let gone = finding.affected.iter().filter(|node| goes(&node.name)).count();
    let is_needed = !finding.stays.is_empty();
    if is_needed && gone == 0 {
        return None;
    }
    let least = if is_needed { facts.pool_size_without(pool, gone) } else { 0 };
    let warning = "the minimum size also keeps nodes whose work has ended: lower it when no workload \
                   needs them any longer";
    Some(CommandWords {
        words: managed_minimum(pool, least)?,
        effect: "none at first; the autoscaler may remove nodes down to the minimum size",
        warnings: is_needed.then(|| warning.to_owned()).into_iter().collect(),
        nodes: None,
    })
}

/// The command that lets a managed pool shrink to so many nodes. On GKE, `--min-nodes` would count
/// for each zone of the pool.
fn managed_minimum(pool: &ObjectRef, least: usize) -> Option<Vec<String>> {
    let name = pool.name.as_str();
    let count = least.to_string();
    let (on_eks, on_gke) = (format!("minSize={least}"), format!("--total-min-nodes={least}"));
    let words: Vec<&str> = match pool.kind.as_str() {
        "EKSNodegroup" => vec![
            "aws",
            "eks",
            "update-nodegroup-config",
            "--cluster-name",
            CLUSTER,
            "--nodegroup-name",
            name,
            "--scaling-config",
            &on_eks,
        ],
        "GKENodePool" => vec![
            "gcloud",
            "container",
            "clusters",
            "update",
            CLUSTER,
            "--node-pool",
            name,
            "--enable-autoscaling",
            &on_gke,
            "--total-max-nodes=MAX",
        ],
        "AKSNodePool" => vec![
            "az",
            "aks",
            "nodepool",
            "update",
            "--resource-group",
            "GROUP",
            "--cluster-name",
            CLUSTER,
            "--name",
            name,
            "--update-cluster-autoscaler",
            "--min-count",
            &count,
            "--max-count",
            "MAX",
        ],
        _ => return None,
    };
    Some(words.into_iter().map(str::to_owned).collect())
}
