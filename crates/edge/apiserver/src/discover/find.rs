//! Services and the operator's objects, from a server.

use dovetail_control::answer::message;
use hyper::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::Value;

use super::candidate::{CandidateService, Prometheus, Service, candidates};
use crate::client::{ClientError, PAGE, next_page, send, to_read};

/// Services to ask, and what kept some from being found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundServices {
    /// The likeliest first.
    pub candidates: Vec<CandidateService>,
    /// Lists that could not be read, with the reason, for people.
    pub unread: Vec<String>,
}

/// Looks through the Prometheus objects and the services of all namespaces. A list that is refused
/// is told, and the other one is used all the same.
///
/// # Errors
/// When certificates or credentials cannot be used.
pub async fn find(config: &Config) -> Result<FoundServices, ClientError> {
    let client = to_read(config)?;
    let mut unread = Vec::new();
    let operated = list(&client, "/apis/monitoring.coreos.com/v1/prometheuses", &mut unread).await;
    let services = list(&client, "/api/v1/services", &mut unread).await;
    let operated: Vec<Prometheus> = readable(operated);
    let services: Vec<Service> = readable(services);
    Ok(FoundServices { candidates: candidates(&services, &operated), unread })
}

/// The objects that can be understood. The others are nobody's way to a server.
pub(super) fn readable<T: serde::de::DeserializeOwned>(items: Vec<Value>) -> Vec<T> {
    items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Value>,
}

/// All objects of a list; those of the pages before where one is not answered. A kind that the
/// server does not have is an empty list.
pub(super) async fn list(client: &Client, path: &str, unread: &mut Vec<String>) -> Vec<Value> {
    let mut items = Vec::new();
    let mut after = String::new();
    loop {
        let mark = if after.is_empty() { String::new() } else { format!("&continue={after}") };
        let request = Request::get(format!("{path}?limit={PAGE}{mark}")).body(Body::empty());
        let problem = match send(client, request).await {
            Ok((200, _, bytes)) => match serde_json::from_slice::<Page>(&bytes) {
                Ok(page) => {
                    items.extend(page.items);
                    after = next_page(&String::from_utf8_lossy(&bytes));
                    if after.is_empty() {
                        return items;
                    }
                    continue;
                }
                Err(error) => format!("no list: {error}"),
            },
            Ok((404, _, _)) => return items,
            Ok((code, _, bytes)) => format!("{code}: {}", message(&bytes)),
            Err(no_answer) => no_answer.error,
        };
        unread.push(format!("{path}: {problem}"));
        return items;
    }
}
