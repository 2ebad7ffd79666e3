//! In which queue a pod is, and whether that queue takes it.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_objects::{LabelSelector, Labels, Queue};

use super::{DEFAULT_QUEUE, QueueProblem};
use dovetail_translate::NotYet;

/// Label of a pod, of its group or workload, or of its namespace: the queue it is in.
pub const QUEUE_LABEL: &str = labels::QUEUE;

/// The queue of a pod: the first of its own label, that of its group and that of its namespace,
/// else the default queue.
pub fn queue_of<'a>(
    pod: &'a Labels,
    group: Option<&'a Labels>,
    namespace: Option<&'a Labels>,
) -> &'a str {
    let named = [Some(pod), group, namespace].into_iter().flatten();
    let named = named.filter_map(|labels| labels.get(QUEUE_LABEL));
    named.into_iter().find(|name| !name.is_empty()).unwrap_or(DEFAULT_QUEUE)
}

/// Whether a queue takes pods of a namespace.
///
/// # Errors
/// When the queue is not there or not ready, or does not choose the namespace.
pub fn admit(
    name: &str,
    queues: &BTreeMap<Box<str>, Queue>,
    problems: &BTreeMap<Box<str>, QueueProblem>,
    (namespace, labels): (&str, Option<&Labels>),
) -> Result<(), NotYet> {
    let Some(queue) = queues.get(name) else {
        return match name {
            DEFAULT_QUEUE => Ok(()),
            name => Err(NotYet::QueueMissing { queue: name.to_owned() }),
        };
    };
    if let Some(problem) = problems.get(name) {
        let problem = problem.to_string();
        return Err(NotYet::QueueNotReady { queue: name.to_owned(), problem });
    }
    let none = Labels::default();
    let rule = match &queue.namespaces {
        LabelSelector::Nothing if name == DEFAULT_QUEUE => return Ok(()),
        LabelSelector::Nothing => "it has no spec.namespaceSelector".to_owned(),
        selector if selector.matches(labels.unwrap_or(&none)) => return Ok(()),
        selector => format!("its spec.namespaceSelector is {selector}"),
    };
    let (queue, namespace) = (name.to_owned(), namespace.to_owned());
    Err(NotYet::QueueClosed { queue, namespace, rule })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels(json: Value) -> Labels {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_nearest_label_names_the_queue() {
        let [named, none] = [json!({QUEUE_LABEL: "a"}), json!({"app": "web"})].map(labels);
        let other = labels(json!({QUEUE_LABEL: "b"}));
        assert_eq!(queue_of(&named, Some(&other), Some(&other)), "a");
        assert_eq!(queue_of(&none, Some(&other), Some(&named)), "b");
        assert_eq!(queue_of(&none, Some(&none), Some(&named)), "a");
        assert_eq!(queue_of(&none, None, None), "default");
    }

    #[test]
    fn a_queue_takes_pods_of_the_namespaces_it_chooses_and_of_no_other() {
        let of = |name: &str, selector: Value| {
            let object =
                json!({"metadata": {"name": name}, "spec": {"namespaceSelector": selector}});
            (Box::from(name), serde_json::from_value(object).unwrap())
        };
        let queues = BTreeMap::from([
            of("closed", json!(null)),
            of("open", json!({})),
            of("team", json!({"matchLabels": {"team": "a"}})),
        ]);
        let problem = QueueProblem::ParentMissing { parent: "x".to_owned() };
        let problems = BTreeMap::from([(Box::from("open"), problem)]);
        let team = labels(json!({"team": "a"}));
        let says = |name: &str, problems: &BTreeMap<Box<str>, QueueProblem>, labels: &Labels| {
            let admitted = admit(name, &queues, problems, ("blue", Some(labels)));
            admitted.map_err(|refused| refused.to_string()).err().unwrap_or_default()
        };
        let none = (BTreeMap::new(), Labels::default());
        for taken in ["default", "open", "team"] {
            assert_eq!(says(taken, &none.0, &team), "");
        }
        assert_eq!(
            says("team", &none.0, &none.1),
            "queue team accepts no pods of namespace blue: its spec.namespaceSelector is team=a"
        );
        assert_eq!(
            says("closed", &none.0, &team),
            "queue closed accepts no pods of namespace blue: it has no spec.namespaceSelector"
        );
        assert_eq!(
            says("nobody", &none.0, &team),
            "queue nobody does not exist: create it, or set another in label dovetail.dev/queue"
        );
        assert!(
            says("open", &problems, &team).starts_with("queue open is not ready: its parent x")
        );
    }
}
