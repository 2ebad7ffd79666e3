//! TOML files whose errors name line and field, in words for people.
//!
//! A number that is whole however it is written, such as `1e6`, may stand where a whole number is
//! expected, as in every other file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dovetail_units::number::Number;
use dovetail_units::place::{CARRIAGE_RETURNS, FilePosition};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::errors::BadInput;
use crate::toml_words::in_words;

/// What the reader says of a key that is there twice.
const DUPLICATE: &str = "duplicate key";

/// A file with its text.
#[derive(Debug)]
pub struct TomlFile {
    path: PathBuf,
    text: String,
}

impl TomlFile {
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        if path.is_dir() {
            bail!("{name}: is a directory; pass a file");
        }
        let read = || format!("{name}: the file cannot be read");
        let text = std::fs::read_to_string(path).with_context(read)?;
        if text.contains('\r') && !text.contains('\n') {
            let place = FilePosition::line(&name.to_string(), 1).to_string();
            return Err(BadInput(format!("{place}: {CARRIAGE_RETURNS}")).into());
        }
        Ok(Self::of(path, &text))
    }

    /// A file that was read.
    pub fn of(path: impl Into<PathBuf>, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    /// What the file says.
    ///
    /// # Errors
    /// File, line, field and what is wrong with it; in the stead of the field the part of that name
    /// where it is about none.
    pub fn parse<T: DeserializeOwned>(&self, part: &str) -> Result<T, BadInput> {
        let told = |error: &toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let field = self.field_at(start).or_else(|| self.duplicate_of(error));
            let field = field.unwrap_or_else(|| part.to_owned());
            self.error(start, &format!("{field}: {}", in_words(error.message())))
        };
        let parsed = || DeTable::parse(&self.text).map_err(|error| told(&error));
        let mut plain = Vec::new();
        for (_, value) in parsed()?.get_ref() {
            plain_digits(value.get_ref(), &mut plain);
        }
        let (mut table, mut plain) = (parsed()?, plain.iter());
        for (_, value) in table.get_mut().iter_mut() {
            write_plain(value.get_mut(), &mut plain);
        }
        T::deserialize(Deserializer::from(table)).map_err(|error| told(&error))
    }

    /// Where its syntax is broken; `None` if it is not.
    pub(crate) fn broken_at(&self) -> Option<usize> {
        let error = DeTable::parse(&self.text).err()?;
        Some(error.span().map_or(0, |span| span.start))
    }

    /// The keys that lead to what stands at a place.
    fn field_at(&self, start: usize) -> Option<String> {
        let table = DeTable::parse(&self.text).ok()?;
        let path = path_to(table.get_ref(), start)?;
        Some(path.join("."))
    }

    /// The keys that lead to a key that is there twice. Under another name it is there once, in the
    /// same table.
    fn duplicate_of(&self, error: &toml::de::Error) -> Option<String> {
        let span = error.span().filter(|_| error.message() == DUPLICATE)?;
        let written = self.text.get(span.clone())?.trim_matches(['"', '\'']).to_owned();
        let mut other = "other".to_owned();
        while self.text.contains(&other) {
            other.push('-');
        }
        let mut text = self.text.clone();
        text.replace_range(span.clone(), &other);
        let (table, _) = DeTable::parse_recoverable(&text);
        let mut path = path_to(table.get_ref(), span.start).unwrap_or_default();
        path.pop();
        path.push(written);
        Some(path.join("."))
    }

    /// Something is wrong with a field, of several tables of one name in that one. Without a line
    /// where the file does not have it.
    pub fn error_in(&self, field: &str, table: usize, what: &str) -> BadInput {
        self.error_at(self.start_of(field, table), &format!("{field}: {what}"))
    }

    /// Something is wrong at a place of the text, or with the file as a whole.
    pub(crate) fn error_at(&self, start: Option<usize>, what: &str) -> BadInput {
        let whole = || BadInput(format!("{}: {what}", self.path.display()));
        start.map_or_else(whole, |start| self.error(start, what))
    }

    /// Where a field begins, its key or its table; of several tables of one name in that one.
    pub(crate) fn start_of(&self, field: &str, number: usize) -> Option<usize> {
        let root = DeTable::parse(&self.text).ok()?;
        let (mut table, mut start) = (root.get_ref(), None);
        for key in field.split('.') {
            let (key, value) = table.get_key_value(key)?;
            start = Some(key.span().start);
            match value.get_ref() {
                DeValue::Table(next) => table = next,
                DeValue::Array(tables) if are_tables(tables) => {
                    let one = tables.get(number)?;
                    start = Some(one.span().start);
                    table = one.get_ref().as_table()?;
                }
                _ => {}
            }
        }
        start
    }

    /// Something is wrong with a value, which is quoted as it is written.
    pub fn value_error<T>(&self, field: &str, value: &Spanned<T>, expected: &str) -> BadInput {
        let span = value.span();
        let written = self.text.get(span.clone()).unwrap_or_default();
        self.error(span.start, &format!("{field}: `{written}`: expected {expected}"))
    }

    /// Something is wrong at a place of the text.
    pub fn error(&self, start: usize, what: &str) -> BadInput {
        let line = self.text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        let file = self.path.display().to_string();
        BadInput(format!("{}: {what}", FilePosition::line(&file, line as u64)))
    }
}

