//! Allocations as OpenCost's API asks for them and answers, so that dashboards made for it go on
//! working.
//!
//! The form is that of `/allocation` and `/allocation/compute` of OpenCost 1.x (`AllocationJSON` in
//! its `core/pkg/opencost/allocation_json.go`): an envelope with `code` and `data`, in `data` one
//! object for each step with one entry for each name. A ledger keeps hours, so windows and steps
//! are whole hours. Fields that nobody can know from a ledger are null, never 0; [`Ask::read`]
//! refuses what would have to be ignored to be answered.

mod aggregate;
mod ask;
mod form;
mod window;

pub use aggregate::Aggregate;
pub use ask::{AllocationRefusal, Ask};
pub use form::{AllocationEntry, AllocationResponse, Properties, TooLong, entries};
