//! Comparisons for people: one self-contained HTML file, and tables for the terminal.
//!
//! [`ReportData`](dovetail_sim::comparison::ReportData) is plain data that a command fills from its
//! runs. [`html`] makes a file of it
//! that needs no network, no script and no other file; [`text`] makes tables of at most 100
//! columns. Both show the same figures, and both say what is not known. Names come from traces and
//! are hostile until escaped.
//!
//! | module | what |
//! |---|---|
//! | [`arena`] | the matrix of regimes and policies, as a page of its own |
//! | `arrivals`, `timed`, `money` | what a section says |
//! | `html` | all sections as one page |
//! | `page` | sections, tables and figures as the template wants them |
//! | [`plot`] | lines, stacked areas and bars as SVG |
//! | [`number`], `spread` | figures as people read them |
//! | `terminal` | the same comparison as text |

pub mod arena;
mod arrivals;
mod html;
mod money;
pub mod number;
pub(crate) mod page;
pub mod plot;
mod spread;
mod terminal;
mod timed;
mod timed_figures;

pub use html::html;
pub use page::ReportError;
pub use terminal::text;
