//! `dovetail cost job`: where the hours of one job went, in money, with what would mend it.
//!
//! | module | what |
//! |---|---|
//! | `name` | which job is meant |
//! | `of_moment`, `of_series`, `of_example` | what the job held and did, by where figures come from |
//! | `of_several` | GPUs that other pods have, too, over a period |
//! | `held` | its parts with their money |
//! | `document`, `terminal` | the same in JSON, and for people |

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_costing::flags::{AccountFlags, BillSource, BillTerms, parts};
use dovetail_costing::job::document::Document;
use dovetail_costing::job::held::JobTime;
use dovetail_costing::job::name::WantedJob;
use dovetail_costing::job::{of_example, of_moment, of_series};
use dovetail_render::cost::job as terminal;
use dovetail_settings::form::Output;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// Name of the job, such as train, vision/train or Job/train, or the name of one of its pods.
    /// With --example, also one of these generated jobs, which have data for every signal:
    /// balanced, straggler, episodes, starved, epochs, failing, hanging, notebook, single,
    /// lingering
    #[arg(value_name = "JOB")]
    name: String,
    /// Namespace of the job
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    account: AccountFlags,
}

/// Reads, splits and prints.
pub(super) fn run(app: &App, flags: &JobFlags) -> Result<()> {
    let output = app.output("cost job")?;
    let terms = flags.account.terms(app)?;
    let time = flags.time(app, &terms)?;
    let document = Document::of(&time, &terms, now_ms())?;
    match output {
        Output::Json => app.print_json(&document),
        _ => app.print(&terminal::terminal(&document)),
    }
}

impl JobFlags {
    /// The job with its bill and what it did.
    fn time(&self, app: &App, terms: &BillTerms) -> Result<JobTime> {
        let wanted = WantedJob { name: &self.name, namespace: self.namespace.as_deref() };
        if self.account.objects.example
            && let Some(kind) = of_example::kind(&wanted)
        {
            return of_example::time(app, &self.account, kind);
        }
        match self.account.source(app, &terms.teams)? {
            BillSource::Moment(mut moment) => {
                let parts = parts(&moment.gathered, &mut moment.told)?;
                let (account, _) = self.account.of_moment(app, terms, &moment, &parts, false)?;
                let job = wanted.find(&account)?;
                of_moment::time(account, job, &moment, &parts)
            }
            BillSource::Server(mut over) => {
                let (account, _, look) = self.account.over_time(app, terms, &mut over)?;
                let job = wanted
                    .find(&account)
                    .map_err(|error| of_series::doubted(&wanted, &look).unwrap_or(error))?;
                of_series::time(app, account, job, &look, &mut over)
            }
        }
    }
}
