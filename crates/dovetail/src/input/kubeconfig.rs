//! The connection to a cluster.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ConnectionFlags {
    /// Connection to the cluster; without it, that of kubectl or of the pod this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl ConnectionFlags {
    /// The connection that a file describes.
    pub(crate) fn of_file(path: PathBuf) -> Self {
        Self { kubeconfig: Some(path) }
    }

    /// The settings of a client.
    ///
    /// # Errors
    /// Names the file that cannot be used, or says how to name one.
    pub(crate) async fn connect(&self) -> Result<Config> {
        let Some(path) = &self.kubeconfig else {
            let found = Config::infer().await;
            return found.context("no connection to a cluster: name a file with --kubeconfig");
        };
        let named = || format!("kubeconfig {}", path.display());
        let file = Kubeconfig::read_from(path).with_context(named)?;
        let options = KubeConfigOptions::default();
        Config::from_custom_kubeconfig(file, &options).await.with_context(named)
    }
}
