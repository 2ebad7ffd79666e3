//! `dovetail partition show`: the layout of every GPU, and the pods of its node that use GPUs.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_console::table::{table, wrapped};
use dovetail_gpus::{KnownLayouts, NodeGpus, node_gpus_like};
use dovetail_model::MigTable;
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG};
use dovetail_sharing::{Mode, PolicySpec, Record, Replicas, Side, is_gpu, uses_gpus};
use dovetail_sources::objects::ObjectFlags;
use serde::Serialize;

use crate::amd_gpus::side;
use crate::cluster::{Age, fleet, objects};
use crate::eligible::holders;
use crate::fleet::{Fleet, shown_model, table_of};
use crate::objects::{Objects, SeenNode};
use crate::plan::{InstanceRow, InstanceState, drawn};
use crate::replicas::shown_replicas;
use crate::stays::stays_without_pods;
use crate::waiting::YOUNG_MS;

/// What `dovetail partition show` answers.
#[derive(Debug, Serialize)]
pub struct Document {
    pub nodes: Vec<NodeRow>,
}

/// A node with GPUs.
#[derive(Debug, Serialize)]
pub struct NodeRow {
    pub node: String,
    /// Model as `partition plan` names it; null if no label of the node does.
    pub model: Option<String>,
    pub gpu_count: i64,
    /// Empty where it is not known how the GPUs are cut.
    pub gpus: Vec<GpuRow>,
    /// MIG instances by profile where it is not known on which GPUs they are; null if it is known.
    pub unplaced_instances: Option<BTreeMap<String, i64>>,
    /// How pods share each GPU of the node, such as `4 replicas (mps)`, or the partition of its AMD
    /// GPUs, such as `cpx_nps4`; null if they do not.
    pub sharing: Option<String>,
    /// Pods on the node that use GPUs. Which GPU each has is not in the API.
    pub pods: Vec<PodRow>,
    /// Why its layout does not change now.
    pub stays: Option<String>,
    /// Its last change by dovetail.
    pub change: Option<ChangeRow>,
    /// Why the record of its change cannot be read; also in `stays`.
    #[serde(skip)]
    unreadable_record: Option<String>,
}

/// A GPU.
#[derive(Debug, Serialize)]
pub struct GpuRow {
    pub index: usize,
    pub is_whole: bool,
    pub instances: Vec<InstanceRow>,
}

/// A pod with GPUs.
#[derive(Debug, Serialize)]
pub struct PodRow {
    pub pod: String,
    /// Amounts by resource.
    pub amounts: BTreeMap<String, i64>,
}

/// A change of a node.
#[derive(Debug, Serialize)]
pub struct ChangeRow {
    pub step: String,
    pub from: String,
    pub to: String,
    pub problem: String,
}

/// The layouts of the objects that flags name.
///
/// # Errors
/// Objects that cannot be read.
pub fn document(app: &App, flags: &ObjectFlags, tables: &[MigTable]) -> Result<Document> {
    let (objects, now_ms) = objects(app, flags)?;
    Ok(document_of(&objects, tables, now_ms))
}

