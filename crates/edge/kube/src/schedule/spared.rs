//! Pods that were to be stopped for others, and that the server does not let go: others are looked for, and these are
//! left in peace for a while.

use super::news::{News, PodName, StopRefused};
use super::pauses::Pause;
use super::scheduler::Scheduler;
use crate::bind::Stop;
use crate::client::lacked_right;
use crate::world::PodKey;

impl Scheduler {
    /// The server refuses to stop a pod.
    pub(super) fn stop_refused(&mut self, victim: &PodKey, why: Stop, code: u16, message: &str) {
        let is_for_another = why == Stop::Preempted;
        if is_for_another && lacked_right(code, message).is_some() {
            return self.may_stop_nobody(victim, code, message);
        }
        let jobs = self.jobs_waiting_for(victim);
        let preemptor = jobs.first().and_then(|job| self.world.pods_of(*job).next());
        self.news.push(News::StopRefused(Box::new(StopRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
            code,
            message: message.to_owned(),
            is_tried_again: false,
            jobs: jobs.clone(),
        })));
        if !is_for_another {
            return;
        }
        for job in jobs {
            self.call_off_stops(job);
            let events = self.world.submit_again(job);
            self.tell(events);
            self.unnominate(job);
        }
        // Who is too busy, or whose webhook fails, may be willing soon.
        let pause = if matches!(code, 429 | 500) { Pause::Long } else { Pause::Victim };
        self.spared.pause_pod(self.now_ms, victim, pause);
        let events = self.world.spare(victim, true);
        self.tell(events);
    }

    /// Who was not let go a short while ago, as it says itself, is left in peace by whoever comes new, too: by another
    /// leader, and by who asks what a scheduler would do.
    pub(super) fn spare_who_was_kept(&mut self) {
        for (pod, kept_ms) in self.world.kept_pods() {
            if self.spared.pause_victim_since(self.now_ms, &pod, kept_ms) {
                let events = self.world.spare(&pod, true);
                self.tell(events);
            }
        }
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
}
