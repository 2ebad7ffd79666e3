//! Damage of every kind: never a panic, never a silently changed value.

use dovetail_cases::cases;
use dovetail_trace::{ReadOptions, Trace, TraceError, write_trace};
use proptest::prelude::*;

use crate::shared::{jobs, nodes, skipping};

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
p1,4000,512,1,460,T4|P100,LS,Succeeded,10,40,12\n\
p2,1000,0,0,0,,BE,Pending,5,99,\n\
p3,1,1,2,1000,,,Failed,0,0,0\n\
p4,8,1,8,1000,A,,Running,0,5,0\n";

const TABLE: &str = "job_id,submit_s,duration_s,num_gpu,nodes,vc,status\n\
j1,0,941386.66419,4,,v1,Pass\n\
j2,17,5,64,8,v2,Failed\n\
j3,18.5,6,1,1,\"v,3\",Killed\n";

const SWF: &str = "; Version: 2.2\n\
1 0 5 60 16 -1 -1 16 120 2048 1 3 1 -1 2 -1 -1 -1\n\
2 10 -1 -1 -1 -1 -1 4 -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n\
3 11 0 9 8 -1 -1 8 -1 -1 0 1 -1 -1 -1 -1 -1 -1\n";

const OWN: &str = "job_id,submit_ms,duration_ms,estimate_ms,start_ms,pod_count,cpu_milli,memory_bytes,gpu_count,gpu_milli,gpu_models,user,queue,model,service_class,priority,deadline_ms,outcome\n\
a,1,2,3,4,5,6,7,8,1000,A|B,u,q,m,s,-9,10,completed\n\
b,1,,,,1,6,7,1,50,,\"u,\"\"x\"\"\",,,,0,,unknown\n\
c,9,8,,,1,0,0,0,0,,,,,,7,,killed\n";

const NODES: &str = "node_name,cpu_milli,memory_bytes,gpu_count,gpu_model,gpu_memory_bytes,rack,zone\n\
n1,96000,1024,8,H100,85899345920,r1,z1\n\
n2,4000,1024,0,,,r1,z1\n";

/// One thing that goes wrong with a file.
#[derive(Debug, Clone)]
enum Damage {
    Replace(usize, u8),
    Insert(usize, u8),
    Delete(usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = 0..4096_usize;
    let byte = prop_oneof![
        any::<u8>(),
        proptest::sample::select(b"\"\n\r,;|-+.eE 0129\x00\xff".to_vec()),
    ];
    prop_oneof![
        (place.clone(), byte.clone()).prop_map(|(place, byte)| Damage::Replace(place, byte)),
        (place.clone(), byte).prop_map(|(place, byte)| Damage::Insert(place, byte)),
        place.clone().prop_map(Damage::Delete),
        place.prop_map(Damage::Cut),
    ]
}

fn apply(text: &str, damage: &Damage) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let length = bytes.len();
    match *damage {
        Damage::Replace(place, byte) => bytes[place % length] = byte,
        Damage::Insert(place, byte) => bytes.insert(place % length, byte),
        Damage::Delete(place) => drop(bytes.remove(place % length)),
        Damage::Cut(place) => bytes.truncate(place % length),
    }
    bytes
}

