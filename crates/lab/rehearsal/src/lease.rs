//! The Lease of the candidates, on the server.

use dovetail_control::lead::{Lease, LeaseRecord};

/// One Lease with its versions.
#[derive(Debug, Default)]
pub(crate) struct LeaseServer {
    lease: Option<Lease>,
    versions: u64,
}

/// A request about the Lease.
#[derive(Clone, Debug)]
pub(crate) enum LeaseCall {
    Read,
    Write { record: LeaseRecord, version: Option<String> },
}

/// What the server says.
#[derive(Clone, Debug)]
pub(crate) enum LeaseAnswer {
    Read(Option<Lease>),
    Written(Lease),
    Refused,
    Nothing,
}

impl LeaseServer {
    pub(crate) fn perform(&mut self, call: &LeaseCall) -> LeaseAnswer {
        let LeaseCall::Write { record, version } = call else {
            return LeaseAnswer::Read(self.lease.clone());
        };
        if self.lease.as_ref().map(|lease| &lease.version) != version.as_ref() {
            return LeaseAnswer::Refused;
        }
        self.versions += 1;
        let lease = Lease { record: record.clone(), version: self.versions.to_string() };
        self.lease = Some(lease.clone());
        LeaseAnswer::Written(lease)
    }
}
