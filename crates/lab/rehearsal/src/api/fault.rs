//! Faults on demand.
//!
//! A rule says on which requests, how often, and what goes wrong. Whether it strikes is a function
//! of the seed, the rule, the request and how often this very request came before: not of the order
//! in which requests of different objects arrive. So a run with the same seed and the same requests
//! per object meets the same faults, whatever the threads do.

use std::collections::BTreeMap;
use std::fmt;

use super::call::{Call, Verb};
use crate::dice::mix;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFault {
    /// 409 without effect, as after a lost race.
    Conflict,
    /// 410 as the answer.
    Gone,
    /// 429 without effect; with `Retry-After` unless 0.
    TooManyRequests {
        /// Seconds to wait.
        retry_after_s: u32,
    },
    /// 500, 503 or 504 without effect; 401 or 403 for a user without rights.
    ServerError { code: u16 },
    /// The connection closes before anything happened.
    Cut,
    /// The request takes effect, then the connection closes.
    ReplyLost,
    /// The request waits before it takes effect.
    Slow { delay_ms: u64 },
    /// The request waits for the test's word before it takes effect.
    Hold,
    /// The request takes effect, its answer waits for the test's word.
    HoldReply,
    /// A watch whose connection closes.
    CutWatch { after_events: u32 },
    /// A watch that stays open and says nothing.
    SilentWatch { after_events: u32 },
    /// A watch that ends with an event of 410.
    ExpireWatch { after_events: u32 },
    /// A watch that sends some events twice.
    DuplicateEvents { per_million: u32 },
    /// A watch that waits, then sends what happened meanwhile in another order. Events of one
    /// object keep theirs.
    ReorderEvents {
        /// For how long it waits.
        window_ms: u64,
    },
}

impl ApiFault {
    fn is_of_watches(self) -> bool {
        matches!(
            self,
            Self::CutWatch { .. }
                | Self::SilentWatch { .. }
                | Self::ExpireWatch { .. }
                | Self::DuplicateEvents { .. }
                | Self::ReorderEvents { .. }
        )
    }
}

/// Which requests a rule looks at. What is not said matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct On {
    /// One of these; empty: any.
    pub verbs: Vec<Verb>,
    /// Plural, such as `pods`.
    pub plural: Option<String>,
    /// Subresource, such as `binding`; `Some("")` is the object itself.
    pub subresource: Option<String>,
    pub name: Option<String>,
}

impl On {
    /// Requests of these verbs to this plural itself.
    pub fn new(verbs: &[Verb], plural: &str) -> Self {
        Self {
            verbs: verbs.to_vec(),
            plural: Some(plural.to_owned()),
            subresource: Some(String::new()),
            name: None,
        }
    }

    /// Every bind.
    pub fn binds() -> Self {
        let subresource = Some("binding".to_owned());
        Self { subresource, ..Self::new(&[Verb::Create], "pods") }
    }

    fn holds(&self, call: &Call) -> bool {
        let same =
            |asked: &Option<String>, is: &str| asked.as_deref().is_none_or(|asked| asked == is);
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && same(&self.plural, &call.kind.plural)
            && same(&self.subresource, &call.subresource)
            && same(&self.name, &call.name)
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The requests it looks at.
    pub on: On,
    /// How many of a million of them it strikes.
    pub per_million: u32,
    /// It strikes at most so often.
    pub at_most: Option<u32>,
    /// What it does.
    pub fault: ApiFault,
}

impl FaultRule {
    /// Strikes so many of a million.
    pub fn some(on: On, per_million: u32, fault: ApiFault) -> Self {
        Self { on, per_million, at_most: None, fault }
    }

    /// Strikes the first so many requests.
    pub fn first(on: On, count: u32, fault: ApiFault) -> Self {
        Self { on, per_million: 1_000_000, at_most: Some(count), fault }
    }
}

/// A fault that struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    pub seed: u64,
    /// Position of the rule.
    pub rule: usize,
    /// The request: verb, place, and how often it came before.
    pub request: String,
    pub fault: ApiFault,
}

