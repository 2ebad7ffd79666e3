//! Documents as text, tables, HTML, Markdown, SARIF and patches.

pub mod audit;
pub mod cost;
mod frame;
pub mod text;
