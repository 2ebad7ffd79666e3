//! An audit in each of its forms.

mod grouped;
pub mod html;
mod html_findings;
pub mod markdown;
pub mod patch_files;
pub mod sarif;
mod states;
pub mod summary;
pub mod terminal;
