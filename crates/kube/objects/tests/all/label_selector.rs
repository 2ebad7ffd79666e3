//! Label selectors, as `metav1.LabelSelectorAsSelector` reads them.

use dovetail_objects::{LabelSelector, Labels};

fn selector(json: &str) -> LabelSelector {
    serde_json::from_str(json).unwrap()
}

#[test]
fn selectors_match_as_kubernetes_documents_them() {
    let labels: Labels = [("app", "web"), ("tier", "front")].into_iter().collect();
    let table = [
        ("null", false, "nothing"),
        ("{}", true, "everything"),
        (r#"{"matchLabels":{"tier":"front","app":"web"}}"#, true, "app=web,tier=front"),
        (
            r#"{"matchExpressions":[{"key":"app","operator":"In","values":["web","api"]}]}"#,
            true,
            "app in (api,web)",
        ),
        (
            r#"{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}"#,
            true,
            "zone notin (a)",
        ),
        (r#"{"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}"#, false, "!app"),
        (r#"{"matchExpressions":[{"key":"app","operator":"Like"}]}"#, false, "unreadable"),
        (r#"{"matchExpressions":[{"key":"app","operator":"In"}]}"#, false, "unreadable"),
        (r#"{"matchLabels":{"app":"-web"}}"#, false, "unreadable"),
    ];
    for (json, matches, text) in table {
        assert_eq!(selector(json).matches(&labels), matches, "{json}");
        assert_eq!(selector(json).to_string(), text, "{json}");
    }
}
