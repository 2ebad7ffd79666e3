//! Least attained service on real nodes: a job that runs on stays where it is.

use super::BaselineCluster;

/// GPUs by node.
type Places = Vec<(usize, u32)>;

/// Which job holds what, while the running set is chosen. A job that runs keeps its nodes unless
/// one before it took them. One that waits goes where nobody runs if there is room, and else to the
/// place of jobs behind it.
pub(super) struct NodeAssignments<'a> {
    capacity: &'a [u32],
    largest_node: u32,
    /// Beside the jobs that were chosen so far.
    free: Vec<i64>,
    /// Beside those that run and were not asked for yet, too: negative where both are.
    undisturbed: Vec<i64>,
    /// Of the jobs that were chosen the last time.
    places: Vec<Places>,
    /// Whether a job ran and was not asked for yet.
    holds: Vec<bool>,
}

impl<'a> NodeAssignments<'a> {
    pub(super) fn new(cluster: &'a BaselineCluster, jobs: usize) -> Self {
        let capacity = cluster.gpus_per_node();
        Self {
            capacity,
            largest_node: capacity.iter().copied().max().unwrap_or(0),
            free: vec![0; capacity.len()],
            undisturbed: Vec::new(),
            places: vec![Vec::new(); jobs],
            holds: vec![false; jobs],
        }
    }

    /// Nobody is chosen; these run.
    pub(super) fn begin(&mut self, running: &[u32]) {
        for (free, capacity) in self.free.iter_mut().zip(self.capacity) {
            *free = i64::from(*capacity);
        }
        self.undisturbed.clone_from(&self.free);
        for job in running {
            self.holds[*job as usize] = true;
            for (node, gpus) in &self.places[*job as usize] {
                self.undisturbed[*node] -= i64::from(*gpus);
            }
        }
    }

    /// Gives a job its place, if there is one.
    pub(super) fn take(&mut self, job: u32, num_gpu: u32) -> bool {
        let number = job as usize;
        if std::mem::take(&mut self.holds[number]) {
            let places = &self.places[number];
            if places.iter().all(|(node, gpus)| self.free[*node] >= i64::from(*gpus)) {
                places.iter().for_each(|(node, gpus)| self.free[*node] -= i64::from(*gpus));
                return true;
            }
            for (node, gpus) in places {
                self.undisturbed[*node] += i64::from(*gpus);
            }
        }
        let places = self.find(&self.undisturbed, num_gpu);
        let Some(places) = places.or_else(|| self.find(&self.free, num_gpu)) else { return false };
        for (node, gpus) in &places {
            self.free[*node] -= i64::from(*gpus);
            self.undisturbed[*node] -= i64::from(*gpus);
        }
        self.places[number] = places;
        true
    }

    /// First fit: on one node; a job larger than the largest node takes whole nodes that are empty,
    /// and another for the rest.
    fn find(&self, free: &[i64], num_gpu: u32) -> Option<Places> {
        let mut places = Places::new();
        let mut rest = num_gpu;
        if num_gpu > self.largest_node {
            for (node, capacity) in self.capacity.iter().enumerate() {
                if *capacity > 0 && free[node] == i64::from(*capacity) && *capacity <= rest {
                    places.push((node, *capacity));
                    rest -= capacity;
                }
            }
        }
        if rest > 0 {
            let is_new = |node: usize| places.iter().all(|(taken, _)| *taken != node);
            let node =
                (0..free.len()).find(|node| free[*node] >= i64::from(rest) && is_new(*node))?;
            places.push((node, rest));
        }
        Some(places)
    }
}
