//! Findings grouped by check, most valuable first.

use std::collections::BTreeMap;

use dovetail_audit::{Check, Severity};
use dovetail_auditing::document::{Document, FindingOut};
use dovetail_auditing::figures::at_least;
use dovetail_units::amount::{rounded, rounded_usd};

/// All open findings of one check.
pub(crate) struct CheckGroup<'d> {
    pub(crate) check: &'static Check,
    /// In the order of the document.
    pub(crate) findings: Vec<&'d FindingOut>,
    usd_micros: i64,
    gpu_hours: f64,
    unpriced_gpu_hours: f64,
    usd_micros_so_far: i64,
}

impl<'d> CheckGroup<'d> {
    fn new(check: &'static Check) -> Self {
        Self {
            check,
            findings: vec![],
            usd_micros: 0,
            gpu_hours: 0.0,
            unpriced_gpu_hours: 0.0,
            usd_micros_so_far: 0,
        }
    }

    fn add(&mut self, finding: &'d FindingOut) {
        self.usd_micros += finding.usd_micros_per_month.unwrap_or(0);
        self.usd_micros_so_far += finding.usd_micros_so_far.unwrap_or(0);
        self.gpu_hours += finding.gpu_hours_per_month.unwrap_or(0.0);
        self.unpriced_gpu_hours += finding.unpriced_gpu_hours_per_month;
        self.findings.push(finding);
    }

    /// A group for each value that any of its findings has, of the findings that have it.
    pub(crate) fn split_by(
        &self,
        value: impl Fn(&FindingOut) -> Option<usize>,
    ) -> BTreeMap<usize, CheckGroup<'d>> {
        let mut groups: BTreeMap<usize, CheckGroup<'d>> = BTreeMap::new();
        for &finding in &self.findings {
            let Some(value) = value(finding) else { continue };
            groups.entry(value).or_insert_with(|| CheckGroup::new(self.check)).add(finding);
        }
        groups
    }

    /// What fixing all of them is worth a month, or what they have wasted so far; empty for a
    /// risk.
    pub(crate) fn worth(&self) -> String {
        match (self.usd_micros > 0, self.gpu_hours > 0.0) {
            (true, _) => at_least(Some(self.usd_micros), self.unpriced_gpu_hours),
            (false, true) => format!("{} GPU-h", rounded(self.gpu_hours)),
            (false, false) if self.usd_micros_so_far > 0 => {
                format!("{} so far", rounded_usd(self.usd_micros_so_far))
            }
            (false, false) => String::new(),
        }
    }

    /// The same with its period.
    pub(crate) fn worth_words(&self) -> Option<String> {
        match self.worth() {
            worth if worth.is_empty() => None,
            worth if worth.ends_with("so far") => Some(worth),
            worth => Some(format!("{worth} a month")),
        }
    }

    /// The first object, and how many more there are.
    pub(crate) fn objects(&self) -> String {
        let first = self.findings.first().map(|finding| finding.object_words());
        match self.findings.len() {
            0 | 1 => first.unwrap_or_default(),
            count => format!("{} and {} more", first.unwrap_or_default(), count - 1),
        }
    }
}

/// Findings that are not ignored, by check: by dollars a month, GPU-hours, dollars so far,
/// severity.
pub(crate) fn grouped(document: &Document) -> Vec<CheckGroup<'_>> {
    let mut groups: Vec<CheckGroup<'_>> = Vec::new();
    for finding in document.findings.iter().filter(|finding| finding.suppressed.is_none()) {
        let known = groups.iter().position(|group| group.check.id == finding.check.id);
        let place = known.unwrap_or_else(|| {
            groups.push(CheckGroup::new(finding.check));
            groups.len() - 1
        });
        groups[place].add(finding);
    }
    groups.sort_by(|one, other| {
        let money = |group: &CheckGroup<'_>| group.usd_micros;
        let by_hours = other.gpu_hours.total_cmp(&one.gpu_hours);
        let by_money = money(other).cmp(&money(one));
        let by_now = other.usd_micros_so_far.cmp(&one.usd_micros_so_far);
        by_money.then(by_hours).then(by_now).then(other.check.severity.cmp(&one.check.severity))
    });
    groups
}

/// How many open findings have a severity.
pub(crate) fn count_of(document: &Document, severity: Severity) -> usize {
    let open = document.findings.iter().filter(|finding| finding.suppressed.is_none());
    open.filter(|finding| finding.check.severity == severity).count()
}
