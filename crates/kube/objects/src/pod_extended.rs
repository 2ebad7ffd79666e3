//! Extended resources that a pod requests, container by container: those that a device class maps
//! to devices are served by a claim, with a request for each container (KEP-5004).

use serde::Deserialize;

use super::json::nullable;
use super::pod_json::SpecJson;

/// A container that requests extended resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedContainer {
    /// Its place among init containers and containers, in this order.
    pub index: usize,
    pub name: Box<str>,
    /// Whether it ends before the next container starts: an init container that is no sidecar.
    pub is_short_lived: bool,
    pub requests: Box<[ExtendedRequest]>,
}

/// A request of a container for an extended resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedRequest {
    pub resource: Box<str>,
    pub amount: i64,
    /// Its place among all requests of the container, by name.
    pub index: usize,
}

/// The claim by which a pod has its extended resources, as its status says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtendedClaimStatus {
    #[serde(rename = "resourceClaimName", deserialize_with = "nullable")]
    pub claim: Box<str>,
    #[serde(rename = "requestMappings", deserialize_with = "nullable")]
    pub mappings: Vec<ExtendedMapping>,
}

/// Which request of a claim serves an extended resource of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtendedMapping {
    #[serde(rename = "containerName", deserialize_with = "nullable")]
    pub container: Box<str>,
    #[serde(rename = "resourceName", deserialize_with = "nullable")]
    pub resource: Box<str>,
    #[serde(rename = "requestName", deserialize_with = "nullable")]
    pub request: Box<str>,
}

/// The containers that request extended resources.
pub(super) fn extended_containers(spec: &SpecJson) -> Box<[ExtendedContainer]> {
    let init = spec.init_containers.iter().map(|container| (container, !container.keeps_running()));
    let others = spec.containers.iter().map(|container| (container, false));
    let containers = init.chain(others).enumerate();
    let asks = containers.filter_map(|(index, (container, is_short_lived))| {
        let requests = container.resources.requests.extended();
        let name = container.name.clone();
        (!requests.is_empty()).then_some(ExtendedContainer {
            index,
            name,
            is_short_lived,
            requests: requests.into(),
        })
    });
    asks.collect()
}
