//! What a bill is made from, and how it is shown: the flags of `dovetail cost`.

use anyhow::Result;
use clap::Args;
use dovetail_bill::focus::FocusVersion;
use dovetail_console::app::App;
use dovetail_settings::errors::{UsageError, refuse_twice};
use dovetail_settings::form::Output;
use dovetail_settings::{Setting, SettingOrigin};
use dovetail_sources::own_namespaces::own_namespaces;

use super::account::Only;
use super::dimension::Dimension;
use super::flags::AccountFlags;
use super::top::Top;

/// What a bill is made from, and how it is shown.
#[derive(Debug, Args)]
pub struct BillFlags {
    #[command(flatten)]
    pub account: AccountFlags,
    /// Ledger to read, written by dovetail serve or by this command: a file, or
    /// postgres://USER@HOST/DATABASE; with --prometheus, dovetail first adds the missing hours of
    /// the period
    #[arg(long, value_name = "LEDGER", conflicts_with_all = ["usage", "example", "exporter", "exporters_in"])]
    pub store: Option<String>,
    /// Show only namespaces in which your credentials may list pods
    #[arg(long, conflicts_with = "focus")]
    pub mine: bool,
    /// Bill only the pods of this namespace; rows and total cover only these pods
    #[arg(long, short = 'n', value_name = "NAMESPACE", conflicts_with = "mine")]
    namespace: Option<String>,
    /// Bill all namespaces (the default)
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "mine"])]
    all_namespaces: bool,
    /// Keys to group rows by, separated by commas, such as team,cause
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "KEY",
        default_value = "namespace"
    )]
    pub by: Vec<Dimension>,
    /// Show the N most expensive rows, and one row for the rest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "focus")]
    pub top: Option<u32>,
    /// Print the bill as FOCUS (FinOps) CSV of this version: 1.2, 1.3 or 1.4; a snapshot counts as
    /// one hour
    #[arg(long, value_name = "VERSION", conflicts_with = "by")]
    pub focus: Option<FocusVersion>,
}

impl BillFlags {
    /// A dataset of FOCUS has one form.
    pub fn refuse_other_forms_of_focus(&self, app: &App) -> Result<()> {
        let Setting { value: output, origin } = &app.settings.output;
        let is_named = matches!(origin, SettingOrigin::Flag(_)) && *output != Output::Csv;
        if self.focus.is_none() || !is_named {
            return Ok(());
        }
        let text = format!(
            "--focus prints a FOCUS dataset, which is CSV; omit --output {}, or omit --focus to \
             get the bill in that format",
            output.name()
        );
        Err(UsageError(text).into())
    }

    /// Only a cluster knows which namespaces are yours.
    pub fn refuse_mine_without_cluster(&self) -> Result<()> {
        if !self.mine || self.account.objects.server().is_some() {
            return Ok(());
        }
        let text = "--mine requires a cluster; omit --from and --example, or omit --mine";
        Err(UsageError(text.to_owned()).into())
    }

    /// The namespaces that are billed; `None` for all.
    ///
    /// # Errors
    /// A cluster that does not answer.
    pub fn only(&self) -> Result<Option<Only>> {
        if let Some(namespace) = &self.namespace {
            return Ok(Some(Only::Named(namespace.clone())));
        }
        let cluster = self.account.objects.server().filter(|_| self.mine);
        cluster.map(|cluster| own_namespaces(cluster).map(Only::Own)).transpose()
    }

    /// How many rows are shown.
    pub fn top(&self) -> Option<Top> {
        self.top.map(|most| Top { most, told_as_one: 0 })
    }

    /// What a row is about.
    ///
    /// # Errors
    /// A dimension that is named twice.
    pub fn dimensions(&self) -> Result<Vec<Dimension>> {
        let names: Vec<String> = self.by.iter().map(|by| by.name()).collect();
        refuse_twice("--by", names.iter().map(String::as_str))?;
        Ok(self.by.clone())
    }
}
