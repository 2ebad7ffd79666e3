//! Watches of every kind, merged into one stream of changes.
//!
//! Objects arrive one by one: an initial list streams where the server can do that, and comes in
//! pages where it cannot; neither is ever held as a whole. A watch ends before load balancers drop
//! idle connections and goes on where it was; one that was cut, or is too old, begins with a new
//! list. Kinds that a server does not have count as listed and empty until it has them.

mod late;
mod served;
mod source;
mod watched;

pub use served::{Served, served};

use dovetail_objects::Kind;
use futures_util::stream::{self, BoxStream, StreamExt};
use kube::Client;
use kube::runtime::watcher;

use dovetail_cluster::world::Change;

/// What a watch has to say.
// Nearly all notices are changes: a box for each would only cost.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Notice {
    /// The objects changed; with the JSON of what is read of the object, if that is kept.
    Change(Change, Option<Box<str>>),
    /// A kind's watch was interrupted; it goes on by itself after a pause.
    Interrupted { kind: Kind, problem: Box<watcher::Error> },
    /// The server has no such kind, or does not let us see it: it counts as listed and empty.
    Absent { kind: Kind },
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When the server ends a watch that then goes on. Below the 240 s after which common load
    /// balancers drop idle connections without a word.
    pub timeout_s: u32,
    /// Objects per page where lists do not stream.
    pub page_size: u32,
    /// Seconds between two looks for kinds that the server does not have.
    pub discovery_s: u32,
    /// Keep the JSON of what is read of objects, for a recording.
    pub keeps_json: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { timeout_s: 200, page_size: 500, discovery_s: 60, keeps_json: false }
    }
}

/// Watches every kind that the server has, for ever; those that it has later, from then on.
pub fn watch(client: &Client, served: &Served, settings: Settings) -> BoxStream<'static, Notice> {
    let sources = Kind::ALL.iter().map(|kind| match served.get(kind) {
        Some(version) => source::changes(client.clone(), (*kind, version), settings),
        None => absent(*kind),
    });
    let known = stream::select_all(sources);
    let absent = Kind::ALL.into_iter().filter(|kind| !served.contains_key(kind)).collect();
    let watched = {
        let client = client.clone();
        move |found| source::changes(client.clone(), found, settings)
    };
    let late = late::kinds(client.clone(), absent, settings.discovery_s);
    stream::select(known, late.flat_map_unordered(None, watched)).boxed()
}

/// A kind that the server does not have.
fn absent(kind: Kind) -> BoxStream<'static, Notice> {
    let notices = [Notice::Absent { kind }, Notice::Change(Change::Absent(kind), None)];
    stream::iter(notices).boxed()
}
