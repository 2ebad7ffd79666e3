//! Real servers beside the cluster: where numbers come from, and where they are kept.

mod exporter;
mod postgres;
mod prometheus;

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

pub use exporter::FakeExporter;
pub use postgres::PostgresServer;
pub use prometheus::PrometheusServer;

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether a program says on its standard error that it is ready, before it ends. Its log is read
/// to the end by a thread.
fn becomes_ready(child: &mut Child, says: &'static str) -> bool {
    let log = child.stderr.take().expect("a pipe");
    let (sender, ready) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if line.contains(says) {
                _ = sender.send(());
            }
        }
    });
    ready.recv_timeout(PATIENCE).is_ok()
}
