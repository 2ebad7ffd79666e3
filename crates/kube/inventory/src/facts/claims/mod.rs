//! GPUs that drivers offer and claims give away (dynamic resource allocation).
//!
//! Nodes and pods say nothing of them. What slices offer and claims hold is put into what was read
//! of nodes and pods, under the names that the vendors' device plugins have for the same devices:
//! from there on a GPU is a GPU, whichever way it is offered.

mod apply;
mod by_class;
mod claim;
pub(crate) mod class;
pub(crate) mod driver;
mod nodes;
mod offer;
pub(crate) mod selector;
mod share;
mod slice;
mod untold;
mod waiting;
mod whose;

use std::collections::BTreeMap;

use dovetail_objects::{ResourceClaimTemplate, labels};

use super::lenient::lenient;
use crate::dump::{RawObject, Skipped};
pub(super) use apply::{Claimed, Doubts};
use claim::{Claim, RequestFacts};
use class::Classes;
pub(crate) use nodes::{ClaimedNodes, NodeTerms};
use slice::SliceFacts;
pub(super) use untold::UntoldPod;

/// Kinds that are about devices.
const KINDS: [&str; 4] = ["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"];

/// Their API group, and the versions of it that are read. `v1beta1` has what a device is in
/// `basic`, and what is asked for in the request itself.
const GROUP: &str = "resource.k8s.io/";
const VERSIONS: [&str; 3] =
    [labels::RESOURCE_V1, "resource.k8s.io/v1beta2", labels::RESOURCE_V1BETA1];

/// Namespace and name.
type Key = (Box<str>, Box<str>);

/// What was read of them.
#[derive(Default)]
pub(super) struct DeviceObjects {
    slices: BTreeMap<Box<str>, SliceFacts>,
    claims: BTreeMap<Key, Claim>,
    templates: BTreeMap<Key, Vec<RequestFacts>>,
    classes: Classes,
    /// How many of each kind and version were not read.
    unread: BTreeMap<(String, String), u64>,
}

/// A claim that a pod refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimOf {
    /// The claim; empty until it is made from the template.
    pub(super) claim: Box<str>,
    /// The template that it is made from; empty if the pod names the claim itself.
    pub(super) template: Box<str>,
}

impl ClaimOf {
    /// What the pod's author wrote: the same for all pods of a template.
    pub(super) fn written(&self) -> &str {
        if self.template.is_empty() { &self.claim } else { &self.template }
    }
}

impl DeviceObjects {
    /// Whether an object is one of these.
    pub(super) fn wants(&self, kind: &str, api_version: &str) -> bool {
        KINDS.contains(&kind) && (api_version.is_empty() || api_version.starts_with(GROUP))
    }

    /// Takes one.
    pub(super) fn add(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        if !raw.api_version.is_empty() && !VERSIONS.contains(&raw.api_version) {
            let problem =
                format!("{} is not supported: get it as {}", raw.api_version, VERSIONS[0]);
            let of_version = (raw.kind.to_owned(), raw.api_version.to_owned());
            *self.unread.entry(of_version).or_default() += 1;
            return Err(raw.skipped("apiVersion", &problem));
        }
        let key = || (raw.namespace.into(), raw.name.into());
        match raw.kind {
            "ResourceSlice" => {
                let offered = slice::offered(lenient(raw)?);
                self.slices.extend(offered.map(|slice| (raw.name.into(), slice)));
            }
            "ResourceClaim" => drop(self.claims.insert(key(), Claim::of(lenient(raw)?))),
            "ResourceClaimTemplate" => {
                let template: ResourceClaimTemplate = lenient(raw)?;
                let requests = template.asked.requests.into_iter().filter_map(RequestFacts::of);
                self.templates.insert(key(), requests.collect());
            }
            _ => self.classes.add(raw.name, lenient(raw)?),
        }
        Ok(())
    }

    /// What the objects hide that were not read, in words.
    fn unread_in_words(&self) -> impl Iterator<Item = String> {
        self.unread.iter().map(|((kind, version), count)| {
            let hidden = match kind.as_str() {
                "ResourceSlice" => "GPUs that they offer are not counted",
                "DeviceClass" => "which GPUs they are for is unknown",
                _ => "which pods have or need GPUs through them is unknown",
            };
            format!(
                "{count} of kind {kind} of {version} were not read: {hidden}; get them as {}",
                VERSIONS[0]
            )
        })
    }
}
