//! When what was learned is read and written, and what follows from the answers.

use std::collections::BTreeMap;

use dovetail_plan::Learned;
use serde::Deserialize;
use serde_json::json;

use super::text::{self, Data};
use super::{ConfigMapName, LearnedNews};
use crate::answer::{Answered, message};
use crate::request::{ApiRequest, MERGE, Method, RequestClass};

/// It is written so often, and when the leader stops.
const EVERY_MS: u64 = 600_000;
/// Reads before the leader decides without.
const READS: u32 = 3;

/// The ConfigMap of one leadership.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// `None` where nothing is kept.
    at: Option<ConfigMapName>,
    reading: LearnedReading,
    /// Whether there is a ConfigMap to write to.
    is_there: bool,
    /// When it is written next; `None` before the first decision.
    due_ms: Option<u64>,
    /// It was written, or tried, for the last time.
    is_over: bool,
    /// What is on its way.
    writing: Option<Data>,
    /// The data that the server has, as far as is known.
    holds: Data,
}

#[derive(Debug, PartialEq, Eq)]
enum LearnedReading {
    /// It is to be asked for, the times that are left.
    ToAsk(u32),
    Asked(u32),
    Done,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Keeping {
    pub(crate) fn new(at: Option<ConfigMapName>) -> Self {
        let reading =
            if at.is_some() { LearnedReading::ToAsk(READS) } else { LearnedReading::Done };
        let (writing, holds) = (None, Data::new());
        Self { at, reading, is_there: false, due_ms: None, is_over: false, writing, holds }
    }

    /// Whether it is known what was learned before, or that this cannot be known.
    pub(crate) fn is_read(&self) -> bool {
        self.reading == LearnedReading::Done
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.writing.is_none()
    }

    /// The read to send, if it is time for it.
    pub(crate) fn next_read(&mut self) -> Option<ApiRequest> {
        let LearnedReading::ToAsk(left) = self.reading else { return None };
        self.reading = LearnedReading::Asked(left.saturating_sub(1));
        let path = path(self.at.as_ref()?);
        Some(ApiRequest::new(RequestClass::Read, Method::Get, path, ("", Vec::new())))
    }

    /// Takes the answer to a read: what was learned before, and what people should know.
    pub(crate) fn was_read(
        &mut self,
        answered: Option<&Answered>,
    ) -> (Learned, Option<LearnedNews>) {
        let LearnedReading::Asked(left) = self.reading else { return Default::default() };
        self.reading = LearnedReading::Done;
        let not_read = |problem: String| LearnedNews::NotRead { problem };
        let (learned, news) = match answered {
            // Whoever did not send it leads no more.
            None => return Default::default(),
            Some(Ok((200, _, body))) => {
                self.is_there = true;
                match learned_in(body) {
                    Ok((data, learned)) => {
                        self.holds = data;
                        let is_known = learned != Learned::default();
                        (learned, is_known.then_some(LearnedNews::Read))
                    }
                    Err(problem) => (Learned::default(), Some(not_read(problem))),
                }
            }
            Some(Ok((404, ..))) => (Learned::default(), Some(LearnedNews::Missing)),
            Some(Ok((429 | 500.., ..)) | Err(_)) if left > 0 => {
                self.reading = LearnedReading::ToAsk(left);
                return Default::default();
            }
            // It may be there, and a later write may go well.
            Some(answer) => {
                self.is_there = true;
                (Learned::default(), Some(not_read(problem(answer))))
            }
        };
        (learned, news)
    }

    /// The write to send, if it is time for it and there is something new.
    pub(crate) fn next_write(
        &mut self,
        learned: impl FnOnce() -> Learned,
        is_last: bool,
        now_ms: u64,
    ) -> (Option<ApiRequest>, Option<LearnedNews>) {
        let Some(at) = self.at.as_ref().filter(|_| self.is_there) else { return (None, None) };
        if !self.is_read() || self.writing.is_some() || self.is_over {
            return (None, None);
        }
        let due_ms = *self.due_ms.get_or_insert(now_ms.saturating_add(EVERY_MS));
        if now_ms < due_ms && !is_last {
            return (None, None);
        }
        self.due_ms = Some(now_ms.saturating_add(EVERY_MS));
        self.is_over = is_last;
        let data = match text::write(&learned()) {
            Ok(data) => data,
            Err(problem) => return (None, Some(LearnedNews::NotWritten { problem })),
        };
        if data.iter().all(|(key, text)| self.holds.get(key) == Some(text)) {
            return (None, None);
        }
        let body = json!({"data": data}).to_string().into_bytes();
        self.writing = Some(data);
        let request =
            ApiRequest::new(RequestClass::Announcement, Method::Patch, path(at), (MERGE, body));
        (Some(request), None)
    }

    /// Takes the answer to a write.
    pub(crate) fn was_written(&mut self, answered: Option<&Answered>) -> Option<LearnedNews> {
        let data = self.writing.take()?;
        match answered? {
            Ok((200 | 201, ..)) => {
                self.holds.extend(data);
                None
            }
            answer => Some(LearnedNews::NotWritten { problem: problem(answer) }),
        }
    }

    /// When to write next.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.due_ms.filter(|_| self.is_there && self.writing.is_none())
    }
}

