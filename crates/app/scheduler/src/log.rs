//! What a step tells, as log lines and counts.

use dovetail_cluster::world::{self, LastingOwner, PodKey};
use dovetail_control::announce::WriteOutcome;
use dovetail_control::bind::{BindOutcome, Cause};
use dovetail_control::control::{LogEntry, StepOutput};
use dovetail_control::learned::{ConfigMapName, LearnedNews};
use dovetail_control::order::{StepNews, Went};
use dovetail_control::schedule::{News, Preempts};
use dovetail_model::PreemptReason;
use tracing::{debug, error, info, warn};

use super::Metrics;
use super::metrics::word;

/// Counts and logs what a step tells.
pub(super) fn show(output: &StepOutput, metrics: &Metrics) {
    metrics.searched(output.searches);
    metrics.passed(&output.gpu_time);
    metrics.recording_broken(output.is_recording_broken);
    for told in &output.log {
        metrics.told(told);
        log(told);
    }
    let (events, given_up) = output.owed;
    metrics.owed(events, given_up);
}

fn log(told: &LogEntry) {
    match told {
        LogEntry::News { news, is_known } => log_news(news, *is_known),
        LogEntry::GivenUp { gang, placed, min } => {
            warn!(
                %gang, placed, min,
                "a gang stayed below its minimum size: deleting its pods so that it restarts"
            );
        }
        LogEntry::Step(step) => log_step(step),
        LogEntry::Announced { what, written: WriteOutcome::Refused { code, message }, is_new } => {
            let what = what.shown();
            match is_new {
                true => warn!(code, message, "the API server rejected the {what}"),
                false => debug!(code, message, "the API server rejected the {what}"),
            }
        }
        LogEntry::Announced { .. } => {}
        LogEntry::Learned { at, news } => log_learned(at, news),
        LogEntry::WouldBePending { who, pods, reason, message } => {
            info!(%who, pods, reason, "would be pending: {message}");
        }
    }
}

fn log_learned(at: &ConfigMapName, news: &LearnedNews) {
    let ConfigMapName { namespace, name } = at;
    match news {
        LearnedNews::Read => info!(namespace, name, "learning resumes from the ConfigMap"),
        LearnedNews::Missing => warn!(
            namespace,
            name,
            "the ConfigMap does not exist: what this scheduler learns is lost when it restarts; \
             apply deploy/learned.yaml"
        ),
        LearnedNews::NotRead { problem } => {
            warn!(
                namespace,
                name, "cannot read the ConfigMap: {problem}; learning starts from scratch"
            );
        }
        LearnedNews::NotWritten { problem } => {
            warn!(namespace, name, "cannot write what was learned to the ConfigMap: {problem}");
        }
    }
}

fn log_step(step: &StepNews) {
    let StepNews { namespace, name, what, went } = step;
    match went {
        Went::Well => info!(%namespace, name, "done: {what}"),
        Went::Again { problem } => info!(%namespace, name, %problem, "retried: {what}"),
        Went::WithoutRight { right, code, message } => warn!(
            %namespace, name, code,
            "cannot {what}: the scheduler's service account lacks the permission `{right}` (see \
             deploy/rbac.yaml): {message}"
        ),
        Went::Refused { code, message } => {
            warn!(%namespace, name, code, "cannot {what}: the API server rejected it: {message}");
        }
        Went::Unanswered { problem } => warn!(%namespace, name, %problem, "cannot {what}"),
    }
}

