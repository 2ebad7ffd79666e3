//! dovetail's scheduler in a process of its own, as users run it: this program, called another way.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use dovetail_order::Turns;
use dovetail_plan::{EngineConfig, EstimatesConfig, Order, PreemptionConfig};
use dovetail_scheduler::{Metrics, Options, Status};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::watch;

/// The first argument that makes this program the scheduler; the second is the kubeconfig, and the
/// third, if there is one, a preset.
pub(crate) const MODE: &str = "scheduler-process";

/// A running scheduler; dropping it kills the process.
#[derive(Debug)]
pub(crate) struct SchedulerProcess(Child);

impl SchedulerProcess {
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        Self::spawn(kubeconfig, None)
    }

    /// With order `dovetail`, a preset of it, preemption, and learned run times.
    pub(crate) fn start_with_preset(kubeconfig: &Path, preset: &str) -> Self {
        Self::spawn(kubeconfig, Some(preset))
    }

    fn spawn(kubeconfig: &Path, preset: Option<&str>) -> Self {
        let this = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(this);
        command.arg(MODE).arg(kubeconfig).args(preset).stdin(Stdio::piped());
        Self(command.spawn().expect("a process"))
    }

    /// Resident memory now, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most that was resident since [`SchedulerProcess::forget_most`], in bytes.
    pub(crate) fn most_resident_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    /// Begins to look for the most anew (`clear_refs`, proc(5)).
    pub(crate) fn forget_most(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.0.id()), "5").expect("a mark set back");
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size in kB") * 1024
    }
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        // The process ends when its input does, with every bind that it began answered.
        drop(self.0.stdin.take());
        _ = self.0.wait();
    }
}

/// Schedules until standard input ends.
pub(crate) fn run(kubeconfig: &str, preset: Option<&str>) {
    let options = preset.map_or_else(Options::default, options_of);
    run_until_input_ends(kubeconfig, options).expect("a scheduler that runs");
}

/// As the program sets them for this preset.
fn options_of(preset: &str) -> Options {
    let engine = EngineConfig {
        order: Order::Dovetail,
        turns: Turns::preset(preset).expect("a preset"),
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        estimates: EstimatesConfig { learn: true, only_learned: true },
        ..EngineConfig::default()
    };
    let mut options = Options { engine, ..Options::default() };
    options.world.rules.queues_borrow = true;
    options
}

fn run_until_input_ends(
    kubeconfig: &str,
    options: Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let (stop, stopped) = watch::channel(false);
        std::thread::spawn(move || {
            // Whatever ends the input, the scheduler stops.
            _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.send_replace(true);
        });
        let (status, metrics) = (Arc::<Status>::default(), Arc::<Metrics>::default());
        Ok(dovetail_scheduler::run(&config, options, status, metrics, stopped).await?)
    })
}
