//! The connection to a cluster.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Flags as written.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectionFlags {
    /// Connection to the cluster; without it, that of kubectl or of the pod this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(skip)]
    is_of_pod: bool,
}

impl ConnectionFlags {
    /// The connection that a file describes.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self { kubeconfig: Some(path), is_of_pod: false }
    }

    /// The connection of the pod that this runs in.
    pub(crate) fn of_pod() -> Self {
        Self { kubeconfig: None, is_of_pod: true }
    }

    /// As messages name it.
    pub(crate) fn name(&self) -> String {
        match &self.kubeconfig {
            Some(path) => format!("kubeconfig {}", path.display()),
            None if self.is_of_pod => "the cluster of this pod".to_owned(),
            None => "the cluster of kubectl".to_owned(),
        }
    }

    /// The settings of a client.
    ///
    /// # Errors
    /// Names the file that cannot be used, or says how to name one.
    pub(crate) async fn connect(&self) -> Result<Config> {
        if self.is_of_pod {
            return Config::incluster().context("no connection to a cluster: this runs in no pod");
        }
        let Some(path) = &self.kubeconfig else {
            let found = Config::infer().await;
            return found.context("no connection to a cluster: name a file with --kubeconfig");
        };
        let named = || self.name();
        let file = Kubeconfig::read_from(path).with_context(named)?;
        let options = KubeConfigOptions::default();
        Config::from_custom_kubeconfig(file, &options).await.with_context(named)
    }
}
