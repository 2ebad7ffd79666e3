//! Dependencies point inward: `dovetail → app → edge → kube → core`, and `lab → kube, core`. What
//! is Kubernetes as plain data knows neither a client nor a clock.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::{Crate, Workspace, line_of_key};

/// Where a crate stands. Sorted from the inside out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Core,
    /// Kubernetes as plain data.
    Kube,
    Lab,
    Edge,
    /// What joins lab with edge or kube.
    App,
    Binary,
    /// How many cases a property has: tests of core see it, so that it sees no other crate of ours.
    Cases,
    /// Builders and fakes that only tests see.
    Testkit,
    /// Chores: this crate.
    Chores,
}

/// What speaks to a server, waits or writes a log: no crate of Kubernetes as plain data declares
/// it. Features are unified over the workspace, so only the manifests can say it.
const OUTSIDE: [&str; 6] =
    ["hyper", "k8s-openapi", "kube", "prometheus-client", "tokio", "tracing"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    for krate in &workspace.crates {
        let manifest = workspace.text(&krate.manifest()).unwrap_or_default();
        violations.extend(violations_of(krate, &workspace.crates, manifest));
    }
    let looked_at = format!("{} crates", workspace.crates.len());
    Ok(Outcome { violations, looked_at })
}

fn violations_of(krate: &Crate, all: &[Crate], manifest: &str) -> Vec<Violation> {
    let path = krate.manifest();
    let Some(layer) = layer(krate) else {
        let message = format!("{} stands in no layer", krate.name);
        let mend = "move it to crates/core, kube, lab, edge or app".to_owned();
        return vec![Violation { path, line: 1, message, mend }];
    };
    let mut violations = Vec::new();
    for dependency in &krate.dependencies {
        let is_shipped = dependency.kind != cargo_metadata::DependencyKind::Development;
        if layer == Layer::Kube && is_shipped && OUTSIDE.contains(&dependency.name.as_str()) {
            violations.push(Violation {
                path: path.clone(),
                line: line_of_key(manifest, &dependency.name),
                message: format!("{} is plain data: no `{}`", krate.folder, dependency.name),
                mend: "let crates/edge or crates/app do it, and take what comes of it".to_owned(),
            });
        }
        let Some(other) = all.iter().find(|other| other.name == dependency.name) else { continue };
        let Some(theirs) = self::layer(other) else { continue };
        let for_tests = dependency.kind == cargo_metadata::DependencyKind::Development;
        let is_test_code = matches!(theirs, Layer::Cases | Layer::Testkit);
        let tests_it = for_tests && is_test_code && layer != Layer::Cases;
        if !(may_see(layer, theirs) || tests_it) {
            violations.push(Violation {
                path: path.clone(),
                line: line_of_key(manifest, &dependency.name),
                message: format!("{} must not depend on {}", krate.folder, other.folder),
                mend: "let the inner crate define what both need, or join the two in crates/app"
                    .to_owned(),
            });
        }
    }
    violations
}

fn layer(krate: &Crate) -> Option<Layer> {
    let mut parts = krate.folder.split('/');
    match (parts.next()?, parts.next()) {
        ("xtask", None) => Some(Layer::Chores),
        ("crates", Some("core")) => Some(Layer::Core),
        ("crates", Some("kube")) => Some(Layer::Kube),
        ("crates", Some("app")) => Some(Layer::App),
        ("crates", Some("lab")) => Some(Layer::Lab),
        ("crates", Some("edge")) => Some(Layer::Edge),
        ("crates", Some("dovetail")) => Some(Layer::Binary),
        ("crates", Some("cases")) => Some(Layer::Cases),
        ("crates", Some("testkit")) => Some(Layer::Testkit),
        _ => None,
    }
}