fn line_at(text: &str, damage: &Damage) -> u64 {
    let (Damage::Replace(place, _)
    | Damage::Insert(place, _)
    | Damage::Delete(place)
    | Damage::Cut(place)) = *damage;
    let before = &text.as_bytes()[..place % text.len()];
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The fields of a line by the plainest reading there is: own format, no quotes.
fn plain_fields(line: &str) -> Vec<String> {
    line.split(',').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn one_wound_stays_on_its_line(file in 0..4_usize, damage in damage()) {
        let text = [PODS, TABLE, SWF, OWN][file];
        let whole = jobs(text.as_bytes(), &ReadOptions::default()).expect("sound file");
        let line = line_at(text, &damage);
        let wounded = apply(text, &damage);
        // A line end that comes or goes concerns its neighbour too.
        let near = |found: u64| found.abs_diff(line) <= 1;
        match jobs(&wounded, &ReadOptions::default()) {
            Err(TraceError::Row(error)) => {
                // A name that now equals a later one is reported where it comes again.
                let repeated = error.problem.contains("already used");
                prop_assert!(near(error.line) || repeated, "{error}");
            }
            Err(other) => {
                let is_cut = matches!(damage, Damage::Cut(_));
                prop_assert!(line <= 2 || is_cut, "{other}");
            }
            Ok(read) if line > 1 => unhurt_rows_are_kept(text, &whole, &read, line, &damage)?,
            Ok(_) => {}
        }
    }

    #[test]
    fn many_wounds_never_panic(
        file in 0..5_usize,
        wounds in proptest::collection::vec(damage(), 1..20),
        skip in any::<bool>(),
    ) {
        let mut bytes = [PODS, TABLE, SWF, OWN, NODES][file].to_owned().into_bytes();
        for damage in &wounds {
            if bytes.is_empty() {
                break;
            }
            // Work on bytes: earlier wounds may have left no valid text.
            let length = bytes.len();
            match *damage {
                Damage::Replace(place, byte) => bytes[place % length] = byte,
                Damage::Insert(place, byte) => bytes.insert(place % length, byte),
                Damage::Delete(place) => drop(bytes.remove(place % length)),
                Damage::Cut(place) => bytes.truncate((place % length).max(length / 2)),
            }
        }
        let options = if skip { skipping() } else { ReadOptions::default() };
        if let Ok(trace) = jobs(&bytes, &options) {
            write_trace(&trace, Vec::new()).expect("what was read obeys the rules of its type");
        }
        let _ = nodes(&bytes, &options);
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = jobs(&bytes, &skipping());
        let _ = nodes(&bytes, &skipping());
    }

    #[test]
    fn values_are_taken_as_they_stand(place in 0..4096_usize, byte in proptest::sample::select(b"0123456789abz.- ".to_vec())) {
        // In dovetail's own format every accepted cell is what it says, so a changed file either
        // comes back as changed or is refused at the changed line.
        let text = "job_id,submit_ms,duration_ms,gpu_count,gpu_milli,user\n\
                    a,17,250,2,1000,u\nb,18,1,1,333,w\nc,19,77,0,0,x\n";
        let damage = Damage::Replace(place, byte);
        let line = line_at(text, &damage);
        let wounded = apply(text, &damage);
        match jobs(&wounded, &ReadOptions::default()) {
            Err(TraceError::Row(error)) => {
                prop_assert!(error.line.abs_diff(line) <= 1 || error.problem.contains("already used"));
            }
            Err(_) => prop_assert_eq!(line, 1),
            Ok(read) => {
                let wounded = String::from_utf8(wounded).expect("ASCII");
                for (job, row) in read.jobs.iter().zip(wounded.lines().skip(1)) {
                    let cells = plain_fields(row);
                    prop_assert_eq!(&job.id, &cells[0]);
                    let value = |cell: &String| cell.trim().parse::<f64>().ok();
                    prop_assert_eq!(Some(job.submit_ms as f64), value(&cells[1]));
                    prop_assert_eq!(job.duration_ms.map(|ms| ms as f64), value(&cells[2]));
                    prop_assert_eq!(Some(f64::from(job.gpu_count)), value(&cells[3]));
                    prop_assert_eq!(Some(job.gpu_milli as f64), value(&cells[4]));
                    prop_assert_eq!(job.user.as_deref(), Some(&*cells[5]));
                }
            }
        }
    }
}

/// Every row that stands on another line than the wound is the same as before.
fn unhurt_rows_are_kept(
    text: &str,
    whole: &Trace,
    read: &Trace,
    line: u64,
    damage: &Damage,
) -> Result<(), TestCaseError> {
    let header_lines = 2;
    let before = (line.saturating_sub(header_lines) as usize).min(whole.jobs.len());
    // Rows in front of the wound, less one where a line end may have gone.
    for index in 0..before.saturating_sub(1) {
        prop_assert_eq!(read.jobs.get(index), whole.jobs.get(index), "{}", text);
    }
    if matches!(damage, Damage::Cut(_)) {
        return Ok(());
    }
    let behind = whole.jobs.len().saturating_sub(before + 2);
    let kept: Vec<_> = read.jobs.iter().rev().take(behind).collect();
    let same: Vec<_> = whole.jobs.iter().rev().take(behind).collect();
    prop_assert_eq!(kept, same, "{}", text);
    Ok(())
}
