//! Changes of a pod template.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_audit::{LimitChange, PatchChange, amount_text};
use dovetail_model::{SelectorTerm, Taint, TaintEffect, Toleration, labels};

use super::edit::Edits;
use super::json::Json;
use super::source::{PathStep, SourceObject, at};

const HOST_NAME: &str = labels::HOST_NAME;
const SHARED_MEMORY: &str = "/dev/shm";
/// Name of a volume in memory, where nothing else in a template has it.
const SHARED_MEMORY_VOLUME: &str = "shared-memory";

/// A template in an object, as it is after earlier edits.
pub(super) struct Template<'e> {
    /// As it was read.
    before: Json,
    now: Json,
    path: Vec<PathStep>,
    edits: &'e mut Edits,
}

fn field(name: &str) -> PathStep {
    PathStep::Field(name.to_owned())
}

fn named(value: &str) -> PathStep {
    PathStep::Item { key: "name", value: value.to_owned() }
}

impl<'e> Template<'e> {
    /// The template at a path of an object to which edits were made.
    pub(super) fn new(source: &SourceObject, path: &[PathStep], edits: &'e mut Edits) -> Self {
        let before = at(&source.content, path).cloned().unwrap_or_default();
        let now = at(&edits.applied(source), path).cloned().unwrap_or_default();
        Self { before, now, path: path.to_vec(), edits }
    }

    fn at(&self, steps: &[PathStep]) -> Option<&Json> {
        at(&self.now, steps)
    }

    fn path(&self, steps: &[PathStep]) -> Vec<PathStep> {
        self.path.iter().chain(steps).cloned().collect()
    }

    fn set(&mut self, steps: &[PathStep], value: Json) {
        let path = self.path(steps);
        self.edits.set(path, value);
    }

    fn set_whole(&mut self, steps: &[PathStep], items: Vec<Json>) {
        let path = self.path(steps);
        self.edits.set_whole(path, items);
    }

    fn remove(&mut self, steps: &[PathStep]) {
        if self.at(steps).is_some() {
            let path = self.path(steps);
            self.edits.remove(path);
        }
    }

    fn container(&self, name: &str) -> Option<[PathStep; 3]> {
        ["containers", "initContainers"].into_iter().find_map(|list| {
            let steps = [field("spec"), field(list), named(name)];
            self.at(&steps).is_some().then_some(steps)
        })
    }

    /// Makes a change of pods; `false` if it is none, or the template has no place for it.
    pub(super) fn change(&mut self, change: &PatchChange) -> bool {
        match change {
            PatchChange::Gpus { container, resource, count } => {
                self.gpus(container, resource, *count)
            }
            PatchChange::Amount { container, resource, request, limit } => {
                self.amount(container, resource, *request, *limit)
            }
            PatchChange::HideGpus { container } => self.hide_gpus(container),
            PatchChange::SharedMemory { container, bytes } => self.shared_memory(container, *bytes),
            PatchChange::Tolerate { taints } => self.tolerate(taints),
            PatchChange::Respect { taint } => self.respect(taint),
            PatchChange::AskOfNodes { term } => self.ask_of_nodes(term),
            PatchChange::SelectNodes { label, value } => {
                let steps = [field("spec"), field("nodeSelector"), field(label)];
                self.set(&steps, value.as_str().into());
                true
            }
            PatchChange::Gang { name, members } => {
                let steps = |part: &str, key: &str| [field("metadata"), field(part), field(key)];
                self.set(&steps("labels", labels::GANG), name.as_str().into());
                let members = members.to_string().into();
                self.set(&steps("annotations", labels::MIN_MEMBERS), members);
                true
            }
            PatchChange::DropAnnotation { key } => {
                let steps = [field("metadata"), field("annotations"), field(key)];
                let is_there = self.at(&steps).is_some();
                self.remove(&steps);
                is_there
            }
            PatchChange::Prioritise { class, .. } => {
                self.set(&[field("spec"), field("priorityClassName")], (*class).into());
                true
            }
            PatchChange::ShareNodes => self.share_nodes(),
            _ => false,
        }
    }

    fn gpus(&mut self, container: &str, resource: &str, count: i64) -> bool {
        let Some([spec, list, name]) = self.container(container) else { return false };
        let resources = [spec, list, name, field("resources")];
        for part in ["limits", "requests"] {
            let steps: Vec<PathStep> =
                resources.iter().cloned().chain([field(part), field(resource)]).collect();
            match (count, part) {
                (0, _) => self.remove(&steps),
                (_, "requests") if self.at(&steps).is_none() => {}
                _ => self.set(&steps, count.to_string().into()),
            }
        }
        true
    }

