//! First-fit placement by GPU counts, as one pass from an empty cluster.

use super::BaselineCluster;

/// Free GPUs while a cluster is being filled; nothing is given back until [`FreeGpus::clear`].
///
/// A job no larger than the largest node goes on the first node with room. A larger one takes whole
/// idle nodes in node order as long as they are no larger than what is left of the job, and the
/// rest goes on the first other node with room.
pub(super) struct FreeGpus<'a> {
    capacity: &'a [u32],
    largest_node: u32,
    total_gpus: u32,
    free: Vec<u32>,
    total_free: u32,
    smallest_failed_within_node: u32,
    smallest_failed_across_nodes: u32,
    taken_whole: Vec<usize>,
}

impl<'a> FreeGpus<'a> {
    pub(super) fn new(cluster: &'a BaselineCluster) -> Self {
        let capacity = cluster.gpus_per_node();
        Self {
            capacity,
            largest_node: capacity.iter().copied().max().unwrap_or(0),
            total_gpus: cluster.total_gpus(),
            free: capacity.to_vec(),
            total_free: cluster.total_gpus(),
            smallest_failed_within_node: u32::MAX,
            smallest_failed_across_nodes: u32::MAX,
            taken_whole: Vec::new(),
        }
    }

    /// Empties the cluster.
    pub(super) fn clear(&mut self) {
        self.free.copy_from_slice(self.capacity);
        self.total_free = self.total_gpus;
        self.smallest_failed_within_node = u32::MAX;
        self.smallest_failed_across_nodes = u32::MAX;
    }

    pub(super) fn is_full(&self) -> bool {
        self.total_free == 0
    }

    /// Places `num_gpu` GPUs if they fit; otherwise nothing changes.
    ///
    /// Room only shrinks during a pass, so a size that failed, and every larger one of the same
    /// kind, is refused without a search.
    pub(super) fn place(&mut self, num_gpu: u32) -> bool {
        if num_gpu > self.total_free {
            return false;
        }
        let within_node = num_gpu <= self.largest_node;
        let smallest_failed = if within_node {
            self.smallest_failed_within_node
        } else {
            self.smallest_failed_across_nodes
        };
        if num_gpu >= smallest_failed {
            return false;
        }
        let placed =
            if within_node { self.place_on_one(num_gpu) } else { self.place_across(num_gpu) };
        if placed {
            self.total_free -= num_gpu;
        } else if within_node {
            self.smallest_failed_within_node = num_gpu;
        } else {
            self.smallest_failed_across_nodes = num_gpu;
        }
        placed
    }

    fn place_on_one(&mut self, num_gpu: u32) -> bool {
        match self.free.iter_mut().find(|free| **free >= num_gpu) {
            Some(free) => {
                *free -= num_gpu;
                true
            }
            None => false,
        }
    }

    fn place_across(&mut self, num_gpu: u32) -> bool {
        self.taken_whole.clear();
        let mut rest = num_gpu;
        for (node, &capacity) in self.capacity.iter().enumerate() {
            if capacity > 0 && self.free[node] == capacity && capacity <= rest {
                self.free[node] = 0;
                self.taken_whole.push(node);
                rest -= capacity;
            }
        }
        if rest == 0 || self.place_on_one(rest) {
            return true;
        }
        for &node in &self.taken_whole {
            self.free[node] = self.capacity[node];
        }
        false
    }
}
