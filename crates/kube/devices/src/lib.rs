//! Dynamic resource allocation: which devices the claims of a pod get on a node.
//!
//! [`Catalog`] has what drivers offer and the classes of devices, [`ClaimedDevices`] what claims
//! have. [`allocate`] answers for one node and some claims together, by the rules of
//! kube-scheduler's allocator (`k8s.io/dynamic-resource-allocation`, channel *incubating*): an
//! [`AllocationOutcome`] is an allocation, "does not fit" with what excludes how many devices, an
//! error in upstream's words, or "undecided" where the counted steps run out. The search is that
//! of `core/claims`; there is no clock, no client and no chance in it.
//!
//! | module | what |
//! |---|---|
//! | `cel` | selectors: parsed, checked, evaluated |
//! | `catalog` | slices, classes, and which devices meet which selector, remembered |
//! | `pools` | the pools that a node reaches: newest generation, complete, valid |
//! | `offer` | what a node offers, whoever has it: devices and counters in numbers, remembered |
//! | `held` | what is allocated |
//! | `capacity` | how much of a device a request takes |
//! | `candidates` | the devices that one alternative of a request may have, and why not others |
//! | `free` | how many devices of a class are free |
//! | `question` | the question as `core/claims` reads it |
//! | `allocate` | the answer |
//! | `explain` | what excludes how many devices, with counters and constraints by name |
//! | `written` | an allocation as the API server stores it |

mod allocate;
mod candidates;
mod capacity;
mod catalog;
mod cel;
mod explain;
mod features;
mod free;
mod held;
mod look;
mod offer;
mod pools;
mod question;
mod written;

pub use allocate::{AllocationOutcome, Allotment, GivenDevice, allocate};
pub use catalog::{CandidateNode, Catalog};
pub use explain::explain;
pub use features::Features;
pub use free::free_of_class;
pub use held::{ClaimedDevices, DeviceKey};
pub use look::{Exclusion, RequestLook};
pub use question::Reached;
