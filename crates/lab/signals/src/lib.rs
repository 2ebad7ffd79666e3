//! Signals of jobs whose phases are known, and how well phases are told from them.
//!
//! A [`Case`] is one job as it truly ran: its ranks start, iterate, wait for each other, save,
//! fail, hang and rest, and each moment has a label. What a monitoring system would keep of it is a
//! [`dovetail_phases::job_phases::JobRecord`]: means over windows with jitter, clocks up to five
//! seconds apart, two samples in a hundred missing. [`Confusion`] sets what a method says of the
//! record beside the labels. Nothing here knows how the method decides, and no number is shared
//! with it.
//!
//! | module | what |
//! |---|---|
//! | `random` | draws; ranges whose one half is never tuned on |
//! | `nature` | what a job is like: device, iterations, storage |
//! | `kind`, `course` | what happens to it, with labels |
//! | `tape` | second by second: label, signals, power with its lag |
//! | `scrape` | what is read of it |
//! | `confusion` | what was said of each second beside what it was |

mod confusion;
mod course;
mod kind;
mod nature;
mod random;
mod scrape;
mod tape;

use dovetail_phases::job_phases::{JobPhases, JobRecord};

pub use confusion::Confusion;
pub use kind::JobBehavior;
pub use random::Half;
pub use scrape::Collected;

use confusion::Truth;
use course::Course;
use random::Random;

/// One job as it truly ran.
pub struct Case {
    course: Course,
    seed: u64,
    half: Half,
}

impl Case {
    /// Runs a job of a kind. The same arguments give the same job.
    pub fn run(kind: JobBehavior, seed: u64, half: Half) -> Self {
        let mut random = Random::new(seed * 64 + kind as u64, half);
        Self { course: kind::course(kind, &mut random), seed, half }
    }

    /// What is read of it in steps of so many milliseconds (whole seconds).
    pub fn record(&self, step_ms: u64, collected: Collected) -> JobRecord {
        let mut random = Random::new(self.seed ^ 0x5eed_0000, self.half);
        scrape::scrape(&self.course, &mut random, step_ms, collected)
    }

    /// Sets what was said of its record beside what happened.
    pub fn confusion(
        &self,
        record: &JobRecord,
        said: &JobPhases,
        collected: Collected,
    ) -> Confusion {
        let nature = &self.course.nature;
        let mut confusion = Confusion::default();
        for (member, said) in self.course.members.iter().zip(&said.members) {
            let truth = Truth {
                step_ms: record.step_ms,
                collected,
                ranks: nature.ranks,
                spins_while_saving: member.rank > 0 && !nature.is_sharded,
            };
            confusion.compare(&member.tape, said, &truth);
        }
        confusion
    }
}
