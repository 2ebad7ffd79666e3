//! What a scene may have besides pods and nodes: queues, disruption budgets; and scenes in which
//! one thing happens after the other, and nothing goes wrong.

use dovetail_order::{PRESETS, QueueTurns, Turns};

use super::{QueueSpec, Scene, SceneEvent, What};
use crate::dice::DrawSequence;

/// Draws of a scene and of what is added to it come from streams of their own.
const STREAM: u64 = 0x65_7874_7261_7300;
/// Draws of the order and of reservations.
const ORDER_STREAM: u64 = 0x6f72_6465_7200;
/// Draws of what is learned.
pub(super) const LEARNED_STREAM: u64 = 0x6c_6561_726e_6564;
/// Between two steps of a slow scene: longer than a preemption may take.
const SLOW_MS: u64 = 200_000;

impl Scene {
    /// Adds what the seed says.
    pub(super) fn add_extras(&mut self, seed: u64) {
        let mut row = DrawSequence::new(seed ^ STREAM);
        let which = row.below(8);
        if matches!(which, 3 | 4 | 6) {
            self.add_queues(&mut row);
        }
        if matches!(which, 5 | 6) {
            self.add_budgets(&mut row);
        }
        if which == 7 {
            self.slow_down(&mut row);
        }
    }

    /// In half of all scenes jobs have an order, in half of these some have reservations, and
    /// owners say how long pods run, some of them wrongly.
    pub(super) fn add_order(&mut self, seed: u64) {
        let mut row = DrawSequence::new(seed ^ ORDER_STREAM);
        if row.once_in(2) {
            return;
        }
        // The judge of scenes does not know whom a division of the cluster favors.
        let presets: Vec<Turns> = PRESETS
            .iter()
            .map(|(.., turns)| *turns)
            .filter(|turns| turns.queues != QueueTurns::Kai)
            .collect();
        self.options.turns = Some(row.of(&presets));
        let heads = row.of(&[0, 0, 1, 3]);
        // A slow scene does not wait until nobody believes any more what was said of run times.
        self.options.heads = if self.is_slow { 0 } else { heads };
        for step in &mut self.steps {
            let What::Submit(workload) = &mut step.what else { continue };
            let wrong_ms = row.of(&[1_000, 5_000, 20_000, 60_000]);
            let (is_wrong, is_silent) = (row.once_in(4), row.once_in(3));
            // Whoever says when a service ends that never does, has others wait for it.
            let says_ms = workload.run_ms.map(|run_ms| if is_wrong { wrong_ms } else { run_ms });
            workload.says_ms = says_ms.filter(|_| !is_silent);
        }
    }

    fn add_queues(&mut self, row: &mut DrawSequence) {
        let gpus: u64 = self.nodes.iter().map(|node| node.gpus).sum();
        let leaves = row.between(1, 3);
        let has_root = row.once_in(2);
        let mut sum = 0;
        for at in 0..leaves {
            let guaranteed = row.below(gpus / leaves + 2);
            sum += guaranteed;
            let limit = row.once_in(2).then(|| guaranteed + row.below(5));
            let parent = has_root.then(|| "root".to_owned());
            let (name, borrows) = (format!("q{at}"), row.once_in(2));
            self.queues.push(QueueSpec { name, parent, guaranteed, limit, borrows });
        }
        if has_root {
            let (name, parent) = ("root".to_owned(), None);
            let (guaranteed, borrows) = (sum + row.below(3), row.once_in(2));
            let limit = row.once_in(2).then(|| guaranteed + row.below(3));
            self.queues.push(QueueSpec { name, parent, guaranteed, limit, borrows });
        }
        for step in &mut self.steps {
            if let What::Submit(workload) = &mut step.what
                && !row.once_in(4)
            {
                workload.queue = Some(format!("q{}", row.below(leaves)));
            }
        }
        for _ in 0..row.below(3) {
            let mut queue = self.queues[row.below(leaves) as usize].clone();
            // The queue above may promise no more than it has.
            let most = if has_root { queue.guaranteed } else { gpus };
            queue.guaranteed = row.below(most + 1);
            queue.limit = queue.limit.map(|limit| limit.max(queue.guaranteed));
            queue.borrows = row.once_in(2);
            self.steps
                .push(SceneEvent { at_ms: row.below(super::SCENE_MS), what: What::Quota(queue) });
        }
    }

    fn add_budgets(&mut self, row: &mut DrawSequence) {
        self.options.respects_budgets = row.once_in(3);
        for step in &mut self.steps {
            if let What::Submit(workload) = &mut step.what
                && row.once_in(2)
            {
                workload.available = Some(row.below(workload.pods + 1));
            }
        }
    }

    /// Owners come and go and users delete pods, one after the other.
    fn slow_down(&mut self, row: &mut DrawSequence) {
        (self.options.preempts, self.options.faults) = (true, 0);
        self.steps.retain(|step| {
            let is_slow = matches!(step.what, What::Withdraw { .. } | What::DeletePod { .. });
            is_slow || matches!(step.what, What::Submit(_))
        });
        for (step, at) in self.steps.iter_mut().zip(0..) {
            step.at_ms = at * SLOW_MS + row.below(1_000);
        }
        self.is_slow = true;
    }
}
