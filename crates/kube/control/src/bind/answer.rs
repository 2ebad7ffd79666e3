//! What an answer of the server means for a bind. Pure: codes and objects in, verdicts out; no
//! message is ever taken apart.

use serde::Deserialize;

use super::{Bind, DECISION, EPOCH};
use crate::answer::{Answered, message};

/// What became of a bind. Every decision ends in exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The pod is on its node by this decision.
    Bound,
    /// Somebody else has given the pod a node, perhaps the same one.
    BoundByOther {
        /// The pod's node.
        node: String,
    },
    /// The pod is gone; another of its name may be there.
    Gone,
    /// The pod is being deleted.
    Terminating,
    /// The pod has scheduling gates.
    Gated,
    /// The bind had no effect and will have none. It may be decided anew.
    NotBound(Cause),
    /// The binder stopped before it could learn what happened.
    Unknown,
}

/// Why a bind had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server asks for a pause (429).
    Busy { retry_after_ms: Option<u64> },
    /// The pod changed meanwhile (409).
    Conflict,
    /// The server will refuse it again, such as for missing rights.
    Refused {
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server failed, and the pod is still without node.
    ServerFailed {
        code: u16,
        /// What the server says.
        message: String,
    },
    /// No answer came, and the pod is still without node.
    NoAnswer {
        /// What went wrong.
        error: String,
    },
    /// This process does not lead, or not in the epoch of the decision. Nothing was sent.
    NotLeading,
    /// The binder stopped before sending.
    Stopped,
}

/// What to do about an answer to the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindVerdict {
    /// What became of it is known.
    Final(BindOutcome),
    /// It had no effect; the pod tells why.
    LookNow(Cause),
    /// It may still take effect: look when its time is over.
    LookLater(Cause),
}

/// Judges the answer to a bind.
pub fn of_bind(answered: &Answered) -> BindVerdict {
    let (code, retry_after_s, body) = match answered {
        Ok((code, retry_after_s, body)) => (*code, *retry_after_s, body),
        Err(none) => {
            let cause = Cause::NoAnswer { error: none.error.clone() };
            return match none.unsent {
                true => BindVerdict::Final(BindOutcome::NotBound(cause)),
                false => BindVerdict::LookLater(cause),
            };
        }
    };
    match code {
        200 | 201 => BindVerdict::Final(BindOutcome::Bound),
        404 => BindVerdict::Final(BindOutcome::Gone),
        409 => BindVerdict::LookNow(Cause::Conflict),
        429 => {
            let retry_after_ms = retry_after_s.map(|seconds| seconds.saturating_mul(1_000));
            BindVerdict::Final(BindOutcome::NotBound(Cause::Busy { retry_after_ms }))
        }
        400..=499 => {
            let refused = Cause::Refused { code, message: message(body) };
            BindVerdict::Final(BindOutcome::NotBound(refused))
        }
        _ => BindVerdict::LookLater(Cause::ServerFailed { code, message: message(body) }),
    }
}

/// The part of a pod that settles a bind.
#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    #[serde(default)]
    annotations: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: Option<String>,
    #[serde(default)]
    scheduling_gates: Option<Vec<serde::de::IgnoredAny>>,
}

/// Judges the pod that was read after a bind whose effect was open. `None`: the answer says nothing
/// about the pod.
pub fn of_pod(bind: &Bind, answered: &Answered, cause: &Cause) -> Option<BindOutcome> {
    let (code, _, body) = answered.as_ref().ok()?;
    match code {
        404 => return Some(BindOutcome::Gone),
        200 => {}
        _ => return None,
    }
    let pod: Pod = serde_json::from_slice(body).ok()?;
    if *pod.metadata.uid != *bind.pod.uid {
        return Some(BindOutcome::Gone);
    }
    if let Some(node) = pod.spec.node_name.filter(|node| !node.is_empty()) {
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let ours = *node == *bind.node
            && annotations.get(DECISION) == Some(&bind.tag)
            && annotations.get(EPOCH) == Some(&bind.epoch.to_string());
        return Some(if ours { BindOutcome::Bound } else { BindOutcome::BoundByOther { node } });
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(BindOutcome::Terminating);
    }
    if pod.spec.scheduling_gates.is_some_and(|gates| !gates.is_empty()) {
        return Some(BindOutcome::Gated);
    }
    Some(BindOutcome::NotBound(cause.clone()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dovetail_cluster::world::PodKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::answer::NoAnswer;

    fn bind() -> Bind {
        let text = |text: &str| text.to_owned();
        Bind {
            decision: 1,
            pod: PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() },
            node: "m".into(),
            epoch: 2,
            tag: text("d"),
        }
    }

    fn answer(code: u16, body: &Value) -> Answered {
        Ok((code, None, Bytes::from(body.to_string())))
    }

    #[test]
    fn only_answers_that_leave_it_open_are_looked_into() {
        let verdict = |code| of_bind(&answer(code, &json!({"message": "m"})));
        assert_eq!(verdict(201), BindVerdict::Final(BindOutcome::Bound));
        assert_eq!(verdict(404), BindVerdict::Final(BindOutcome::Gone));
        assert_eq!(verdict(409), BindVerdict::LookNow(Cause::Conflict));
        assert!(matches!(
            verdict(403),
            BindVerdict::Final(BindOutcome::NotBound(Cause::Refused { .. }))
        ));
        assert!(matches!(
            verdict(429),
            BindVerdict::Final(BindOutcome::NotBound(Cause::Busy { .. }))
        ));
        assert!(
            [500, 502, 503, 504, 302]
                .iter()
                .all(|code| matches!(verdict(*code), BindVerdict::LookLater(_)))
        );
        let none = |unsent| of_bind(&Err(NoAnswer { unsent, error: String::new() }));
        assert!(matches!(
            none(true),
            BindVerdict::Final(BindOutcome::NotBound(Cause::NoAnswer { .. }))
        ));
        assert!(matches!(none(false), BindVerdict::LookLater(_)));
    }

    #[test]
    fn the_pod_tells_whose_bind_it_carries() {
        let of = |pod: Value| of_pod(&bind(), &answer(200, &pod), &Cause::Conflict);
        let pod = |uid: &str, node: &str, tag: &str| {
            json!({"metadata": {"uid": uid, "annotations": {EPOCH: "2", DECISION: tag}},
                   "spec": {"nodeName": node}})
        };
        let other = |node: &str| Some(BindOutcome::BoundByOther { node: node.to_owned() });
        assert_eq!(of(pod("u", "m", "d")), Some(BindOutcome::Bound));
        assert_eq!(of(pod("u", "m", "e")), other("m"));
        assert_eq!(of(pod("u", "x", "d")), other("x"));
        assert_eq!(of(pod("v", "m", "d")), Some(BindOutcome::Gone));
        assert_eq!(of(pod("u", "", "d")), Some(BindOutcome::NotBound(Cause::Conflict)));
        let gated = json!({"metadata": {"uid": "u"}, "spec": {"schedulingGates": [{"name": "g"}]}});
        assert_eq!(of(gated), Some(BindOutcome::Gated));
        let going = json!({"metadata": {"uid": "u", "deletionTimestamp": "t"}});
        assert_eq!(of(going), Some(BindOutcome::Terminating));
        assert_eq!(of(json!("nonsense")), None);
    }
}