fn may_see(from: Layer, to: Layer) -> bool {
    use Layer::{App, Binary, Cases, Chores, Core, Edge, Kube, Lab, Testkit};
    match from {
        Core => to == Core,
        Kube => matches!(to, Core | Kube),
        Lab => matches!(to, Core | Kube | Lab),
        Edge => matches!(to, Core | Kube | Edge),
        App => matches!(to, Core | Kube | Lab | Edge | App),
        Binary => !matches!(to, Binary | Cases | Testkit | Chores),
        Cases => false,
        Testkit | Chores => !matches!(to, Binary | Chores),
    }
}

#[cfg(test)]
mod tests {
    use cargo_metadata::DependencyKind;

    use super::super::workspace::Dependency;
    use super::*;

    fn krate(folder: &str, dependencies: &[(&str, DependencyKind)]) -> Crate {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind });
        let name = folder.rsplit('/').next().unwrap().to_owned();
        let dependencies = dependencies.collect();
        Crate { name, folder: folder.to_owned(), dependencies, ..Crate::default() }
    }

    #[test]
    fn only_inward_dependencies_pass() {
        const NORMAL: DependencyKind = DependencyKind::Normal;
        const DEV: DependencyKind = DependencyKind::Development;
        let others = [
            "core/model",
            "kube/objects",
            "lab/sim",
            "edge/price",
            "app/costing",
            "dovetail",
            "cases",
            "testkit",
        ]
        .map(|folder| krate(&format!("crates/{folder}"), &[]));
        let count = |folder, dependency| {
            let krate = krate(folder, &[dependency]);
            let manifest = format!("[dependencies]\n{}.workspace = true\n", dependency.0);
            let found = violations_of(&krate, &others, &manifest);
            assert!(found.iter().all(|violation| violation.line == 2));
            found.len()
        };
        assert_eq!(count("crates/core/plan", ("model", NORMAL)), 0);
        assert_eq!(count("crates/core/plan", ("sim", NORMAL)), 1);
        assert_eq!(count("crates/core/plan", ("sim", DEV)), 1);
        assert_eq!(count("crates/core/plan", ("testkit", DEV)), 0);
        assert_eq!(count("crates/core/plan", ("testkit", NORMAL)), 1);
        assert_eq!(count("crates/core/plan", ("cases", DEV)), 0);
        assert_eq!(count("crates/core/plan", ("cases", NORMAL)), 1);
        assert_eq!(count("crates/dovetail", ("cases", NORMAL)), 1);
        assert_eq!(count("crates/cases", ("model", NORMAL)), 1);
        assert_eq!(count("crates/cases", ("testkit", DEV)), 1);
        assert_eq!(count("crates/kube/cluster", ("objects", NORMAL)), 0);
        assert_eq!(count("crates/kube/cluster", ("price", NORMAL)), 1);
        assert_eq!(count("crates/kube/cluster", ("tokio", NORMAL)), 1);
        assert_eq!(count("crates/kube/cluster", ("tokio", DEV)), 0);
        assert_eq!(count("crates/core/plan", ("objects", NORMAL)), 1);
        assert_eq!(count("crates/lab/exact", ("objects", NORMAL)), 0);
        assert_eq!(count("crates/lab/exact", ("price", NORMAL)), 1);
        assert_eq!(count("crates/edge/serve", ("objects", NORMAL)), 0);
        assert_eq!(count("crates/edge/serve", ("costing", NORMAL)), 1);
        assert_eq!(count("crates/app/costing", ("sim", NORMAL)), 0);
        assert_eq!(count("crates/app/costing", ("dovetail", NORMAL)), 1);
        assert_eq!(count("crates/edge/price", ("sim", NORMAL)), 1);
        assert_eq!(count("crates/edge/price", ("dovetail", NORMAL)), 1);
        assert_eq!(count("crates/dovetail", ("sim", NORMAL)), 0);
        assert_eq!(count("xtask", ("dovetail", NORMAL)), 1);
    }

    #[test]
    fn a_crate_outside_the_layers_is_refused() {
        assert_eq!(violations_of(&krate("crates/misc/x", &[]), &[], "").len(), 1);
    }
}
