//! What a job is like: its device, its iterations, its storage.

use crate::random::Random;
use crate::tape::{Board, Levels, Quantity};

/// Drawn once per job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nature {
    pub(crate) ranks: usize,
    pub(crate) board: Board,
    /// Compute of one iteration.
    pub(crate) compute_ms: f64,
    /// How much that varies from iteration to iteration, and from rank to rank within one.
    pub(crate) iteration_jitter: f64,
    pub(crate) rank_jitter: f64,
    /// Transfer that nothing hides, of an iteration's compute.
    pub(crate) transfer_part: f64,
    pub(crate) working: Levels,
    pub(crate) transferring: Levels,
    /// While it waits in a collective.
    pub(crate) spinning: Levels,
    /// While it waits for data.
    pub(crate) loading: Levels,
    /// While it is idle with nothing to do, for short and for long.
    pub(crate) resting: Levels,
    pub(crate) away: Levels,
    pub(crate) starting: Levels,
    /// While it writes and reads checkpoints.
    pub(crate) saving: Levels,
    pub(crate) restoring: Levels,
    /// Every rank writes its part; otherwise the first writes all.
    pub(crate) is_sharded: bool,
    pub(crate) save_ms: f64,
    pub(crate) restore_ms: f64,
    pub(crate) checkpoint_every_ms: f64,
    pub(crate) image_ms: f64,
    pub(crate) init_ms: f64,
}

impl Nature {
    pub(crate) fn draw(random: &mut Random, ranks: usize) -> Self {
        let board = board(random);
        let (working, spinning, transferring) = device(random);
        let loading = loading(random);
        // Data for the next iterations are made while this one computes, with fewer hands.
        let ahead = random.between(0.35, 0.9);
        let ahead_of = |working: Levels| {
            let mut levels = working;
            for quantity in [Quantity::Cpus, Quantity::Read, Quantity::Received] {
                levels.0[quantity as usize] += ahead * loading.get(quantity);
            }
            levels
        };
        let save_rate = random.magnitude(1.5e8, 2e9);
        let to_network = random.chance(0.3);
        let (out, back) = match to_network {
            true => (Quantity::Sent, Quantity::Received),
            false => (Quantity::Written, Quantity::Read),
        };
        let quiet = Levels::default().with(Quantity::Cpus, random.between(0.2, 1.1));
        let storing = quiet.with(Quantity::Cpus, random.between(0.6, 3.0));
        Self {
            ranks,
            board,
            compute_ms: random.magnitude(500.0, 7000.0),
            iteration_jitter: random.between(0.005, 0.03),
            rank_jitter: random.between(0.002, 0.01),
            transfer_part: random.between(0.0, 0.12),
            working: ahead_of(working),
            transferring,
            spinning,
            loading,
            resting: quiet,
            away: Levels::default().with(Quantity::Cpus, random.between(0.01, 0.3)),
            starting: Levels::default()
                .with(Quantity::Cpus, random.between(0.4, 4.0))
                .with(Quantity::Read, random.between(0.0, 9e6)),
            saving: storing.with(out, save_rate),
            restoring: storing.with(back, save_rate * random.between(0.7, 1.5)),
            is_sharded: random.chance(0.5),
            save_ms: random.magnitude(25e3, 150e3),
            restore_ms: random.magnitude(40e3, 240e3),
            checkpoint_every_ms: random.between(10.0, 35.0) * 60e3,
            image_ms: random.magnitude(15e3, 300e3),
            init_ms: random.magnitude(20e3, 150e3),
        }
    }

    /// Without work on data beside the compute: they are in memory already.
    pub(crate) fn in_memory(mut self, random: &mut Random) -> Self {
        for quantity in [Quantity::Read, Quantity::Received] {
            self.working.0[quantity as usize] = random.between(0.0, 3e6);
        }
        self.working.0[Quantity::Cpus as usize] = random.between(0.9, 1.4);
        self
    }
}

fn board(random: &mut Random) -> Board {
    let idle_watts = random.between(50.0, 120.0);
    Board {
        idle_watts,
        full_watts: random.between(320.0, 750.0),
        spin_part: random.between(0.05, 0.12),
        tensor_part: random.between(0.6, 1.1),
        dram_part: random.between(0.3, 0.6),
        lag_s: random.between(1.5, 8.0),
    }
}

/// Working, spinning, transferring.
fn device(random: &mut Random) -> (Levels, Levels, Levels) {
    let cpus = random.between(0.9, 1.3);
    let working = Levels::default()
        .with(Quantity::Engine, random.between(0.945, 1.0))
        .with(Quantity::Util, random.between(0.97, 1.0))
        .with(Quantity::Sm, random.between(0.6, 0.95))
        .with(Quantity::Tensor, random.between(0.2, 0.65))
        .with(Quantity::Dram, random.between(0.18, 0.7))
        .with(Quantity::Nvlink, random.between(0.0, 2e10))
        .with(Quantity::Cpus, cpus);
    let spinning = Levels::default()
        .with(Quantity::Engine, 1.0)
        .with(Quantity::Util, 1.0)
        .with(Quantity::Sm, random.between(0.05, 0.2))
        .with(Quantity::Dram, random.between(0.001, 0.015))
        .with(Quantity::Cpus, random.between(0.9, 1.2));
    let transferring = spinning
        .with(Quantity::Dram, random.between(0.04, 0.15))
        .with(Quantity::Nvlink, random.between(4e10, 3e11));
    (working, spinning, transferring)
}

/// Decoding on CPUs, reading from disk, or reading from the network.
fn loading(random: &mut Random) -> Levels {
    let levels = Levels::default();
    match random.below(0, 3) {
        0 => levels
            .with(Quantity::Cpus, random.between(3.0, 14.0))
            .with(Quantity::Read, random.between(0.0, 4e7)),
        1 => levels
            .with(Quantity::Cpus, random.between(0.5, 2.5))
            .with(Quantity::Read, random.magnitude(6e7, 9e8)),
        _ => levels
            .with(Quantity::Cpus, random.between(0.5, 3.0))
            .with(Quantity::Received, random.magnitude(6e7, 9e8)),
    }
}
