//! What a bill is made from, and how it is shown: the flags of `dovetail cost`.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use dovetail_bill::focus::Version;
use dovetail_console::app::App;
use dovetail_settings::errors::{UsageError, refuse_twice};
use dovetail_settings::form::Output;
use dovetail_settings::{Origin, Setting};
use dovetail_sources::own_namespaces::own_namespaces;

use super::dimension::Dimension;
use super::flags::AccountFlags;
use super::top::Top;

/// What a bill is made from, and how it is shown.
#[derive(Debug, Args)]
pub struct BillFlags {
    #[command(flatten)]
    pub account: AccountFlags,
    /// A ledger: a file, or postgres://USER@HOST/DATABASE. What is read of --prometheus is kept in
    /// it, only what it does not have of the period is read, and the answer comes out of it;
    /// without --prometheus nothing is read
    #[arg(long, value_name = "LEDGER", conflicts_with_all = ["usage", "example", "exporter", "exporters_in"])]
    pub store: Option<String>,
    /// Only the pods of your namespaces: those in which the credentials of --kubeconfig may list
    /// pods, as the cluster itself says
    #[arg(long, requires = "kubeconfig", conflicts_with = "focus")]
    pub mine: bool,
    /// One row for each of these; several, separated by commas, such as team,cause
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT",
        default_value = "namespace"
    )]
    pub by: Vec<Dimension>,
    /// Only so many rows, those that cost most, and one for all others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "focus")]
    pub top: Option<u32>,
    /// Print the bill in the FinOps form FOCUS instead, of this version: 1.2, 1.3 or 1.4; of one
    /// snapshot an hour of it
    #[arg(long, value_name = "VERSION", conflicts_with = "by")]
    pub focus: Option<Version>,
}

impl BillFlags {
    /// A dataset of FOCUS has one form.
    pub fn refuse_other_forms_of_focus(&self, app: &App) -> Result<()> {
        let Setting { value: output, origin } = &app.settings.output;
        let is_named = matches!(origin, Origin::Flag(_)) && *output != Output::Csv;
        if self.focus.is_none() || !is_named {
            return Ok(());
        }
        let text = format!(
            "--focus prints a dataset of FOCUS, which is CSV: leave out --output {}, or leave out --focus for the bill \
             in that form",
            output.name()
        );
        Err(UsageError(text).into())
    }

    /// Beside --from and --example, which stand in for a cluster, the parser no longer asks for
    /// --kubeconfig.
    pub fn refuse_mine_without_cluster(&self) -> Result<()> {
        if !self.mine || self.account.objects.server().is_some() {
            return Ok(());
        }
        let text = "--mine needs --kubeconfig: whose namespaces are yours only a cluster says, objects of a file or \
                    of the example do not; give --kubeconfig in their place, or leave out --mine";
        Err(UsageError(text.to_owned()).into())
    }

    /// The namespaces of who asks, where only they are asked for.
    pub fn own_namespaces(&self) -> Result<Option<BTreeSet<String>>> {
        let kubeconfig = self.account.objects.server().filter(|_| self.mine);
        kubeconfig.map(own_namespaces).transpose()
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
