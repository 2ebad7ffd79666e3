//! Which kinds a server has.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;

use crate::object::Kind;

/// The kinds that the server has. A group that is absent is no error: older servers lack some, and some are
/// switched off.
pub async fn served(client: &Client) -> Result<BTreeSet<Kind>, kube::Error> {
    let groups: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.group()).collect();
    let mut served = BTreeSet::new();
    for group in groups {
        let listed = match group {
            "" => client.list_core_api_resources("v1").await,
            group => client.list_api_group_resources(&format!("{group}/v1")).await,
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        served.extend(
            Kind::ALL.into_iter().filter(|kind| kind.group() == group && has(&listed, *kind)),
        );
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