/// Writes down the layouts of some objects.
fn document_of(objects: &Objects, tables: &[MigTable], now_ms: u64) -> Document {
    let policy = PolicySpec { allow_mode_change: true, ..PolicySpec::default() };
    let all = fleet(objects, &policy, tables, Age { now_ms, young_ms: YOUNG_MS });
    let of_amd = PolicySpec { mode: Mode::AmdPartition, ..policy };
    let (holders, layouts) = (holders(objects), KnownLayouts::default());
    let mut nodes = Vec::new();
    for (name, seen) in &objects.nodes {
        let (amd, why_stays) = match side(seen) {
            Some(Ok(side)) => {
                (Some(side), stays_without_pods(name, seen, objects, &of_amd, now_ms))
            }
            Some(Err(why)) => (None, Some(why)),
            None => (None, all.stays.get(name).cloned()),
        };
        let gpus = node_gpus_like(&seen.node, seen.hami(), &layouts);
        let counted = gpus.as_ref().map(|gpus| gpus.count.gpus);
        let amd_gpus = amd.as_ref().map(|side| side.layout.0.len() as i64);
        let Some(gpu_count) = amd_gpus.or(counted) else { continue };
        let pods = holders.get(&**name).into_iter().flatten().filter(|pod| uses_gpus(pod));
        let pod = |pod: &&dovetail_objects::Pod| PodRow {
            pod: format!("{}/{}", pod.meta.namespace, pod.meta.name),
            amounts: {
                let amounts = pod.holds().extended.iter();
                let gpus = amounts.filter(|(name, count)| is_gpu(name) && **count > 0);
                gpus.map(|(name, count)| (name.to_string(), *count)).collect()
            },
        };
        let record = seen.record();
        let rows = rows(&all, name);
        let unplaced =
            gpus.as_ref().filter(|_| rows.is_empty()).and_then(|gpus| unplaced(gpus, seen, tables));
        let change = |record: Record| ChangeRow {
            step: record.step.word().to_owned(),
            from: record.from.words(),
            to: record.to.words(),
            problem: record.problem,
        };
        nodes.push(NodeRow {
            node: name.clone(),
            model: shown_model(tables, seen),
            gpu_count,
            gpus: rows,
            unplaced_instances: unplaced,
            sharing: sharing(seen, amd.as_ref()),
            pods: pods.copied().map(|one| pod(&one)).collect(),
            stays: why_stays,
            change: record.map(change),
            unreadable_record: seen.unreadable_record(),
        });
    }
    Document { nodes }
}

/// How pods share each GPU of a node, or the partition of AMD's.
fn sharing(seen: &SeenNode, amd: Option<&Side>) -> Option<String> {
    if let Some(devices) = amd.and_then(|side| side.amd) {
        return Some(devices.partition.to_string());
    }
    shown_replicas(seen).map(Replicas::words)
}

/// The instances of a node whose layout is not known, by profile; `None` if its GPUs are not in MIG
/// mode, or pods share them in another way.
fn unplaced(
    gpus: &NodeGpus,
    seen: &SeenNode,
    tables: &[MigTable],
) -> Option<BTreeMap<String, i64>> {
    let instance = |(resource, count): (&str, i64)| {
        let profile = resource.strip_prefix(NVIDIA_MIG).filter(|_| count > 0)?;
        Some((profile.to_owned(), count))
    };
    let units = gpus.units.iter().map(|units| (units.resource.as_str(), units.built_in));
    let instances: BTreeMap<String, i64> = units.filter_map(instance).collect();
    let is_mig = !gpus.has_shared_units() && table_of(tables, seen).is_some();
    (is_mig || !instances.is_empty()).then_some(instances)
}

/// The layout of GPUs that are not known one by one.
fn layout_of_node(node: &NodeRow) -> String {
    if let Some(sharing) = &node.sharing {
        return sharing.clone();
    }
    let Some(instances) = &node.unplaced_instances else { return "no MIG".to_owned() };
    let instances = instances.iter().map(|(profile, count)| format!("{profile} × {count}"));
    let instances: Vec<String> = instances.collect();
    match instances.is_empty() {
        true => "unknown".to_owned(),
        false => format!("unknown: {}", instances.join(", ")),
    }
}

fn rows(fleet: &Fleet, node: &str) -> Vec<GpuRow> {
    let mut rows = Vec::new();
    for (number, (name, index)) in fleet.names.iter().enumerate() {
        if name != node {
            continue;
        }
        let gpu = &fleet.world.gpus[number];
        let table = &fleet.world.tables[gpu.table];
        let of = |instances: &[dovetail_partition::Instance], state| -> Vec<InstanceRow> {
            let one = |instance: &dovetail_partition::Instance| InstanceRow {
                profile: table.profiles[instance.profile].name.clone(),
                start: None,
                state,
            };
            instances.iter().map(one).collect()
        };
        let held = of(&gpu.held, InstanceState::Held);
        let instances = [held, of(&gpu.idle, InstanceState::Idle)].concat();
        rows.push(GpuRow { index: *index, is_whole: gpu.is_whole, instances });
    }
    rows
}

