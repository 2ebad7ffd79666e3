//! Lists: whole, in pages, at an older version.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::{Call, Query};
use super::failure::{ApiFailure, FieldCause, FieldFault};
use super::kind::ResourceKind;
use super::reply::ApiReply;
use super::selector::Selection;
use super::state::ServerState;
use super::store::{Collection, StoredObject};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue token \
    in this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";
const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

pub(crate) fn list(call: &Call, state: &mut ServerState) -> Result<ApiReply, ApiFailure> {
    check_options(&call.query)?;
    let selection = selection(call)?;
    let now = state.store.revision;
    let page = Page::read(&call.query, now)?;
    let collection = state.store.collection(&call.kind.collection());
    let older = if page.revision < now {
        let found = collection.differences_at(page.revision);
        Some(found.ok_or_else(|| page.expired())?)
    } else {
        None
    };
    let (items, last) = page.take(collection, older.as_ref(), &selection);
    Ok(ApiReply::bytes(200, body(&call.kind, &page, &selection, &items, last)))
}

/// What a list or watch shows, from its address.
pub(crate) fn selection(call: &Call) -> Result<Selection, ApiFailure> {
    let text = |key: &str| call.query.text(key);
    let namespace = call.namespace.as_deref();
    let selection =
        Selection::parse(&call.kind, namespace, text("labelSelector"), text("fieldSelector"))?;
    Ok(if call.name.is_empty() { selection } else { selection.named(&call.name) })
}

fn check_options(query: &Query) -> Result<(), ApiFailure> {
    let refuse = |field: &str, fault, why: &str| {
        let cause = FieldCause::new(field, fault, why);
        Err(ApiFailure::invalid("meta.k8s.io", "ListOptions", "", &[cause]))
    };
    let matching = query.text("resourceVersionMatch");
    let version = query.text("resourceVersion");
    let field = "resourceVersionMatch";
    if query.has("sendInitialEvents") {
        let why = "sendInitialEvents is forbidden for list";
        return refuse("sendInitialEvents", FieldFault::Forbidden, why);
    }
    if matching.is_empty() {
        return Ok(());
    }
    if version.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        return refuse(field, FieldFault::Forbidden, why);
    }
    if !query.text("continue").is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        return refuse(field, FieldFault::Forbidden, why);
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        let why = r#"supported values: "Exact", "NotOlderThan", """#;
        return refuse(field, FieldFault::NotSupported(format!("{matching:?}")), why);
    }
    if matching == "Exact" && version == "0" {
        let why = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
        return refuse(field, FieldFault::Forbidden, why);
    }
    Ok(())
}

/// Which part of a collection is asked for, at which version.
struct Page {
    revision: u64,
    /// First key, or all.
    start: Option<String>,
    limit: Option<usize>,
    continued: bool,
}

impl Page {
    fn read(query: &Query, now: u64) -> Result<Self, ApiFailure> {
        let limit = query.number("limit")?.filter(|limit| *limit > 0).map(|limit| limit as usize);
        let token = query.text("continue");
        if !token.is_empty() {
            let (start, revision) = read_token(token)?;
            // Version -1 stands for a list that goes on at the present one.
            let revision = u64::try_from(revision).unwrap_or(now).min(now);
            return Ok(Self { revision, start: Some(start), limit, continued: true });
        }
        let asked = query.number("resourceVersion")?.unwrap_or(0);
        if asked > now {
            return Err(ApiFailure::version_too_large(asked, now));
        }
        // Version 0 is served from the cache, which knows no pages.
        let from_cache = query.text("resourceVersion") == "0";
        let limit = if from_cache { None } else { limit };
        let revision = if query.text("resourceVersionMatch") == "Exact" { asked } else { now };
        Ok(Self { revision, start: None, limit, continued: false })
    }

    fn expired(&self) -> ApiFailure {
        if !self.continued {
            return ApiFailure::expired(LIST_EXPIRED);
        }
        let mut failure = ApiFailure::expired(CONTINUE_EXPIRED);
        failure.list_continue = self.start.as_deref().map(|start| token(start, -1));
        failure
    }

    /// The objects of the page, and how many are behind it (counted without selection).
    fn take(
        &self,
        collection: &Collection,
        older: Option<&BTreeMap<String, Option<Arc<StoredObject>>>>,
        selection: &Selection,
    ) -> (Vec<Arc<StoredObject>>, Option<(String, usize)>) {
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut items = Vec::new();
        let mut walk = self.keys(collection, older);
        for (key, object) in walk.by_ref() {
            if !selection.matches(&object.value) {
                continue;
            }
            items.push(object);
            if items.len() == limit {
                let behind = walk.filter(|(_, object)| selection.matches(&object.value)).count();
                let end = (behind > 0).then_some((key, behind));
                return (items, end);
            }
        }
        (items, None)
    }

    /// All objects of the collection from the start on, as they were.
    fn keys<'a>(
        &'a self,
        collection: &'a Collection,
        older: Option<&'a BTreeMap<String, Option<Arc<StoredObject>>>>,
    ) -> Box<dyn Iterator<Item = (String, Arc<StoredObject>)> + 'a> {
        let start = self.start.as_ref().map_or(Unbounded, Included);
        let current = collection.objects().range::<String, _>((start, Unbounded));
        let current = current.map(|(key, object)| (key.clone(), object.clone()));
        let Some(older) = older else { return Box::new(current) };
        let kept = current.filter(|(key, _)| !older.contains_key(key));
        let changed = older.range::<String, _>((start, Unbounded));
        let changed = changed.filter_map(|(key, was)| Some((key.clone(), was.clone()?)));
        let mut all: BTreeMap<String, Arc<StoredObject>> = kept.collect();
        all.extend(changed);
        Box::new(all.into_iter())
    }
}

fn body(
    kind: &ResourceKind,
    page: &Page,
    selection: &Selection,
    items: &[Arc<StoredObject>],
    behind: Option<(String, usize)>,
) -> Vec<u8> {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some((last, behind)) = behind {
        // The next page starts right behind the last key.
        metadata["continue"] = json!(token(&format!("{last}\0"), page.revision as i64));
        if !selection.narrows() {
            metadata["remainingItemCount"] = json!(behind);
        }
    }
    let mut out = format!(
        r#"{{"kind":"{}List","apiVersion":"{}","metadata":{metadata},"items":["#,
        kind.kind,
        kind.api_version()
    )
    .into_bytes();
    for (at, object) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if kind.custom {
            object.write(kind, &mut out);
        } else {
            out.extend_from_slice(object.json());
        }
    }
    out.extend_from_slice(b"]}");
    out
}

fn token(start: &str, revision: i64) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Result<(String, i64), ApiFailure> {
    let bad = || ApiFailure::bad_request("invalid continue token: continue key is not valid");
    let decoded = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    let token: Value = serde_json::from_slice(&decoded).map_err(|_| bad())?;
    let start = token["start"].as_str().filter(|start| !start.is_empty()).ok_or_else(bad)?;
    let revision = token["rv"].as_i64().filter(|revision| *revision != 0).ok_or_else(bad)?;
    Ok((start.to_owned(), revision))
}

/// The objects that a deletion of a collection means.
pub(crate) fn selected(
    call: &Call,
    state: &mut ServerState,
) -> Result<Vec<Arc<StoredObject>>, ApiFailure> {
    let selection = selection(call)?;
    let collection = state.store.collection(&call.kind.collection());
    let found = collection.objects().values().filter(|object| selection.matches(&object.value));
    Ok(found.cloned().collect())
}
