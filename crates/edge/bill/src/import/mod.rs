//! What a provider billed: FOCUS files of any version, and AWS cost and usage reports (with names
//! as in `lineItem/ResourceId` or `line_item_resource_id`), plain CSV.
//!
//! Lines are matched to nodes by the provider's identity of the machine. A line that splits another
//! one over pods is left out, because the line that it splits is there too. Costs are amortised: of
//! a commitment the part that the line used. The cost on the invoice, at list prices and at
//! negotiated prices are kept beside it, as far as the file says them, and so is the commitment
//! that a line names. Where a file has only the invoice, what committed time cost is not in it:
//! such a line has no cost, which is not a cost of zero, and is told.

mod bill;
mod bought;
mod identity;
mod layout;
mod read;
mod spans;
#[cfg(test)]
mod tests;

pub use bill::{Bill, BillLine, Commitment, Cost, MOST_UNSAID, Unmatched, Unsaid};
pub use identity::BilledMachines;
pub use read::read;
