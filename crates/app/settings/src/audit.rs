//! The section `[audit]` of the settings file: from where on something is a finding.

use std::collections::BTreeMap;

use dovetail_facts::{THRESHOLDS, Threshold, Thresholds, threshold};
use serde::Deserialize;

/// What the section can say: thresholds by name, in the unit that the name ends in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AuditSection {
    given: BTreeMap<String, i64>,
}

impl AuditSection {
    /// Refuses names that nobody knows, and values that make no sense: the name, and what is wrong.
    pub fn check(&self) -> Result<(), (&str, String)> {
        for (name, value) in &self.given {
            let Some(threshold) = threshold(name) else {
                let names: Vec<String> =
                    THRESHOLDS.iter().map(|threshold| format!("`{}`", threshold.name)).collect();
                let text = format!("unknown field: expected one of {}", names.join(", "));
                return Err((name, text));
            };
            if !u64::try_from(*value).is_ok_and(|value| threshold.takes(value)) {
                let Threshold { least, most, .. } = threshold;
                let text = format!("{value}: expected a whole number from {least} to {most}");
                return Err((name, text));
            }
        }
        Ok(())
    }

    /// What holds.
    pub fn thresholds(&self) -> Thresholds {
        let mut all = Thresholds::default();
        for threshold in THRESHOLDS {
            if let Some(value) = self.of(threshold) {
                threshold.set(&mut all, value);
            }
        }
        all
    }

    /// What the file says of a threshold.
    pub fn of(&self, threshold: &Threshold) -> Option<u64> {
        // Values were looked at when the file was read.
        self.given.get(threshold.name).and_then(|value| u64::try_from(*value).ok())
    }

    /// Every setting with its value and whether the file gives it, in the order of the
    /// documentation.
    pub fn lines(&self) -> Vec<(&'static str, String, bool)> {
        let line = |threshold: &'static Threshold| {
            let given = self.of(threshold);
            let value = given.unwrap_or(threshold.default).to_string();
            (threshold.setting, value, given.is_some())
        };
        THRESHOLDS.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation, as it has to be.
    fn table() -> String {
        let mut text = "| threshold | default | checks | |\n|---|--:|---|---|\n".to_owned();
        for threshold in THRESHOLDS {
            let Threshold { name, default, checks, .. } = threshold;
            let (checks, what) = (checks.join(", "), threshold.what());
            text += &format!("| `{name}` | {default} | {checks} | {what} |\n");
        }
        text
    }

    #[test]
    fn the_documentation_has_every_threshold() {
        let page = include_str!("../../../../docs/internals/audit.md");
        assert!(page.contains(&table()), "docs/internals/audit.md wants this table:\n{}", table());
    }
}
