//! Pods that were to be stopped for others, and that the server does not let go: others are looked for, and these are
//! left in peace for a while.

use dovetail_model::{JobId, PodId};

use super::news::{News, PodName, StopRefused};
use super::pauses::Pause;
use super::scheduler::Scheduler;
use crate::bind::{Order, Stop};
use crate::world::PodKey;

impl Scheduler {
    /// The server refuses to stop a pod.
    pub(super) fn stop_refused(&mut self, victim: &PodKey, why: Stop, code: u16, message: &str) {
        let id = self.world.id_of(victim);
        let is_for = |victims: &Vec<PodId>| id.is_some_and(|id| victims.contains(&id));
        let rooms = self.rooms.iter().filter(|(_, room)| is_for(&room.victims));
        let jobs: Vec<JobId> = rooms.map(|(job, _)| *job).collect();
        let preemptor = jobs.first().and_then(|job| self.world.pods_of(*job).next());
        self.news.push(News::StopRefused(Box::new(StopRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
            code,
            message: message.to_owned(),
        })));
        if why != Stop::Preempted {
            return;
        }
        for job in jobs {
            self.stop_nobody_more_for(job);
            let events = self.world.submit_again(job);
            self.tell(events);
        }
        self.spared.pause_pod(self.now_ms, victim, Pause::Victim);
        let events = self.world.spare(victim, true);
        self.tell(events);
    }

    /// Lets pods be stopped again that were left in peace for long enough.
    pub(super) fn spare_no_longer(&mut self) {
        while let Some(pod) = self.spared.pop_due(self.now_ms) {
            let events = self.world.spare(&pod, false);
            self.tell(events);
        }
        let world = &self.world;
        self.spared.sweep(|pod| world.has(pod));
    }

    /// Stops for a job that are not ordered yet are not.
    fn stop_nobody_more_for(&mut self, job: JobId) {
        let Some(room) = self.rooms.get(&job) else { return };
        let pods = room.victims.iter().filter_map(|pod| self.world.pod_of(*pod));
        let victims: Vec<PodKey> = pods.map(PodKey::of).collect();
        self.orders.retain(|order| match order {
            Order::Stop { pod, why: Stop::Preempted } => !victims.contains(pod),
            _ => true,
        });
    }
}
