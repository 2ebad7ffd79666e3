//! Rows of one namespace, as kubectl users ask for them.

use clap::Args;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct NamespaceFlags {
    /// Show only rows of this namespace; totals cover all namespaces
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Show rows of all namespaces (the default)
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespaceFlags {
    /// The namespace to which rows are limited; `None` for all.
    pub fn only(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether a row of a namespace is shown.
    pub fn shows(&self, namespace: &str) -> bool {
        self.only().is_none_or(|only| only == namespace)
    }
}
