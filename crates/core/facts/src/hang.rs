//! Time in which all members of a job waited for each other.

use dovetail_account::device_time::Span;
use dovetail_phases::job_phases::{JobPhases, Phase, Stretch};

/// How a job hung while it was measured, by the method of `dovetail_phases::job_phases`: members
/// spin, none works, and nothing is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hang {
    /// The longest time without an end to it.
    pub longest: Span,
    pub gpu_milli_ms: i128,
}

impl Hang {
    /// The hang of a job, where tensor cores or memory traffic were read while it lasted:
    /// utilisation alone does not tell a kernel that spins from one that works.
    pub fn of(phases: &JobPhases) -> Option<Self> {
        let mut spans: Vec<Span> = Vec::new();
        let mut gpu_milli_ms = 0;
        for member in &phases.members {
            for stretch in &member.stretches {
                let length_ms = hung_ms(stretch);
                if length_ms > 0 {
                    gpu_milli_ms += i128::from(length_ms) * i128::from(member.gpu_milli);
                    spans.push(stretch.span);
                }
            }
        }
        spans.sort_by_key(|span| (span.from_ms, span.to_ms));
        let mut joined: Vec<Span> = Vec::new();
        for span in spans {
            match joined.last_mut().filter(|last| span.from_ms <= last.to_ms) {
                Some(last) => last.to_ms = last.to_ms.max(span.to_ms),
                None => joined.push(span),
            }
        }
        let longest = joined.into_iter().max_by_key(|span| span.to_ms - span.from_ms)?;
        Some(Self { longest, gpu_milli_ms })
    }

    /// How long the longest was.
    pub fn length_ms(&self) -> u64 {
        self.longest.to_ms - self.longest.from_ms
    }
}

/// How much of a stretch was a hang, where that is most of it.
fn hung_ms(stretch: &Stretch) -> u64 {
    let evidence = &stretch.evidence;
    if evidence.tensor_micro_percent.or(evidence.dram_micro_percent).is_none() {
        return 0;
    }
    // The longest part comes first.
    let first = stretch.parts.first().filter(|part| part.phase == Phase::Hang);
    first.map_or(0, |part| part.length_ms)
}
