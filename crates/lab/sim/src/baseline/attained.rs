//! Least attained service in three queues (Tiresias, NSDI 2019; constants of the Muri artefact).

use super::{
    BaselineCluster, BaselineError, MICROS_PER_SECOND, placed::NodeAssignments, replay::Replay,
};

/// A job leaves the first and the second queue when it has attained this many GPU-seconds.
const DEMOTION_GPU_SECONDS: [u64; 2] = [3_250, 7_200];
const LAST_QUEUE: usize = DEMOTION_GPU_SECONDS.len();

/// Queues are served in turn, each first in, first out, against one count of free GPUs (no nodes);
/// what does not fit is skipped, and afterwards a queue's waiting jobs move behind its running
/// ones, each group keeping its order. A job demotes one queue per event, in order of arrival, once
/// its running time × GPUs (start overhead included) reaches the queue's limit; beside arrivals and
/// completions an event is due when the running time reaches `ceil(limit / GPUs)` whole seconds.
///
/// `is_placed`: each job that is chosen has a place on nodes, too.
pub(super) fn run(
    replay: &mut Replay<'_>,
    cluster: &BaselineCluster,
    is_placed: bool,
) -> Result<(), BaselineError> {
    let mut nodes = is_placed.then(|| NodeAssignments::new(cluster, replay.jobs_in_total()));
    let mut queues = AttainedQueues::new(replay.jobs_in_total());
    let mut next_demotion_us: Option<u64> = None;
    while let Some(event_us) = replay.next_event_us().into_iter().chain(next_demotion_us).min() {
        let elapsed_us = replay.advance_to(event_us);
        queues.remove_ended(replay);
        queues.demote(replay, elapsed_us);
        let arrivals = replay.take_arrivals();
        queues.enter(arrivals);
        let mut free = cluster.total_gpus();
        if let Some(nodes) = &mut nodes {
            nodes.begin(replay.running());
        }
        let chosen = queues.choose(|job| {
            let num_gpu = replay.num_gpu(job);
            if let Some(nodes) = &mut nodes {
                return nodes.take(job, num_gpu);
            }
            let fits = num_gpu <= free;
            free -= if fits { num_gpu } else { 0 };
            fits
        });
        replay.run_only(chosen)?;
        next_demotion_us = queues.next_demotion_us(replay);
    }
    Ok(())
}

struct AttainedQueues {
    queues: [Vec<u32>; LAST_QUEUE + 1],
    queue_of: Vec<usize>,
    attained_us: Vec<u64>,
    waiting: Vec<u32>,
}

impl AttainedQueues {
    fn new(jobs: usize) -> Self {
        Self {
            queues: Default::default(),
            queue_of: vec![0; jobs],
            attained_us: vec![0; jobs],
            waiting: Vec::new(),
        }
    }

    fn remove_ended(&mut self, replay: &Replay<'_>) {
        for queue in &mut self.queues {
            queue.retain(|&job| !replay.has_ended(job));
        }
    }

    fn demote(&mut self, replay: &Replay<'_>, elapsed_us: u64) {
        for &job in replay.running() {
            let number = job as usize;
            self.attained_us[number] += elapsed_us;
            let queue = self.queue_of[number];
            if queue == LAST_QUEUE {
                continue;
            }
            let attained_gpu_us =
                self.attained_us[number].saturating_mul(u64::from(replay.num_gpu(job)));
            if attained_gpu_us >= DEMOTION_GPU_SECONDS[queue] * MICROS_PER_SECOND {
                self.queues[queue].retain(|&other| other != job);
                self.queues[queue + 1].push(job);
                self.queue_of[number] = queue + 1;
            }
        }
    }

    fn enter(&mut self, arrivals: std::ops::Range<u32>) {
        self.queues[0].extend(arrivals);
    }

    /// The jobs that `fits` takes, asked for one after the other in the order of the queues.
    fn choose(&mut self, mut fits: impl FnMut(u32) -> bool) -> Vec<u32> {
        let mut chosen = Vec::new();
        let waiting = &mut self.waiting;
        for queue in &mut self.queues {
            waiting.clear();
            queue.retain(|&job| {
                let fits = fits(job);
                if fits {
                    chosen.push(job);
                } else {
                    waiting.push(job);
                }
                fits
            });
            queue.extend_from_slice(waiting);
        }
        chosen
    }

    fn next_demotion_us(&self, replay: &Replay<'_>) -> Option<u64> {
        let due_us = |&job: &u32| {
            let number = job as usize;
            let limit = DEMOTION_GPU_SECONDS.get(self.queue_of[number])?;
            let due_attained_us =
                limit.div_ceil(u64::from(replay.num_gpu(job))) * MICROS_PER_SECOND;
            // A job that skipped a limit in the same second is due at once.
            let wait_us = due_attained_us.saturating_sub(self.attained_us[number]);
            replay.now_us().checked_add(wait_us)
        };
        replay.running().iter().filter_map(due_us).min()
    }
}
