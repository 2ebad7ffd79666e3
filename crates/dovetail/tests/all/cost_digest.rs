//! A team's week out of a ledger: on paper, and handed to a listener.

use std::io::{Read, Write};
use std::net::TcpListener;

use dovetail_store::{Address, Store};
use serde_json::Value;

use crate::ledger_world::World;
use crate::program::Folder;

const ASK: &str = "cost digest --store ledger.db --until 2024-10-11T05:00:00Z";

/// The small world of 2024-10-04 and -05; all of its pods are of team `vision`.
fn folder() -> (Folder, World) {
    let folder = Folder::new();
    let world = fill(&folder);
    (folder, world)
}

/// Puts the small world into the ledger `ledger.db` of a folder.
pub(crate) fn fill(folder: &Folder) -> World {
    fill_cluster(folder, "west")
}

fn fill_cluster(folder: &Folder, cluster: &str) -> World {
    let world = World::new(cluster, 5);
    let address = Address::File(folder.path("ledger.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut store = Store::open(&address).await.expect("a ledger");
        let now_ms = world.period().to_ms;
        store.keep(&world.reading(world.period()), now_ms).await.expect("kept");
        store.close().await;
    });
    world
}

#[test]
fn a_digest_has_the_hours_of_the_ledger() {
    let (folder, world) = folder();
    let weeks = folder.json(ASK);
    let [week] = weeks["weeks"].as_array().expect("weeks").as_slice() else { panic!("{weeks:#}") };
    let times = world.times(world.period());
    let hours = |of: &dyn Fn(&str) -> bool| {
        let held = times.iter().filter(|((pod, state), _)| pod.is_some() && of(state));
        held.map(|(_, time)| *time).sum::<i128>() as f64 / 3.6e9
    };
    let found = |key: &str| week["week"][key].as_f64().expect("hours");
    assert_eq!(week["team"], "vision");
    for (key, expected) in [
        ("gpu_hours", hours(&|_| true)),
        ("idle_gpu_hours", hours(&|state| state == "idle")),
        ("unknown_gpu_hours", hours(&|state| state == "unknown")),
        ("active_gpu_hours", hours(&|state| state.starts_with("active"))),
    ] {
        assert!((found(key) - expected).abs() < 1e-9, "{key}: {} {expected}", found(key));
    }
    let of_day = ASK.replace("T05:00:00Z", "");
    assert_eq!(folder.json(&of_day), weeks);
    for (until, why) in [("2024-10", "expected a day such as"), ("2200-01-01", "has not ended")] {
        let done = folder.call(&format!("cost digest --store ledger.db --until {until}"));
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert!(done.err.contains(why), "{}", done.err);
    }
    // Nothing was read of the week before, and 138 of these 168 hours neither.
    assert_eq!((&week["week_before"], &week["hours_never_read"]), (&Value::Null, &138.0.into()));
    let later = folder.json("cost digest --store ledger.db --until 2024-10-18T05:00:00Z");
    assert_eq!(later["weeks"], serde_json::json!([]));
    let nobody = "No GPU was allocated to any team from 2024-10-11 to 2024-10-17 (UTC): there is no data for this time.";
    let late = "cost digest --store ledger.db --until 2024-10-18T05:00:00Z --output";
    assert_eq!(folder.call(&format!("{late} markdown")).out, format!("{nobody}\n"));
    let page = folder.call(&format!("{late} html")).out;
    assert!(page.contains(&format!("<p>{nobody}</p>")), "{page}");
    insta::assert_snapshot!(
        "digest_markdown",
        folder.call(&format!("{ASK} --output markdown")).out
    );
    insta::assert_snapshot!("digest_html", folder.call(&format!("{ASK} --output html")).out);
}

#[test]
fn idle_jobs_of_one_name_in_two_clusters_are_two() {
    let (folder, _) = folder();
    fill_cluster(&folder, "east");
    let jobs = |weeks: &Value| -> Vec<(String, f64)> {
        let jobs = weeks["weeks"][0]["idle_jobs"].as_array().expect("jobs").iter();
        let job = |job: &Value| {
            let name = job["job"].as_str().expect("a name").to_owned();
            (name, job["idle_gpu_hours"].as_f64().expect("hours"))
        };
        jobs.map(job).collect()
    };
    let one = jobs(&folder.json(&format!("{ASK} --cluster west")));
    let both = jobs(&folder.json(ASK));
    let expected = one.iter().flat_map(|(name, hours)| {
        ["east", "west"].map(|cluster| (format!("{cluster}/{name}"), *hours))
    });
    assert_eq!(both, expected.take(both.len()).collect::<Vec<_>>());
    let told = folder.call(&format!("{ASK} --output markdown")).out;
    let together = "276.0 of the 336 hours of the week, of 2 clusters together, have no data";
    assert!(told.contains(together), "{told}");
}

