//! Bills, answers and digests in each of their forms.

pub mod digest;
pub mod job;
pub mod questions;
pub mod rows_csv;
pub mod terminal;
