//! Where the two disagree.

use std::fmt;

use dovetail_testkit::world::{NodeAnswer, OracleAnswer, PodAnswer};

use super::asked::{OfNode, Said, Verdict};

/// One disagreement.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// What kind it is: the same for mismatches of one origin.
    pub(crate) sort: String,
    what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.sort, self.what)
    }
}

/// How kube-scheduler names a rejection of its node affinity plugin before nodes are looked at.
const BEFORE_NODES: &str = "didn't satisfy plugin(s)";

/// What claims without a volume are refused for.
const OF_CLAIMS: [&str; 2] = [
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
];

const VOLUME_GONE: &str =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// Everything in which the two disagree.
pub(crate) fn compare(answer: &OracleAnswer, ours: &[Said]) -> Vec<Mismatch> {
    assert_eq!(answer.pods.len(), ours.len(), "both answer about every pod");
    answer.pods.iter().zip(ours).flat_map(|(kube, said)| compare_pod(kube, said)).collect()
}

fn compare_pod(kube: &PodAnswer, said: &Said) -> Vec<Mismatch> {
    let mismatch = |sort: &str, what: String| vec![Mismatch { sort: sort.to_owned(), what }];
    let fits = !kube.feasible().is_empty();
    match &said.verdict {
        Verdict::Gated if kube.gated.is_empty() => {
            mismatch("not taking part", format!("{} takes no part", said.pod))
        }
        Verdict::Gated => Vec::new(),
        _ if !kube.gated.is_empty() => mismatch("gated", format!("{} is gated", said.pod)),
        Verdict::Left(_) if said.is_left_by_design() => Vec::new(),
        Verdict::Left(reason) if fits => {
            let what = format!("{} is left ({reason}) and fits {:?}", said.pod, kube.feasible());
            mismatch("left untouched", what)
        }
        Verdict::Left(reason) => compare_left(kube, &reason.to_string()),
        Verdict::Judged { nodes, message, chosen } => {
            let mut found = Vec::new();
            for node in &kube.nodes {
                found.extend(compare_node(said, node, &nodes[&node.node]));
            }
            let chosen_fits = match chosen {
                Some(node) => kube.feasible().contains(&node.as_str()),
                None => !fits,
            };
            if !chosen_fits && found.is_empty() {
                let what = format!("{} goes to {chosen:?} of {:?}", said.pod, kube.feasible());
                found.extend(mismatch("placed", what));
            }
            let free_words = said.several_volumes && OF_CLAIMS.iter().any(|r| message.contains(r));
            if !fits && found.is_empty() && !free_words && !same_message(kube, message) {
                let what = format!("{}:\n  {}\n  {message}", said.pod, kube.message);
                found.extend(mismatch("message", what));
            }
            found
        }
    }
}

fn compare_node(pod: &Said, kube: &NodeAnswer, ours: &OfNode) -> Option<Mismatch> {
    let first = kube.rejects.first();
    let plugins = (first.map(|rejection| rejection.plugin.as_str()), ours.plugin);
    let mut reasons: Vec<&str> = first.iter().flat_map(|r| &r.reasons).map(|r| plain(r)).collect();
    let mut said: Vec<&str> = ours.reasons.iter().map(String::as_str).collect();
    reasons.sort_unstable();
    said.sort_unstable();
    said.dedup();
    // Of several claims that could not be met kube-scheduler names the first, dovetail the topology
    // first.
    let claims = |list: &[&str]| pod.several_volumes && list.iter().any(|r| OF_CLAIMS.contains(r));
    let others = |list: &[&str]| -> Vec<String> {
        list.iter().filter(|r| !OF_CLAIMS.contains(r)).map(|r| (*r).to_owned()).collect()
    };
    let of_claims = claims(&reasons) && claims(&said) && others(&reasons) == others(&said);
    let before = reasons.iter().any(|reason| reason.contains(BEFORE_NODES));
    let same_words = reasons == said || of_claims || before;
    if plugins.0 == plugins.1 && same_words {
        return None;
    }
    let (theirs, own) = (plugins.0.unwrap_or("fits"), plugins.1.unwrap_or("fits"));
    let own = if plugins.1.is_none() && !said.is_empty() { "closed" } else { own };
    Some(Mismatch {
        sort: format!("{theirs} and {own}"),
        what: format!("{} on {}: {reasons:?}, dovetail {said:?}", pod.pod, kube.node),
    })
}

/// A reason without the name of the driver that it begins with.
fn plain(reason: &str) -> &str {
    const DRIVER: &str = "CSI driver is not installed on the node";
    if reason.ends_with(DRIVER) { DRIVER } else { reason }
}

/// A pod that is left untouched is one that kube-scheduler turns away before it looks at nodes, in
/// the same words.
fn compare_left(kube: &PodAnswer, reason: &str) -> Vec<Mismatch> {
    // A volume that is gone has two names, by whether the claim is named or made for the pod.
    let gone = |theirs: &str| theirs == VOLUME_GONE && reason.starts_with("persistentvolume \"");
    let begins = |theirs: &String| reason.starts_with(theirs.as_str()) || gone(theirs);
    let same = match &kube.pre_filter {
        Some(rejection) => rejection.reasons.iter().any(begins),
        None => kube.nodes.iter().all(|node| {
            let rejections = node.rejects.iter();
            rejections.flat_map(|rejection| &rejection.reasons).any(begins)
        }),
    };
    if same {
        return Vec::new();
    }
    let what = format!("{}: {:?} {:?}, left: {reason}", kube.pod, kube.pre_filter, kube.message);
    vec![Mismatch { sort: "left for another reason".to_owned(), what }]
}

/// Whether both tell people the same. What kube-scheduler says before it looks at nodes dovetail
/// says of each node.
fn same_message(kube: &PodAnswer, message: &str) -> bool {
    let before = kube.pre_filter.is_some() || kube.message.contains(BEFORE_NODES);
    let drivers = kube.message.contains("CSI driver is not installed");
    before || drivers || kube.message.starts_with(message)
}