/// Whether an array is what `[[jobs]]` writes; an empty one is a value like another.
fn are_tables(array: &[Spanned<DeValue<'_>>]) -> bool {
    !array.is_empty() && array.iter().all(|one| one.get_ref().is_table())
}

/// The keys down to the innermost key or value that stands at a place.
fn path_to(table: &DeTable<'_>, start: usize) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let own = || vec![key.get_ref().to_string()];
        let within = below(value, start).map(|path| [own(), path].concat());
        let is_here = |span: std::ops::Range<usize>| span.contains(&start);
        within.or_else(|| (is_here(key.span()) || is_here(value.span())).then(own))
    })
}

fn below(value: &Spanned<DeValue<'_>>, start: usize) -> Option<Vec<String>> {
    match value.get_ref() {
        DeValue::Table(table) => path_to(table, start),
        DeValue::Array(values) => values.iter().find_map(|value| {
            below(value, start).or_else(|| value.span().contains(&start).then(Vec::new))
        }),
        _ => None,
    }
}

/// Digits of each number that has a point or an exponent and is whole; nothing for the others.
fn plain_digits(value: &DeValue<'_>, found: &mut Vec<String>) {
    match value {
        DeValue::Float(written) => {
            let number = Number::read(written.as_str()).ok().filter(Number::is_whole);
            // With more digits a file says what no whole number is expected to be.
            let digits = number.map(|number| number.to_string()).filter(|it| it.len() <= 18);
            found.push(digits.unwrap_or_default());
        }
        DeValue::Array(values) => {
            values.iter().for_each(|value| plain_digits(value.get_ref(), found));
        }
        DeValue::Table(table) => {
            table.iter().for_each(|(_, value)| plain_digits(value.get_ref(), found));
        }
        _ => {}
    }
}

