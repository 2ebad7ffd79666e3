//! Which pods a quota is for (`spec.scopes`, `spec.scopeSelector`): those that are in all of its
//! scopes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use dovetail_objects::Pod;
use dovetail_objects::json::nullable;

/// What of a pod decides which quotas are for it.
#[derive(Clone, Debug, Default)]
pub(super) struct ScopedPod {
    /// Its priority class; empty where it names none.
    priority_class: String,
    is_best_effort: bool,
    has_deadline: bool,
    crosses_namespaces: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuotaScope {
    OfClasses(BTreeSet<String>),
    NotOfClasses(BTreeSet<String>),
    OfAnyClass,
    OfNoClass,
    BestEffort,
    NotBestEffort,
    Terminating,
    NotTerminating,
    CrossNamespacePodAffinity,
    /// Of something else than pods, or of what nobody here knows.
    NoPod,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ScopeJson<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    scope_name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "nullable")]
    operator: Cow<'a, str>,
    #[serde(deserialize_with = "nullable")]
    values: BTreeSet<String>,
}

impl QuotaScope {
    /// A scope by its name alone: that it is there.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "PriorityClass" => Self::OfAnyClass,
            "BestEffort" => Self::BestEffort,
            "NotBestEffort" => Self::NotBestEffort,
            "Terminating" => Self::Terminating,
            "NotTerminating" => Self::NotTerminating,
            "CrossNamespacePodAffinity" => Self::CrossNamespacePodAffinity,
            _ => Self::NoPod,
        }
    }

    /// Whether a pod is in this scope.
    pub(super) fn holds(&self, pod: &ScopedPod) -> bool {
        let class = &pod.priority_class;
        match self {
            Self::OfClasses(classes) => classes.contains(class),
            Self::NotOfClasses(classes) => !classes.contains(class),
            Self::OfAnyClass => !class.is_empty(),
            Self::OfNoClass => class.is_empty(),
            Self::BestEffort => pod.is_best_effort,
            Self::NotBestEffort => !pod.is_best_effort,
            Self::Terminating => pod.has_deadline,
            Self::NotTerminating => !pod.has_deadline,
            Self::CrossNamespacePodAffinity => pod.crosses_namespaces,
            Self::NoPod => false,
        }
    }
}

impl ScopeJson<'_> {
    pub(super) fn read(self) -> QuotaScope {
        // Only classes of priority have values; of others the server takes `Exists` alone.
        match (&*self.scope_name, &*self.operator) {
            ("PriorityClass", "In") => QuotaScope::OfClasses(self.values),
            ("PriorityClass", "NotIn") => QuotaScope::NotOfClasses(self.values),
            ("PriorityClass", "DoesNotExist") => QuotaScope::OfNoClass,
            (name, _) => QuotaScope::named(name),
        }
    }
}

impl ScopedPod {
    /// A pod that is there, and that another one like it replaces.
    pub(super) fn of_running(pod: &Pod) -> Self {
        let between = pod.between_pods.as_deref().into_iter();
        let mut terms = between.flat_map(|of| of.affinity.iter().chain(of.anti_affinity.iter()));
        Self {
            priority_class: pod.priority_class.to_string(),
            is_best_effort: is_best_effort(pod),
            has_deadline: pod.active_deadline_s.is_some(),
            crosses_namespaces: terms.any(|term| {
                let own = std::slice::from_ref(&pod.meta.namespace);
                term.pods.only_namespaces() != Some(own)
            }),
        }
    }

    /// A pod, with the text of its template.
    ///
    /// # Errors
    /// If the template is none of a pod.
    pub(super) fn of(pod: &Pod, template: &RawValue) -> Result<Self, serde_json::Error> {
        let Template { spec } = serde_json::from_str(template.get())?;
        let terms = [spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity];
        Ok(Self {
            priority_class: spec.priority_class_name,
            is_best_effort: is_best_effort(pod),
            has_deadline: spec.active_deadline_seconds.is_some(),
            crosses_namespaces: terms.iter().any(AffinityTerms::cross_namespaces),
        })
    }
}

/// GPUs make no difference to the class of quality of service.
fn is_best_effort(pod: &Pod) -> bool {
    pod.requests.cpu_milli == 0 && pod.requests.memory_bytes == 0
}

#[derive(Deserialize)]
struct Template {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    priority_class_name: String,
    active_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    affinity: Affinity,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affinity {
    #[serde(deserialize_with = "nullable")]
    pod_affinity: AffinityTerms,
    #[serde(deserialize_with = "nullable")]
    pod_anti_affinity: AffinityTerms,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AffinityTerms {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "nullable"
    )]
    required: Vec<AffinityTerm>,
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "nullable"
    )]
    preferred: Vec<Preferred>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preferred {
    #[serde(deserialize_with = "nullable")]
    pod_affinity_term: AffinityTerm,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AffinityTerm {
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<String>,
    namespace_selector: Option<serde::de::IgnoredAny>,
}

impl AffinityTerms {
    fn cross_namespaces(&self) -> bool {
        let preferred = self.preferred.iter().map(|preferred| &preferred.pod_affinity_term);
        let names_some =
            |term: &AffinityTerm| !term.namespaces.is_empty() || term.namespace_selector.is_some();
        self.required.iter().chain(preferred).any(names_some)
    }
}
