//! The ledger on disk: what every GPU was, hour by hour, and what it cost, in SQLite or PostgreSQL.
//!
//! [`Store::keep`] takes a [`Reading`]: what a source said of one cluster over some time. It can be
//! read again, overlap, come late or leave a gap: [`dovetail_account::rollup`] says why no second
//! is lost or counted twice. Each hour is one transaction, so a program that is killed leaves whole
//! hours, and [`Store::missing`] says which ones are not there. [`Store::sums`] answers who paid
//! for what.
//!
//! | module | what |
//! |---|---|
//! | `store` | a ledger that is open: connection, reconnection |
//! | `address` | where a ledger is: a file, or a PostgreSQL server |
//! | `reading` | what is handed in, and what is refused of it |
//! | `keep` | a reading written, hour by hour |
//! | `hour` | one hour of a cluster: devices read again, nodes added up anew |
//! | `written_hour` | an hour that is written, and its rows |
//! | `free_looks` | why what was free on a node was free |
//! | `used` | how busy GPUs were while pods had them |
//! | `daily` | days, moved by what an hour changed |
//! | `names` | names as numbers |
//! | `node_facts` | what a node was on a day beside its GPUs |
//! | `resolution` | how far apart the samples were that an hour rests on |
//! | `node_bills` | what nodes were, as far as a bill is made from it again |
//! | `notices` | what owners were told, and when |
//! | `last_seen` | how devices were left before some moment |
//! | `history` | what each device was, with the names of all who had it |
//! | `device_hour` | what a device was in an hour, as bytes |
//! | `codes` | states, signals and causes as numbers that never change |
//! | `sums` | answers |
//! | `top_jobs` | the jobs that cost most, and all others in one |
//! | `period_parts` | what a period is made of: days, and hours at its edges |
//! | `retention` | what is kept for how long |
//! | `schema` | tables, and how older ones become today's |
//! | `statements` | many rows in one statement |
//! | `error` | what can go wrong, and what to do |
//!
//! One SQL text serves both databases. Times are ms since 1970, money is micro-USD, and every row
//! has its cluster.

mod address;
mod codes;
mod daily;
mod device_hour;
mod error;
mod free_looks;
mod history;
mod hour;
mod keep;
mod last_seen;
mod names;
mod node_bills;
mod node_facts;
mod notices;
mod period_parts;
mod reading;
mod resolution;
mod retention;
mod schema;
mod statements;
mod store;
mod sums;
mod top_jobs;
mod used;
mod written_hour;

pub use address::Address;
pub use error::StoreError;
pub use history::{HistoryDevice, HistoryHour, HistoryPod};
pub use keep::LedgerChanges;
pub use last_seen::{DeviceKey, LastSeen};
pub use names::{NodeGroup, Party, WorkloadNames};
pub use node_bills::NodeTime;
pub use node_facts::NodeFacts;
pub use notices::Notices;
pub use reading::{
    ReadDevice, ReadFree, ReadKept, ReadNode, ReadPod, ReadUsed, Reading, USED_SLOT_MS,
};
pub use resolution::DayResolution;
pub use retention::{Forgotten, Retention};
pub use store::Store;
pub use sums::{Detail, SumQuery, SumRow, UsedRow, default_method};
pub use top_jobs::TopJobs;
