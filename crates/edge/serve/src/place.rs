//! Where requests may come from, and what that takes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// An address with the certificate that is shown there, if one is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it listens.
    pub address: SocketAddr,
    /// TLS; without it what is sent can be read on the way.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Where a certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those that vouch for it (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

/// Why nobody can listen there.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// No address.
    #[error("`{text}` is no address to listen on: write one such as 127.0.0.1:9003 ({why})")]
    Address {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Anybody could read everything.
    #[error(
        "`{address}` can be reached from other machines: give a certificate with its key, or say whose \
         tokens are accepted, or listen on 127.0.0.1"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// A file that is no certificate, or no key.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Place {
    /// The place of an address, such as `127.0.0.1:9003`. Beyond this machine it takes TLS or a guard.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub fn new(text: &str, files: Option<&TlsFiles>, is_guarded: bool) -> Result<Self, PlaceError> {
        let bad = |why: String| PlaceError::Address { text: text.to_owned(), why };
        let mut found = text.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
        let address = found.next().ok_or_else(|| bad("it names no machine".to_owned()))?;
        let tls = files.map(configuration).transpose()?;
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

fn configuration(files: &TlsFiles) -> Result<Arc<ServerConfig>, PlaceError> {
    let wrong = |path: &Path, why: &dyn ToString| PlaceError::File {
        path: path.to_owned(),
        why: why.to_string(),
    };
    let TlsFiles { certificate, key } = files;
    let read = CertificateDer::pem_file_iter(certificate).map_err(|e| wrong(certificate, &e))?;
    let chain: Result<Vec<_>, _> = read.collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"there is no certificate (PEM) in it"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| wrong(certificate, &error))?;
    let built = builder.with_no_client_auth().with_single_cert(chain, private);
    // A key that belongs to another certificate is found here.
    let mut built = built.map_err(|error| wrong(key, &error))?;
    built.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(built))
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
            assert_eq!(Place::new(text, None, is_guarded).is_ok(), opens, "{text}");
        }
        for text in ["", "9003", "127.0.0.1", "127.0.0.1:99999", "a b:1"] {
            let error = Place::new(text, None, true).unwrap_err().to_string();
            assert!(error.contains("no address") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_certificate_goes_with_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let made = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (one, other) = (made(), made());
        let certificate = write("one.pem", &one.cert.pem());
        let key = write("one.key", &one.signing_key.serialize_pem());
        let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
        assert!(Place::new("0.0.0.0:0", Some(&files), false).unwrap().tls.is_some());
        let foreign = write("other.key", &other.signing_key.serialize_pem());
        let empty = write("empty.pem", "");
        for (certificate, key, named) in [
            (&certificate, &foreign, "other.key"),
            (&empty, &key, "empty.pem"),
            (&certificate, &empty, "empty.pem"),
            (&folder.path().join("none"), &key, "none"),
        ] {
            let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
            let error = Place::new("0.0.0.0:0", Some(&files), false).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
