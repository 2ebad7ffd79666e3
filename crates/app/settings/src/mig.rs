//! The section `[mig]` of the settings file: how GPUs are cut that the built-in tables lack.

use std::path::Path;

use dovetail_model::{MigProfile, MigTable, check_mig_table};
use serde::Deserialize;
use toml::Spanned;

use crate::errors::BadInput;
use crate::toml_file::TomlFile;

/// The file as far as it is read here.
#[derive(Deserialize)]
struct File {
    mig: Option<Section>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default)]
    table: Vec<Spanned<Table>>,
}

/// How one model is cut.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: Spanned<String>,
    memory_slices: Spanned<u8>,
    compute_slices: Spanned<u8>,
    profiles: Spanned<Vec<Spanned<Profile>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    name: Spanned<String>,
    compute_slices: Spanned<u8>,
    memory_slices: Spanned<u8>,
    starts: Spanned<Vec<u8>>,
}

/// Whether the syntax of a settings file is broken within the section: there is no table then that
/// says to what a mistake belongs, so the last header above it does.
pub(crate) fn has_broken_syntax(file: &TomlFile, text: &str) -> bool {
    let Some(start) = file.broken_at() else { return false };
    let rest = text.get(start..).unwrap_or_default();
    let end = start + rest.find('\n').unwrap_or(rest.len());
    let lines = text.get(..end).unwrap_or(text).lines().map(str::trim_start);
    let name = |line: &str| -> Option<String> {
        let name = line.strip_prefix('[')?.trim_start_matches(['[', ' ', '\t', '"', '\'']);
        let is_part = |letter: &char| letter.is_alphanumeric() || "_-".contains(*letter);
        Some(name.chars().take_while(is_part).collect())
    };
    // A line of a list begins with a bracket, too.
    let is_name = |name: &String| name.starts_with(char::is_alphabetic);
    lines.filter_map(name).rfind(is_name).is_some_and(|name| name == "mig")
}

/// The tables of a settings file.
///
/// # Errors
/// The file, the line, the field and the rule that it breaks.
pub(crate) fn tables(path: &Path, text: &str) -> Result<Vec<MigTable>, BadInput> {
    let text = TomlFile::of(path, text);
    let at = |offset: usize, what: String| text.error(offset, &what);
    let file: File = text.parse("mig.table")?;
    let mut tables: Vec<MigTable> = Vec::new();
    for (number, spanned) in file.mig.into_iter().flat_map(|section| section.table).enumerate() {
        let whole = spanned.span().start;
        let written = spanned.into_inner();
        let table = table(&written);
        if let Err(error) = check_mig_table(&table) {
            let (offset, place) = written.place(error.profile, error.field);
            let field = error.field;
            let what = format!("mig.table, number {}{place}: {field}: {}", number + 1, error.rule);
            return Err(at(offset, what));
        }
        if tables.iter().any(|known| known.name.eq_ignore_ascii_case(&table.name)) {
            let what =
                format!("mig.table, number {}: name: `{}` is listed twice", number + 1, table.name);
            return Err(at(whole, what));
        }
        tables.push(table);
    }
    Ok(tables)
}

fn table(written: &Table) -> MigTable {
    let profile = |profile: &Spanned<Profile>| {
        let Profile { name, compute_slices, memory_slices, starts } = profile.get_ref();
        MigProfile {
            name: name.get_ref().clone(),
            compute_slices: *compute_slices.get_ref(),
            memory_slices: *memory_slices.get_ref(),
            starts: starts.get_ref().clone(),
        }
    };
    MigTable {
        name: written.name.get_ref().clone(),
        memory_slices: *written.memory_slices.get_ref(),
        compute_slices: *written.compute_slices.get_ref(),
        profiles: written.profiles.get_ref().iter().map(profile).collect(),
    }
}

impl Table {
    /// Where a field stands in the file, and of which profile it is.
    fn place(&self, profile: Option<usize>, field: &str) -> (usize, String) {
        let Some(number) = profile else {
            let span = match field {
                "name" => self.name.span(),
                "memory_slices" => self.memory_slices.span(),
                "compute_slices" => self.compute_slices.span(),
                _ => self.profiles.span(),
            };
            return (span.start, String::new());
        };
        let profile = self.profiles.get_ref()[number].get_ref();
        let span = match field {
            "name" => profile.name.span(),
            "memory_slices" => profile.memory_slices.span(),
            "compute_slices" => profile.compute_slices.span(),
            _ => profile.starts.span(),
        };
        (span.start, format!(", profile {}", number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[mig.table]]\nname = \"X1\"\nmemory_slices = 4\ncompute_slices = 4\n\
         profiles = [\n  { name = \"1g.6gb\", compute_slices = 1, memory_slices = 1, starts = [0, 1, 2, 3] },\n  \
         { name = \"4g.24gb\", compute_slices = 4, memory_slices = 4, starts = [0] },\n]\n";

    #[test]
    fn tables_are_read_and_refused_with_file_line_field_and_rule() {
        let read = |text: &str| tables(Path::new("d.toml"), text).map_err(|error| error.0);
        let all = read(&format!("seed = 7\n{GOOD}")).unwrap();
        assert_eq!((all.len(), all[0].name.as_str(), all[0].profiles.len()), (1, "X1", 2));
        assert_eq!(read("seed = 7"), Ok(Vec::new()));
        for (from, to, told) in [
            (
                "starts = [0] ",
                "starts = [2] ",
                "d.toml:7: mig.table, number 1, profile 2: starts: [2]: expected ascending numbers from 0 to 0",
            ),
            (
                "name = \"1g.6gb\"",
                "name = \"big\"",
                "d.toml:6: mig.table, number 1, profile 1: name: `big`: expected a name such as",
            ),
            (
                "memory_slices = 4\n",
                "memory_slices = 99\n",
                "d.toml:3: mig.table, number 1: memory_slices: 99: expected 1 to 15 slices",
            ),
            ("compute_slices = 4\n", "cores = 4\n", "d.toml:4: mig.table.cores: unknown field"),
            (
                "memory_slices = 4\n",
                "memory_slices = -1\n",
                "d.toml:3: mig.table.memory_slices: `-1`: expected",
            ),
        ] {
            let error = read(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
        let twice = read(&format!("{GOOD}{GOOD}")).unwrap_err();
        assert!(twice.ends_with("number 2: name: `X1` is listed twice"), "{twice}");
    }
}
