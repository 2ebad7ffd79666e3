//! Which devices the claims of a pod get.
//!
//! [`allocate`] answers exactly: the first alternatives, in the order of the requests, for which
//! devices can be chosen so that no device is given away twice, no counter is overdrawn and every
//! constraint holds. It knows no Kubernetes and no expressions: which devices a request may have is
//! part of the question.
//!
//! | module | what |
//! |---|---|
//! | `demand` | the question: devices with what they draw from counters, requests, constraints |
//! | `classes` | devices that are equal for these requests, taken together |
//! | `state` | what is left after some devices were chosen |
//! | `search` | devices for requests whose alternatives are chosen; refuted states are remembered |
//! | `alternatives` | the first alternatives for which the search succeeds |

mod alternatives;
mod classes;
mod demand;
mod search;
mod state;

pub use alternatives::allocate;
pub use demand::{
    AllocatableDevice, Alternative, CandidateDevice, Constraint, DeviceChoice, DeviceDemand,
    DeviceSupply, Draw, Request, RequestGroup, SearchResult, ValueRule,
};
