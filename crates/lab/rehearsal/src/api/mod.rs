//! An API server as a state machine: a call and the time in, an answer and a new state out.
//!
//! It answers as the real server does, down to codes, reasons and messages, for what a scheduler
//! needs: discovery, lists (paged, at a version), watches (bookmarks, streaming lists), creation,
//! replacement, patches, status paths, deletion with preconditions and grace, dry runs of patches
//! and deletions, binding, eviction, leases, and custom resources. A conformance script of
//! `dovetail-testkit`, which serves it over HTTP, holds it against a real server.
//!
//! What it does not do: authentication, other dry runs, server-side apply, garbage collection,
//! validation beyond what a scheduler can get wrong, and the work of controllers.

mod binding;
mod call;
mod condition;
mod create;
mod defaults;
mod delete;
mod discovery;
mod eviction;
mod failure;
mod fault;
mod kind;
mod list;
mod now;
mod patch;
mod perform;
mod reply;
mod selector;
mod server;
mod settings;
mod state;
mod store;
mod update;
mod watch;

pub use call::{Call, Query, Route, Verb};
pub use failure::ApiFailure;
pub use fault::{ApiFault, FaultRecord, FaultRule, Faults, On};
pub use kind::{CollectionName, ResourceKind};
pub use reply::ApiReply;
pub use server::ApiServer;
pub use settings::{Bound, Settings};
pub(crate) use store::StoredObject as Stored;
pub use watch::{Ending, OpenWatch};
