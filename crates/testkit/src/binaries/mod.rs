//! The programs of a control plane, built once from pinned Go modules and kept in a cache folder.
//!
//! [`program`] answers with the path of one program and builds its module first where that has not
//! happened yet. Several processes may ask at once: one builds, the others wait for it.

mod cache;
mod compile;
mod module;
mod release;

use std::path::PathBuf;

use thiserror::Error;

use module::{MODULES, Module};
pub use release::{Release, UnknownRelease};

/// A program that tests start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The store of the API server.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// Kubernetes' own scheduler: the peer in comparisons.
    KubeScheduler,
    /// Kubernetes' controllers: jobs, deployments, garbage collection.
    KubeControllerManager,
    /// The command line of users.
    Kubectl,
    /// KWOK, which plays nodes: a cross-check of the own kubelets.
    Kwok,
    /// kube-scheduler's own filter plugins as judges.
    Oracle,
    /// NVIDIA's own libraries as judges of MIG profiles.
    MigOracle,
}

impl Program {
    /// The file name of the program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Oracle => "oracle",
            Self::MigOracle => "mig",
        }
    }

    fn module(self, release: Release) -> &'static Module {
        match self {
            Self::Etcd => &module::ETCD,
            Self::Kwok => &module::KWOK,
            Self::Oracle => release.oracle(),
            Self::MigOracle => &module::MIG_ORACLE,
            Self::KubeApiserver
            | Self::KubeScheduler
            | Self::KubeControllerManager
            | Self::Kubectl => release.control_plane(),
        }
    }
}

/// The path of a program, of a release of Kubernetes if it is one of Kubernetes' own. Builds its
/// module first where the cache does not hold it: minutes, with a line to `progress` now and then.
///
/// # Errors
/// When Go is missing or too old, when it cannot fetch or compile a module, or when the cache
/// folder cannot be written.
pub fn program(
    program: Program,
    release: Release,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    Ok(cache::folder_with(program.module(release), progress)?.join(program.name()))
}

/// Builds every module that the cache does not hold, with the control plane of a release, and
/// answers with their folders.
///
/// # Errors
/// As [`program`].
pub fn build_all(
    release: Release,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, BuildError> {
    let others = (release != Release::default()).then(|| release.control_plane());
    let modules = MODULES.into_iter().chain(others);
    modules.map(|module| cache::folder_with(module, progress)).collect()
}

/// Why a program could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// There is no `go`.
    #[error(
        "`go` was not found: install Go {wanted} or newer, from https://go.dev/dl or your system's packages"
    )]
    NoGo {
        /// The oldest version that compiles the module.
        wanted: String,
    },
    /// There is a `go`, but an older one.
    #[error(
        "{found} cannot compile {module}: install Go {wanted} or newer, from https://go.dev/dl"
    )]
    OldGo {
        /// What `go env GOVERSION` says.
        found: String,
        module: String,
        /// The oldest version that compiles it.
        wanted: String,
    },
    /// Go ended with an error.
    #[error(
        "go could not build {module}: check that it reaches its module proxy (`go env GOPROXY`), that disk and memory suffice, and read its last lines:\n{output}"
    )]
    Compile {
        module: String,
        /// The last lines that Go printed.
        output: String,
    },
    /// Go succeeded, yet a program is not where it should be.
    #[error("go built {module} without `{program}`: list it in {file}")]
    NoProgram {
        module: String,
        program: String,
        /// The file that lists what the module builds.
        file: String,
    },
    /// A module's `go.mod` lacks the line that pins its version.
    #[error("{file} does not say `{wanted}`: add the line")]
    Manifest {
        /// The `go.mod`.
        file: String,
        /// The directive that was looked for.
        wanted: String,
    },
    /// A release of Kubernetes that is not kept here.
    #[error(transparent)]
    Release(#[from] UnknownRelease),
    /// No folder to keep programs in is known.
    #[error(
        "no cache folder is known: set DOVETAIL_K8S_BIN to a folder for the built programs, or HOME"
    )]
    NoCache,
    /// A file or folder could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// What was read or written.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
}

impl BuildError {
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
