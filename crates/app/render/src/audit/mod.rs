//! An audit in each of its forms.

pub mod html;
pub mod markdown;
pub mod patch_files;
pub mod sarif;
pub mod terminal;
