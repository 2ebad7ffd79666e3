//! The namespaces of who asks: those whose pods the credentials may list, as the cluster itself
//! says.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use dovetail_console::connection::connection_runtime;
use dovetail_console::plain::plain;
use dovetail_settings::errors::UsageError;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};

use crate::kubeconfig::ConnectionFlags;

/// Asks a cluster. Credentials that may not list namespaces have at most the one that the
/// kubeconfig names.
///
/// # Errors
/// A cluster that does not answer, and credentials that may list no pods anywhere.
pub fn own_namespaces(connection: &ConnectionFlags) -> Result<BTreeSet<String>> {
    let runtime = connection_runtime()?;
    runtime.block_on(async {
        let config = connection.connect().await?;
        let current = config.default_namespace.clone();
        let client =
            dovetail_apiserver::client::client(config).with_context(|| connection.name())?;
        let asked = found(&client, &current).await;
        let own = asked.with_context(|| format!("--mine: {}", connection.name()))?;
        if own.is_empty() {
            let text = format!(
                "--mine: these credentials are not allowed to list pods in any namespace that they \
                 can list, nor in the kubeconfig's namespace `{}`: use another kubeconfig, or omit \
                 --mine",
                plain(&current)
            );
            return Err(UsageError(text).into());
        }
        Ok(own)
    })
}

async fn found(client: &Client, current: &str) -> Result<BTreeSet<String>> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let mut names = BTreeSet::new();
    match namespaces.list_metadata(&ListParams::default()).await {
        Ok(list) => names.extend(list.items.into_iter().filter_map(|space| space.metadata.name)),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            names.insert(current.to_owned());
        }
        Err(error) => return Err(error.into()),
    }
    if may_list_pods(client, "").await? {
        return Ok(names);
    }
    let mut own = BTreeSet::new();
    for name in names {
        if may_list_pods(client, &name).await? {
            own.insert(name);
        }
    }
    Ok(own)
}

/// In a namespace, or in all of them. The question is not stored.
async fn may_list_pods(client: &Client, namespace: &str) -> Result<bool> {
    let attributes = ResourceAttributes {
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        resource: Some("pods".to_owned()),
        verb: Some("list".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let asked = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let found = reviews.create(&PostParams::default(), &asked).await?;
    let status = found.status.unwrap_or_default();
    Ok(status.allowed && status.denied != Some(true))
}
