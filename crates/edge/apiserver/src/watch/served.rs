//! Which kinds a server has, and in which version.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;

use dovetail_objects::Kind;

/// The kinds that a server has, each with the newest version that both sides know.
pub type Served = BTreeMap<Kind, &'static str>;

/// The kinds that the server has. A group that is absent is no error: older servers lack some, and
/// some are switched off.
///
/// # Errors
/// When the server does not answer, or with something else than its resources.
pub async fn served(client: &Client) -> Result<Served, kube::Error> {
    let mut served = Served::new();
    let mut known: BTreeMap<(&str, &str), Option<APIResourceList>> = BTreeMap::new();
    for kind in Kind::ALL {
        for version in versions(kind) {
            let place = (kind.group(), version);
            let listed = match known.entry(place) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(resources(client, place).await?),
            };
            if listed.as_ref().is_some_and(|listed| has(listed, kind)) {
                served.insert(kind, version);
                break;
            }
        }
    }
    Ok(served)
}

/// The versions of a kind that are read, the newest first.
fn versions(kind: Kind) -> impl Iterator<Item = &'static str> {
    std::iter::once(kind.version()).chain(kind.older_versions().iter().copied())
}

/// What the server has in a version of a group; `None` if it has no such version.
async fn resources(
    client: &Client,
    (group, version): (&str, &str),
) -> Result<Option<APIResourceList>, kube::Error> {
    let listed = match group {
        "" => client.list_core_api_resources(version).await,
        group => client.list_api_group_resources(&format!("{group}/{version}")).await,
    };
    match listed {
        Ok(listed) => Ok(Some(listed)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn has(listed: &APIResourceList, kind: Kind) -> bool {
    let watchable =
        |verbs: &[String]| ["list", "watch"].iter().all(|v| verbs.iter().any(|h| h == v));
    listed
        .resources
        .iter()
        .any(|resource| resource.name == kind.plural() && watchable(&resource.verbs))
}
