//! The page: sections of tiles, tables, figures and notes, and the template that lays them out.

use dovetail_units::amount::counted;
use minijinja::{AutoEscape, Environment, context, value::Serde};
use serde::Serialize;
use thiserror::Error;

use crate::number::printable;

/// Why a report cannot be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// There is nothing to show.
    #[error("the report has no comparison: pass at least one trace with one policy and one run")]
    Empty,
    /// A policy has no runs, or another number of runs than the first.
    #[error(
        "the report's policy `{policy}` on `{trace}` has {} and the first policy has \
         {expected}: run every policy with the same seeds",
        counted(*.runs as u64, "run")
    )]
    Runs {
        trace: String,
        policy: String,
        runs: usize,
        /// Runs of the first policy; at least 1 is needed.
        expected: usize,
    },
    /// The template is wrong: a bug.
    #[error("the page could not be laid out; this is a bug: report it")]
    Template(#[from] minijinja::Error),
}

/// What stands around the sections.
pub(crate) struct PageHeader<'h> {
    pub(crate) title: &'h str,
    pub(crate) program: &'h str,
    pub(crate) command: Option<&'h str>,
    pub(crate) notes: &'h [String],
}

/// Lays out sections as one file.
pub(crate) fn laid_out(head: &PageHeader<'_>, sections: &[Section]) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("report", include_str!("report.html.jinja"))?;
    let page = environment.get_template("report")?.render(context! {
        title => printable(head.title),
        program => printable(head.program),
        command => head.command.map(printable),
        notes => head.notes.iter().map(|note| printable(note)).collect::<Vec<_>>(),
        style => include_str!("report.css"),
        sections => Serde(sections),
    })?;
    Ok(page)
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) intro: String,
    pub(crate) blocks: Vec<PageBlock>,
}

/// What a section is made of.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum PageBlock {
    /// The figures that count.
    Tiles {
        tiles: Vec<Tile>,
    },
    /// What the next blocks are about.
    Heading {
        heading: String,
    },
    Table {
        table: PageTable,
    },
    /// Pictures beside each other where there is room.
    Figures {
        heading: String,
        text: String,
        figures: Vec<PageFigure>,
    },
    /// Sentences.
    Notes {
        heading: String,
        notes: Vec<String>,
    },
}

/// One figure that counts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// A picture with its legend and its figures as a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageFigure {
    pub(crate) title: String,
    /// Text of our own making; everything from outside is escaped in it.
    pub(crate) svg: String,
    pub(crate) legend: Vec<Legend>,
    pub(crate) note: String,
    pub(crate) table: Option<PageTable>,
}

/// One entry of a legend.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Legend {
    /// Class of the style sheet.
    pub(crate) class: String,
    /// A line rather than an area.
    pub(crate) is_line: bool,
    pub(crate) label: String,
    pub(crate) value: String,
}

/// Rows of cells with names.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PageTable {
    pub(crate) caption: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TableRow {
    pub(crate) head: String,
    /// `group` for a heading, `part` for a part of the row before, or nothing.
    pub(crate) class: &'static str,
    pub(crate) cells: Vec<TableCell>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    /// Beside it, smaller.
    pub(crate) note: String,
    /// Words rather than a number.
    pub(crate) is_words: bool,
    /// `reference`, `better`, `worse`, or nothing.
    pub(crate) class: &'static str,
}

impl TableCell {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
