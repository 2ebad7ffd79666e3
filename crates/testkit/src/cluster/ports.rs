//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use super::StartError;

/// Below the ports that systems give to outgoing connections, so that no such connection takes a
/// port while its server restarts.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// The ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) api_server: u16,
    pub(super) etcd_clients: u16,
    pub(super) etcd_peers: u16,
}

/// Three ports that nobody listens on. Another process may still take one: then the program that
/// wanted it says so, and the start is tried again with others.
pub(super) fn free_ports() -> Result<Ports, StartError> {
    Ok(Ports { api_server: free_port()?, etcd_clients: free_port()?, etcd_peers: free_port()? })
}

fn free_port() -> Result<u16, StartError> {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let count = LAST - FIRST + 1;
    // Processes that start together begin at different places.
    let begin = std::process::id().wrapping_mul(2_654_435_761) >> 16;
    for _ in 0..count {
        let asked = ASKED.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + ((begin + u32::from(asked)) % u32::from(count)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(StartError::NoPort { from: FIRST, to: LAST })
}
