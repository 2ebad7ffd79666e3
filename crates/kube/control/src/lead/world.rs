//! Random and exhaustive histories of several candidates, a server, lost messages and frozen
//! processes. The judge keeps true time and books of its own.

use std::collections::BTreeSet;

use dovetail_cases::cases;
use proptest::prelude::*;

use super::candidate::{Candidate, ElectionPhase, ElectionStep, Lease, LeaseRecord};
use super::times::LeaseTimes;

/// What can happen next. Nobody has to act: who is never chosen is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElectionMove {
    Pass(u64),
    /// A candidate is asked what to do, and sends it.
    Act(usize),
    /// The server does what a candidate sent.
    Serve(usize),
    /// The answer arrives.
    Answer(usize),
    /// The candidate gives up waiting; what it sent may still be served.
    GiveUp(usize),
    /// It has read the world.
    Relist(usize),
    /// It begins a write if it may.
    Begin(usize),
    /// The server does the oldest write of a candidate, unless its time is over.
    Land(usize),
    /// It gives up the leadership.
    Resign(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeaseRequest {
    Read,
    Write(LeaseRecord, Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeaseReply {
    Lease(Option<Lease>),
    Written(Lease),
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Player {
    candidate: Candidate,
    /// Its clock shows true time plus this.
    offset_ms: u64,
    /// The request it waits for: when it was sent, and the answer once served.
    waiting: Option<(u64, LeaseRequest, Option<LeaseReply>)>,
    /// Requests it gave up that are still on their way.
    stray: Vec<LeaseRequest>,
    /// Writes on their way: epoch and true time after which the server drops them.
    writes: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ElectionModel {
    terms: LeaseTimes,
    now_ms: u64,
    lease: Option<Lease>,
    versions: u64,
    players: Vec<Player>,
    /// Greatest epoch that may have written, and whose it was.
    led: Option<(u64, usize)>,
}

impl ElectionModel {
    fn new(terms: LeaseTimes, offsets: &[u64]) -> Self {
        let player = |(at, offset): (usize, &u64)| Player {
            candidate: Candidate::new(format!("c{at}"), terms),
            offset_ms: *offset,
            waiting: None,
            stray: Vec::new(),
            writes: Vec::new(),
        };
        let players = offsets.iter().enumerate().map(player).collect();
        Self { terms, now_ms: 0, lease: None, versions: 0, players, led: None }
    }

    fn own_ms(&self, at: usize) -> u64 {
        self.now_ms + self.players[at].offset_ms
    }

    fn perform(&mut self, chosen: ElectionMove) -> Result<(), String> {
        match chosen {
            ElectionMove::Pass(span_ms) => self.now_ms += span_ms,
            ElectionMove::Act(at) => self.act(at),
            ElectionMove::Serve(at) => {
                if let Some((sent, request, None)) = self.players[at].waiting.clone() {
                    let reply = self.serve(&request);
                    self.players[at].waiting = Some((sent, request, Some(reply)));
                } else if let Some(request) = self.players[at].stray.pop() {
                    self.serve(&request);
                }
            }
            ElectionMove::Answer(at) => self.answer(at),
            ElectionMove::GiveUp(at) => {
                let own_ms = self.own_ms(at);
                let player = &mut self.players[at];
                if let Some((_, request, reply)) = player.waiting.take() {
                    if reply.is_none() {
                        player.stray.push(request);
                    }
                    player.candidate.unanswered(own_ms);
                }
            }
            ElectionMove::Relist(at) => {
                let own_ms = self.own_ms(at);
                let candidate = &mut self.players[at].candidate;
                if let ElectionPhase::Relisting { epoch } = candidate.phase(own_ms) {
                    candidate.relisted(own_ms, epoch);
                }
            }
            ElectionMove::Begin(at) => self.begin(at)?,
            ElectionMove::Land(at) => self.land(at)?,
            ElectionMove::Resign(at) => {
                let player = &mut self.players[at];
                if player.writes.is_empty()
                    && player.waiting.is_none()
                    && let Some(ElectionStep::Write { record, version }) = player.candidate.resign()
                {
                    player.stray.push(LeaseRequest::Write(record, version));
                }
            }
        }
        self.judge()
    }

    fn act(&mut self, at: usize) {
        let own_ms = self.own_ms(at);
        let player = &mut self.players[at];
        if player.waiting.is_some() {
            return;
        }
        let request = match player.candidate.next(own_ms) {
            ElectionStep::Wait { .. } => return,
            ElectionStep::Read => LeaseRequest::Read,
            ElectionStep::Write { record, version } => LeaseRequest::Write(record, version),
        };
        player.waiting = Some((own_ms, request, None));
    }

    fn serve(&mut self, request: &LeaseRequest) -> LeaseReply {
        let LeaseRequest::Write(record, version) = request else {
            return LeaseReply::Lease(self.lease.clone());
        };
        if self.lease.as_ref().map(|lease| &lease.version) != version.as_ref() {
            return LeaseReply::Refused;
        }
        self.versions += 1;
        let lease = Lease { record: record.clone(), version: self.versions.to_string() };
        self.lease = Some(lease.clone());
        LeaseReply::Written(lease)
    }

    fn answer(&mut self, at: usize) {
        let own_ms = self.own_ms(at);
        let player = &mut self.players[at];
        if !matches!(player.waiting, Some((_, _, Some(_)))) {
            return;
        }
        if let Some((sent_ms, _, Some(reply))) = player.waiting.take() {
            match reply {
                LeaseReply::Lease(lease) => player.candidate.read(own_ms, lease),
                LeaseReply::Written(lease) => player.candidate.written(sent_ms, own_ms, lease),
                LeaseReply::Refused => player.candidate.refused(own_ms),
            }
        }
    }

    fn begin(&mut self, at: usize) -> Result<(), String> {
        let own_ms = self.own_ms(at);
        let Some(permit) = self.players[at].candidate.permit(own_ms) else { return Ok(()) };
        match self.led {
            Some((epoch, who)) if (permit.epoch, at) != (epoch, who) && permit.epoch <= epoch => {
                return Err(format!(
                    "{at} writes in epoch {} after {epoch} of {who}",
                    permit.epoch
                ));
            }
            _ => self.led = Some((permit.epoch, at)),
        }
        let end_ms = permit.deadline_ms - self.players[at].offset_ms;
        self.players[at].writes.push((permit.epoch, end_ms));
        Ok(())
    }

    fn land(&mut self, at: usize) -> Result<(), String> {
        if self.players[at].writes.is_empty() {
            return Ok(());
        }
        let (epoch, end_ms) = self.players[at].writes.remove(0);
        match self.led {
            Some((newest, _)) if self.now_ms < end_ms && newest > epoch => {
                Err(format!("a write of epoch {epoch} lands in epoch {newest}"))
            }
            _ => Ok(()),
        }
    }

    /// At most one candidate may write at any time.
    fn judge(&self) -> Result<(), String> {
        let writes = |at: &usize| self.players[*at].candidate.permit(self.own_ms(*at)).is_some();
        let writers: Vec<usize> = (0..self.players.len()).filter(writes).collect();
        if writers.len() > 1 { Err(format!("{writers:?} may write at once")) } else { Ok(()) }
    }
}

/// Short times, so that histories are short: safe by one millisecond.
fn short() -> LeaseTimes {
    LeaseTimes { lease_ms: 6, renew_deadline_ms: 4, retry_ms: 2, write_timeout_ms: 1 }
        .checked()
        .unwrap()
}

fn moves(players: usize) -> impl Strategy<Value = ElectionMove> {
    let who = 0..players;
    prop_oneof![
        6 => (1_u64..4).prop_map(ElectionMove::Pass),
        1 => (4_u64..12).prop_map(ElectionMove::Pass),
        8 => who.clone().prop_map(ElectionMove::Act),
        8 => who.clone().prop_map(ElectionMove::Serve),
        8 => who.clone().prop_map(ElectionMove::Answer),
        1 => who.clone().prop_map(ElectionMove::GiveUp),
        6 => who.clone().prop_map(ElectionMove::Relist),
        6 => who.clone().prop_map(ElectionMove::Begin),
        6 => who.clone().prop_map(ElectionMove::Land),
        1 => who.prop_map(ElectionMove::Resign),
    ]
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn no_two_candidates_write_at_once_and_no_write_lands_in_a_later_epoch(
        offsets in proptest::collection::vec(0_u64..1_000_000, 2..4),
        history in proptest::collection::vec(moves(3), 0..400),
    ) {
        let mut world = ElectionModel::new(short(), &offsets);
        for chosen in history {
            let of = |at: usize| at % offsets.len();
            let chosen = match chosen {
                ElectionMove::Act(at) => ElectionMove::Act(of(at)),
                ElectionMove::Serve(at) => ElectionMove::Serve(of(at)),
                ElectionMove::Answer(at) => ElectionMove::Answer(of(at)),
                ElectionMove::GiveUp(at) => ElectionMove::GiveUp(of(at)),
                ElectionMove::Relist(at) => ElectionMove::Relist(of(at)),
                ElectionMove::Begin(at) => ElectionMove::Begin(of(at)),
                ElectionMove::Land(at) => ElectionMove::Land(of(at)),
                ElectionMove::Resign(at) => ElectionMove::Resign(of(at)),
                ElectionMove::Pass(span_ms) => ElectionMove::Pass(span_ms),
            };
            prop_assert_eq!(world.perform(chosen), Ok(()));
        }
    }
}

/// Moves of the longest history that is tried.
const LONGEST: usize = 11;

/// Every history of two candidates up to a number of moves, from the moment one of them leads.
#[test]
fn every_short_history_around_a_take_over_is_safe() {
    let mut world = ElectionModel::new(short(), &[0, 0]);
    let lead = [ElectionMove::Act(0), ElectionMove::Serve(0), ElectionMove::Answer(0)];
    let start = lead.iter().chain(&lead).chain(&[
        ElectionMove::Pass(1),
        ElectionMove::Relist(0),
        ElectionMove::Begin(0),
    ]);
    start.for_each(|chosen| world.perform(*chosen).unwrap());
    assert_eq!(world.players[0].candidate.phase(world.now_ms), ElectionPhase::Leading { epoch: 0 });

    let mut all = vec![ElectionMove::Pass(1), ElectionMove::Pass(3)];
    for at in 0..2 {
        all.extend([
            ElectionMove::Act(at),
            ElectionMove::Serve(at),
            ElectionMove::Answer(at),
            ElectionMove::GiveUp(at),
        ]);
        all.extend([ElectionMove::Relist(at), ElectionMove::Begin(at), ElectionMove::Land(at)]);
    }
    let mut seen = BTreeSet::from([world.clone()]);
    let mut layer = vec![world];
    for _ in 0..LONGEST {
        let mut next = Vec::new();
        for world in &layer {
            for chosen in &all {
                let mut world = world.clone();
                world.perform(*chosen).unwrap();
                // Passing time without end leads nowhere new.
                let short = world.now_ms <= 14
                    && world.players.iter().all(|player| player.writes.len() < 2);
                if short && seen.insert(world.clone()) {
                    next.push(world);
                }
            }
        }
        layer = next;
    }
    let by_the_other = |world: &&ElectionModel| world.led.is_some_and(|(_, who)| who == 1);
    let taken_over = seen.iter().filter(by_the_other).count();
    assert!(seen.len() > 50_000 && taken_over > 0, "{} states, {taken_over}", seen.len());
}

#[test]
fn a_sound_holder_keeps_its_lease_and_another_takes_over_a_dead_one() {
    let mut world = ElectionModel::new(LeaseTimes::default(), &[0, 5_000]);
    let mut led = [0_u64; 2];
    for second in 0..60 {
        for (at, led) in led.iter_mut().enumerate() {
            let frozen = at == 0 && second >= 30;
            if !frozen {
                let round =
                    [ElectionMove::Act(at), ElectionMove::Serve(at), ElectionMove::Answer(at)];
                let last =
                    [ElectionMove::Relist(at), ElectionMove::Begin(at), ElectionMove::Land(at)];
                let moves = round.iter().chain(&round).chain(&last);
                moves.for_each(|chosen| world.perform(*chosen).unwrap());
            }
            let own_ms = world.own_ms(at);
            *led += u64::from(world.players[at].candidate.permit(own_ms).is_some());
        }
        world.perform(ElectionMove::Pass(1_000)).unwrap();
    }
    // The first from its settling until its deadline, the second after a lease and its settling.
    assert!(led[0] >= 34 && led[1] >= 8, "{led:?}");
    assert_eq!(world.led, Some((1, 1)));
}
