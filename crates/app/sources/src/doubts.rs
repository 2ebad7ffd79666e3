//! What objects say that cannot be so, and what they leave open, in words: numbers of GPUs beyond
//! any machine, pods that would fit against the word of their own scheduler. A list of these ends
//! its text, and is whole: whoever shows it to people cuts it.

use std::collections::BTreeMap;

use dovetail_audit::nodes_without_memory_size;
use dovetail_console::plain::plain_sentence;
use dovetail_console::shortened::BETWEEN;
use dovetail_console::table::counted;
use dovetail_facts::Facts;
use dovetail_inventory::facts::{
    Clamped, Gathered, GpuCount, Unjudged, UnknownGpus, UnlistedGpus, UnrequestedGpus,
};

/// Why nobody knows why such GPUs are free.
pub const CONTESTED: &str = "would fit on nodes with free GPUs, but its own scheduler reports that no node fits \
                             (PodScheduled: Unschedulable), so why those GPUs are free is unknown";

/// Numbers of GPUs that were cut to what can be.
pub fn clamped_in_words(clamped: &[Clamped]) -> Option<String> {
    let told = all(clamped.iter().map(ToString::to_string))?;
    let numbers = counted(clamped.len(), "number");
    Some(format!("{numbers} of GPUs in the objects out of range: {told}"))
}

/// How the text of [`gpu_counts_in_words`] begins.
pub const COUNTS_DISAGREE: &str =
    "labels, instance types and plugins disagree on the number of GPUs";

/// Nodes of whose GPUs somebody says another number than the one that counts, by who says what.
pub fn gpu_counts_in_words(counts: &[(String, GpuCount)]) -> Option<String> {
    let mut nodes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (node, GpuCount { gpus, by, others }) in counts {
        let others: Vec<String> =
            others.iter().map(|(other, said)| format!("{said} according to {other}")).collect();
        let text = format!("{gpus} according to {by}, not {}", others.join(" or "));
        nodes.entry(text).or_default().push(node);
    }
    let told = nodes.into_iter().map(|(text, nodes)| match nodes[..] {
        [node] => format!("node {node}: {text}"),
        _ => format!("{} such as {}: {text}", counted(nodes.len(), "node"), nodes[0]),
    });
    let told = all(told)?;
    Some(format!("{COUNTS_DISAGREE}: {told}"))
}

/// GPUs that pods hold on nodes that were not read.
pub fn nodes_not_read_in_words(unknown: &UnknownGpus) -> Option<String> {
    let nodes = all(unknown.nodes_not_read.iter().map(|node| format!("node {node}")))?;
    let gpus = counted(usize::try_from(unknown.on_unread_nodes).unwrap_or(0), "GPU");
    let pods = counted(unknown.pods_on_unread_nodes, "pod");
    Some(format!("{gpus} of {pods} on nodes that were not read: {nodes}"))
}

/// GPUs that pods hold on nodes that have none.
pub fn unlisted_gpus_in_words(unknown: &UnknownGpus) -> Option<String> {
    let UnlistedGpus { gpus, pods, nodes } = &unknown.unlisted;
    let nodes = all(nodes.iter().map(|node| format!("node {node}")))?;
    let gpus = counted(usize::try_from(*gpus).unwrap_or(0), "GPU");
    Some(format!("{gpus} of {} on nodes without GPUs: {nodes}", counted(*pods, "pod")))
}

/// Pods that use GPUs without requests, and where.
pub fn unrequested_gpus_in_words(unknown: &UnknownGpus) -> Option<String> {
    let UnrequestedGpus { pods, nodes } = &unknown.unrequested;
    let named = all(pods.iter().map(|pod| format!("pod {pod}")))?;
    let (pods, nodes) = (counted(pods.len(), "pod"), counted(nodes.len(), "node"));
    Some(format!("GPUs that {pods} may use on {nodes} without requests: {named}"))
}

/// How the text of [`other_names_in_words`] begins.
pub const OTHER_NAMES: &str = "GPUs that nodes may offer as resources that dovetail does not count";

/// Resources that may be GPUs and are not counted as such, with the nodes that offer them.
pub fn other_names_in_words(unknown: &UnknownGpus) -> Option<String> {
    let told = unknown.other_names.iter().map(|(resource, nodes)| {
        let first = nodes.first().map_or("", String::as_str);
        match nodes.len() {
            1 => format!("{resource} of node {first}"),
            more => format!("{resource} of {} such as {first}", counted(more, "node")),
        }
    });
    Some(format!("{OTHER_NAMES}: {}", all(told)?))
}

