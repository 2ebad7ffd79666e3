//! The time of day is read in one place; all else is told it, so that a test can tell another time.
//! How long something took may be measured anywhere that may do I/O.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::source::{NamedPath, RustFile, named_paths};
use super::workspace::Workspace;

/// The one clock of the program.
const CLOCK: &str = "crates/app/console/src/clock.rs";

/// What has a function `now` that reads the time of day.
const TIMES_OF_DAY: [&str; 3] = ["SystemTime", "Timestamp", "Zoned"];

/// Rooms that do not even measure: they run the same in a simulation.
const TIMELESS: [&str; 2] = ["crates/kube/", "crates/lab/"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_product = |file: &&RustFile| {
        file.path.starts_with("crates/") && !file.path.starts_with("crates/testkit/")
    };
    let files: Vec<&RustFile> = workspace.sources.iter().filter(is_product).collect();
    let violations = files.iter().flat_map(|file| violations_of(file)).collect();
    Ok(Outcome { violations, looked_at: format!("{} files", files.len()) })
}

fn violations_of(file: &RustFile) -> Vec<Violation> {
    if file.path == CLOCK {
        return Vec::new();
    }
    let is_timeless = TIMELESS.iter().any(|room| file.path.starts_with(room));
    let reads_clock = |path: &NamedPath| match path.segments.as_slice() {
        [.., kind, method] if method == "now" => {
            TIMES_OF_DAY.contains(&kind.as_str()) || (is_timeless && kind == "Instant")
        }
        _ => false,
    };
    let paths = named_paths(&file.shipped());
    let read = paths.into_iter().filter(reads_clock).map(|path| Violation {
        path: file.path.clone(),
        line: path.line,
        message: format!("`{}` reads a clock", path.segments.join("::")),
        mend: format!("take the time as an argument; the program reads it in {CLOCK}"),
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str) -> Vec<usize> {
        let text = "fn a() { let _ = std::time::SystemTime::now(); }\n\
                    fn b() { m!(jiff::Timestamp::now()); }\n\
                    fn c() { let _ = Instant::now(); }\n\
                    fn d(now: Timestamp) -> Timestamp { now }\n\
                    #[cfg(test)] mod tests { fn e() { let _ = Zoned::now(); } }\n";
        let file = RustFile::parse(path, text).unwrap();
        violations_of(&file).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn the_time_of_day_is_read_in_one_place_and_some_rooms_measure_nothing() {
        assert_eq!(lines("crates/app/costing/src/account.rs"), [1, 2]);
        assert_eq!(lines("crates/lab/sim/src/run.rs"), [1, 2, 3]);
        assert_eq!(lines(CLOCK), [0; 0]);
    }
}
