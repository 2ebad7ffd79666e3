//! The terms of checks in words, and what fixing a finding brings.

use dovetail_audit::{Brought, FixKind, Layer, Severity, Worth};
use dovetail_facts::PricedTime;
use dovetail_units::amount::{tenths, usd};

use super::figures::{hours, micros};

/// The word for a severity.
pub fn severity_words(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// What fixing a finding brings, and how much of it at once where that is not all.
pub(crate) fn brings_words(brought: &Brought, claimed: PricedTime) -> String {
    let returned = brought.returned;
    let words = match brought.removed.gpu_milli_ms {
        _ if brought.worth != Worth::Returned => worth_words(brought.worth),
        // Also where nothing is extrapolated to a month yet.
        removed if removed == returned.gpu_milli_ms => "lowers the bill: a node can be removed",
        0 => "lets pending pods use GPUs that you already pay for: the bill stays the same",
        _ => worth_words(Worth::Returned),
    };
    if brought.worth != Worth::Returned || returned.gpu_milli_ms == claimed.gpu_milli_ms {
        return words.to_owned();
    }
    let part = match micros(returned) {
        Some(micros) => usd(Some(micros)),
        None => format!("{} GPU-hours", tenths(hours(returned.gpu_milli_ms))),
    };
    format!("{words} ({part} a month); the rest {}", worth_words(Worth::Capacity))
}

/// What fixing brings.
pub fn worth_words(worth: Worth) -> &'static str {
    match worth {
        Worth::Returned => {
            "lowers the bill, as a node can be removed, or lets pending pods use GPUs that you already pay for"
        }
        Worth::Capacity => "frees GPU-hours: saves money only if other work uses them",
        Worth::Risk => "reduces risk, which has no price",
    }
}

/// What is edited.
pub(crate) fn fix_words(fix: FixKind, object_kind: &str) -> &'static str {
    match fix {
        FixKind::OwnerTemplate if object_kind == "Pod" => {
            "pod (no controller owns it: delete and create it)"
        }
        FixKind::OwnerTemplate => "template of the owner",
        FixKind::Pod => "pod",
        FixKind::NodePool => "node pool",
        FixKind::Namespace => "namespace",
        FixKind::Budget => "disruption budget",
        FixKind::Autoscaler => "autoscaler of the workload",
        FixKind::Scheduler => "configuration of the scheduler",
        FixKind::ClusterPolicy => "policies of the cluster",
        FixKind::Exporter => "GPU exporter of these nodes",
    }
}

pub(crate) fn layer_words(layer: Layer) -> &'static str {
    match layer {
        Layer::Guard => "guard",
        Layer::RightSize => "right-size",
        Layer::Share => "share",
        Layer::Schedule => "schedule",
        Layer::ScaleToZero => "scale to zero",
        Layer::SpotAndRegion => "spot and region",
    }
}
