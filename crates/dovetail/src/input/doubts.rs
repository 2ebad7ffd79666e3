//! What objects say that cannot be so, and what they leave open, in words: numbers of GPUs beyond any machine, pods that
//! would fit against the word of their own scheduler. A list of these ends its text, and is whole: whoever shows it to
//! people cuts it.

use std::collections::BTreeMap;

use dovetail_kube::facts::{Clamped, Unjudged};

use crate::output::plain::plain_sentence;
use crate::output::shortened::BETWEEN;
use crate::output::table::counted;

/// Why nobody knows why such GPUs are free.
pub(crate) const CONTESTED: &str = "would fit where GPUs are free, and its own scheduler says that it fits nowhere (PodScheduled: Unschedulable): why \
     those GPUs are free is unknown";

/// Numbers of GPUs that were cut to what can be.
pub(crate) fn clamped_in_words(clamped: &[Clamped]) -> Option<String> {
    let told = all(clamped.iter().map(ToString::to_string))?;
    let numbers = counted(clamped.len(), "number");
    Some(format!("{numbers} of GPUs in the objects cannot be: {told}"))
}

/// What slices and claims leave open of GPUs.
pub(crate) fn device_doubts_in_words(doubts: &[String]) -> Option<String> {
    let told = all(doubts.iter().cloned())?;
    Some(format!("devices by dynamic resource allocation: {told}"))
}

/// Waiting pods that nobody can hold against nodes, one text for each reason.
pub(crate) fn unjudged_in_words(unjudged: &[Unjudged]) -> impl Iterator<Item = String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Unjudged { pod, reason } in unjudged {
        reasons.entry(reason).or_default().push(pod.clone());
    }
    reasons.into_iter().filter_map(|(reason, pods)| {
        let waiting = counted(pods.len(), "waiting pod");
        let named = all(pods.into_iter())?;
        let reason = plain_sentence(reason);
        Some(format!("why GPUs are free that {waiting} may want is unknown ({reason}): {named}"))
    })
}

/// Pods that would fit, against the word of their own scheduler.
pub(crate) fn contested_in_words(pods: &[String]) -> Option<String> {
    let named = all(pods.iter().cloned())?;
    let waiting = counted(pods.len(), "waiting pod");
    Some(format!("{waiting}, each of which {CONTESTED}: {named}"))
}

/// Each harmless for itself: together they may be as long as they are many.
fn all(texts: impl Iterator<Item = String>) -> Option<String> {
    let named: Vec<String> = texts.map(|text| plain_sentence(&text)).collect();
    (!named.is_empty()).then(|| named.join(BETWEEN))
}