    fn amount(
        &mut self,
        container: &str,
        resource: &str,
        request: i64,
        limit: LimitChange,
    ) -> bool {
        let Some([spec, list, name]) = self.container(container) else { return false };
        let steps = |part: &str| {
            let [spec, list, name] = [&spec, &list, &name].map(Clone::clone);
            [spec, list, name, field("resources"), field(part), field(resource)]
        };
        self.set(&steps("requests"), amount_text(resource, request).into());
        match limit {
            LimitChange::Stays => {}
            LimitChange::Is(limit) => {
                self.set(&steps("limits"), amount_text(resource, limit).into())
            }
            LimitChange::Goes => self.remove(&steps("limits")),
        }
        true
    }

    /// What NVIDIA's runtime takes for no GPU at all; without the variable an image's own would
    /// count.
    fn hide_gpus(&mut self, container: &str) -> bool {
        let Some([spec, list, name]) = self.container(container) else { return false };
        let steps =
            [spec, list, name, field("env"), named("NVIDIA_VISIBLE_DEVICES"), field("value")];
        self.set(&steps, "void".into());
        true
    }

    fn shared_memory(&mut self, container: &str, bytes: i64) -> bool {
        let Some([spec, list, name]) = self.container(container) else { return false };
        let size = Json::from(amount_text("memory", bytes));
        let mounts = [spec.clone(), list, name, field("volumeMounts")];
        let is_it = |mount: &&Json| {
            let path = mount.get("mountPath").and_then(Json::text);
            path.is_some_and(|path| path.trim_end_matches('/') == SHARED_MEMORY)
        };
        let mount = self.at(&mounts).into_iter().flat_map(Json::items).find(is_it);
        if let Some(volume) = mount.and_then(|mount| mount.get("name")).and_then(Json::text) {
            let volume = [spec, field("volumes"), named(volume), field("emptyDir")];
            if self.at(&volume).is_none() {
                return false;
            }
            let steps: Vec<PathStep> = volume.into_iter().chain([field("sizeLimit")]).collect();
            self.set(&steps, size);
            return true;
        }
        let called = self.free_volume_name();
        let volume = [spec, field("volumes"), named(&called)];
        let memory = Json::object([("medium", "Memory".into()), ("sizeLimit", size)]);
        let value = Json::object([("name", called.as_str().into()), ("emptyDir", memory)]);
        self.set(&volume, value);
        let [spec, list, name, mounts] = mounts;
        let mount = PathStep::Item { key: "mountPath", value: SHARED_MEMORY.to_owned() };
        let value = Json::object([("mountPath", SHARED_MEMORY.into()), ("name", called.into())]);
        self.set(&[spec, list, name, mounts, mount], value);
        true
    }

    /// A name for a volume that nothing in the template went by when it was read: somebody's data
    /// is there. Mounts count, too, because claims of a StatefulSet are volumes that no template
    /// lists. What an earlier edit made is shared.
    fn free_volume_name(&self) -> String {
        let list = |name| self.before.at(&["spec", name]).into_iter().flat_map(Json::items);
        let containers = list("containers").chain(list("initContainers"));
        let mounts = containers.filter_map(|container| container.get("volumeMounts"));
        let users = list("volumes").chain(mounts.flat_map(Json::items));
        let taken: BTreeSet<&str> =
            users.filter_map(|user| user.get("name").and_then(Json::text)).collect();
        let numbered = (2..).map(|number| format!("{SHARED_MEMORY_VOLUME}-{number}"));
        let names = std::iter::once(SHARED_MEMORY_VOLUME.to_owned()).chain(numbered);
        let mut free = names.take(taken.len() + 1).filter(|name| !taken.contains(name.as_str()));
        free.next().expect("of one name more than are taken, one is free")
    }

    fn tolerations(&self) -> (Vec<PathStep>, Vec<Json>) {
        let steps = vec![field("spec"), field("tolerations")];
        let items = self.at(&steps).map(|items| items.items().to_vec()).unwrap_or_default();
        (steps, items)
    }

    fn tolerate(&mut self, taints: &[Taint]) -> bool {
        let (steps, mut items) = self.tolerations();
        let before = items.len();
        for taint in taints {
            if !items.iter().any(|item| toleration(item).accepts(taint)) {
                items.push(accepting(taint));
            }
        }
        if items.len() > before {
            self.set_whole(&steps, items);
            return true;
        }
        false
    }

    fn respect(&mut self, taint: &Taint) -> bool {
        let (steps, mut items) = self.tolerations();
        let before = items.len();
        items.retain(|item| !toleration(item).accepts(taint));
        if items.len() < before {
            self.set_whole(&steps, items);
            return true;
        }
        false
    }

    /// Alternatives of required node affinity are each enough: every one gets the term.
    fn ask_of_nodes(&mut self, term: &SelectorTerm) -> bool {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let steps = ["spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms"].map(field);
        let mut terms = self.at(&steps).map(|terms| terms.items().to_vec()).unwrap_or_default();
        if terms.is_empty() {
            terms.push(Json::Object(BTreeMap::new()));
        }
        let added = expression(term);
        for term in &mut terms {
            let Json::Object(fields) = term else { return false };
            let expressions = fields
                .entry("matchExpressions".to_owned())
                .or_insert_with(|| Json::List(Vec::new()));
            let Json::List(expressions) = expressions else { return false };
            if !expressions.contains(&added) {
                expressions.push(added.clone());
            }
        }
        self.set_whole(&steps, terms);
        true
    }