/// Nodes whose GPUs do not count because they stand for machines that somebody else runs.
pub fn virtual_nodes_in_words(unknown: &UnknownGpus) -> Option<String> {
    let nodes = all(unknown.virtual_nodes.iter().map(|node| format!("node {node}")))?;
    Some(format!("GPUs of virtual nodes (Virtual Kubelet), which are not counted: {nodes}"))
}

/// What slices and claims leave open of GPUs.
pub fn device_doubts_in_words(doubts: &[String]) -> Option<String> {
    let told = all(doubts.iter().cloned())?;
    Some(format!("devices of dynamic resource allocation: {told}"))
}

/// Nodes whose GPUs nobody knows how to cut, though pending pods ask for MIG instances there.
pub fn memory_sizes_in_words(facts: &Facts) -> Option<String> {
    let nodes = nodes_without_memory_size(facts).into_iter();
    let nodes = all(nodes.map(|node| format!("node {}", node.node.name)))?;
    Some(format!("the MIG layouts of GPUs whose memory size no label states: {nodes}"))
}

/// Waiting pods that nobody can hold against nodes, all of one reason.
pub struct UnjudgedPods {
    /// `3 waiting pods`.
    pub counted: String,
    /// Why, harmless to show.
    pub reason: String,
    /// Their names, one behind the other.
    pub named: String,
    /// What shows more of it.
    pub command: String,
}

/// Waiting pods that nobody can hold against nodes, by the reason.
pub fn unjudged_by_reason(unjudged: &[Unjudged]) -> impl Iterator<Item = UnjudgedPods> {
    let mut reasons: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for Unjudged { pod, reason, command } in unjudged {
        reasons.entry((reason, command)).or_default().push(pod.clone());
    }
    reasons.into_iter().filter_map(|((reason, command), pods)| {
        let counted = counted(pods.len(), "pending pod");
        Some(UnjudgedPods {
            counted,
            reason: plain_sentence(reason),
            named: all(pods.into_iter())?,
            command: command.to_owned(),
        })
    })
}

/// What objects leave open.
pub struct Doubt {
    /// What stays the same of it while pods come and go.
    pub kind: String,
    /// As it is told.
    pub text: String,
}

/// All that objects leave open but for [`contested_in_words`].
pub fn doubts(gathered: &Gathered) -> Vec<Doubt> {
    let of_kind = |kind: &str, text: String| Doubt { kind: kind.to_owned(), text };
    let clamped = clamped_in_words(&gathered.clamped).map(|text| of_kind("numbers", text));
    let devices = device_doubts_in_words(&gathered.device_doubts);
    let devices = devices.map(|text| of_kind("devices", text));
    let unjudged = unjudged_by_reason(&gathered.unjudged).map(|pods| {
        let UnjudgedPods { counted, reason, named, .. } = pods;
        let text =
            format!("why GPUs that {counted} could use are free is unknown ({reason}): {named}");
        of_kind(&format!("unjudged: {reason}"), text)
    });
    let counts = gpu_counts_in_words(&gathered.gpu_counts).map(|text| of_kind("counts", text));
    let unknown = &gathered.unknown_gpus;
    let gpus = [
        ("unlisted", unlisted_gpus_in_words(unknown)),
        ("unrequested", unrequested_gpus_in_words(unknown)),
        ("other names", other_names_in_words(unknown)),
        ("virtual", virtual_nodes_in_words(unknown)),
    ];
    let gpus = gpus.into_iter().filter_map(|(kind, text)| Some(of_kind(kind, text?)));
    clamped.into_iter().chain(counts).chain(devices).chain(gpus).chain(unjudged).collect()
}

/// Pods that would fit, against the word of their own scheduler.
pub fn contested_in_words(pods: &[String]) -> Option<String> {
    let named = all(pods.iter().cloned())?;
    let waiting = counted(pods.len(), "pending pod");
    Some(format!("{waiting}, each of which {CONTESTED}: {named}"))
}

/// Each harmless for itself: together they may be as long as they are many.
fn all(texts: impl Iterator<Item = String>) -> Option<String> {
    let named: Vec<String> = texts.map(|text| plain_sentence(&text)).collect();
    (!named.is_empty()).then(|| named.join(BETWEEN))
}
