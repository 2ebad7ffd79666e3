//! `dovetail partition plan` on large generated fleets.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use dovetail_model::MigTable;
use serde_json::Value;

/// GPUs, pending pods, seconds at most.
const FLEETS: [(usize, u32, f64); 2] = [(1_000, 5_000, 0.5), (10_000, 50_000, 5.0)];

/// Profiles that pods ask for, in the order of the published mix `uniform`.
const PROFILES: [&str; 5] = ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"];

/// Knuth's MMIX generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Memory slices in use, as a mask, compute slices in use, and instances by profile and start.
type Gpu = (u16, u8, Vec<(usize, u8)>);

/// A world in which half of all compute slices are in use, at random places.
fn world(gpus: usize, pods: u32) -> String {
    let table = MigTable::of_model("A100-40GB").expect("a known model");
    let mut random = Random(gpus as u64);
    let mut fleet: Vec<Gpu> = vec![(0, 0, Vec::new()); gpus];
    let mut left = gpus as i64 * 7 / 2;
    while left > 0 {
        let profile = table.profile(PROFILES[random.below(4)]).expect("a known profile");
        let of = &table.profiles[profile];
        let start = of.starts[random.below(of.starts.len())];
        let (taken, compute, held) = &mut fleet[random.below(gpus)];
        let mask = of.mask_at(start);
        if *taken & mask == 0 && *compute + of.compute_slices <= 7 {
            *taken |= mask;
            *compute += of.compute_slices;
            held.push((profile, start));
            left -= i64::from(of.compute_slices);
        }
    }
    let mut text = String::from("{\"gpus\":[");
    for (number, (_, _, held)) in fleet.iter().enumerate() {
        let held = held.iter();
        let held = held.map(|(profile, start)| (&table.profiles[*profile].name, start));
        let held: Vec<String> = held.map(|(name, start)| format!("[{name:?},{start}]")).collect();
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma}[{}]", held.join(","));
    }
    let each = pods / PROFILES.len() as u32;
    let demand: Vec<String> = PROFILES.iter().map(|name| format!("{name:?}:{each}")).collect();
    text + "],\"demand\":{" + &demand.join(",") + "}}"
}

pub(crate) fn print() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("world.json");
    println!(
        "| GPUs, half in use | pods | seconds, including startup and reading the file | target | \
         compute slices | bound | gap |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (gpus, pods, target_s) in FLEETS {
        std::fs::write(&file, world(gpus, pods)).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["partition", "plan", "--output", "json", "--world"]).arg(&file);
        let start = Instant::now();
        let output = command.output().expect("the program starts");
        let took_s = start.elapsed().as_secs_f64();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let number = |key: &str| plan[key].as_f64().expect("a number");
        let (served, bound) =
            (number("accepted_compute_slices"), number("upper_bound_compute_slices"));
        let gap = 100.0 * (bound - served) / bound;
        println!("| {gpus} | {pods} | {took_s:.2} | {target_s} | {served} | {bound} | {gap:.2}% |");
    }
}
