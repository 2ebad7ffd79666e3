//! A reservation in the words of the engine, or why it cannot be one.

use std::sync::Arc;

use dovetail_model::{Beneficiary, Booking, Quantity};
use dovetail_objects::Reservation;
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::status::{phase, says_of_this};
use crate::queues::engine_name;
use dovetail_translate::{ReferredObjects, Rules, pod};

/// Pods of one reservation, at most.
const MOST_PODS: u32 = 10_000;

/// Why capacity cannot be reserved as a reservation says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    #[error("spec.{field}: `{text}` is not a time: write one such as 2026-12-01T08:00:00Z")]
    Time { field: &'static str, text: String },
    #[error("spec.to: {to} is not later than spec.from, {from}")]
    Order { from: String, to: String },
    #[error("spec: names both queue {queue} and job {job}: remove one of them")]
    Both { queue: String, job: String },
    #[error("spec.count: {count} pods: expected 1 to {MOST_PODS}")]
    Count { count: u32 },
    #[error("spec.requests: {problem}")]
    Pod { problem: String },
}

/// What is to be reserved.
pub fn booking(
    object: &Reservation,
    facts: &ReferredObjects,
    rules: &Rules,
) -> Result<Booking, Unusable> {
    let time = |field: &'static str, text: &str| {
        let read = text.parse::<Timestamp>().ok();
        let read = read.and_then(|at| u64::try_from(at.as_millisecond()).ok());
        read.ok_or_else(|| Unusable::Time { field, text: text.to_owned() })
    };
    let (queue, job) = (object.queue.to_string(), object.job.to_string());
    let beneficiary = match (queue.is_empty(), job.is_empty()) {
        (false, false) => return Err(Unusable::Both { queue, job }),
        (false, true) => Some(Beneficiary::Queue(engine_name(&queue))),
        (true, false) => Some(Beneficiary::Job(job)),
        (true, true) => None,
    };
    let (from_ms, to_ms) = (time("from", &object.from)?, time("to", &object.to)?);
    if to_ms <= from_ms {
        let (from, to) = (object.from.to_string(), object.to.to_string());
        return Err(Unusable::Order { from, to });
    }
    let count = object.count;
    if !(1..=MOST_PODS).contains(&count) {
        return Err(Unusable::Count { count });
    }
    let amounts = object.requests.as_object().into_iter().flatten();
    amounts.map(|(name, amount)| requestable(name, amount)).collect::<Result<Vec<()>, _>>()?;
    // It is of no class and no namespace: who uses it shares GPUs by what it is itself.
    let rules = Rules { mixes_shared_gpus: true, ..rules.clone() };
    let requirement = pod(&object.pod, facts, &rules)
        .map_err(|problem| Unusable::Pod { problem: problem.to_string() })?;
    Ok(Booking {
        name: object.meta.name.to_string(),
        beneficiary,
        requirement: Arc::new(requirement),
        count,
        from_ms,
        to_ms,
        was_admitted: ["Admitted", "Active"].contains(&phase(object)) && says_of_this(object),
    })
}

/// Whether a pod could request so much of a resource, as the API server checks it for pods.
fn requestable(name: &str, amount: &Value) -> Result<(), Unusable> {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let problem = |problem: &str| Err(Unusable::Pod { problem: format!("{name}: {problem}") });
    let is_native =
        ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    let Ok(quantity) = text.parse::<Quantity>() else {
        return problem(&format!("`{text}` is not a quantity such as 4 or 16Gi"));
    };
    match quantity.to_billionths() {
        _ if !is_native && !name.contains('/') => problem(
            "no pod can request this resource: write cpu, memory, ephemeral-storage, \
             hugepages-SIZE, or a name with a domain, such as nvidia.com/gpu",
        ),
        ..0 => problem(&format!("`{text}` is negative")),
        amount if !is_native && amount % 1_000_000_000 != 0 => {
            problem(&format!("`{text}` is not a whole number"))
        }
        _ => Ok(()),
    }
}

/// Whether it was refused or has ended as it is written now: nothing more is decided about it.
pub fn is_settled(object: &Reservation) -> bool {
    ["Refused", "Ended"].contains(&phase(object)) && says_of_this(object)
}

#[cfg(test)]
mod tests {
    use dovetail_model::{Booked, BookingVerdict, JobId, NodeResource, Place, PodId, TooLarge};
    use dovetail_translate::REPLICAS_AS_GPUS;
    use serde_json::json;

    use super::*;
    use crate::reservations::status;