    /// What keeps pods of one kind on nodes of their own becomes a wish.
    fn share_nodes(&mut self) -> bool {
        let labels = self.at(&[field("metadata"), field("labels")]).cloned().unwrap_or_default();
        let mut changed = false;
        let steps = [field("spec"), field("topologySpreadConstraints")];
        let mut spreads = self.at(&steps).map(|list| list.items().to_vec()).unwrap_or_default();
        for spread in &mut spreads {
            let is_hard =
                spread.get("whenUnsatisfiable").and_then(Json::text) == Some("DoNotSchedule");
            let is_of_its_own = spread.get("maxSkew") == Some(&Json::Integer(1));
            let is_meant = is_hard && is_of_its_own && is_about_its_like(spread, &labels);
            if let (true, Json::Object(fields)) = (is_meant, spread) {
                fields.insert("whenUnsatisfiable".to_owned(), "ScheduleAnyway".into());
                changed = true;
            }
        }
        if changed {
            self.set_whole(&steps, spreads);
        }
        let apart = ["spec", "affinity", "podAntiAffinity"].map(field);
        let list =
            |name: &str| -> Vec<PathStep> { apart.iter().cloned().chain([field(name)]).collect() };
        let required = list("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
        let terms = |steps: &[PathStep]| -> Vec<Json> {
            self.at(steps).map(|terms| terms.items().to_vec()).unwrap_or_default()
        };
        let (moved, kept): (Vec<Json>, Vec<Json>) =
            terms(&required).into_iter().partition(|term| is_about_its_like(term, &labels));
        if !moved.is_empty() {
            let wish =
                |term| Json::object([("weight", Json::Integer(100)), ("podAffinityTerm", term)]);
            let wishes = terms(&preferred).into_iter().chain(moved.into_iter().map(wish)).collect();
            self.set_whole(&required, kept);
            self.set_whole(&preferred, wishes);
            changed = true;
        }
        changed
    }
}

/// Whether a rule between pods is over nodes and counts the pods that have it.
fn is_about_its_like(rule: &Json, labels: &Json) -> bool {
    let selector = rule.get("labelSelector");
    let wanted = selector.and_then(|selector| selector.get("matchLabels"));
    let all = wanted
        .into_iter()
        .flat_map(Json::fields)
        .all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.and_then(|selector| selector.get("matchExpressions"));
    let each = expressions.into_iter().flat_map(Json::items).all(|expression| {
        let label = expression.get("key").and_then(Json::text).and_then(|key| labels.get(key));
        let listed = expression
            .get("values")
            .is_some_and(|values| label.is_some_and(|label| values.items().contains(label)));
        match expression.get("operator").and_then(Json::text) {
            Some("In") => listed,
            Some("NotIn") => !listed,
            Some("Exists") => label.is_some(),
            Some("DoesNotExist") => label.is_none(),
            _ => false,
        }
    });
    rule.get("topologyKey").and_then(Json::text) == Some(HOST_NAME)
        && selector.is_some()
        && all
        && each
}

/// A toleration as it is written. One with an unknown effect accepts nothing.
pub(super) fn toleration(item: &Json) -> Toleration {
    let text = |name: &str| item.get(name).and_then(Json::text).unwrap_or_default();
    let effect = match text("effect") {
        "" => Some(None),
        name => TaintEffect::by_name(name).map(Some),
    };
    let Some(effect) = effect else { return Toleration::default() };
    Toleration {
        key: text("key").to_owned(),
        any_value: text("operator") == "Exists",
        value: text("value").to_owned(),
        effect,
    }
}

/// The narrowest toleration of a taint.
fn accepting(taint: &Taint) -> Json {
    let effect = Json::from(taint.effect.name());
    let key = Json::from(taint.key.as_str());
    match taint.value.is_empty() {
        true => Json::object([("key", key), ("operator", "Exists".into()), ("effect", effect)]),
        false => Json::object([
            ("key", key),
            ("operator", "Equal".into()),
            ("value", taint.value.as_str().into()),
            ("effect", effect),
        ]),
    }
}

fn expression(term: &SelectorTerm) -> Json {
    let mut fields = BTreeMap::from([
        ("key".to_owned(), Json::from(term.key.as_str())),
        ("operator".to_owned(), term.operator.name().into()),
    ]);
    if !term.values.is_empty() {
        let values = term.values.iter().map(|value| value.as_str().into()).collect();
        fields.insert("values".to_owned(), Json::List(values));
    }
    Json::Object(fields)
}
