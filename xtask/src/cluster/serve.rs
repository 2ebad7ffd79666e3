//! The process that holds the control plane: started by `up`, ended by `down`.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;

use anyhow::Result;
use dovetail_testkit::cluster::Cluster;

use super::arguments::{self, Arguments};
use super::control::{self, ControlAnswer};
use super::folder;

/// A progress line each time that many nodes are created.
const NODES_PER_LINE: u32 = 500;

/// Tells `up` on stdout how it goes, and then serves until it is told to stop.
pub(super) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let served = control::open().and_then(|listener| {
        let served = start(arguments).and_then(|cluster| serve(cluster, &listener));
        control::close();
        served
    });
    match served {
        Ok(mut asker) => {
            asker.write_all(b"stopped\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            tell(&format!("error {error:#}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

fn start(arguments: &[&str]) -> Result<Cluster> {
    let Arguments { nodes, shape, mut options } = arguments::parse(arguments)?;
    options.folder = Some(folder());
    let cluster = Cluster::start(options, &mut |line| tell(&format!("progress {line}")))?;
    for number in 1..=nodes {
        let name = format!("node-{number:05}");
        cluster.create("/api/v1/nodes", &shape.node(&name).to_string())?;
        if number % NODES_PER_LINE == 0 {
            tell(&format!("progress {number} of {nodes} nodes"));
        }
    }
    Ok(cluster)
}

/// Holds the control plane until somebody asks to end it, and gives back who did.
fn serve(mut cluster: Cluster, listener: &UnixListener) -> Result<UnixStream> {
    tell(&format!("ready {}", cluster.kubeconfig().display()));
    control::answer_at(listener, |word| match word {
        "down" => ControlAnswer::Stop,
        _ => ControlAnswer::Text(status(&mut cluster)),
    })
}

fn status(cluster: &mut Cluster) -> String {
    let health = match cluster.check_alive() {
        Ok(()) => "running".to_owned(),
        Err(error) => error.to_string(),
    };
    format!(
        "{health}\nserver      {}\nkubeconfig  {}\nlogs        {}\n",
        cluster.server(),
        cluster.kubeconfig().display(),
        cluster.folder().display(),
    )
}

/// Where `up` is gone, the control plane goes on.
fn tell(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