/// `is_known`: the same was told of late.
fn log_news(news: &News, is_known: bool) {
    match news {
        News::Bound { report, waited_ms } => {
            let bind = &report.bind;
            let (PodKey { namespace, name: pod, .. }, node, decision) =
                (&bind.pod, &bind.node, &bind.tag);
            debug!(%namespace, %pod, %node, %decision, waited_ms, "bound");
        }
        News::NotBound(report) => {
            let bind = &report.bind;
            let (PodKey { namespace, name: pod, .. }, node, decision) =
                (&bind.pod, &bind.node, &bind.tag);
            match &report.outcome {
                BindOutcome::NotBound(Cause::Refused { code, message }) if !is_known => {
                    warn!(%namespace, %pod, %node, %decision, code, message, "the API server rejected a bind");
                }
                outcome => info!(%namespace, %pod, %node, %decision, ?outcome, "not bound"),
            }
        }
        News::WouldBind { bind, waited_ms } => {
            let (PodKey { namespace, name: pod, .. }, node) = (&bind.pod, &bind.node);
            info!(%namespace, %pod, %node, waited_ms, "would bind");
        }
        News::Preempts(preempts) => {
            let Preempts { preemptor, victims, nodes, cost, reason, is_dry_run, .. } = &**preempts;
            let victims: Vec<String> =
                victims.iter().map(|(pod, node)| format!("{pod} on {node}")).collect();
            let (victims, nodes) = (victims.join(", "), nodes.join(", "));
            let (violations, highest_priority) = (cost.budget_violations, cost.highest_priority);
            let what = if *is_dry_run { "would preempt" } else { "preempts" };
            let (which, reason) = (which_pods(*reason), word(*reason));
            info!(
                %preemptor, %victims, %nodes, reason, violations, highest_priority,
                "{what} {which}"
            );
        }
        News::Receipt { .. } | News::NoReceipt { .. } => log_receipt(news),
        // Who carries out orders has said so; forecasts are for metrics.
        News::ForecastMade(_)
        | News::ForecastEnded(_)
        | News::EvictionRefused(_)
        | News::IntervalFarOff { .. }
        | News::JobTurned { .. }
        | News::Evicted(_)
        | News::GangGivenUp { .. }
        | News::Preempted { .. } => {}
        News::Pending { pod, reason, .. } => debug!(%pod, ?reason, "pending"),
        News::PreemptionBlocked { pod, text } => debug!(%pod, "{text}"),
        News::Object(report) => log_object(report),
        News::ChoosesBy { policy } => info!(policy, "the policy that chooses nodes changed"),
        News::Inconsistent(problem) => {
            error!(%problem, "the engine restarts from the objects; this is a bug: report it");
        }
        News::Differs(differences) => {
            let (count, first) = (differences.len(), differences.first().map_or("", |it| it));
            error!(count, first, "the engine differs from the objects; this is a bug: report it");
        }
    }
}

fn which_pods(reason: PreemptReason) -> &'static str {
    match reason {
        PreemptReason::Priority => "pods of lower priority",
        PreemptReason::Order => "pods of equal priority that are expected to finish much later",
        PreemptReason::Reclaim => "pods of queues that exceed their quota, to reclaim quota",
    }
}

fn log_object(report: &world::ObjectReport) {
    use world::ObjectReport as Report;
    match report {
        Report::WaitsForMembers { .. }
        | Report::WaitsForDevices { .. }
        | Report::WaitsForVolumes { .. }
        | Report::WaitsForVolumesOfOthers { .. }
        | Report::GroupWaitsForVolumes { .. }
        | Report::GroupWaits { .. }
        | Report::GroupHasItsSize { .. } => info!("{report}"),
        Report::Refused { reason, .. } if reason.is_held_back() || reason.is_for_its_turn() => {
            info!("{report}");
        }
        Report::Refused { is_repeat: true, .. } | Report::Contradiction { is_repeat: true, .. } => {
            debug!("{report}");
        }
        report => warn!("{report}"),
    }
}

fn log_receipt(news: &News) {
    match news {
        News::Receipt { account, receipt } => {
            let LastingOwner { kind, namespace, name, .. } = &**account;
            let (kind, preemptions) = (kind.name(), receipt.preemptions);
            debug!(kind, %namespace, %name, preemptions, "preemptions counted");
        }
        News::NoReceipt { pod } => info!(
            %pod,
            "no group or workload that dovetail reads owns the preempted pod, so preemptions of \
             this pod and of other such pods are not counted"
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_preemption_by_priority_is_logged_as_one_of_lower_priority() {
        let is_by_priority = |reason| which_pods(reason) == "pods of lower priority";
        assert!(is_by_priority(PreemptReason::Priority));
        assert!(!is_by_priority(PreemptReason::Order) && !is_by_priority(PreemptReason::Reclaim));
    }
}
