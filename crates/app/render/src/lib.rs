//! Documents as text, tables, HTML, Markdown, SARIF and patches.

pub mod arena;
pub mod audit;
pub mod comparison;
pub mod cost;
mod frame;
pub mod text;
