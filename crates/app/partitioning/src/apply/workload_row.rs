//! Workloads in answers of `dovetail partition apply` and `rollback`.

use dovetail_console::plain::plain;
use dovetail_console::table::{table, wrapped};
use dovetail_sharing::{Owner, RequestsRecord, fragment};
use serde::Serialize;

use crate::asked::WorkloadName;
use crate::show::in_lines;

/// A workload whose pods ask for another resource, or should.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorkloadRow {
    /// Namespace, kind and name.
    pub workload: String,
    /// The container that asks for GPUs.
    pub container: String,
    /// The resource of which it asked for one before.
    pub from: String,
    /// The resource of which it asks for one then.
    pub to: String,
    /// The policy that allows it.
    pub policy: String,
    /// Rolling: its pods are being replaced; Changed, Returned; planned, refused, unchanged; waits:
    /// it may change later; manifest: its manifest is to be changed; overridden: others have
    /// changed it since.
    pub outcome: String,
    pub problem: String,
    /// What came of its latency since: waiting, better, same, worse, unknown or rolled back, and
    /// why.
    pub latency: String,
    /// Lines for its manifest.
    pub manifest: String,
    /// Whether it is about the way back to its former resource.
    #[serde(skip)]
    pub(super) is_back: bool,
}

impl WorkloadRow {
    /// A workload of which nothing is known but what was asked for.
    pub(super) fn asked(workload: &WorkloadName, to: &str) -> Self {
        let (workload, to) = (workload.to_string(), to.to_owned());
        Self { workload, to, ..Self::default() }
    }

    /// A workload by what was recorded.
    pub(super) fn of(owner: &Owner, record: &RequestsRecord, outcome: &str) -> Self {
        Self {
            workload: owner.words(),
            container: record.container.clone(),
            from: record.from.clone(),
            to: record.to.clone(),
            policy: record.policy.clone(),
            outcome: outcome.to_owned(),
            problem: String::new(),
            latency: record.latency(),
            manifest: String::new(),
            is_back: false,
        }
    }

    pub(super) fn with(self, outcome: &str, problem: &str) -> Self {
        Self { outcome: outcome.to_owned(), problem: problem.to_owned(), ..self }
    }

    /// The same with the lines that make its manifest ask for a resource.
    pub(super) fn with_manifest(self, owner: &Owner, from: &str, to: &str) -> Self {
        let container = owner.containers.first();
        let manifest = container.map(|one| fragment(owner, one, from, to)).unwrap_or_default();
        Self { manifest, ..self }
    }
}

/// The rows as text.
pub(super) fn lines(rows: &[WorkloadRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let header = ["workload", "before", "after", "outcome"];
    let cells = rows.iter().map(|row| {
        let resource = |name: &str| name.strip_prefix("nvidia.com/").unwrap_or(name).to_owned();
        vec![in_lines(&row.workload), resource(&row.from), resource(&row.to), row.outcome.clone()]
    });
    let mut text = table(&header, cells.collect());
    for row in rows {
        let name = &row.workload;
        if !row.problem.is_empty() {
            text += &wrapped(&format!("{name}: {}", plain(&row.problem)), 0);
        }
        if !row.latency.is_empty() {
            text += &wrapped(&format!("latency of {name}: {}", plain(&row.latency)), 0);
        }
        if !row.manifest.is_empty() {
            let advice = match &*row.outcome {
                "manifest" => "lines to commit",
                "Returned" => "also change its manifest back to the previous resource",
                _ => "change the manifest as well, or the next `kubectl apply` requests both",
            };
            text += &wrapped(&format!("{name}: {advice}:"), 0);
            text += &row.manifest;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_resources_reasons_and_the_lines_to_commit() {
        let row = WorkloadRow {
            workload: "production/Deployment/chat".to_owned(),
            container: "c".to_owned(),
            from: "nvidia.com/gpu".to_owned(),
            to: "nvidia.com/mig-1g.10gb+me.all".to_owned(),
            policy: "shared".to_owned(),
            outcome: "manifest".to_owned(),
            problem: "Flux resource chat manages this object".to_owned(),
            latency: "same: p50 +0%".to_owned(),
            manifest: "kind: Deployment\n".to_owned(),
            is_back: false,
        };
        let text = lines(&[row]);
        let parts = [
            "mig-1g.10gb+me.all",
            "manifest",
            "Flux resource",
            "same: p50",
            "lines to commit",
            "kind: Deployment\n",
        ];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(lines(&[]), "");
    }
}
