//! Which group an object is of: kinds of several groups have one name.

/// The group of an API version; that of Kubernetes' core has no name.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
