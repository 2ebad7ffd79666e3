//! The connection to a cluster.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_settings::errors::UsageError;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Flags as written.
#[derive(Clone, Debug, Args)]
pub struct ConnectionFlags {
    /// Connection to the cluster; without it, that of kubectl or of the pod this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(skip)]
    is_of_pod: bool,
}

impl ConnectionFlags {
    /// The connection that a file describes.
    pub fn of_file(path: PathBuf) -> Self {
        Self { kubeconfig: Some(path), is_of_pod: false }
    }

    /// The connection of the pod that this runs in.
    pub fn of_pod() -> Self {
        Self { kubeconfig: None, is_of_pod: true }
    }

    /// As messages name it.
    pub fn name(&self) -> String {
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
    pub async fn connect(&self) -> Result<Config> {
        if self.is_of_pod {
            return Config::incluster().context("no connection to a cluster: this runs in no pod");
        }
        let Some(path) = &self.kubeconfig else {
            if let Ok(file) = Kubeconfig::read() {
                refuse_unknown_user(&file, &self.name())?;
            }
            let found = Config::infer().await;
            return found.context("no connection to a cluster: name a file with --kubeconfig");
        };
        let named = || self.name();
        let file = Kubeconfig::read_from(path).with_context(named)?;
        refuse_unknown_user(&file, &self.name())?;
        let options = KubeConfigOptions::default();
        Config::from_custom_kubeconfig(file, &options).await.with_context(named)
    }
}

/// Refuses a context whose user is not there: the server would take whoever asks for nobody.
fn refuse_unknown_user(file: &Kubeconfig, name: &str) -> Result<()> {
    let current = file.current_context.as_deref().unwrap_or_default();
    let context = file.contexts.iter().find(|one| one.name == current);
    let user = context.and_then(|one| one.context.as_ref()?.user.as_deref()).unwrap_or_default();
    if user.is_empty() || file.auth_infos.iter().any(|one| one.name == user) {
        return Ok(());
    }
    let text = format!(
        "{name}: its context {current} names user {user}, which is not among its users: add it, or name another there"
    );
    Err(UsageError(text).into())
}
