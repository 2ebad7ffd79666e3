//! An audit as SARIF 2.1.0, for tools that show findings.

use dovetail_audit::CATALOGUE;
use dovetail_auditing::check_words::severity_words;
use dovetail_auditing::document::{Document, FindingOut};
use dovetail_auditing::patch::PatchOut;
use dovetail_auditing::words::object_words;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::text::sarif as safe;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The whole audit as one run.
pub fn sarif(document: &Document) -> Value {
    let rules: Vec<Value> = CATALOGUE
        .into_iter()
        .flatten()
        .map(|check| {
            json!({
                "id": check.id,
                "shortDescription": {"text": safe(check.title)},
                "fullDescription": {"text": safe(check.explanation)},
                "help": {"text": safe(&format!("For example: {}", check.fix_example))},
                "defaultConfiguration": {"level": level(severity_words(check.severity))},
            })
        })
        .collect();
    let results: Vec<Value> = document.findings.iter().map(|of| result(of, document)).collect();
    let mut properties = json!({"summary": document.first_line()});
    // A result of what is gone would be shown as an alert by readers that do not know baselines.
    if let Some(fixed) = &document.fixed {
        properties["fixed"] = json!(fixed);
    }
    if let Some(why) = &document.unconfirmed_because {
        properties["unconfirmed_because"] = json!(why);
    }
    if let Some(ledger) = &document.ledger {
        properties["ledger"] = json!(ledger);
    }
    let notes =
        document.notes.iter().map(|note| json!({"level": "note", "message": {"text": safe(note)}}));
    let notes: Vec<Value> = notes.collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notes,
            }],
            "tool": {"driver": {
                "name": "dovetail",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties,
        }],
    })
}

fn result(finding: &FindingOut, document: &Document) -> Value {
    let ids = CATALOGUE.into_iter().flatten().map(|check| check.id);
    let rule_index = ids.into_iter().position(|id| id == finding.check.id);
    let object = finding.object_words();
    let mut message = format!("{object}: {}", finding.title);
    if let Some(worth) = finding.worth_words() {
        message += &format!(", {worth}");
    }
    for evidence in &finding.evidence {
        message += &format!("; {}: {}", evidence.what, evidence.value);
    }
    let digest = Sha256::digest(format!("{}\n{object}", finding.check.id));
    let fingerprint: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut result = json!({
        "ruleId": finding.check.id,
        "ruleIndex": rule_index,
        "level": level(finding.severity),
        "message": {"text": safe(&message)},
        "locations": [{"logicalLocations": [{
            "name": finding.object.name,
            "fullyQualifiedName": object,
            "kind": "resource",
        }]}],
        "partialFingerprints": {"checkAndObject/v1": fingerprint},
        "properties": {
            "usd_micros_per_month": finding.usd_micros_per_month,
            "gpu_hours_per_month": finding.gpu_hours_per_month,
            "brings": finding.brings,
            "returned_usd_micros_per_month": finding.returned_usd_micros_per_month,
            "confidence": finding.confidence,
            "patches": finding.patches.iter().map(patch).collect::<Vec<_>>(),
        },
    });
    if let Some(by) = &finding.suppressed {
        let justification = format!("{}: {}", by.by, by.why);
        result["suppressions"] = json!([{"kind": "external", "justification": justification}]);
    }
    if document.fixed.is_some() {
        let is_new = finding.is_new == Some(true);
        result["baselineState"] = json!(if is_new { "new" } else { "unchanged" });
    }
    result
}

/// A SARIF `fix` replaces text of a file, and an object of a cluster is none: patches are
/// properties.
fn patch(patch: &PatchOut) -> Value {
    json!({
        "object": object_words(&patch.object),
        "form": patch.form,
        "restarts": patch.restarts,
        "warnings": patch.warnings,
        "command": patch.command,
        "source": patch.yaml(),
    })
}

fn level(severity: &str) -> &'static str {
    match severity {
        "error" => "error",
        "warning" => "warning",
        _ => "note",
    }
}
