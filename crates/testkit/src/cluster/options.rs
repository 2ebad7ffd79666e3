//! What a control plane consists of.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::StartError;
use crate::binaries::Release;

/// A file that says that a folder is a control plane's and may be removed with all it holds.
const MARK: &str = "dovetail-cluster.txt";

/// What to start beside etcd and the API server, and for whom. `Options::default()` is those two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The release of Kubernetes; without it [`Release::chosen`].
    pub release: Option<Release>,
    /// Start kube-scheduler, with its client's limits raised to 5,000 requests per second: its
    /// default of 50 measures the limit instead of the scheduler.
    pub scheduler: bool,
    /// Start kube-controller-manager without its node life-cycle controller: nodes without agents
    /// would turn not-ready.
    pub controller_manager: bool,
    /// Start KWOK, which claims every node and plays its kubelet.
    pub kwok: bool,
    /// Users beside the administrator; each gets a kubeconfig.
    pub users: Vec<User>,
    /// Users each of whose requests the API server notes, in a file that
    /// [`Cluster::noted`](super::Cluster::noted) reads.
    pub noted_users: Vec<String>,
    /// More arguments of kube-apiserver.
    pub api_server_arguments: Vec<String>,
    /// A new or empty folder to work in; it is removed at the end. Without one, a folder below the
    /// system's temporary folder.
    pub folder: Option<PathBuf>,
}

/// How many nodes kube-scheduler looks at for each pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodesLookedAt {
    /// Every node, so that what it finds does not depend on where it begins.
    All,
    /// As many as it takes by default: fewer, the larger the cluster is. So that it is measured as
    /// people run it, its alpha feature of gangs in topology domains is off, too.
    Some,
}

/// Someone who may speak to the API server, with the rights that RBAC objects give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name: ASCII letters, digits, `-`, `.` and `:`.
    pub name: String,
    pub groups: Vec<String>,
}

impl User {
    /// A user in no group.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), groups: Vec::new() }
    }
}

impl Options {
    /// Creates the folder that the control plane works in.
    pub(super) fn make_folder(&self) -> Result<PathBuf, StartError> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let folder = self.folder.clone().unwrap_or_else(|| {
            let number = STARTED.fetch_add(1, Ordering::Relaxed);
            std::env::temp_dir().join(format!("dovetail-cluster-{}-{number}", std::process::id()))
        });
        let mark = folder.join(MARK);
        if mark.exists() {
            // Left by a killed process with the same number.
            std::fs::remove_dir_all(&folder).map_err(StartError::file(&folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(StartError::file(&folder))?;
        if std::fs::read_dir(&folder).map_err(StartError::file(&folder))?.next().is_some() {
            return Err(StartError::Occupied(folder));
        }
        std::fs::write(&mark, "A control plane for tests: removed when it ends.\n")
            .map_err(StartError::file(&mark))?;
        Ok(folder)
    }
}
