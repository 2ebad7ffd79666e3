//! What objects say that cannot be so, in words: numbers of GPUs beyond any machine, pods that would fit against the word
//! of their own scheduler.

use std::collections::BTreeMap;

use dovetail_kube::facts::{Clamped, Unjudged};

use crate::output::plain::plain;
use crate::output::table::counted;

/// So many are told by name.
const MOST: usize = 5;

/// Why nobody knows why such GPUs are free.
pub(crate) const CONTESTED: &str = "would fit where GPUs are free, and its own scheduler says that it fits nowhere (PodScheduled: Unschedulable): why \
     those GPUs are free is unknown";

/// Numbers of GPUs that were cut to what can be.
pub(crate) fn clamped_in_words(clamped: &[Clamped]) -> Option<String> {
    let told = first(clamped.iter().map(ToString::to_string))?;
    let numbers = counted(clamped.len(), "number");
    Some(plain(&format!("{numbers} of GPUs in the objects cannot be: {told}")))
}

/// What slices and claims leave open of GPUs.
pub(crate) fn device_doubts_in_words(doubts: &[String]) -> Option<String> {
    let told = first(doubts.iter().cloned())?;
    Some(plain(&format!("devices by dynamic resource allocation: {told}")))
}

/// Waiting pods that nobody can hold against nodes, one text for each reason.
pub(crate) fn unjudged_in_words(unjudged: &[Unjudged]) -> impl Iterator<Item = String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Unjudged { pod, reason } in unjudged {
        reasons.entry(reason).or_default().push(pod);
    }
    reasons.into_iter().map(|(reason, pods)| {
        let waiting = counted(pods.len(), "waiting pod");
        let named = first(pods.into_iter().map(str::to_owned)).unwrap_or_default();
        plain(&format!(
            "{waiting} ({named}) cannot be held against nodes: {reason}. Why GPUs are free that they may want is unknown"
        ))
    })
}

/// Pods that would fit, against the word of their own scheduler.
pub(crate) fn contested_in_words(pods: &[String]) -> Option<String> {
    let named = first(pods.iter().cloned())?;
    let waiting = counted(pods.len(), "waiting pod");
    Some(plain(&format!("{waiting} ({named}): each {CONTESTED}")))
}

fn first(texts: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let more = texts.len().saturating_sub(MOST);
    let named: Vec<String> = texts.take(MOST).collect();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join("; ")))
}
