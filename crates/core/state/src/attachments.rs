//! Volumes attached to nodes: each once, however many pods of the node use it.

use std::collections::BTreeSet;

use dovetail_model::{Attachment, NodeId};
use smallvec::SmallVec;

use crate::holdings::HoldingRecord;
use crate::nodes::Cold;
use crate::{Names, State};

/// The volumes of one node.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// Pods that use each volume, ascending by interned attachment.
    users: SmallVec<[(u32, u32); 2]>,
    /// How many more volumes each limit of the node allows, by interned limit; may be negative.
    left: SmallVec<[(u32, i64); 2]>,
}

impl Attached {
    /// Whether a pod with these volumes, ascending, keeps every limit that it adds to. As in
    /// kube-scheduler, a limit that is exceeded already is no obstacle to a pod that adds nothing
    /// to it.
    pub fn allows(&self, volumes: &[u32], limit_of: &[u32]) -> bool {
        let is_new = |volume: &&u32| self.users.binary_search_by_key(*volume, |(v, _)| *v).is_err();
        self.left.iter().all(|(limit, left)| {
            let counted = volumes.iter().filter(|volume| limit_of[**volume as usize] == *limit);
            let new = counted.filter(is_new).count() as i64;
            new == 0 || new <= *left
        })
    }

    fn attach(&mut self, volume: u32, limit_of: &[u32]) {
        match self.users.binary_search_by_key(&volume, |(v, _)| *v) {
            Ok(place) => self.users[place].1 += 1,
            Err(place) => {
                self.users.insert(place, (volume, 1));
                self.move_left(limit_of[volume as usize], -1);
            }
        }
    }

    fn detach(&mut self, volume: u32, limit_of: &[u32]) {
        let place = self.users.binary_search_by_key(&volume, |(v, _)| *v);
        let place = place.expect("a volume is detached where it was attached");
        self.users[place].1 -= 1;
        if self.users[place].1 == 0 {
            self.users.remove(place);
            self.move_left(limit_of[volume as usize], 1);
        }
    }

    fn move_left(&mut self, limit: u32, amount: i64) {
        if let Some((_, left)) = self.left.iter_mut().find(|(have, _)| *have == limit) {
            *left += amount;
        }
    }
}

impl State {
    /// Counts the attachments of a holding, each once on its node.
    pub fn attach(&mut self, record: &HoldingRecord) {
        for volume in &record.attachments {
            let attached = &mut self.nodes.cold_mut(record.node).attached;
            attached.attach(*volume, &self.names.limit_of);
        }
    }

    /// Takes back what [`State::attach`] counted.
    pub fn detach(&mut self, record: &HoldingRecord) {
        for volume in &record.attachments {
            let attached = &mut self.nodes.cold_mut(record.node).attached;
            attached.detach(*volume, &self.names.limit_of);
        }
    }

    /// Takes over the limits of a node and counts anew what is attached there.
    pub fn rebuild_attached(&mut self, slot: NodeId) {
        let cold: &Cold = self.nodes.cold(slot);
        let limits = &mut self.names.limits;
        let left =
            cold.node.attach_limits.iter().map(|(name, most)| (limits.intern(name).0, *most));
        let mut attached = Attached { users: SmallVec::new(), left: left.collect() };
        for id in &cold.holdings {
            for volume in &self.holdings.get(*id).attachments {
                attached.attach(*volume, &self.names.limit_of);
            }
        }
        self.nodes.cold_mut(slot).attached = attached;
    }
}

impl Names {
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