fn path(at: &ConfigMapName) -> String {
    format!("/api/v1/namespaces/{}/configmaps/{}", at.namespace, at.name)
}

fn learned_in(body: &[u8]) -> Result<(Data, Learned), String> {
    let map: ConfigMap = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let learned = text::read(&map.data).map_err(|error| error.to_string())?;
    Ok((map.data, learned))
}

fn problem(answer: &Answered) -> String {
    match answer {
        Ok((code, _, body)) => format!("the API server rejected it ({code}): {}", message(body)),
        Err(none) => format!("the API server did not respond: {}", none.error),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dovetail_model::RunTimeTables;
    use dovetail_plan::Learnt;

    use super::*;
    use crate::answer::NoAnswer;

    fn keeping() -> Keeping {
        let (namespace, name) = ("dovetail".to_owned(), "dovetail-learned".to_owned());
        Keeping::new(Some(ConfigMapName { namespace, name }))
    }

    fn answer(code: u16, body: &str) -> Answered {
        Ok((code, None, Bytes::copy_from_slice(body.as_bytes())))
    }

    fn known() -> Learned {
        Learned { policy: Some(Learnt::default()), ..Learned::default() }
    }

    fn map_of(request: &ApiRequest) -> String {
        String::from_utf8(request.body.clone()).expect("text")
    }

    #[test]
    fn what_one_leader_writes_the_next_one_reads() {
        let mut first = keeping();
        let read = first.next_read().expect("a read");
        assert_eq!(read.path, "/api/v1/namespaces/dovetail/configmaps/dovetail-learned");
        assert_eq!((first.is_read(), first.next_read()), (false, None));
        assert_eq!(first.was_read(Some(&answer(200, "{}"))), (Learned::default(), None));
        assert!(first.is_read());
        assert_eq!(first.next_write(known, false, 5), (None, None));
        assert_eq!(first.due_ms(), Some(600_005));
        let (write, _) = first.next_write(known, false, 600_005);
        let body = map_of(&write.expect("a write"));
        assert_eq!(first.next_write(known, true, 600_006), (None, None), "one at once");
        assert_eq!(first.was_written(Some(&answer(200, "{}"))), None);
        let (again, _) = first.next_write(known, false, 1_200_005);
        assert_eq!(again, None, "it is there already");
        let more = || Learned { run_times: Some(RunTimeTables::default()), ..known() };
        assert!(first.next_write(more, true, 1_200_006).0.is_some());
        assert_eq!(first.was_written(None), None, "another leads");
        assert_eq!(first.next_write(more, true, 1_200_007), (None, None), "that was the last");
        let mut second = keeping();
        second.next_read();
        let read = second.was_read(Some(&answer(200, &body)));
        assert_eq!(read, (known(), Some(LearnedNews::Read)));
    }

    #[test]
    fn trouble_is_waited_for_three_times_and_a_missing_configmap_is_not_written() {
        let mut troubled = keeping();
        let silent = Err(NoAnswer { unsent: true, error: "no route".to_owned() });
        for bad in [&answer(503, "busy"), &silent] {
            troubled.next_read().expect("a read");
            assert_eq!(troubled.was_read(Some(bad)), (Learned::default(), None));
            assert!(!troubled.is_read());
        }
        troubled.next_read().expect("a read");
        let problem = "the API server did not respond: no route".to_owned();
        let news = Some(LearnedNews::NotRead { problem });
        assert_eq!(troubled.was_read(Some(&silent)), (Learned::default(), news));
        assert!(troubled.is_read() && troubled.next_write(known, true, 0).0.is_some());
        let mut missing = keeping();
        missing.next_read();
        let (_, news) = missing.was_read(Some(&answer(404, "{}")));
        assert_eq!(news, Some(LearnedNews::Missing));
        assert_eq!(missing.next_write(known, true, 0), (None, None));
    }

    #[test]
    fn what_is_of_no_use_is_told_and_written_over() {
        let mut other = keeping();
        other.next_read();
        let body = r#"{"data": {"learnt.json": "{\"format\": \"x\", \"learnt\": {}}"}}"#;
        let (learned, news) = other.was_read(Some(&answer(200, body)));
        let problem = "learnt.json: format x, expected dovetail-learnt-1".to_owned();
        assert_eq!((learned, news), (Learned::default(), Some(LearnedNews::NotRead { problem })));
        assert!(other.next_write(known, true, 0).0.is_some());
    }
}
