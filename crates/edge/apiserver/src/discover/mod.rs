//! Who in a cluster may say what GPUs did, and how to ask them through the API server: services
//! that answer Prometheus' query API, and exporters.
//!
//! | module | what |
//! |---|---|
//! | `candidate` | services by the custom resource of the Prometheus operator and by well-known labels |
//! | `exporter_pod` | exporters of a namespace |
//! | `find` | reads them from a server |
//! | `proxy` | asks one through the API server, which needs no way into the cluster's network |
//!
//! What a service is called is only a reason to ask it: whoever uses this believes it after an
//! answer.

mod candidate;
mod exporter_pod;
mod find;
mod proxy;

pub use candidate::{CandidateService, Flavour};
pub use exporter_pod::{ExporterPod, FoundExporters, exporters};
pub use find::{FoundServices, find};
pub use proxy::{Proxies, Proxy, ProxyError, ProxyReply};
