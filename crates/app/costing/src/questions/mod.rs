//! What people ask first about costs, each with how it is answered and how sure that is.

pub mod answer;
pub mod asked;
pub mod attempts;
pub mod by_charge;
pub mod by_level;
pub mod by_request;
pub mod by_run;
pub mod by_wait;
pub mod document;
pub mod name;
pub mod range;
pub mod training;
pub mod waits;
