//! Label and field selectors of lists, watches and disruption budgets.

use serde_json::Value;

use super::failure::ApiFailure;
use super::kind::ResourceKind;

/// What a list or watch shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// `None`: all namespaces.
    pub(crate) namespace: Option<String>,
    labels: Vec<LabelCondition>,
    fields: Vec<FieldCondition>,
}

#[derive(Clone, Debug)]
struct LabelCondition {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

#[derive(Clone, Debug)]
struct FieldCondition {
    path: String,
    value: String,
    equal: bool,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(crate) fn parse(
        kind: &ResourceKind,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Self, ApiFailure> {
        let labels = label_conditions(labels)?;
        let fields = field_conditions(kind, fields)?;
        Ok(Self { namespace: namespace.map(str::to_owned), labels, fields })
    }

    /// Only the object of this name as well.
    pub(crate) fn named(mut self, name: &str) -> Self {
        let path = "metadata.name".to_owned();
        self.fields.push(FieldCondition { path, value: name.to_owned(), equal: true });
        self
    }

    /// Whether labels or fields narrow it.
    pub(crate) fn narrows(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        if let Some(namespace) = &self.namespace
            && metadata["namespace"].as_str() != Some(namespace)
        {
            return false;
        }
        self.labels.iter().all(|condition| condition.holds(&metadata["labels"]))
            && self
                .fields
                .iter()
                .all(|field| (field_of(object, &field.path) == field.value) == field.equal)
    }
}

/// Whether a `LabelSelector` object (`matchLabels`, `matchExpressions`) selects these labels.
/// `None`: the selector is malformed and selects nothing.
pub(crate) fn label_selector_matches(selector: &Value, labels: &Value) -> Option<bool> {
    let mut conditions = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let test = Test::In(vec![value.as_str()?.to_owned()]);
        conditions.push(LabelCondition { key: key.clone(), test });
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let values = expression["values"].as_array().into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
        let test = match expression["operator"].as_str()? {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::Absent,
            _ => return None,
        };
        conditions.push(LabelCondition { key: expression["key"].as_str()?.to_owned(), test });
    }
    Some(conditions.iter().all(|condition| condition.holds(labels)))
}

impl LabelCondition {
    fn holds(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
        }
    }
}

fn label_conditions(text: &str) -> Result<Vec<LabelCondition>, ApiFailure> {
    let bad =
        |term: &str| ApiFailure::bad_request(format!("unable to parse requirement: {term:?}"));
    let mut conditions = Vec::new();
    for term in split_outside_brackets(text) {
        let term = term.trim();
        let condition = if let Some((key, values)) = term.split_once(" in ") {
            LabelCondition {
                key: key.trim().to_owned(),
                test: Test::In(set(values).ok_or_else(|| bad(term))?),
            }
        } else if let Some((key, values)) = term.split_once(" notin ") {
            let values = set(values).ok_or_else(|| bad(term))?;
            LabelCondition { key: key.trim().to_owned(), test: Test::NotIn(values) }
        } else if let Some((key, value)) = term.split_once("!=") {
            let values = vec![value.trim().to_owned()];
            LabelCondition { key: key.trim().to_owned(), test: Test::NotIn(values) }
        } else if let Some((key, value)) = term.split_once('=') {
            let value = value.trim_start_matches('=').trim();
            LabelCondition { key: key.trim().to_owned(), test: Test::In(vec![value.to_owned()]) }
        } else if let Some(key) = term.strip_prefix('!') {
            LabelCondition { key: key.trim().to_owned(), test: Test::Absent }
        } else {
            LabelCondition { key: term.to_owned(), test: Test::Exists }
        };
        if condition.key.is_empty() || condition.key.contains([' ', '(', ')']) {
            return Err(bad(term));
        }
        conditions.push(condition);
    }
    Ok(conditions)
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.retain(|term| !term.trim().is_empty());
    terms
}

fn set(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
}

fn field_conditions(kind: &ResourceKind, text: &str) -> Result<Vec<FieldCondition>, ApiFailure> {
    let mut conditions = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once('=') {
            (path, value.trim_start_matches('='), true)
        } else {
            let message = format!("invalid selector: '{term}'; can't understand '{term}'");
            return Err(ApiFailure::bad_request(message));
        };
        if !selectable(kind).contains(&path) {
            return Err(ApiFailure::bad_request(format!("field label not supported: {path}")));
        }
        conditions.push(FieldCondition { path: path.to_owned(), value: value.to_owned(), equal });
    }
    Ok(conditions)
}

/// Fields that the real server can select by.
fn selectable(kind: &ResourceKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["metadata.name", "spec.unschedulable"],
        ("", "events") => &[
            "metadata.name",
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "namespaces") => &["metadata.name", "status.phase"],
        ("batch", "jobs") => &["metadata.name", "metadata.namespace", "status.successful"],
        _ => &["metadata.name", "metadata.namespace"],
    }
}

fn field_of(object: &Value, path: &str) -> String {
    let mut value = object;
    for part in path.split('.') {
        value = &value[part];
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        _ if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(labels: &str, fields: &str) -> bool {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "a", "tier": "t"}},
            "spec": {"nodeName": "n1"},
        });
        let kind = ResourceKind::custom("", "v1", "Pod", "pods");
        Selection::parse(&kind, None, labels, fields).unwrap().matches(&pod)
    }

    #[test]
    fn label_terms_hold_as_written() {
        for yes in
            ["", "app", "app=a", "app==a", "app in (b, a),tier", "!x", "x!=1", "app notin (b)"]
        {
            assert!(selects(yes, ""), "{yes}");
        }
        for no in ["x", "app!=a", "app in (b,c)", "!app", "app=a,tier=b", "app notin (a)"] {
            assert!(!selects(no, ""), "{no}");
        }
    }

    #[test]
    fn field_terms_hold_as_written() {
        assert!(selects("", "spec.nodeName=n1,metadata.name!=q,status.phase="));
        assert!(!selects("", "spec.nodeName="));
        let kind = ResourceKind::custom("", "v1", "Pod", "pods");
        let refused = Selection::parse(&kind, None, "", "spec.x=1").unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.x");
    }

    #[test]
    fn selector_objects_match_like_texts() {
        let labels = json!({"app": "a"});
        let matches = |selector: Value| label_selector_matches(&selector, &labels);
        assert_eq!(matches(json!({})), Some(true));
        assert_eq!(matches(json!({"matchLabels": {"app": "b"}})), Some(false));
        let expression =
            |operator| json!({"matchExpressions": [{"key": "x", "operator": operator}]});
        assert_eq!(matches(expression("DoesNotExist")), Some(true));
        assert_eq!(matches(expression("Sometimes")), None);
    }
}
