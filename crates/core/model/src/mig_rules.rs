//! What a table of MIG profiles must be, so that layouts can be computed of it.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::device::{MigProfile, MigTable};

/// Memory slices of a layout are the bits of a 16-bit mask.
const MOST_SLICES: u8 = 15;

/// A rule that a table breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {rule}")]
pub struct MigTableError {
    /// The profile whose field it is, from 0; `None` for fields of the table.
    pub profile: Option<usize>,
    pub field: &'static str,
    /// What must hold.
    pub rule: String,
}

type Broken = (&'static str, String);

/// Checks that layouts can be computed of a table.
///
/// # Errors
/// The first field that breaks a rule, and the rule.
pub fn check_mig_table(table: &MigTable) -> Result<(), MigTableError> {
    let of_table = |(field, rule)| MigTableError { profile: None, field, rule };
    check_size(table).map_err(of_table)?;
    let mut names = BTreeSet::new();
    for (number, profile) in table.profiles.iter().enumerate() {
        let of_profile = |(field, rule)| MigTableError { profile: Some(number), field, rule };
        check_profile(table, profile).map_err(of_profile)?;
        if !names.insert(profile.name.as_str()) {
            let rule = format!("`{}` is listed twice; remove one", profile.name);
            return Err(of_profile(("name", rule)));
        }
    }
    Ok(())
}

fn check_size(table: &MigTable) -> Result<(), Broken> {
    let of = |field, slices: u8| match (1..=MOST_SLICES).contains(&slices) {
        true => Ok(()),
        false => Err((field, format!("{slices}: expected 1 to {MOST_SLICES} slices"))),
    };
    if table.name.is_empty() {
        return Err(("name", "expected the model, such as `A100-40GB`".to_owned()));
    }
    of("memory_slices", table.memory_slices)?;
    of("compute_slices", table.compute_slices)?;
    match table.profiles.is_empty() {
        true => Err(("profiles", "expected at least one profile".to_owned())),
        false => Ok(()),
    }
}

fn check_profile(table: &MigTable, profile: &MigProfile) -> Result<(), Broken> {
    let MigProfile { name, compute_slices, memory_slices, starts } = profile;
    let named = name.split_once("g.").and_then(|(compute, _)| compute.parse::<u8>().ok());
    if table.profile(name).is_none() || named.is_none() {
        let rule = format!("`{name}`: expected a name such as `1g.5gb` or `1g.5gb+me`");
        return Err(("name", rule));
    }
    if !(1..=table.compute_slices).contains(compute_slices) {
        let most = table.compute_slices;
        let rule = format!("{compute_slices}: expected 1 to {most}, as many as the GPU has");
        return Err(("compute_slices", rule));
    }
    if named != Some(*compute_slices) {
        let rule = format!("{compute_slices}: expected the number in its name, `{name}`");
        return Err(("compute_slices", rule));
    }
    if !(1..=table.memory_slices).contains(memory_slices) {
        let most = table.memory_slices;
        let rule = format!("{memory_slices}: expected 1 to {most}, as many as the GPU has");
        return Err(("memory_slices", rule));
    }
    let last = table.memory_slices - memory_slices;
    let ascend = starts.is_sorted_by(|one, next| one < next);
    if starts.is_empty() || !ascend || starts.iter().any(|start| *start > last) {
        let rule = format!("{starts:?}: expected ascending numbers from 0 to {last}");
        return Err(("starts", rule));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_table_keeps_the_rules_and_each_rule_can_be_broken() {
        for table in MigTable::all() {
            assert_eq!(check_mig_table(&table), Ok(()), "{}", table.name);
        }
        type Edit = fn(&mut MigTable);
        let edits: [(Edit, &str); 11] = [
            (|table| table.name.clear(), "name: expected the model"),
            (|table| table.memory_slices = 16, "memory_slices: 16: expected 1 to 15"),
            (|table| table.compute_slices = 0, "compute_slices: 0: expected 1 to 15"),
            (|table| table.profiles.clear(), "profiles: expected at least one"),
            (|table| table.profiles[0].name = "small".into(), "name: `small`: expected a name"),
            (|table| table.profiles[1].name = "1g.5gb".into(), "name: `1g.5gb` is listed twice"),
            (|table| table.profiles[0].compute_slices = 8, "compute_slices: 8: expected 1 to 7"),
            (
                |table| table.profiles[0].compute_slices = 2,
                "compute_slices: 2: expected the number in",
            ),
            (|table| table.profiles[0].memory_slices = 9, "memory_slices: 9: expected 1 to 8"),
            (|table| table.profiles[2].starts = vec![0, 7], "starts: [0, 7]: expected ascending"),
            (|table| table.profiles[2].starts = vec![2, 0], "starts: [2, 0]: expected ascending"),
        ];
        for (edit, told) in edits {
            let mut table = MigTable::of_model("A100-40GB").unwrap();
            edit(&mut table);
            let error = check_mig_table(&table).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