/// Writes whole numbers in the digits that [`plain_digits`] found in the same table.
fn write_plain<'d>(value: &mut DeValue<'d>, plain: &mut std::slice::Iter<'d, String>) {
    match value {
        DeValue::Float(_) => {
            let whole = plain.next().and_then(|digits| DeValue::parse(digits).ok());
            if let Some(whole) = whole {
                *value = whole.into_inner();
            }
        }
        DeValue::Array(values) => {
            values.iter_mut().for_each(|value| write_plain(value.get_mut(), plain));
        }
        DeValue::Table(table) => {
            table.iter_mut().for_each(|(_, value)| write_plain(value.get_mut(), plain));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_files_without_line_feeds_are_refused_in_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let told = |path: &Path| TomlFile::read(path).expect_err("no file").to_string();
        assert!(told(folder.path()).ends_with(": is a directory; pass a file"));
        let file = folder.path().join("queues.toml");
        std::fs::write(&file, "a = 1\rb = 2\r").expect("a file");
        let told = told(&file);
        assert!(told.contains("queues.toml:1: lines end with a carriage return alone"), "{told}");
    }

    const TEXT: &str =
        "a = 1\n[stream]\nload = 0\n[[jobs]]\nweight = 1\n[[jobs]]\nweight = -1\nsub = { x = 2 }\n";

    #[test]
    fn errors_name_the_field_and_of_several_tables_the_right_one() {
        let file = TomlFile::of("f.toml", TEXT);
        let told = |field: &str, table| file.error_in(field, table, "bad").to_string();
        assert_eq!(told("stream.load", 0), "f.toml:3: stream.load: bad");
        assert_eq!(told("jobs.weight", 1), "f.toml:7: jobs.weight: bad");
        assert_eq!(told("jobs", 1), "f.toml:6: jobs: bad");
        assert_eq!(told("jobs.sub.x", 1), "f.toml:8: jobs.sub.x: bad");
        assert_eq!(told("jobs.gpus", 1), "f.toml: jobs.gpus: bad");
        let empty = TomlFile::of("f.toml", "a = 1\n[[jobs]]\ngpus = []\n");
        let told = empty.error_in("jobs.gpus", 0, "bad").to_string();
        assert_eq!(told, "f.toml:3: jobs.gpus: bad");
        let all = file.parse::<toml::Table>("all").expect("a table");
        assert_eq!(all.len(), 3);
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Typed {
        a: i32,
        #[serde(default)]
        by_name: std::collections::BTreeMap<String, Entry>,
        #[serde(default)]
        list: Vec<u8>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Entry {
        count: u32,
    }

    #[test]
    fn what_is_wrong_is_told_with_the_whole_field_and_for_people() {
        for (text, told) in [
            ("a = 'x'", "f:1: a: the text \"x\": expected a whole number from -2147483648 to"),
            ("a = 1.5", "f:1: a: `1.5`: expected a whole number from -2147483648 to 2147483647"),
            ("a = 1e300", "f:1: a: `1e300`: expected a whole number from -2147483648"),
            ("a = 4294967296", "f:1: a: `4294967296`: expected a whole number from -2147483648"),
            ("a = 99999999999999999999999", "f:1: a: `99999999999999999999999`: expected a whole"),
            ("b = 1", "f:1: b: unknown field `b`, expected one of `a`, `by_name`, `list`"),
            ("a = 1\n[by_name.x]\ncount = -1", "f:3: by_name.x.count: `-1`: expected a whole"),
            ("a = 1\n[by_name]\nx = { count = 1.5 }", "f:3: by_name.x.count: `1.5`: expected"),
            ("a = 1\n[by_name]\nx = { n = 1 }", "f:3: by_name.x.n: unknown field `n`, expected"),
            ("a = 1\nby_name.x.count = true", "f:2: by_name.x.count: `true`: expected a whole"),
            ("a = 1\nlist = [1, 256]", "f:2: list: `256`: expected a whole number from 0 to 255"),
            ("a = 1\n[by_name.x]\n", "f:2: by_name.x: missing field `count`"),
            ("a = 1\na = 2", "f:2: a: duplicate key"),
            ("a = 1\n\"a\" = 2\na = 3", "f:2: a: duplicate key"),
            ("a = 1\n[by_name.x]\ncount = 1\ncount = 2", "f:4: by_name.x.count: duplicate key"),
            ("by_name = { x = { count = 1, count = 2 } }", "f:1: by_name.x.count: duplicate key"),
            ("[by_name.x]\ncount = 1\n[by_name.x]\n", "f:3: by_name.x: duplicate key"),
            ("a = ", "f:1: all: "),
        ] {
            let error = TomlFile::of("f", text).parse::<Typed>("all").expect_err(text).to_string();
            assert!(error.starts_with(told), "{text}: {error}");
            assert!(!error.contains("i128") && !error.contains("i32"), "{error}");
        }
    }

    #[test]
    fn a_number_is_whole_however_it_is_written() {
        for text in ["a = 1000", "a = 1e3", "a = 1000.0", "a = +1.0e+3", "a = 1_000.0"] {
            let read = TomlFile::of("f", text).parse::<toml::Table>("all").expect(text);
            assert_eq!(read["a"].as_integer(), Some(1_000), "{text}");
        }
        for text in ["a = 0.5", "a = 1e-400", "a = 1e300", "a = inf", "a = nan"] {
            let read = TomlFile::of("f", text).parse::<toml::Table>("all").expect(text);
            assert!(read["a"].is_float(), "{text}");
        }
    }
}
