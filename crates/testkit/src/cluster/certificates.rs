//! The authority of one control plane, the certificate of its API server and the key that signs
//! service-account tokens.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use sha2::{Digest, Sha256};

use super::StartError;

pub(super) const CA: &str = "ca.crt";
pub(super) const SERVER_CERTIFICATE: &str = "server.crt";
pub(super) const SERVER_KEY: &str = "server.key";
pub(super) const SERVICE_ACCOUNT_KEY: &str = "service-account.key";
pub(super) const SERVICE_ACCOUNT_PUBLIC: &str = "service-account.pub";

/// A certificate authority that signed one server.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes new keys and certificates and writes them to a folder.
    pub(super) fn create(folder: &Path) -> Result<Self, StartError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "dovetail test cluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = params.signed_by(&key, &issuer)?;
        let service_account = KeyPair::generate()?;

        for (file, text) in [
            (CA, issuer.pem()),
            (SERVER_CERTIFICATE, server.pem()),
            (SERVER_KEY, key.serialize_pem()),
            (SERVICE_ACCOUNT_KEY, service_account.serialize_pem()),
            (SERVICE_ACCOUNT_PUBLIC, service_account.public_key_pem()),
        ] {
            let path = folder.join(file);
            std::fs::write(&path, text).map_err(StartError::file(&path))?;
        }
        Ok(Self { issuer })
    }

    /// The authority's certificate in binary form.
    pub(super) fn der(&self) -> &[u8] {
        self.issuer.der()
    }

    /// A bearer token that nobody can guess who does not know the authority's key.
    pub(super) fn token_for(&self, user: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.issuer.key().serialize_der());
        hash.update(user);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