    fn reservation(change: impl Fn(&mut Value)) -> Reservation {
        let mut object = json!({"metadata": {"name": "night", "generation": 3}, "spec": {
            "queue": "vision", "count": 4,
            "requests": {"nvidia.com/gpu": 8, "cpu": "96"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "from": "2026-12-01T20:00:00Z", "to": "2026-12-02T06:00:00+00:00"}});
        change(&mut object);
        serde_json::from_value(object).expect("a reservation")
    }

    fn read(change: impl Fn(&mut Value)) -> Result<Booking, Unusable> {
        booking(&reservation(change), &ReferredObjects::default(), &Rules::default())
    }

    /// Otherwise it would depend on what nodes offered when it was read.
    #[test]
    fn a_reservation_asks_nothing_of_who_shares_gpus() {
        let mut facts = ReferredObjects::default();
        facts.offers.add(REPLICAS_AS_GPUS);
        let shared = booking(&reservation(|_| {}), &facts, &Rules::default()).expect("read");
        assert!(shared.requirement.rules.is_empty(), "{:?}", shared.requirement.rules);
        assert_eq!(shared, read(|_| {}).expect("as documented"));
    }

    #[test]
    fn a_reservation_is_read_as_it_is_written() {
        let night = read(|_| {}).expect("as documented");
        assert_eq!(night.beneficiary, Some(Beneficiary::Queue("vision".to_owned())));
        assert_eq!((night.count, night.to_ms - night.from_ms), (4, 36_000_000));
        assert_eq!(night.requirement.gpu_milli(), 8_000);
        assert_eq!(night.requirement.resources.cpu_milli, 96_000);
        assert_eq!(night.requirement.tolerations.len(), 1);
        assert!(!night.was_admitted);
        let nobody = read(|object| drop(object["spec"].as_object_mut().unwrap().remove("queue")));
        assert_eq!(nobody.expect("a drain").beneficiary, None);
    }

    #[test]
    fn what_cannot_be_reserved_is_refused_with_the_field_and_what_to_write() {
        let told = |change: &dyn Fn(&mut Value)| read(change).expect_err("refused").to_string();
        let spec = |field: &str, value: Value| told(&move |it| it["spec"][field] = value.clone());
        assert_eq!(
            spec("from", json!("tomorrow")),
            "spec.from: `tomorrow` is not a time: write one such as 2026-12-01T08:00:00Z"
        );
        assert!(spec("to", json!("")).starts_with("spec.to: `` is not a time"));
        assert_eq!(
            spec("to", json!("2026-12-01T20:00:00Z")),
            "spec.to: 2026-12-01T20:00:00Z is not later than spec.from, 2026-12-01T20:00:00Z"
        );
        assert_eq!(
            spec("job", json!("default/train")),
            "spec: names both queue vision and job default/train: remove one of them"
        );
        assert_eq!(spec("count", json!(0)), "spec.count: 0 pods: expected 1 to 10000");
        assert!(spec("requests", json!({"nvidia.com/gpumem": 1})).starts_with("spec.requests: "));
        let amount = |name: &str, amount: Value| {
            spec("requests", json!({name: amount})).replacen("spec.requests: ", "", 1)
        };
        assert!(amount("foo", json!(4)).starts_with("foo: no pod can request this resource: "));
        assert_eq!(
            amount("nvidia.com/gpu", json!("0.5")),
            "nvidia.com/gpu: `0.5` is not a whole number"
        );
        assert_eq!(amount("nvidia.com/gpu", json!(-4)), "nvidia.com/gpu: `-4` is negative");
    }

    #[test]
    fn a_status_names_a_queue_that_does_not_exist() {
        let (object, problem) = (reservation(|_| {}), Unusable::Count { count: 0 });
        let says = |has_queue: bool| {
            let status = status(&object, Err(&problem), has_queue).expect("it is refused");
            status["message"].as_str().expect("a text").to_owned()
        };
        let missing = "; queue vision does not exist: create it, or correct spec.queue";
        assert_eq!(says(false), says(true) + missing);
    }

    #[test]
    fn a_status_says_if_no_node_is_large_enough() {
        let object = reservation(|_| {});
        let says = |too_large| {
            let booking =
                booking(&object, &ReferredObjects::default(), &Rules::default()).expect("read");
            let verdict = BookingVerdict::Refused { earliest_ms: None, too_large };
            let booked = Booked { verdict, ..Booked::requested(booking, 0) };
            let status = status(&object, Ok(&booked), true).expect("it is refused");
            status["message"].as_str().expect("a text").to_owned()
        };
        let resource = NodeResource::Gpus;
        let too_large = TooLarge { resource, requested: 8, largest: 4 };
        let told = "no node is large enough: each pod requests 8 GPUs, and the largest node has 4";
        assert_eq!(says(Some(too_large)), told);
        assert!(says(None).starts_with("no room at the reserved time or at any later time"));
    }

    #[test]
    fn a_status_says_if_it_lists_only_some_of_the_nodes() {
        let object = reservation(|_| {});
        let says = |nodes: u32| {
            let booking =
                booking(&object, &ReferredObjects::default(), &Rules::default()).expect("read");
            let mut booked = Booked::requested(booking, 0);
            booked.booking.count = nodes;
            booked.verdict = BookingVerdict::Admitted;
            booked.claim.places = (0..nodes).map(place).collect();
            let status = status(&object, Ok(&booked), true).expect("it is admitted");
            let listed = status["nodes"].as_array().expect("a list").len();
            (listed, status["message"].as_str().expect("a text").to_owned())
        };
        assert_eq!(says(256), (256, String::new()));
        assert_eq!(says(300), (256, "status.nodes lists 256 of 300 nodes".to_owned()));
    }

    fn place(number: u32) -> Place {
        let pod = PodId { job: JobId(1), pod_set: 0, ordinal: number };
        Place { pod, node: format!("node-{number}").into(), devices: Vec::new() }
    }

    #[test]
    fn what_was_decided_holds_until_the_reservation_is_changed() {
        let with = |phase: &str, generation: u64| {
            reservation(|object| {
                object["status"] = json!({"phase": phase, "observedGeneration": generation});
            })
        };
        let admitted = |object: &Reservation| {
            booking(object, &ReferredObjects::default(), &Rules::default())
                .expect("read")
                .was_admitted
        };
        assert!(admitted(&with("Active", 3)) && !admitted(&with("Active", 2)));
        assert!(is_settled(&with("Refused", 3)) && !is_settled(&with("Refused", 2)));
        assert!(is_settled(&with("Ended", 3)) && !is_settled(&with("Admitted", 3)));
    }
}
