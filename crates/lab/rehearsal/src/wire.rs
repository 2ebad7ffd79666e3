//! What goes between a scheduler and the server.

use dovetail_control::answer::Answered;

/// Which credit a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Bind,
    Read,
    Order,
    Announcement,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) class: Class,
    pub(crate) method: &'static str,
    /// With its query.
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) number: u64,
    /// `None`: it was not sent, as this process may not write.
    pub(crate) answered: Option<Answered>,
    /// Own clock: from then on the server cannot carry it out any more.
    pub(crate) over_ms: u64,
}

/// Both clocks of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Since 1970; may jump.
    pub(crate) wall_ms: u64,
    /// Never jumps.
    pub(crate) own_ms: u64,
}
