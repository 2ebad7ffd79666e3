//! What `cargo xtask cluster up` may be told.

use anyhow::{Context, Result, bail};
use dovetail_testkit::MachineShape;
use dovetail_testkit::binaries::Release;
use dovetail_testkit::cluster::Options;

pub(super) const USAGE: &str = "arguments of `up`:
  --kubernetes RELEASE   1.37 (the default) or 1.35
  --nodes N              create N Node objects
  --shape SHAPE          what they are, such as 8xH100 (the default) or 4xL40S
  --scheduler            start kube-scheduler
  --controller-manager   start kube-controller-manager
  --kwok                 start KWOK, which plays the kubelets of all nodes";

/// The nodes to create, and what to start beside the API server.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) nodes: u32,
    pub(super) shape: MachineShape,
    pub(super) options: Options,
}

pub(super) fn parse(arguments: &[&str]) -> Result<Arguments> {
    let mut parsed = Arguments {
        nodes: 0,
        shape: "8xH100".parse::<MachineShape>()?,
        options: Options::default(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("`{argument}` needs a value"));
        match *argument {
            "--kubernetes" => parsed.options.release = Some(value()?.parse::<Release>()?),
            "--nodes" => {
                let text = value()?;
                parsed.nodes =
                    text.parse().with_context(|| format!("--nodes: `{text}` is no number"))?;
            }
            "--shape" => parsed.shape = value()?.parse::<MachineShape>()?,
            "--scheduler" => parsed.options.scheduler = true,
            "--controller-manager" => parsed.options.controller_manager = true,
            "--kwok" => parsed.options.kwok = true,
            _ => bail!("`{argument}` is no argument of `cluster up`\n{USAGE}"),
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_mistakes_are_named() {
        let parsed = parse(&["--nodes", "20", "--shape", "4xT4", "--kwok"]).unwrap();
        assert_eq!(parsed.nodes, 20);
        assert_eq!(parsed.shape, "4xT4".parse::<MachineShape>().unwrap());
        assert!(parsed.options.kwok && !parsed.options.scheduler);
        for (bad, named) in
            [(&["--nodes"][..], "--nodes"), (&["--nodes", "x"], "`x`"), (&["up"], "`up`")]
        {
            let message = parse(bad).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }
}
