//! What a provider billed: FOCUS files of any version, and AWS cost and usage reports (with names as in
//! `lineItem/ResourceId` or `line_item_resource_id`), plain CSV.
//!
//! Lines are matched to nodes by the provider's identity of the machine. A line that splits another one over
//! pods is left out, because the line that it splits is there too. Costs are amortised: of a commitment the
//! part that the line used. Where a file has only the invoice, what committed time cost is not in it: such a line has no
//! cost, which is not a cost of zero, and is told.

mod identity;
mod layout;
mod read;
#[cfg(test)]
mod tests;

pub use identity::Machines;
pub use read::{Bill, BillLine, MOST_UNSAID, Unsaid, read};
