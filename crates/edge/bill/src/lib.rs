//! Bills, out and in.
//!
//! | module | what |
//! |---|---|
//! | [`focus`] | split costs as a FOCUS dataset (1.2, 1.3, 1.4), and a checker of such datasets |
//! | [`import`] | what a provider billed: FOCUS files and AWS cost and usage reports |
//! | `amount` | decimal amounts, exactly |
//!
//! Everything that is read is hostile: a bad cell is named with file, line and column, and nothing
//! is repaired in silence.

mod amount;
pub mod focus;
pub mod import;
