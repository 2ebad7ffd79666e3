//! Inputs as a recording has them.

use bytes::Bytes;
use dovetail_cluster::world::Change;
use dovetail_objects::{Kind, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::answer::{Answered, NoAnswer};
use crate::control::Input;
use crate::request::ApiResponse;

/// An input; objects as the JSON of what is read of them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputEntry {
    Won(u64),
    Stop,
    End,
    Applied(String, Box<RawValue>),
    Deleted(String, Box<RawValue>),
    Listing(String),
    Listed(String),
    Absent(String),
    Answered(AnswerEntry),
    ChooseBy(String),
    Tick,
}

/// What came of a request.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerEntry {
    number: u64,
    took_ms: u64,
    over_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<AnsweredEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnsweredEntry {
    /// Code, seconds of `Retry-After` and what is read of the body.
    Came(u16, Option<u64>, String),
    /// Whether the request was never sent, and what went wrong.
    None(bool, String),
}

/// Objects of a kind that this program does not know.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} are not known to this version")]
pub struct UnknownKind(String);

impl InputEntry {
    /// An input to be written down; `None`: of an object whose JSON is not at hand.
    pub(crate) fn of(input: &Input) -> Option<Self> {
        Some(match input {
            Input::Won { epoch } => Self::Won(*epoch),
            Input::Stop => Self::Stop,
            Input::End => Self::End,
            Input::Tick => Self::Tick,
            Input::ChooseBy { policy } => Self::ChooseBy(policy.clone()),
            Input::Answered(answer) => Self::Answered(AnswerEntry::of(answer)),
            Input::Change(change, json) => Self::of_change(change, json.as_deref())?,
        })
    }

    fn of_change(change: &Change, json: Option<&str>) -> Option<Self> {
        let json = || RawValue::from_string(json?.to_owned()).ok();
        Some(match change {
            Change::Applied(object) => Self::Applied(named(object.kind()), json()?),
            Change::Deleted(kind, _) => Self::Deleted(named(*kind), json()?),
            Change::Listing(kind) => Self::Listing(named(*kind)),
            Change::Listed(kind) => Self::Listed(named(*kind)),
            Change::Absent(kind) => Self::Absent(named(*kind)),
        })
    }

    /// The input as it was.
    ///
    /// # Errors
    /// When it is about an object of an unknown kind.
    pub fn input(self) -> Result<Input, UnknownKind> {
        let read = |kind: String, json: &RawValue| {
            let kind = of_name(kind)?;
            Ok((kind, Object::read(kind, json.get().as_bytes())))
        };
        let change = match self {
            Self::Won(epoch) => return Ok(Input::Won { epoch }),
            Self::Stop => return Ok(Input::Stop),
            Self::End => return Ok(Input::End),
            Self::Tick => return Ok(Input::Tick),
            Self::ChooseBy(policy) => return Ok(Input::ChooseBy { policy }),
            Self::Answered(answer) => return Ok(Input::Answered(answer.answer())),
            Self::Applied(kind, json) => {
                let (_, object) = read(kind, &json)?;
                return Ok(Input::Change(Change::Applied(object), Some(json.get().into())));
            }
            Self::Deleted(kind, json) => {
                let (kind, object) = read(kind, &json)?;
                let change = Change::Deleted(kind, object.meta().clone());
                return Ok(Input::Change(change, Some(json.get().into())));
            }
            Self::Listing(kind) => Change::Listing(of_name(kind)?),
            Self::Listed(kind) => Change::Listed(of_name(kind)?),
            Self::Absent(kind) => Change::Absent(of_name(kind)?),
        };
        Ok(Input::Change(change, None))
    }
}

impl AnswerEntry {
    fn of(answer: &ApiResponse) -> Self {
        let answered = answer.answered.as_ref().map(|answered| match answered {
            Ok((code, retry_after_s, body)) => {
                AnsweredEntry::Came(*code, *retry_after_s, read_of(body))
            }
            Err(NoAnswer { unsent, error }) => AnsweredEntry::None(*unsent, error.clone()),
        });
        let ApiResponse { number, took_ms, over_ms, .. } = *answer;
        Self { number, took_ms, over_ms, answered }
    }

    fn answer(self) -> ApiResponse {
        let Self { number, took_ms, over_ms, answered } = self;
        let answered = answered.map(|answered| -> Answered {
            match answered {
                AnsweredEntry::Came(code, retry_after_s, body) => {
                    Ok((code, retry_after_s, Bytes::from(body)))
                }
                AnsweredEntry::None(unsent, error) => Err(NoAnswer { unsent, error }),
            }
        });
        ApiResponse { number, answered, took_ms, over_ms }
    }
}

/// What is read of the body of an answer: of an object, whose it is and where; everything of a
/// `Status` or a text.
fn read_of(body: &[u8]) -> String {
    let whole = || String::from_utf8_lossy(body).into_owned();
    let Ok(mut object) = serde_json::from_slice::<Value>(body) else { return whole() };
    if !object["metadata"]["uid"].is_string() {
        return whole();
    }
    let mut only = |at: &str, kept: fn(&str) -> bool| {
        let fields = object.pointer_mut(at).and_then(Value::as_object_mut);
        fields.into_iter().for_each(|fields| fields.retain(|key, _| kept(key)));
    };
    only("", |key| matches!(key, "metadata" | "spec" | "message"));
    only("/metadata", |key| key != "managedFields" && key != "labels");
    only("/metadata/annotations", |key| key.starts_with("dovetail.dev/"));
    only("/spec", |key| matches!(key, "nodeName" | "schedulingGates"));
    object.to_string()
}

/// The resource as paths name it: two versions of a kind may be watched.
fn named(kind: Kind) -> String {
    [kind.group(), kind.version(), kind.plural()].join("/")
}

fn of_name(name: String) -> Result<Kind, UnknownKind> {
    let known = Kind::ALL.into_iter().find(|kind| named(*kind) == name);
    known.ok_or(UnknownKind(name))
}
