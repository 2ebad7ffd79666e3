//! Single changes of an object, and the one patch that they come to.

use std::collections::BTreeMap;

use super::form::{Form, Operation};
use super::json::Json;
use super::source::{PathStep, SourceObject, at};

/// Changes of one object, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Edits {
    edits: Vec<Edit>,
    /// A list was written whole: nobody else may have changed it since.
    pub(super) is_guarded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Edit {
    path: Vec<PathStep>,
    /// `None` removes it.
    value: Option<Json>,
}

impl Edits {
    /// Writes a value, with whatever must be there to hold it.
    pub(super) fn set(&mut self, path: Vec<PathStep>, value: Json) {
        self.push(Edit { path, value: Some(value) });
    }

    /// Removes a field.
    pub(super) fn remove(&mut self, path: Vec<PathStep>) {
        self.push(Edit { path, value: None });
    }

    /// Writes a list that the server does not merge: all of it.
    pub(super) fn set_whole(&mut self, path: Vec<PathStep>, items: Vec<Json>) {
        self.is_guarded = true;
        self.set(path, Json::List(items));
    }

    /// The last word on a place counts.
    fn push(&mut self, edit: Edit) {
        self.edits.retain(|earlier| earlier.path != edit.path);
        self.edits.push(edit);
    }

    /// The content of the object with all of them.
    pub(super) fn applied(&self, source: &SourceObject) -> Json {
        let mut content = source.content.clone();
        for edit in &self.edits {
            match &edit.value {
                Some(value) => write(&mut content, &edit.path, value.clone()),
                None => erase(&mut content, &edit.path),
            }
        }
        content
    }

    /// The part of the object's source that changes; `null` removes.
    pub(super) fn fragment(&self, source: &SourceObject) -> Json {
        let mut fragment = Json::Object(BTreeMap::new());
        for edit in &self.edits {
            write(&mut fragment, &edit.path, edit.value.clone().unwrap_or_default());
        }
        for edit in &self.edits {
            keep_order(&mut fragment, &source.content, &edit.path);
        }
        fragment
    }

    /// The patch for the server.
    pub(super) fn form(&self, source: &SourceObject) -> Form {
        let by_item = |step: &PathStep| !matches!(step, PathStep::Field(_));
        let has_items = self.edits.iter().any(|edit| edit.path.iter().any(by_item));
        if has_items && !source.merges_by_name() {
            return Form::Operations(self.operations(source));
        }
        let mut patch = self.fragment(source);
        if let (true, Some(version)) = (self.is_guarded, &source.resource_version) {
            let path =
                [PathStep::Field("metadata".into()), PathStep::Field("resourceVersion".into())];
            write(&mut patch, &path, version.as_str().into());
        }
        if has_items { Form::Strategic(patch) } else { Form::Merge(patch) }
    }

    /// As RFC 6902: items of lists by place, each after a test that it is still the one that is
    /// meant.
    fn operations(&self, source: &SourceObject) -> Vec<Operation> {
        let mut operations = Vec::new();
        if let (true, Some(version)) = (self.is_guarded, &source.resource_version) {
            let path = "/metadata/resourceVersion".to_owned();
            operations.push(Operation::Test { path, value: version.as_str().into() });
        }
        let mut content = source.content.clone();
        for edit in &self.edits {
            operations_of(&mut content, edit, &mut operations);
        }
        operations
    }
}

