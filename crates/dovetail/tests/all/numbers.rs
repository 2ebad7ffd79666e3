//! One number, however it is written, in every kind of file: what is taken in one is taken in all,
//! and what is no number is refused in all, with its place.

use crate::program::Folder;

/// Ways to write 8.
const EIGHT: [&str; 8] = ["8e0", "80e-1", "0.8E+1", "+8", " 8", "8.0", "8.", "08"];
/// What is no number of anything, and is none in any file.
const NO_NUMBER: [&str; 6] = ["8x", "nan", "inf", "8e401", "1e-400x", "--8"];
/// A number that is not whole and nearly nothing.
const NEARLY_ZERO: &str = "1e-400";

/// A kind of file: its name, its text around the number, a command that reads it.
struct Reader {
    file: &'static str,
    text: (&'static str, &'static str),
    command: &'static str,
    /// The line of the number.
    line: u32,
    /// Whether only a whole number may stand there.
    is_whole: bool,
}

const TIMED: &str = "sim run --protocol timed --order fifo-skip --output json";

fn readers() -> Vec<Reader> {
    let reader =
        |file, text, command, line, is_whole| Reader { file, text, command, line, is_whole };
    vec![
        reader(
            "n.csv",
            ("node_name,cpu_milli,memory_bytes,gpu_count\na,1000,1000,", "\n"),
            "sim run --protocol timed --order fifo-skip --nodes n.csv --jobs jobs.csv",
            2,
            true,
        ),
        reader(
            "j.csv",
            ("job_id,submit_ms,duration_ms,gpu_count,priority\na,0,60,1,", "\n"),
            "trace export j.csv --to out.csv",
            2,
            true,
        ),
        reader(
            "t.csv",
            ("job_id,submit_s,duration_s,num_gpu\na,", ",60,1\n"),
            "trace stats t.csv",
            2,
            false,
        ),
        reader(
            "e.csv",
            ("at_s,action,node\n", ",cordon,node-000001\n"),
            "sim run --protocol timed --order fifo-skip --nodes 2x8 --jobs jobs.csv --cluster-events e.csv",
            2,
            false,
        ),
        reader(
            "u.csv",
            ("timestamp_s,pod,gpu,activity_percent\n0,p,0,5\n60,p,0,", "\n"),
            "usage idle --usage u.csv",
            3,
            false,
        ),
        reader(
            "p.csv",
            ("gpu_model,usd_per_gpu_hour\nT4,", "\n"),
            "sim run --protocol timed --order fifo-skip --nodes nodes.csv --jobs jobs.csv --prices p.csv",
            2,
            false,
        ),
        reader(
            "a.csv",
            ("7,0 1 2 3 4 5\n", ",5 4 3 2 1 0\n"),
            "sim run --protocol fgd --nodes nodes.csv --pods pods.csv --arrivals a.csv --seed 8",
            2,
            true,
        ),
    ]
}

#[test]
fn a_number_is_taken_or_refused_alike_in_every_table() {
    let folder = Folder::new();
    for Reader { file, text: (before, after), command, line, is_whole } in readers() {
        let run = |number: &str| {
            folder.write(file, &format!("{before}{number}{after}"));
            let mut done = folder.call(&format!("{command} --output json"));
            // How long it took is another thing.
            done.out = done.out.lines().filter(|line| !line.contains("per_second")).collect();
            done
        };
        let plain = run("8");
        assert_eq!(plain.code, Some(0), "{file}: {}", plain.err);
        for number in EIGHT {
            let done = run(number);
            assert_eq!(done.code, Some(0), "{file}: `{number}`: {}", done.err);
            assert_eq!(done.out, plain.out, "{file}: `{number}`");
        }
        let refused = |number: &str| {
            let done = run(number);
            assert_eq!(done.code, Some(3), "{file}: `{number}`: {}", done.err);
            assert!(done.err.contains(&format!("{file}:{line}: column `")), "{file}: {}", done.err);
        };
        NO_NUMBER.into_iter().for_each(refused);
        if is_whole {
            refused(NEARLY_ZERO);
        }
    }
}

/// The grammar of TOML has no ` 8` to speak of and no `8.`; all else is as in tables.
#[test]
fn a_number_is_taken_or_refused_alike_in_every_toml_file() {
    let folder = Folder::new();
    let queues = |number: &str| {
        folder.write("q.toml", &format!("[queues.a]\nquota = {number}\n"));
        folder.call(&format!("{TIMED} --nodes 2x8 --jobs jobs.csv --queues q.toml"))
    };
    let scenario = |number: &str| {
        let text = "[world]\nnodes = '2x8'\n[stream]\nload = 0.5\nlength = '1d'\n[[stream.jobs]]\n\
                    run_time = '1h'\ngpus = [1]\npriority = ";
        folder.write("s.toml", &format!("{text}{number}\n"));
        folder.call(&format!("{TIMED} --scenario s.toml"))
    };
    let weight = |number: &str| {
        folder.write("w.toml", &format!("[queues.a]\nweight = {number}\n"));
        folder.call(&format!("{TIMED} --nodes 2x8 --jobs jobs.csv --queues w.toml"))
    };
    for number in ["8", "8e0", "80e-1", "0.8E+1", "+8", "8.0", "1e6"] {
        for done in [queues(number), weight(number), scenario(number)] {
            assert_eq!(done.code, Some(0), "{number}: {}", done.err);
        }
    }
    for number in ["nan", "inf", "1e300", "-1e300", "4294967296", "'8'"] {
        let told = [(queues(number), "q.toml:2: queues.a.quota: "), {
            (scenario(number), "s.toml:9: stream.jobs.priority: ")
        }];
        for (done, place) in told {
            assert_eq!(done.code, Some(3), "{number}: {}", done.err);
            assert!(done.err.contains(place) && done.err.contains(": expected "), "{}", done.err);
            assert!(!done.err.contains("i128") && done.err.len() < 200, "{}", done.err);
        }
    }
}

/// A file without anything in it says what it lacks.
#[test]
fn an_empty_file_says_what_it_lacks() {
    let folder = Folder::new();
    for file in ["n.csv", "j.csv", "a.csv", "u.csv", "e.csv", "r.jsonl", "x.rec"] {
        folder.write(file, "");
    }
    for (command, told) in [
        ("trace stats j.csv", "j.csv:1: the file is empty; expected a header"),
        (
            "sim run --protocol timed --order fifo --nodes n.csv --jobs jobs.csv",
            "n.csv:1: the file is empty; expected a header",
        ),
        (
            "sim run --protocol fgd --nodes nodes.csv --pods pods.csv --arrivals a.csv --seed 8",
            "a.csv:1: the file is empty; expected lines seed,row row",
        ),
        ("usage idle --usage u.csv", "u.csv:1: the file is empty: start it with a header"),
        (
            "sim run --protocol timed --order fifo --nodes 1x8 --jobs jobs.csv --cluster-events e.csv",
            "e.csv:1: the file is empty; expected the columns at_s,action,node",
        ),
        ("sim replay x.rec", "x.rec:1: the file is empty: expected the header of a recording"),
    ] {
        let done = folder.call(command);
        assert_eq!(done.code, Some(3), "{command}: {}", done.err);
        assert!(done.err.contains(told), "{command}: {}", done.err);
    }
}
