//! Which node one pod gets: the best by a policy's scores, and why the others do not fit.
//!
//! [`Index`] answers from exact trees that it keeps up to date. [`Naive`] answers the same
//! questions by exhaustive search, so that tests can compare both.
//!
//! | module | what |
//! |---|---|
//! | `finder` | the questions about single pods |
//! | [`index`] | exact score trees and room per domain, refreshed from the change log |
//! | [`naive`] | the same answers by exhaustive search, for tests |

mod finder;
pub mod index;
pub mod naive;

pub use finder::Finder;
pub use index::Index;
pub use naive::Naive;
