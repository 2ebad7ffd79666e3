//! What is built: one entry per Go module. To add a program, add its module here and a name for it
//! in [`Program`](super::Program).
//!
//! Versions stand in the modules' `go.mod` files alone, so that Go and this crate cannot disagree.

use std::path::{Path, PathBuf};

use super::BuildError;

/// The modules that tests need, in the order in which they are built.
pub(super) const MODULES: [&Module; 6] =
    [&ETCD, &KUBERNETES, &KWOK, &ORACLE, &ORACLE_1_35, &MIG_ORACLE];

/// A Go module and the programs it builds.
pub(super) struct Module {
    /// The name in messages and in the cache.
    pub(super) name: &'static str,
    /// The folder of `go.mod`, from the root of the repository.
    pub(super) folder: &'static str,
    /// The file that pins versions, `go.mod` but where one folder is built for several releases.
    pub(super) manifest: &'static str,
    /// The required module whose version is the version of the programs.
    pub(super) versioned_by: &'static str,
    /// What `go build` is asked for; `tool` stands for the tools that `go.mod` lists.
    pub(super) packages: &'static str,
    /// Build tags that choose between files.
    pub(super) tags: &'static str,
    /// The programs: the name Go gives, and the name they are known by.
    pub(super) programs: &'static [(&'static str, &'static str)],
    /// Whether the programs must be told their version at link time.
    pub(super) stamped: bool,
    /// Whether a function of C must be looked for when it is called, because not all are there.
    pub(super) binds_late: bool,
}

pub(super) const ETCD: Module = Module {
    name: "etcd",
    folder: "xtask/cluster/etcd",
    manifest: "go.mod",
    versioned_by: "go.etcd.io/etcd/server/v3",
    packages: "tool",
    tags: "",
    programs: &[("server", "etcd")],
    stamped: false,
    binds_late: false,
};

pub(super) const KUBERNETES: Module = Module {
    name: "kubernetes",
    folder: "xtask/cluster/kubernetes",
    manifest: "go.mod",
    versioned_by: "k8s.io/kubernetes",
    packages: "tool",
    tags: "",
    programs: &[
        ("kube-apiserver", "kube-apiserver"),
        ("kube-controller-manager", "kube-controller-manager"),
        ("kube-scheduler", "kube-scheduler"),
        ("kubectl", "kubectl"),
    ],
    // Without it the server reports v0.0.0, and clients that negotiate by version misbehave.
    stamped: true,
    binds_late: false,
};

/// The oldest release that the project is run on.
pub(super) const KUBERNETES_1_35: Module =
    Module { name: "kubernetes-1.35", folder: "xtask/cluster/kubernetes-1.35", ..KUBERNETES };

pub(super) const KWOK: Module = Module {
    name: "kwok",
    folder: "xtask/cluster/kwok",
    manifest: "go.mod",
    versioned_by: "sigs.k8s.io/kwok",
    packages: "tool",
    tags: "",
    programs: &[("kwok", "kwok")],
    stamped: false,
    binds_late: false,
};

/// kube-scheduler's own filter plugins as judges, of the release that the project follows.
pub(super) const ORACLE: Module = Module {
    name: "oracle",
    folder: "oracle",
    manifest: "go.mod",
    versioned_by: "k8s.io/kubernetes",
    packages: ".",
    tags: "",
    programs: &[("oracle", "oracle")],
    stamped: true,
    binds_late: false,
};

/// The same of the oldest release that the project is run on.
pub(super) const ORACLE_1_35: Module = Module {
    name: "oracle-1.35",
    manifest: "kubernetes-1.35.mod",
    tags: "kubernetes_1_35",
    ..ORACLE
};

/// NVIDIA's own libraries as judges of MIG profiles. A module of its own inside that of the oracle:
/// it needs a C compiler, and would raise what Kubernetes pins.
pub(super) const MIG_ORACLE: Module = Module {
    name: "mig-oracle",
    folder: "oracle/mig",
    manifest: "go.mod",
    versioned_by: "github.com/NVIDIA/go-nvml",
    packages: ".",
    tags: "",
    programs: &[("mig", "mig")],
    stamped: false,
    binds_late: true,
};

