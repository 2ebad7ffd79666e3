//! The stream of what happened, from which a hash of the schedule can be made.

/// One change of one job.
///
/// Events come in time order; at one instant all ends come first, then all stops, then all starts,
/// each group in order of arrival (submit time, then position in the input). A job that starts with
/// nothing left to run ends at the same instant, in a second such round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BaselineEvent {
    /// When, in microseconds on the trace's clock.
    pub time_us: u64,
    /// Position of the job in the input.
    pub job: u32,
    pub kind: BaselineEventKind,
}

/// What happened to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaselineEventKind {
    /// It started or resumed.
    Start,
    /// It was preempted and waits again.
    Stop,
    End,
}

impl BaselineEventKind {
    /// Stable name used in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::End => "end",
        }
    }
}
