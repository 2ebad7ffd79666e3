//! Where requests may come from, and what that takes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use thiserror::Error;

use crate::certificate::{Certificate, TlsFiles};

/// An address with the certificate that is shown there, if one is.
#[derive(Clone, Debug)]
pub struct ListenAddress {
    pub address: SocketAddr,
    /// TLS; without it what is sent can be read on the way.
    pub tls: Option<Certificate>,
}

/// Why nobody can listen there.
#[derive(Debug, Error)]
pub enum PlaceError {
    #[error("`{text}` is not a listen address: use one such as 127.0.0.1:9003 ({why})")]
    Address {
        /// As it was written.
        text: String,
        why: String,
    },
    /// Anybody could read everything.
    #[error(
        "`{address}` is reachable from other machines; pass --tls-certificate and --tls-key, \
         --accept-token-file or --accept-cluster-tokens, or listen on 127.0.0.1"
    )]
    Open { address: SocketAddr },
    /// A file that is no certificate, or no key.
    #[error("{}: {why}", path.display())]
    File { path: PathBuf, why: String },
}

impl ListenAddress {
    /// The place of an address, such as `127.0.0.1:9003`. Beyond this machine it takes TLS or a
    /// guard.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub fn new(text: &str, files: Option<&TlsFiles>, is_guarded: bool) -> Result<Self, PlaceError> {
        let bad = |why: String| PlaceError::Address { text: text.to_owned(), why };
        let mut found = text.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
        let address = found.next().ok_or_else(|| bad("it has no host".to_owned()))?;
        let tls = files.map(Certificate::read).transpose()?;
        if !is_loopback(address.ip()) && tls.is_none() && !is_guarded {
            return Err(PlaceError::Open { address });
        }
        Ok(Self { address, tls })
    }
}

/// Whether an address leads to this machine alone, also where it is written as one of IPv6.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.to_ipv4_mapped().is_some_and(|ip: Ipv4Addr| ip.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_tls_or_a_guard() {
        for (text, is_guarded, opens) in [
            ("127.0.0.1:0", false, true),
            ("127.9.9.9:0", false, true),
            ("[::1]:0", false, true),
            ("[::ffff:127.0.0.1]:0", false, true),
            ("0.0.0.0:0", false, false),
            ("[::]:0", false, false),
            ("[::ffff:10.0.0.1]:0", false, false),
            ("10.1.2.3:80", false, false),
            ("0.0.0.0:0", true, true),
        ] {
            assert_eq!(ListenAddress::new(text, None, is_guarded).is_ok(), opens, "{text}");
        }
        for text in ["", "9003", "127.0.0.1", "127.0.0.1:99999", "a b:1"] {
            let error = ListenAddress::new(text, None, true).unwrap_err().to_string();
            assert!(error.contains("not a listen address") && error.contains(text), "{error}");
        }
    }
}
