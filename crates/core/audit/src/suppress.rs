//! Findings that somebody ignores.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Facts, ObjectRef};

use crate::finding::Finding;

/// Who ignores a finding, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    pub check: String,
    /// The object; `None` is every object.
    pub object: Option<ObjectRef>,
    /// Who says so: a file and line, or the object's own annotation.
    pub by: String,
    /// Why, in their words.
    pub why: String,
}

/// What may be ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuppressionPolicy {
    /// From files of whoever runs the audit.
    pub suppressions: Vec<Suppression>,
    /// Checks that nobody may ignore, by id.
    pub never: BTreeSet<String>,
}

/// Marks the findings that are ignored: by the policy first, else by the annotation
/// `dovetail.dev/ignore` of the workload. A marked finding keeps its claims.
pub fn suppress(findings: &mut [Finding], facts: &Facts, policy: &SuppressionPolicy) {
    let mut asked: BTreeMap<&ObjectRef, Vec<&BTreeSet<String>>> = BTreeMap::new();
    for workload in facts.workloads.iter().filter(|workload| !workload.ignores.is_empty()) {
        asked.entry(&workload.owner).or_default().push(&workload.ignores);
    }
    for finding in findings {
        let id = finding.check.id;
        if policy.never.contains(id) {
            continue;
        }
        let in_file = policy.suppressions.iter().find(|suppression| {
            let is_object = suppression.object.as_ref().is_none_or(|of| *of == finding.object);
            is_object && suppression.check.eq_ignore_ascii_case(id)
        });
        let annotated = || {
            let mut ignores = asked.get(&finding.object)?.iter().copied().flatten();
            ignores.any(|ignored| ignored.eq_ignore_ascii_case(id)).then(|| Suppression {
                check: id.to_owned(),
                object: Some(finding.object.clone()),
                by: "annotation dovetail.dev/ignore".to_owned(),
                why: "set by the owner of the object".to_owned(),
            })
        };
        finding.suppressed = in_file.cloned().or_else(annotated);
    }
}
