//! Comparisons for people: one self-contained HTML file, and tables for the terminal.
//!
//! [`ReportData`] is plain data that a command fills from its runs. [`html`] makes a file of it
//! that needs no network, no script and no other file; [`text`] makes tables of at most 100
//! columns. Both show the same figures, and both say what is not known. Names come from traces and
//! are hostile until escaped.
//!
//! | module | what |
//! |---|---|
//! | `data` | the input |
//! | `arrivals`, `timed`, `money` | what a section says |
//! | `html` | all sections as one page |
//! | `page` | sections, tables and figures as the template wants them |
//! | `plot` | lines, stacked areas and bars as SVG |
//! | `number`, `spread` | figures as people read them |
//! | `terminal` | the same comparison as text |

mod arrivals;
mod data;
mod html;
mod money;
mod number;
pub(crate) mod page;
mod plot;
mod spread;
mod terminal;
#[cfg(test)]
mod tests;
mod timed;
mod timed_figures;

pub use data::{
    ArrivalComparison, ArrivalPolicy, ArrivalRun, PrefixLimit, ReportData, RunAccount,
    TimedComparison, TimedPolicy, TimedRun,
};
pub use html::html;
pub use page::ReportError;
pub use terminal::text;
