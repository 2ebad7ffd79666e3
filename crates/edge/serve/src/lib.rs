//! What is answered over HTTP, out of a ledger: probes, metrics, and allocations in OpenCost's
//! form.
//!
//! A [`Site`] answers requests; [`connections::serve`] brings them to it, from anybody on this
//! machine, and from elsewhere only over TLS or with a token ([`ListenAddress`]). Nothing here
//! writes: neither to the cluster nor to the ledger; a [`webhook::Webhook`] hands messages to
//! addresses that people name.
//!
//! | module | what |
//! |---|---|
//! | `listen_address` | where requests may come from, and what that takes |
//! | `certificate` | the certificate that is shown, read again while the server runs |
//! | [`connections`] | connections with bounds: how many, how long, how large |
//! | `guard` | who may ask: a token of a file, or one that the cluster knows |
//! | `rate` | how often one address may ask |
//! | `site` | paths and what they answer |
//! | `ledger_questions` | questions to the ledger |
//! | [`allocation`] | OpenCost's questions and answers |
//! | [`metrics`] | what is counted, for Prometheus |
//! | [`webhook`] | a message handed to somebody's address |
//! | [`monitoring`] | rules, alerts and a dashboard over these metrics |

pub mod allocation;
mod certificate;
pub mod connections;
mod guard;
mod ledger_questions;
mod listen_address;
pub mod metrics;
pub mod monitoring;
mod rate;
mod site;
pub mod webhook;

pub use certificate::{Certificate, TlsFiles};
pub use guard::{AccessGuard, GuardError, Review, Reviewer, open_to_others};
pub use ledger_questions::{BooksError, LedgerBooks, TeamOf};
pub use listen_address::{ListenAddress, PlaceError};
pub use site::Site;
