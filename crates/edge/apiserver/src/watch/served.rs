//! Which kinds a server has.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;

use dovetail_objects::Kind;

/// The kinds that the server has. A group that is absent is no error: older servers lack some, and
/// some are switched off.
pub async fn served(client: &Client) -> Result<BTreeSet<Kind>, kube::Error> {
    let place = |kind: Kind| (kind.group(), kind.version());
    let places: BTreeSet<_> = Kind::ALL.into_iter().map(place).collect();
    let mut served = BTreeSet::new();
    for (group, version) in places {
        let listed = match group {
            "" => client.list_core_api_resources(version).await,
            group => client.list_api_group_resources(&format!("{group}/{version}")).await,
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        let of_place = Kind::ALL.into_iter().filter(|kind| place(*kind) == (group, version));
        served.extend(of_place.filter(|kind| has(&listed, *kind)));
    }
    Ok(served)
}

fn has(listed: &APIResourceList, kind: Kind) -> bool {
    let watchable =
        |verbs: &[String]| ["list", "watch"].iter().all(|v| verbs.iter().any(|h| h == v));
    listed
        .resources
        .iter()
        .any(|resource| resource.name == kind.plural() && watchable(&resource.verbs))
}
