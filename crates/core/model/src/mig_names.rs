//! Names of MIG profiles: those of the tables, and other spellings of them.
//!
//! Drivers round the memory of a profile in other ways than the tables do: `3g.39gb` is `3g.40gb`.
//! What a GPU offers under a name is a profile of its own, whatever the name is. A name that people
//! use is known for a spelling of a model's profile only where no other model's profile is as near:
//! `1g.18gb` is a profile of the H200, and never the `1g.20gb` of an H100.

use crate::device::{MigProfile, MigTable};

/// Names of one profile differ by driver in how its memory is rounded, by less than this part of
/// it: `3g.39gb` is `3g.40gb`.
const ROUNDED_PERCENT: u64 = 10;

/// A profile's name as the tables write it: `1g.10gb.me` is `1g.10gb+me`. `None` if it is no such
/// name.
pub fn mig_profile_name(name: &str) -> Option<String> {
    let ProfileName { compute, gb, engines } = ProfileName::read(name)?;
    let plus = if engines.is_empty() || engines.starts_with('-') { "" } else { "+" };
    Some(format!("{compute}g.{gb}gb{plus}{engines}"))
}

impl MigTable {
    /// The place of the profile that a GPU of the table offers under a name, as drivers and
    /// resources spell it: `1g.10gb+me` and `1g.10gb.me` are one, and so are names whose memory is
    /// rounded in another way.
    pub fn profile(&self, name: &str) -> Option<usize> {
        let asked = ProfileName::read(name)?;
        let near = |profile: &MigProfile| {
            let own = ProfileName::read(&profile.name)?;
            let distance = own.gb.abs_diff(asked.gb);
            let is_near = distance.saturating_mul(100) <= own.gb.saturating_mul(ROUNDED_PERCENT);
            (own.is_like(&asked) && is_near).then_some(distance)
        };
        let places = self.profiles.iter().enumerate();
        let near = places.filter_map(|(place, profile)| Some((near(profile)?, place)));
        near.min().map(|(_, place)| place)
    }

    /// The place of the profile that a name means of which it is not known who offers it: the
    /// table's own name, or a spelling to which no other name in `tables` is as near.
    pub fn named<'t>(
        &self,
        name: &str,
        tables: impl IntoIterator<Item = &'t Self>,
    ) -> Option<usize> {
        let asked = ProfileName::read(name)?;
        let place = self.profile(name)?;
        let own = ProfileName::read(&self.profiles[place].name)?;
        let distance = own.gb.abs_diff(asked.gb);
        let is_as_near = |profile: &MigProfile| {
            ProfileName::read(&profile.name).is_some_and(|other| {
                let is_other = other.is_like(&asked) && other.gb != own.gb;
                is_other && other.gb.abs_diff(asked.gb) <= distance
            })
        };
        let mut others = tables.into_iter().flat_map(|table| &table.profiles);
        // No other name is as near as the same one.
        (distance == 0 || !others.any(is_as_near)).then_some(place)
    }
}

impl MigProfile {
    /// The memory that the name of the profile states, in GB; `None` if it is no such name.
    pub fn named_gb(&self) -> Option<u64> {
        ProfileName::read(&self.name).map(|name| name.gb)
    }
}

/// The parts of a profile's name: `1g.10gb+me`.
struct ProfileName<'n> {
    compute: u64,
    gb: u64,
    engines: &'n str,
}

impl<'n> ProfileName<'n> {
    fn read(name: &'n str) -> Option<Self> {
        let (compute, memory) = name.split_once("g.")?;
        let (gb, engines) = memory.split_once("gb")?;
        let engines = match engines.strip_prefix(['+', '.']) {
            Some("") => return None,
            Some(engines) => engines,
            // Engines that an instance does without are written after a hyphen.
            None if engines.is_empty() || (engines.starts_with('-') && engines != "-") => engines,
            None => return None,
        };
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_plain)
        };
        Some(Self { compute: number(compute)?, gb: number(gb)?, engines })
    }

    /// Whether only the memory may differ.
    fn is_like(&self, other: &ProfileName<'_>) -> bool {
        self.compute == other.compute && self.engines == other.engines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(model: &str) -> MigTable {
        MigTable::of_model(model).expect(model)
    }

    #[test]
    fn a_name_is_no_spelling_of_a_profile_if_another_model_has_one_as_near() {
        let tables: Vec<MigTable> = MigTable::all().collect();
        let named = |model: &str, name: &str| {
            let table = table(model);
            Some(table.profiles[table.named(name, &tables)?].name.clone())
        };
        let known = |name: &str| Some(name.to_owned());
        assert_eq!(named("A100-80GB", "3g.39gb"), known("3g.40gb"));
        assert_eq!(named("GB200", "7g.189gb"), known("7g.186gb"));
        assert_eq!(named("H200", "1g.18gb"), known("1g.18gb"));
        assert_eq!(named("A100-80GB", "1g.10gb.me"), known("1g.10gb+me"));
        // Profiles of the H200, the GH200-144GB and the GB200.
        for (model, other) in [
            ("A100-80GB", "1g.18gb"),
            ("H100", "1g.18gb"),
            ("H200", "3g.72gb"),
            ("H200", "7g.144gb"),
            ("B200", "7g.186gb"),
            // As near to the profile of another model.
            ("A100-80GB", "1g.11gb"),
            ("GH200", "1g.11gb"),
            ("H200", "1g.19gb"),
        ] {
            assert!(table(model).profile(other).is_some(), "{model} {other}");
            assert_eq!(named(model, other), None, "{model} {other}");
        }
        // Every model has its own profiles.
        for table in &tables {
            for (place, profile) in table.profiles.iter().enumerate() {
                assert_eq!(table.named(&profile.name, &tables), Some(place), "{}", profile.name);
            }
        }
    }

    #[test]
    fn names_are_written_as_in_the_tables() {
        assert_eq!(mig_profile_name("1g.10gb.me").as_deref(), Some("1g.10gb+me"));
        assert_eq!(mig_profile_name("3g.39gb").as_deref(), Some("3g.39gb"));
        assert_eq!(mig_profile_name("1g.24gb-me").as_deref(), Some("1g.24gb-me"));
        for strange in ["gpu", "+1g.5gb", "1g.+5gb", "1g.5gb+", "1g.5gb-", "1g.5gbme"] {
            assert_eq!(mig_profile_name(strange), None, "{strange}");
        }
    }
}
