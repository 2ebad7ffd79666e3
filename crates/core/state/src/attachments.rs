//! Volumes attached to nodes: each once, however many pods of the node use it.

use smallvec::SmallVec;

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

    /// Nothing attached yet, with how many volumes each limit allows.
    pub fn with_limits(left: impl Iterator<Item = (u32, i64)>) -> Self {
        Self { users: SmallVec::new(), left: left.collect() }
    }

    /// Counts the volumes of a pod, each once on its node.
    pub fn attach(&mut self, volumes: &[u32], limit_of: &[u32]) {
        volumes.iter().for_each(|volume| self.attach_one(*volume, limit_of));
    }

    /// Takes back what [`Attached::attach`] counted.
    pub fn detach(&mut self, volumes: &[u32], limit_of: &[u32]) {
        volumes.iter().for_each(|volume| self.detach_one(*volume, limit_of));
    }

    fn attach_one(&mut self, volume: u32, limit_of: &[u32]) {
        match self.users.binary_search_by_key(&volume, |(v, _)| *v) {
            Ok(place) => self.users[place].1 += 1,
            Err(place) => {
                self.users.insert(place, (volume, 1));
                self.move_left(limit_of[volume as usize], -1);
            }
        }
    }

    fn detach_one(&mut self, volume: u32, limit_of: &[u32]) {
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
