//! Names that are compared as numbers, and amounts and volumes with their names as numbers.

use std::collections::BTreeSet;

use dovetail_model::{Attachment, Resources};
use smallvec::SmallVec;

use crate::holdings::Amounts;
use crate::intern::Interner;

/// The tables of names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub models: Interner<String>,
    pub extended: Interner<String>,
    pub counters: Interner<String>,
    pub attachments: Interner<Attachment>,
    pub limits: Interner<String>,
    pub limit_of: Vec<u32>,
}

impl Names {
    /// Amounts with their names again.
    pub fn resources(&self, amounts: &Amounts) -> Resources {
        Resources {
            cpu_milli: amounts.cpu_milli,
            memory_bytes: amounts.memory_bytes,
            ephemeral_bytes: amounts.ephemeral_bytes,
            pod_slots: amounts.pod_slots,
            extended: amounts
                .extended
                .iter()
                .map(|(name, amount)| (self.extended.get(*name).clone(), *amount))
                .collect(),
        }
    }

    /// Amounts with names interned; amounts of 0 are left out.
    pub fn amounts(&mut self, resources: &Resources) -> Amounts {
        let mut amounts = Amounts {
            cpu_milli: resources.cpu_milli,
            memory_bytes: resources.memory_bytes,
            ephemeral_bytes: resources.ephemeral_bytes,
            pod_slots: resources.pod_slots,
            extended: resources
                .extended
                .iter()
                .filter(|(_, amount)| **amount != 0)
                .map(|(name, amount)| (self.extended.intern(name).0, *amount))
                .collect(),
        };
        amounts.extended.sort_unstable();
        amounts
    }

    /// Volumes with their names interned, ascending.
    pub fn attached(&mut self, attachments: &BTreeSet<Attachment>) -> SmallVec<[u32; 2]> {
        let mut numbers = SmallVec::new();
        for attachment in attachments {
            let (number, new) = self.attachments.intern(attachment);
            if new {
                self.limit_of.push(self.limits.intern(&attachment.limit).0);
            }
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers
    }
}
