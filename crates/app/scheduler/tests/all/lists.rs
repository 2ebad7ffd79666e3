//! All that the audit reads, from a real server, page by page.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_apiserver::client::read_lists;
use dovetail_inventory::dump::{RawObject, Sink, Skipped};
use dovetail_testkit::ControlPlane;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use crate::schedule::create_nodes;

/// Names by kind.
#[derive(Default)]
struct Seen {
    names: BTreeMap<String, BTreeSet<String>>,
    objects: usize,
}

impl Sink for Seen {
    fn object(&mut self, raw: &RawObject<'_>) {
        assert!(!raw.api_version.is_empty(), "{} {}", raw.kind, raw.name);
        self.names.entry(raw.kind.to_owned()).or_default().insert(raw.name.to_owned());
        self.objects += 1;
    }

    fn skipped(&mut self, skipped: Skipped) {
        panic!("{skipped}");
    }
}

#[tokio::test]
async fn every_object_is_read_once_however_small_the_pages() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let config = control_plane.config().await.expect("a kubeconfig");
    let client = Client::try_from(config.clone()).expect("a client");
    create_nodes(&Api::<Node>::all(client), 7).await;
    let mut whole = Seen::default();
    let lists = read_lists(&config, 500, &mut whole).await.expect("lists");
    let nodes: BTreeSet<String> = (0..7).map(|at| format!("n{at}")).collect();
    assert_eq!(whole.names["Node"], nodes);
    assert!(whole.names["Namespace"].contains("kube-system"), "{:?}", whole.names);
    // What a server does not have is read in full: there is none.
    for kind in ["Pod", "Job", "ValidatingAdmissionPolicy", "PyTorchJob"] {
        assert!(lists.complete.contains(&kind), "{kind}: {lists:?}");
    }
    assert_eq!(lists.refused, Vec::<&str>::new());
    for page in [1, 3, 7] {
        let mut paged = Seen::default();
        assert_eq!(read_lists(&config, page, &mut paged).await.expect("lists"), lists);
        assert_eq!((&paged.names, paged.objects), (&whole.names, whole.objects), "pages of {page}");
    }
}
