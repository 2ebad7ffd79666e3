//! TOML files whose errors name line and field.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_settings::errors::BadInput;
use serde::de::DeserializeOwned;

/// A file with its text.
#[derive(Debug)]
pub struct TomlFile {
    path: PathBuf,
    text: String,
}

/// A line of a file.
struct Line {
    /// Where it begins.
    start: usize,
    /// Whether a table begins with it.
    is_table: bool,
    /// The table, or the key with it.
    field: String,
}

impl TomlFile {
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || format!("{}: the file cannot be read", path.display());
        let text = std::fs::read_to_string(path).with_context(read)?;
        Ok(Self { path: path.to_owned(), text })
    }

    #[cfg(test)]
    pub(crate) fn of(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    /// What the file says.
    ///
    /// # Errors
    /// File, line, field and what is wrong with it; in the stead of the field the part of that name
    /// where it is about none.
    pub fn parse<T: DeserializeOwned>(&self, part: &str) -> Result<T, BadInput> {
        toml::from_str(&self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let lines = self.lines();
            let line = lines.take_while(|line| line.start <= start).last();
            let field = line.map(|line| line.field).filter(|field| !field.is_empty());
            let field = field.as_deref().unwrap_or(part);
            self.error(start, &format!("{field}: {}", error.message()))
        })
    }

    /// Something is wrong with a field, of several tables of one name in that one. Without a line
    /// where it is written in another way than as a key below its table.
    pub fn error_in(&self, field: &str, table: usize, what: &str) -> BadInput {
        let above = field.rsplit_once('.').map_or("", |(above, _)| above);
        let mut tables = self.lines().filter(|line| line.is_table && line.field == field);
        let of_field = tables.nth(table).or_else(|| {
            let mut tables = self.lines().filter(|line| line.is_table && line.field == above);
            let start = tables.nth(table)?.start;
            let within = self.lines().skip_while(|line| line.start <= start);
            within.take_while(|line| !line.is_table).find(|line| line.field == field)
        });
        match of_field {
            Some(line) => self.error(line.start, &format!("{field}: {what}")),
            None => BadInput(format!("{}: {field}: {what}", self.path.display())),
        }
    }

    /// Lines with the fields that they are about, as far as they show without being parsed.
    fn lines(&self) -> impl Iterator<Item = Line> {
        let mut start = 0;
        let mut table = String::new();
        self.text.split_inclusive('\n').map(move |text| {
            let written = text.trim();
            let is_table = written.starts_with('[') && written.ends_with(']');
            let field = match (is_table, written.split_once('=')) {
                (true, _) => {
                    written.trim_matches(['[', ']']).trim().clone_into(&mut table);
                    table.clone()
                }
                (false, Some((key, _))) if table.is_empty() => key.trim().to_owned(),
                (false, Some((key, _))) => format!("{table}.{}", key.trim()),
                (false, None) => table.clone(),
            };
            let line = Line { start, is_table, field };
            start += text.len();
            line
        })
    }

    /// Something is wrong at a place of the text.
    pub fn error(&self, start: usize, what: &str) -> BadInput {
        let line = self.text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        BadInput(format!("{}:{line}: {what}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field_and_of_several_tables_the_right_one() {
        let text = "a = 1\n[stream]\nload = 0\n[[jobs]]\nweight = 1\n[[jobs]]\nweight = -1\n";
        let file = TomlFile::of("f.toml", text);
        let told = |field: &str, table| file.error_in(field, table, "bad").to_string();
        assert_eq!(told("stream.load", 0), "f.toml:3: stream.load: bad");
        assert_eq!(told("jobs.weight", 1), "f.toml:7: jobs.weight: bad");
        assert_eq!(told("jobs", 1), "f.toml:6: jobs: bad");
        assert_eq!(told("jobs.gpus", 1), "f.toml: jobs.gpus: bad");
        let error = file.parse::<toml::Table>("all").expect("a table");
        assert_eq!(error.len(), 3);
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "it is not read to the end")]
        struct Typed {
            a: String,
        }
        let error = file.parse::<Typed>("all").expect_err("a number").to_string();
        assert!(error.starts_with("f.toml:1: a: invalid type: integer `1`"), "{error}");
    }
}