/// The operations of one edit on the content as it is then; the content changes with them.
fn operations_of(content: &mut Json, edit: &Edit, operations: &mut Vec<Operation>) {
    let mut pointer = String::new();
    let mut here = &*content;
    for (depth, step) in edit.path.iter().enumerate() {
        let rest = &edit.path[depth + 1..];
        let found = at(here, std::slice::from_ref(step));
        match step {
            PathStep::Field(field) => {
                pointer.push('/');
                pointer += &field.replace('~', "~0").replace('/', "~1");
            }
            PathStep::Place(place) => pointer += &format!("/{place}"),
            PathStep::Item { key, value } => match here
                .items()
                .iter()
                .position(|item| item.get(key).and_then(Json::text) == Some(value))
            {
                Some(place) => {
                    pointer += &format!("/{place}");
                    let path = format!("{pointer}/{key}");
                    let test = Operation::Test { path, value: value.as_str().into() };
                    if !operations.contains(&test) {
                        operations.push(test);
                    }
                }
                None => pointer += "/-",
            },
        }
        match (found, rest.is_empty(), &edit.value) {
            (Some(next), false, _) => here = next,
            (None, _, None) => return,
            (Some(_), true, None) => {
                operations.push(Operation::Remove { path: pointer });
                break;
            }
            (None, ..) | (Some(_), true, Some(_)) => {
                // From here on nothing is there: the value comes with all that holds it.
                let mut value = Json::Null;
                let whole = std::slice::from_ref(step).iter().chain(rest);
                let steps: Vec<PathStep> = whole.cloned().collect();
                write(&mut value, &steps, edit.value.clone().unwrap_or_default());
                let value = match (step, value) {
                    (PathStep::Field(field), Json::Object(mut fields)) => {
                        fields.remove(field).unwrap_or_default()
                    }
                    (_, Json::List(mut items)) => items.pop().unwrap_or_default(),
                    (_, value) => value,
                };
                if !rest.is_empty() && matches!(step, PathStep::Field(_)) {
                    // Kubernetes takes this for "not there": what others put there since is not
                    // overwritten.
                    operations.push(Operation::Test { path: pointer.clone(), value: Json::Null });
                }
                operations.push(Operation::Add { path: pointer, value });
                break;
            }
        }
    }
    match &edit.value {
        Some(value) => write(content, &edit.path, value.clone()),
        None => erase(content, &edit.path),
    }
}

/// Writes a value into a tree, with the objects and lists on the way to it.
fn write(tree: &mut Json, path: &[PathStep], value: Json) {
    let Some((step, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    match step {
        PathStep::Field(field) => {
            if !matches!(tree, Json::Object(_)) {
                *tree = Json::Object(BTreeMap::new());
            }
            if let Json::Object(fields) = tree {
                write(fields.entry(field.clone()).or_default(), rest, value);
            }
        }
        PathStep::Item { key, value: name } => {
            let items = list(tree);
            let is_it = |item: &Json| item.get(key).and_then(Json::text) == Some(name);
            let place = items.iter().position(is_it).unwrap_or_else(|| {
                items.push(Json::object([(key, name.as_str().into())]));
                items.len() - 1
            });
            match rest.is_empty() {
                // An item that is written whole keeps its name.
                true => items[place] = value,
                false => write(&mut items[place], rest, value),
            }
        }
        PathStep::Place(place) => {
            let items = list(tree);
            while items.len() <= *place {
                items.push(Json::Object(BTreeMap::new()));
            }
            write(&mut items[*place], rest, value);
        }
    }
}

fn list(tree: &mut Json) -> &mut Vec<Json> {
    if !matches!(tree, Json::List(_)) {
        *tree = Json::List(Vec::new());
    }
    match tree {
        Json::List(items) => items,
        _ => unreachable!("it was made a list"),
    }
}

/// Items of lists on the way stand as the object has them, new ones last: from a patch that names
/// several the server takes their order, too, and that of containers is the order in which they
/// start.
fn keep_order(fragment: &mut Json, content: &Json, path: &[PathStep]) {
    for (depth, step) in path.iter().enumerate() {
        let PathStep::Item { key, .. } = step else { continue };
        let way = &path[..depth];
        let known = at(content, way).map_or(&[][..], Json::items);
        let place = |item: &Json| {
            let is_it = |known: &Json| known.get(key) == item.get(key);
            known.iter().position(is_it).unwrap_or(known.len())
        };
        if let Some(Json::List(items)) = way.iter().try_fold(&mut *fragment, below) {
            items.sort_by_key(place);
        }
    }
}

/// Takes a field out of a tree, if it is there.
fn erase(tree: &mut Json, path: &[PathStep]) {
    let Some((last, way)) = path.split_last() else { return };
    let holder = way.iter().try_fold(tree, below);
    if let (PathStep::Field(field), Some(Json::Object(fields))) = (last, holder) {
        fields.remove(field);
    }
}

/// What a step leads to, to be changed.
fn below<'t>(tree: &'t mut Json, step: &PathStep) -> Option<&'t mut Json> {
    match (step, tree) {
        (PathStep::Field(field), Json::Object(fields)) => fields.get_mut(field),
        (PathStep::Item { key, value }, Json::List(items)) => {
            items.iter_mut().find(|item| item.get(key).and_then(Json::text) == Some(value))
        }
        (PathStep::Place(place), Json::List(items)) => items.get_mut(*place),
        _ => None,
    }
}