impl fmt::Display for FaultRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, rule, request, fault } = self;
        write!(formatter, "seed {seed}, rule {rule}: {fault:?} on {request}")
    }
}

/// All rules of a run, and what they did.
#[derive(Debug, Default)]
pub struct Faults {
    seed: u64,
    rules: Vec<FaultRule>,
    struck: Vec<u32>,
    seen: BTreeMap<String, u64>,
    /// What struck, in this order.
    pub log: Vec<FaultRecord>,
}

impl Faults {
    /// Replaces the rules; their counters start from zero.
    pub fn set(&mut self, seed: u64, rules: Vec<FaultRule>) {
        self.struck = vec![0; rules.len()];
        (self.seed, self.rules) = (seed, rules);
        self.seen.clear();
    }

    /// The fault of a request, and a number to draw from for what happens on its watch.
    pub fn strike(&mut self, call: &Call) -> Option<(ApiFault, u64)> {
        if self.rules.is_empty() {
            return None;
        }
        let namespace = call.namespace.as_deref().unwrap_or("-");
        let Call { verb, name, subresource, .. } = call;
        let place = format!("{verb:?} {} {namespace}/{name} {subresource}", call.kind.plural);
        let seen = self.seen.entry(place.clone()).or_insert(0);
        *seen += 1;
        let request = format!("{} #{seen}", place.trim_end());
        for (at, rule) in self.rules.iter().enumerate() {
            let fits = rule.fault.is_of_watches() <= (call.verb == Verb::Watch);
            if !fits
                || !rule.on.holds(call)
                || rule.at_most.is_some_and(|most| self.struck[at] >= most)
            {
                continue;
            }
            let number = draw(self.seed, &format!("{at} {request}"));
            if number % 1_000_000 < u64::from(rule.per_million) {
                self.struck[at] += 1;
                let (seed, rule, fault) = (self.seed, at, rule.fault);
                self.log.push(FaultRecord { seed, rule, request, fault });
                return Some((fault, number));
            }
        }
        None
    }
}

/// A number that depends on every letter of the text and on the seed (FNV-1a, then the finaliser of
/// SplitMix64).
pub(crate) fn draw(seed: u64, text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::call::Query;
    use super::super::kind::Kinds;
    use super::*;

    fn bind(name: &str) -> Call {
        Call {
            verb: Verb::Create,
            kind: Kinds::of_minor(37).find("", "v1", "pods").unwrap_or_else(|| {
                Arc::new(super::super::ResourceKind::custom("", "v1", "Pod", "pods"))
            }),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            subresource: "binding".to_owned(),
            query: Query::default(),
        }
    }

    fn struck(seed: u64, names: &[String]) -> Vec<String> {
        let mut faults = Faults::default();
        faults.set(seed, vec![FaultRule::some(On::binds(), 300_000, ApiFault::ReplyLost)]);
        names.iter().for_each(|name| _ = faults.strike(&bind(name)));
        let mut log: Vec<String> = faults.log.iter().map(ToString::to_string).collect();
        log.sort();
        log
    }

    #[test]
    fn the_order_of_requests_of_different_objects_changes_nothing() {
        let names: Vec<String> = (0..300).map(|number| format!("p{}", number % 100)).collect();
        let mut by_name = names.clone();
        by_name.sort();
        assert_eq!(struck(7, &names), struck(7, &by_name));
        assert_ne!(struck(7, &names), struck(8, &names));
        assert!((60..120).contains(&struck(7, &names).len()), "about 30% of 300");
    }

    #[test]
    fn a_rule_strikes_at_most_as_often_as_it_says() {
        let mut faults = Faults::default();
        faults.set(1, vec![FaultRule::first(On::binds(), 2, ApiFault::Cut)]);
        let count = (0..9).filter(|_| faults.strike(&bind("p")).is_some()).count();
        assert_eq!((count, faults.log.len()), (2, 2));
        assert_eq!(faults.log[1].request, "Create pods n/p binding #2");
    }
}
