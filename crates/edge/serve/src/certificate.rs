//! The certificate that is shown, read again while the server runs: who renews it writes the files,
//! and nothing is begun anew.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::listen_address::PlaceError;

/// A certificate and what TLS makes of it. Clones show the same.
#[derive(Clone, Debug)]
pub struct Certificate {
    files: TlsFiles,
    shown: Arc<CurrentCertificate>,
    configuration: Arc<ServerConfig>,
}

/// Where a certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those that vouch for it (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

/// What the next connection is shown.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl CurrentCertificate {
    fn now(&self) -> Arc<CertifiedKey> {
        // It is replaced as a whole: who broke while holding it broke nothing.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read, is no certificate or no key, and a key that belongs to another
    /// certificate.
    pub fn read(files: &TlsFiles) -> Result<Self, PlaceError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let shown =
            Arc::new(CurrentCertificate(RwLock::new(Arc::new(certified(files, &provider)?))));
        let versions =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.map_err(|error| wrong(&files.certificate, &error))?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<CurrentCertificate>::clone(&shown);
        let mut built = builder.with_no_client_auth().with_cert_resolver(resolver);
        built.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files: files.clone(), shown, configuration: Arc::new(built) })
    }

    /// Reads the files again; answers whether connections from here on are shown another
    /// certificate.
    ///
    /// # Errors
    /// As [`Certificate::read`]; the certificate that was shown before is shown further.
    pub fn read_again(&self) -> Result<bool, PlaceError> {
        let found = certified(&self.files, self.configuration.crypto_provider())?;
        if found.cert == self.shown.now().cert {
            return Ok(false);
        }
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
        Ok(true)
    }

    /// What a handshake needs.
    pub(crate) fn configuration(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.configuration)
    }
}

fn certified(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, PlaceError> {
    let TlsFiles { certificate, key } = files;
    let read = CertificateDer::pem_file_iter(certificate).map_err(|e| wrong(certificate, &e))?;
    let chain: Result<Vec<_>, _> = read.collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"the file contains no certificate (PEM)"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    // A key that belongs to another certificate is found here.
    CertifiedKey::from_der(chain, private, provider).map_err(|error| wrong(key, &error))
}

fn wrong(path: &Path, why: &dyn ToString) -> PlaceError {
    PlaceError::File { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey as Made, KeyPair};

    fn made() -> Made<KeyPair> {
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
    }

    #[test]
    fn a_certificate_goes_with_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (one, other) = (made(), made());
        let certificate = write("one.pem", &one.cert.pem());
        let key = write("one.key", &one.signing_key.serialize_pem());
        let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
        assert!(Certificate::read(&files).is_ok());
        let foreign = write("other.key", &other.signing_key.serialize_pem());
        let empty = write("empty.pem", "");
        for (certificate, key, named) in [
            (&certificate, &foreign, "other.key"),
            (&empty, &key, "empty.pem"),
            (&certificate, &empty, "empty.pem"),
            (&folder.path().join("none"), &key, "none"),
        ] {
            let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
            let error = Certificate::read(&files).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
