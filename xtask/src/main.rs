//! Chores of the project: `cargo xtask <task>`.

mod cluster;
mod codegen;
#[cfg(test)]
mod commit_message;
mod test_programs;
mod tidy;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask <task>
  tidy [RULE]...   check the rules of the house; without a name, all of them
  test             build and run the test programs of the workspace, two at a time
  lines            lines of source without tests, per crate and in total
  codegen cli      write docs/reference/cli.md from the command line's own definition
  codegen queues   write deploy/queue-definition.yaml from the definition in the code
  codegen reservations  write deploy/reservation-definition.yaml from the definition in the code
  codegen sharing  write deploy/sharing/policy-definition.yaml from the definition in the code
  codegen metrics  write docs/reference/metrics.md from the metrics' own descriptions
  codegen rules    write deploy/monitoring/rules.yaml from the rules in the code
  codegen dashboard  write deploy/monitoring/dashboard.json from the panels in the code
  cluster build    build etcd, Kubernetes and KWOK from their pinned modules, once
  cluster up       start a control plane in the background: --nodes N, --shape 8xH100,
                   --scheduler, --controller-manager, --kwok; prints its kubeconfig
  cluster status   what is running
  cluster down     end it";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(problem) => {
            // Its causes; where in the code it arose helps nobody who calls this.
            let _ = writeln!(std::io::stderr(), "error: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments.iter().any(|word| matches!(*word, "--help" | "-h" | "help")) {
        writeln!(std::io::stdout(), "{USAGE}")?;
        return Ok(ExitCode::SUCCESS);
    }
    match arguments.as_slice() {
        ["tidy", rules @ ..] => tidy::run(rules),
        ["test"] => test_programs::run(),
        ["lines"] => tidy::lines::print(),
        ["codegen", "cli"] => {
            codegen::write_reference(codegen::CLI_REFERENCE, codegen::CLI_COMMAND)
        }
        ["codegen", "sharing"] => {
            codegen::write_reference(codegen::SHARING_DEFINITION, codegen::SHARING_COMMAND)
        }
        ["codegen", "queues"] => {
            codegen::write_reference(codegen::QUEUE_DEFINITION, codegen::QUEUE_COMMAND)
        }
        ["codegen", "metrics"] => {
            codegen::write_reference(codegen::METRICS_REFERENCE, codegen::METRICS_COMMAND)
        }
        ["codegen", "reservations"] => {
            codegen::write_reference(codegen::RESERVATIONS.0, codegen::RESERVATIONS.1)
        }
        ["codegen", "rules"] => codegen::write_reference(codegen::RULES.0, codegen::RULES.1),
        ["codegen", "dashboard"] => {
            codegen::write_reference(codegen::DASHBOARD.0, codegen::DASHBOARD.1)
        }
        ["cluster", task @ ..] => cluster::run(task),
        _ => bail!("{USAGE}"),
    }
}
