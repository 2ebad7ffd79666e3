//! The same test on both databases.

use std::future::Future;

use dovetail_store::{Address, Store};
use dovetail_testkit::PostgresServer;

/// Both databases; PostgreSQL where there is one.
pub(crate) struct Databases {
    _folder: tempfile::TempDir,
    _server: Option<PostgresServer>,
    pub(crate) addresses: Vec<Address>,
}

impl Databases {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = PostgresServer::start();
        let mut addresses = vec![Address::File(folder.path().join("ledger.db"))];
        addresses.extend(server.as_ref().map(|server| Address::Server(server.url())));
        Self { _folder: folder, _server: server, addresses }
    }
}

/// Runs to the end on this thread.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub(crate) async fn open(address: &Address) -> Store {
    Store::open(address).await.expect("a ledger")
}
