//! Whether PodDisruptionBudgets let a pod be evicted, for credentials that may read them and may
//! not ask the server for an eviction.

use dovetail_objects::{DisruptionBudget, Pod};

/// Why the budgets of its namespace do not let a pod be evicted now; `None` if they do.
pub(crate) fn refusing(budgets: &[DisruptionBudget], pod: &Pod) -> Option<String> {
    let selects = |budget: &&DisruptionBudget| budget.selector.matches(&pod.meta.labels);
    let of_pod: Vec<&DisruptionBudget> = budgets.iter().filter(selects).collect();
    match &of_pod[..] {
        [] => None,
        [one] if one.disruptions_allowed > 0 => None,
        [one] => Some(format!("PodDisruptionBudget {} allows no disruption", one.meta.name)),
        // The eviction API refuses to choose.
        _ => Some("more than one PodDisruptionBudget selects it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_evicted_if_its_one_budget_allows_a_disruption() {
        let budget = |name: &str, app: &str, allowed: i32| -> DisruptionBudget {
            let object = json!({"metadata": {"name": name, "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed}});
            serde_json::from_value(object).expect("a budget")
        };
        let object = json!({"metadata": {"name": "web1", "labels": {"app": "web"}},
            "spec": {"containers": []}});
        let pod: Pod = serde_json::from_value(object).expect("a pod");
        let told = |budgets: &[DisruptionBudget]| refusing(budgets, &pod).unwrap_or_default();
        assert_eq!(told(&[]), "");
        assert_eq!(told(&[budget("a", "db", 0), budget("b", "web", 1)]), "");
        let none = told(&[budget("b", "web", 0)]);
        assert_eq!(none, "PodDisruptionBudget b allows no disruption");
        let two = told(&[budget("a", "web", 1), budget("b", "web", 1)]);
        assert_eq!(two, "more than one PodDisruptionBudget selects it");
    }
}
