//! Replaying the recording of a live scheduler.

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_control::Control;
use dovetail_control::control::{Credits, Settings};
use dovetail_control::record::{
    EngineEntry, InputEntry, Record, RecordEntry, Recording, RequestEntry,
};
use dovetail_control::request::Now;
use dovetail_model::Action;
use dovetail_plan::PolicySpec;
use dovetail_sim::event_log::EventLog;
use dovetail_sim::record::{
    ComparedDecision, ComparedPolicy, JsonLines, LIVE_FORMAT, RecordError, RecordLine,
    RecordedStep, ReplayReport, WhatIf, first_difference,
};

use crate::recorder::{Header, note};

/// Replays it and compares decisions and requests.
pub(crate) fn replay(mut lines: JsonLines<'_, impl BufRead>) -> Result<ReplayReport, RecordError> {
    let header: Header = lines.header(LIVE_FORMAT)?;
    let mut report = ReplayReport::of(header.build);
    let mut scheduler = Replayed::of(header.scheduler);
    let mut log = EventLog::default();
    let end = loop {
        let entry: RecordEntry = match lines.next_line()? {
            RecordLine::Step(entry) => entry,
            RecordLine::End(end) => break Some(end),
            RecordLine::CutOff => {
                report.cut_off_after_line = Some(lines.line() - 1);
                break None;
            }
        };
        let (now, recorded) = (entry.now, (entry.actions, entry.requests));
        let inputs = (entry.inputs, entry.credits);
        let (replayed, engines) =
            scheduler.step(inputs, now).map_err(|problem| lines.problem(&problem))?;
        note(&mut log, &engines);
        report.steps += 1;
        report.actions += replayed.actions.len() as u64;
        let both = [recorded, (replayed.actions, replayed.requests)].map(decisions);
        report.divergence = first_difference(lines.line(), now.wall_ms, both);
        if report.divergence.is_some() {
            break None;
        }
    };
    report.event_log_hash = log.hash();
    if let Some(end) = end {
        lines.check_end(&end, &report)?;
    }
    Ok(report)
}

/// Replays it, and asks another policy before each decision of its engines.
pub(crate) fn what_if(
    mut lines: JsonLines<'_, impl BufRead>,
    policy: PolicySpec,
) -> Result<WhatIf, RecordError> {
    let header: Header = lines.header(LIVE_FORMAT)?;
    let mut scheduler = Replayed::of(header.scheduler);
    let mut asked = ComparedPolicy::of(header.build, policy);
    loop {
        let entry: RecordEntry = match lines.next_line()? {
            RecordLine::Step(entry) => entry,
            RecordLine::End(_) => return Ok(asked.report),
            RecordLine::CutOff => {
                asked.report.cut_off_after_line = Some(lines.line() - 1);
                return Ok(asked.report);
            }
        };
        let stepped = scheduler.step((entry.inputs, entry.credits), entry.now);
        let (_, engines) = stepped.map_err(|problem| lines.problem(&problem))?;
        for engine in engines {
            let done = match engine {
                EngineEntry::Begins(begun) => asked.engine(begun.0, &begun.1),
                EngineEntry::Steps { now_ms, events, actions, decides } => {
                    asked.step(RecordedStep { now_ms, events, actions, decides }, lines.line())
                }
            };
            done.map_err(|problem| lines.problem(&problem))?;
        }
    }
}

/// A scheduler that is stepped as one was before.
struct Replayed {
    control: Control,
    last: Last,
}

/// One step, with what its engines were told and answered.
type Stepped = (RecordEntry, Vec<EngineEntry>);

/// The last step of it.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<Option<Stepped>>>);

impl Replayed {
    fn of(settings: Settings) -> Self {
        let last = Last::default();
        let recording = Some(Recording::new(last.clone()));
        Self { control: Control::new(Settings { recording, ..settings }), last }
    }

    fn step(
        &mut self,
        (inputs, credits): (Vec<InputEntry>, Credits),
        now: Now,
    ) -> Result<Stepped, String> {
        let inputs: Result<Vec<_>, _> = inputs.into_iter().map(InputEntry::input).collect();
        self.control.step(inputs.map_err(|error| error.to_string())?, credits, now);
        let last = self.last.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        last.ok_or_else(|| "the scheduler is no longer the leader here, and continues".to_owned())
    }
}

impl Record for Last {
    fn begin(&mut self, _: &Settings) {}

    fn step(&mut self, entry: RecordEntry, engines: Vec<EngineEntry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((entry, engines));
    }

    fn end(&mut self) {}

    fn is_broken(&self) -> bool {
        false
    }
}

/// Decisions of engines, and the requests that follow.
fn decisions(
    (actions, requests): (Vec<Action>, Vec<RequestEntry>),
) -> impl Iterator<Item = ComparedDecision> {
    let requests = requests.into_iter().map(|request| {
        ComparedDecision::Request(serde_json::to_value(request).expect("a request is plain data"))
    });
    actions.into_iter().map(ComparedDecision::Action).chain(requests)
}