impl Module {
    /// The folder of the module in this clone.
    pub(super) fn source(&self) -> PathBuf {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_folder.ancestors().nth(2).unwrap_or(crate_folder);
        root.join(self.folder)
    }

    /// The file that pins versions, from the root of the repository.
    pub(super) fn manifest_path(&self) -> String {
        format!("{}/{}", self.folder, self.manifest)
    }

    /// Reads what the module's manifest pins.
    pub(super) fn pins(&self) -> Result<Pins, BuildError> {
        let path = self.source().join(self.manifest);
        let text = std::fs::read_to_string(&path).map_err(BuildError::file(&path))?;
        let missing = |wanted: String| BuildError::Manifest { file: self.manifest_path(), wanted };
        let go = value_after(&text, "go").ok_or_else(|| missing("go <version>".to_owned()))?;
        let version = value_after(&text, self.versioned_by)
            .and_then(|version| version.strip_prefix('v'))
            .ok_or_else(|| missing(format!("require {} v<version>", self.versioned_by)))?;
        Ok(Pins { go: go.to_owned(), version: version.to_owned() })
    }

    /// The linker's flags: no symbols, and the version where the programs want it.
    pub(super) fn linker_flags(&self, version: &str) -> String {
        let mut flags = "-s -w".to_owned();
        if self.binds_late && cfg!(target_os = "linux") {
            // Some compilers bind all functions at the start unless they are told not to. go-nvml
            // declares those of a driver that is not there (NVIDIA/go-nvml#18).
            flags.push_str(" -extldflags=-Wl,-z,lazy");
        }
        if self.stamped {
            let mut parts = version.split('.');
            let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
            for (key, value) in [
                ("gitVersion", format!("v{version}")),
                ("gitMajor", major.into()),
                ("gitMinor", minor.into()),
            ] {
                flags.push_str(&format!(" -X k8s.io/component-base/version.{key}={value}"));
            }
        }
        flags
    }
}

/// What a `go.mod` says of versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pins {
    /// The oldest Go that compiles the module.
    pub(super) go: String,
    /// The version of its programs, without the `v`.
    pub(super) version: String,
}

/// The word after the first one, on the first line that begins with it, inside a block or not.
fn value_after<'a>(go_mod: &'a str, key: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(key)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_pins_its_version_and_its_go() {
        for module in MODULES {
            let Pins { go, version } = module.pins().unwrap();
            assert!(go.starts_with("1."), "{}: go {go}", module.name);
            assert_eq!(version.split('.').count(), 3, "{}: {version}", module.name);
        }
    }

    #[test]
    fn programs_are_linked_with_their_version_and_without_a_driver() {
        let flags = KUBERNETES.linker_flags("1.37.1");
        assert!(flags.contains("version.gitVersion=v1.37.1 "), "{flags}");
        assert!(flags.contains("version.gitMinor=37"), "{flags}");
        assert_eq!(ETCD.linker_flags("3.7.3"), "-s -w");
        let binds_late = MIG_ORACLE.linker_flags("0.13.4-1").ends_with(",-z,lazy");
        assert_eq!(binds_late, cfg!(target_os = "linux"));
    }

    #[test]
    fn versions_are_read_inside_and_outside_of_blocks() {
        let text = "module a\n\ngo 1.26.0\n\nrequire b.c/d v1.2.3\n\nrequire (\n\te.f v4.5.6 // indirect\n)\n";
        assert_eq!(value_after(text, "go"), Some("1.26.0"));
        assert_eq!(value_after(text, "b.c/d"), Some("v1.2.3"));
        assert_eq!(value_after(text, "e.f"), Some("v4.5.6"));
        assert_eq!(value_after(text, "g.h"), None);
    }
}