/// The document as text: a row for each GPU; equal ones of a node beside each other share one.
pub fn text(document: &Document) -> String {
    let (mut rows, mut notes) = (Vec::new(), String::new());
    for node in &document.nodes {
        rows.extend(node_rows(node));
        if let Some(why) = &node.unreadable_record {
            notes += &wrapped(&format!("node {}: {}", node.node, plain(why)), 0);
        }
        if let Some(change) = node.change.as_ref().filter(|change| change.step != "Done") {
            let problem = if change.problem.is_empty() { "" } else { ": " };
            let text = format!(
                "node {}: change from {} to {} is {}{problem}{}",
                node.node, change.from, change.to, change.step, change.problem
            );
            notes += &wrapped(&text, 0);
        }
    }
    if rows.is_empty() {
        return "no node has GPUs\n".to_owned();
    }
    let header = ["node", "GPU", "model", "layout", "in use", "pods of the node"];
    let mut text = table(&header, rows);
    if !notes.is_empty() {
        text.push('\n');
        text += &notes;
    }
    text
}

/// Longest line of a pod's name.
const NAME_LINE: usize = 26;

/// A long name in lines that end at its separators: a table would break it within words.
pub(crate) fn in_lines(name: &str) -> String {
    let (mut text, mut line) = (String::new(), 0);
    for part in name.split_inclusive(['/', '-', '.']) {
        let length = part.chars().count();
        if line > 0 && line + length > NAME_LINE {
            text.push('\n');
            line = 0;
        }
        text += part;
        line += length;
    }
    text
}

fn node_rows(node: &NodeRow) -> Vec<Vec<String>> {
    // First and last GPU, layout, in use.
    let mut groups: Vec<(usize, usize, String, String)> = Vec::new();
    let whole = node.gpus.iter().filter(|gpu| gpu.is_whole).count();
    let used: i64 = node.pods.iter().filter_map(|pod| pod.amounts.get(NVIDIA_GPU)).sum();
    for gpu in &node.gpus {
        let held = gpu.instances.iter().filter(|one| one.state == InstanceState::Held).count();
        let in_use = match gpu.is_whole {
            true => format!("{used} of {whole}"),
            false => format!("{held} of {}", gpu.instances.len()),
        };
        let layout = drawn(&gpu.instances, gpu.is_whole);
        match groups.last_mut() {
            Some((_, last, known, known_use)) if (&*known, &*known_use) == (&layout, &in_use) => {
                *last = gpu.index;
            }
            _ => groups.push((gpu.index, gpu.index, layout, in_use)),
        }
    }
    if groups.is_empty() {
        let last = usize::try_from(node.gpu_count - 1).unwrap_or(0);
        groups.push((0, last, layout_of_node(node), String::new()));
    }
    let model = node.model.as_deref().unwrap_or("unknown");
    let pods: Vec<&str> = node.pods.iter().map(|pod| &*pod.pod).collect();
    let count = groups.len().max(pods.len());
    let row = |place: usize| {
        let (index, layout, in_use) = match groups.get(place) {
            Some((first, last, layout, in_use)) if first == last => {
                (first.to_string(), layout.clone(), in_use.clone())
            }
            Some((first, last, layout, in_use)) => {
                (format!("{first}-{last}"), layout.clone(), in_use.clone())
            }
            None => Default::default(),
        };
        let pod = in_lines(pods.get(place).copied().unwrap_or_default());
        let (name, model) = match place {
            0 => (node.node.clone(), model.to_owned()),
            _ => Default::default(),
        };
        vec![name, index, model, layout, in_use, pod]
    };
    (0..count).map(row).collect()
}
