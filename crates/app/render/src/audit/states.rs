//! States of GPUs in words.

use dovetail_auditing::document::{Document, StateOut};
use dovetail_auditing::figures::at_least;
use dovetail_units::amount::{rounded, rounded_usd, tenths};

/// A state as people read it, from its name in the JSON.
pub(crate) fn state_words(name: &str) -> String {
    let words = match name {
        "active_useful" => "active",
        "active_not_separable" => "active",
        "active_checkpointing" => "active, writing checkpoints",
        "active_repeated" => "active, repeating lost work",
        "gang_wait" => "waiting for the rest of a gang",
        "provisioning" => "starting",
        "unknown" => "allocated, use not measured",
        "free_of_unknown_cause" => "free, cause unknown",
        "free_draining_or_cordoned" => "free, node draining or cordoned",
        "free_starting" => "free, node starting",
        "free_reserved" => "free, reserved",
        "free_taint" => "free, blocked by a taint",
        "free_type_mismatch" => "free, not the model that pending pods need",
        "free_topology" => "free, blocked by a topology rule",
        "free_stranded_by_cpu" => "free, not enough CPU on the node",
        "free_stranded_by_memory" => "free, no memory left on the node",
        "free_stranded_by_other" => "free, another resource is used up",
        "free_fragmented" => "free, in fragments too small",
        "free_gang_short" => "free, too few for a pending gang",
        "free_quota" => "free, pending pods lack quota",
        "free_no_demand" => "free, no pending pod needs it",
        "free_layout_rest" => "free, left over by a MIG layout",
        other => return other.replace('_', " "),
    };
    words.to_owned()
}

/// A state, with whether it is waste.
pub(crate) fn state_label(document: &Document, state: &StateOut) -> String {
    noted(document, state, state.is_waste.then(|| "waste".to_owned()))
}

/// A state, where a column shows whether it is waste.
pub(crate) fn state_name(document: &Document, state: &StateOut) -> String {
    noted(document, state, None)
}

/// In brackets also how much of it is too recent to be taken for a month, and how much its amount
/// leaves out.
fn noted(document: &Document, state: &StateOut, waste: Option<String>) -> String {
    let words = match state.state.as_str() {
        // Without all pods nobody knows of a GPU that it is free.
        "unknown" if document.lacks_pods() || document.lacks_other_pods() => {
            "allocated or free, pods not read".to_owned()
        }
        "unknown" if document.hides_free_gpus() => "allocated, or not known to be free".to_owned(),
        name => state_words(name),
    };
    let recent = state.gpus - state.lasting_gpus;
    let is_mixed = recent > 0.05 && state.lasting_gpus > 0.05;
    let recent = is_mixed.then(|| format!("{} too recent", tenths(recent)));
    let unpriced = state.unpriced_gpu_hours_per_month;
    let is_partly_priced = state.usd_micros_per_month.is_some() && unpriced > 0.05;
    let unpriced = is_partly_priced.then(|| format!("{} GPU-h unpriced", rounded(unpriced)));
    let notes: Vec<String> = waste.into_iter().chain(recent).chain(unpriced).collect();
    match notes.is_empty() {
        true => words,
        false => format!("{words} ({})", notes.join(", ")),
    }
}

/// What a state costs a month, or has cost so far where nothing may be extrapolated.
pub(crate) fn money_of(state: &StateOut) -> String {
    match (state.usd_micros_per_month, state.usd_micros_so_far) {
        (Some(micros), _) => at_least(Some(micros), state.unpriced_gpu_hours_per_month),
        (None, Some(micros)) => format!("{} so far", rounded_usd(micros)),
        (None, None) => "-".to_owned(),
    }
}

/// How a node is bought, from its name in the JSON.
pub(crate) fn purchase_words(name: &str) -> String {
    name.replace('_', "-")
}
