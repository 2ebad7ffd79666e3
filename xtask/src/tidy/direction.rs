//! Dependencies point inward: the binary sees edge and lab, these see core, core sees core.

use anyhow::Result;

use super::workspace::{Crate, line_of_key};
use super::{Outcome, Violation, Workspace};

/// Where a crate stands. Sorted from the inside out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    Core,
    Lab,
    Edge,
    Binary,
    /// Builders and fakes that only tests see.
    Testkit,
    /// Chores: this crate.
    Chores,
}

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
        let mend = "move it to crates/core, crates/lab or crates/edge".to_owned();
        return vec![Violation { path, line: 1, message, mend }];
    };
    let mut violations = Vec::new();
    for dependency in &krate.dependencies {
        let Some(other) = all.iter().find(|other| other.name == dependency.name) else { continue };
        let Some(theirs) = self::layer(other) else { continue };
        let for_tests = dependency.kind == cargo_metadata::DependencyKind::Development;
        if !(may_see(layer, theirs) || for_tests && theirs == Layer::Testkit) {
            violations.push(Violation {
                path: path.clone(),
                line: line_of_key(manifest, &dependency.name),
                message: format!("{} must not depend on {}", krate.folder, other.folder),
                mend: "let the inner crate define what both need, or join the two in the binary"
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
        ("crates", Some("lab")) => Some(Layer::Lab),
        ("crates", Some("edge")) => Some(Layer::Edge),
        ("crates", Some("dovetail")) => Some(Layer::Binary),
        ("crates", Some("testkit")) => Some(Layer::Testkit),
        _ => None,
    }
}

fn may_see(from: Layer, to: Layer) -> bool {
    match from {
        Layer::Core => to == Layer::Core,
        Layer::Lab => matches!(to, Layer::Core | Layer::Lab),
        Layer::Edge => matches!(to, Layer::Core | Layer::Edge),
        Layer::Binary => matches!(to, Layer::Core | Layer::Lab | Layer::Edge),
        Layer::Testkit | Layer::Chores => !matches!(to, Layer::Binary | Layer::Chores),
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
        let others = ["core/model", "lab/sim", "edge/kube", "dovetail", "testkit"]
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
        assert_eq!(count("crates/lab/exact", ("kube", NORMAL)), 1);
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