/// A mapping of today tells the past anew, and says so: in the digest as in the bill.
#[test]
fn a_new_mapping_restates_the_past_and_says_so() {
    let (folder, _) = folder();
    let told = "in dovetail.toml for the whole period";
    let asked = |by: &str| {
        let bill = "cost --store ledger.db --period 2024-10-04..2024-10-10 --by";
        folder.json(&format!("{bill} {by}"))["notes"].to_string()
    };
    assert!(!asked("team").contains(told) && !folder.call(ASK).out.contains(told));
    folder.write("dovetail.toml", "[cost.teams]\n\"*\" = \"eyes\"\n");
    assert!(asked("team").contains(told) && !asked("namespace").contains(told));
    let digest = folder.call(&format!("{ASK} --output markdown")).out;
    assert!(digest.contains("# GPUs of eyes") && digest.contains(told), "{digest}");
}

/// A team that is asked for, and had GPUs in the week before alone.
#[test]
fn a_team_without_gpus_is_told_of_the_week_before() {
    let (folder, _) = folder();
    let ask = "cost digest --store ledger.db --until 2024-10-18T05:00:00Z --team";
    let told = folder.call(&format!("{ask} vision --output markdown")).out;
    for line in [
        "# GPUs of vision, 2024-10-11 to 2024-10-17",
        "**No GPU was allocated this week; in the week before the team had 96.4 GPU-hours.**",
        "| allocated GPU-hours | 0.0 | 96.4 |",
        "| active share of measured GPU time | - | 72.3% |",
        "168.0 of the 168 hours of the week have no data and are not included in any amount.",
        "138.0 of the 168 hours of the week before have no data and are not included in any \
         amount.",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    assert!(!told.contains("most idle"), "{told}");
    let page = folder.call(&format!("{ask} vision --output html")).out;
    assert!(
        page.contains("<tr><td>allocated GPU-hours</td><td>0.0</td><td>96.4</td></tr>"),
        "{page}"
    );
    let nobody = folder.call(&format!("{ask} ears"));
    assert_eq!(nobody.code, Some(1), "{}", nobody.out);
    let why = "team `ears` used no GPUs in the week before 2024-10-18T00:00:00Z or in the week \
               before that";
    assert!(nobody.err.contains(why), "{}", nobody.err);
}

#[test]
fn a_digest_goes_to_its_teams_address_and_what_fails_is_told() {
    let (folder, _) = folder();
    let done = folder.call(&format!("{ASK} --send"));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("[notices.webhooks]"), "{}", done.err);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let settings = format!("[notices.webhooks]\nvision = \"http://{address}/hooks/secret\"\n");
    folder.write("dovetail.toml", &settings);
    let answers = std::thread::spawn(move || {
        ["503 Busy", "200 OK", "410 Gone"].map(|status| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
            let body: Value = loop {
                let read = stream.read(&mut buffer).expect("a request");
                bytes.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
                if let Some(body) = body.and_then(|body| serde_json::from_str(&body).ok()) {
                    break body;
                }
            };
            let end = "Connection: close\r\nContent-Length: 0\r\n\r\n";
            write!(stream, "HTTP/1.1 {status}\r\n{end}").expect("an answer");
            body
        })
    });
    let done = folder.call(&format!("{ASK} --send"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("vision: sent"), "{}", done.err);
    let done = folder.call(&format!("{ASK} --send"));
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("127.0.0.1 rejected the message with status 410"), "{}", done.err);
    assert!(!done.err.contains("secret"), "{}", done.err);
    let [first, second, _] = answers.join().expect("three requests");
    assert_eq!(first, second);
    let text = first["text"].as_str().expect("a text");
    assert_eq!(text, folder.call(&format!("{ASK} --output markdown")).out);
}
