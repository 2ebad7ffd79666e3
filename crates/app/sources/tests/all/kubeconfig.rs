//! Where a kubeconfig is looked for, and what is wrong with its contexts.

use std::path::Path;

use dovetail_sources::kubeconfig::{check_context, places};
use kube::config::Kubeconfig;

fn file(text: &str) -> Kubeconfig {
    Kubeconfig::from_yaml(text).expect("a kubeconfig")
}

#[test]
fn a_context_that_is_not_there_is_named_with_those_that_are() {
    let text = "contexts: [{name: dev, context: {cluster: c, user: u}}, {name: prod, context: {cluster: c}}]\n\
                current-context: dev\nusers: [{name: u, user: {}}]\n";
    assert!(check_context(&file(text), None, "kubeconfig k").is_ok());
    assert!(check_context(&file(text), Some("prod"), "kubeconfig k").is_ok());
    let told = check_context(&file(text), Some("stage"), "kubeconfig k").unwrap_err();
    assert_eq!(
        told.to_string(),
        "kubeconfig k: context \"stage\" does not exist; pass --context NAME (available: dev, prod)"
    );
    let told = check_context(&file("contexts: []\n"), None, "kubeconfig k").unwrap_err();
    assert_eq!(
        told.to_string(),
        "kubeconfig k: no current context is set, and the file has no contexts; pass another file with \
         --kubeconfig FILE"
    );
}

#[test]
fn files_are_looked_for_where_kubectl_looks() {
    let home = Path::new("/somewhere");
    let by_default = places(None, Some(home));
    assert_eq!(
        by_default.words(),
        "$KUBECONFIG is not set, and the default is /somewhere/.kube/config"
    );
    let several = places(Some("/a:/b".as_ref()), Some(home));
    assert_eq!(several.words(), "$KUBECONFIG names /a, /b");
    assert_eq!(several.files.len(), 2);
    assert_eq!(several.missing(), "$KUBECONFIG names /a, /b, which do not exist");
    assert!(by_default.missing().ends_with("/somewhere/.kube/config, which does not exist"));
    assert_eq!(places(None, None).words(), "neither $KUBECONFIG nor $HOME is set");
}
