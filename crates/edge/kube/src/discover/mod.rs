//! Which services of a cluster may answer Prometheus' query API, and how to ask them through the API server.
//!
//! | module | what |
//! |---|---|
//! | `candidate` | services by the custom resource of the Prometheus operator and by well-known labels |
//! | `find` | reads them from a server |
//! | `proxy` | asks one through the API server, which needs no way into the cluster's network |
//!
//! What a service is called is only a reason to ask it: whoever uses this believes it after an answer.

mod candidate;
mod find;
mod proxy;

pub use candidate::{Candidate, Flavour};
pub use find::{Found, find};
pub use proxy::{ProxyError, ProxyReply, ServiceProxy};
