//! Each team's digest handed to its address once a week, by whoever fills the ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_account::notices::week_due;
use dovetail_account::split::SplitMethod;
use dovetail_console::plain::plain;
use dovetail_costing::digest::week;
use dovetail_costing::from_store::Ledger;
use dovetail_costing::teams::Teams;
use dovetail_render::cost::digest as page;
use dovetail_serve::webhook::{Patience, Webhook};
use dovetail_settings::notices::NoticeSection;
use dovetail_store::Notices;
use serde_json::json;

use crate::noticing::note_told;

/// Who does not take a digest is asked again after so long.
const AGAIN_MS: u64 = 3_600_000;

/// Addresses by team.
pub struct WeeklyDigests {
    hooks: BTreeMap<String, Webhook>,
    /// Nothing is sent before this.
    not_before_ms: u64,
}

impl WeeklyDigests {
    /// The addresses of the settings, where a weekly digest is named there; nothing is sent yet.
    ///
    /// # Errors
    /// An address that cannot be sent to.
    pub fn of(section: &NoticeSection) -> Result<Option<Self>> {
        if section.weekly_digest != Some(true) {
            return Ok(None);
        }
        // The ledger waits meanwhile: the next round tries again.
        let patience = Patience { within: Duration::from_secs(5), tries: 2, ..Patience::default() };
        let mut hooks = BTreeMap::new();
        for (team, url) in section.webhooks.iter().flatten() {
            let hook = Webhook::new(url, patience);
            let hook = hook.with_context(|| format!("notices.webhooks.{}", plain(team)))?;
            hooks.insert(team.clone(), hook);
        }
        Ok(Some(Self { hooks, not_before_ms: 0 }))
    }

    /// Sends what is due at `now_ms`, of a ledger that is filled until `until_ms`. What was sent is
    /// in the ledger, so it is sent once, whoever begins anew; what did not arrive is told in the
    /// log and tried again.
    ///
    /// # Errors
    /// A ledger that cannot be read or written.
    pub(crate) fn send_due(
        &mut self,
        ledger: &mut Ledger,
        cluster: &str,
        (teams, method): (&Teams, Option<SplitMethod>),
        (now_ms, until_ms): (u64, u64),
    ) -> Result<()> {
        if now_ms < self.not_before_ms {
            return Ok(());
        }
        let told = ledger.run(|store| Notices { cluster }.told(store))?;
        let due = |team: &String| week_due(now_ms, told.get(&subject(team)).copied());
        let due = self.hooks.keys().filter_map(|team| Some((team.clone(), due(team)?)));
        let due: BTreeMap<String, _> = due.collect();
        let Some(span) = due.values().next().copied().filter(|week| week.to_ms <= until_ms) else {
            return Ok(());
        };
        // Teams without GPUs have nothing to be told; nor is their week read again at once.
        self.not_before_ms = now_ms + AGAIN_MS;
        for week in week::weeks(ledger, Some(cluster), (teams, &[]), method, span)?.of_teams {
            let Some(hook) = self.hooks.get(&week.team).filter(|_| due.contains_key(&week.team))
            else {
                continue;
            };
            let body = json!({"text": page::markdown(&week)});
            match ledger.runtime.block_on(hook.send(&body)) {
                Ok(()) => {
                    tracing::info!("{}: the digest of the week was sent", week.team);
                    note_told(ledger, cluster, &[subject(&week.team)])?;
                }
                Err(error) => {
                    tracing::warn!("{}: the digest was not delivered: {error}", week.team);
                }
            }
        }
        Ok(())
    }
}

fn subject(team: &str) -> String {
    format!("digest {team}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use dovetail_account::device_time::{DeviceInterval, DeviceState, Span};
    use dovetail_account::rollup::{DAY_MS, HOUR_MS};
    use dovetail_store::{Address, ReadDevice, ReadNode, ReadPod, Reading};

    use super::*;
    use dovetail_settings::cost::CostSection;

    /// Monday, 2024-10-07.
    const MONDAY_MS: u64 = 1_728_259_200_000;

    /// A GPU of a team for the last day of the week before.
    fn reading() -> Reading {
        let span = Span { from_ms: MONDAY_MS - DAY_MS, to_ms: MONDAY_MS };
        let state = DeviceState::Idle;
        let held = DeviceInterval { span, gpu_milli: 1000, state, holder: Some(0), signal: None };
        let device = ReadDevice { node: 0, name: "GPU-0".to_owned(), intervals: vec![held] };
        Reading {
            cluster: "west".to_owned(),
            source: "http://prometheus.example".to_owned(),
            span,
            nodes: vec![ReadNode { name: "a".to_owned(), ..ReadNode::default() }],
            pods: vec![ReadPod {
                namespace: "vision".to_owned(),
                name: "train-0".to_owned(),
                namespace_labels: BTreeMap::from([("team".to_owned(), "eyes".to_owned())]),
                ..ReadPod::default()
            }],
            devices: vec![device],
            ..Reading::default()
        }
    }

    /// Answers requests with these statuses; hands over their bodies' ends.
    fn listener(statuses: &'static [&'static str]) -> (String, std::thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hooks/eyes", listener.local_addr().expect("an address"));
        let answers = std::thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().expect("a connection");
                let (mut text, mut buffer) = (String::new(), [0; 65_536]);
                while !text.ends_with("\"}") {
                    let read = stream.read(&mut buffer).expect("a request");
                    text += &String::from_utf8_lossy(&buffer[..read]);
                }
                assert!(text.contains("GPUs of eyes") && text.contains("24.0"), "{text}");
                let end = "Connection: close\r\nContent-Length: 0\r\n\r\n";
                write!(stream, "HTTP/1.1 {status}\r\n{end}").expect("an answer");
            }
            statuses.len()
        });
        (url, answers)
    }

    #[test]
    fn a_week_is_sent_when_it_is_due_until_it_is_taken_and_once_whoever_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = Address::File(folder.path().join("ledger.db"));
        let mut ledger = Ledger::open("--store", &address).expect("a ledger");
        let (url, answers) = listener(&["410 Gone", "200 OK"]);
        let section = NoticeSection {
            weekly_digest: Some(true),
            webhooks: Some(BTreeMap::from([
                ("eyes".to_owned(), url),
                // It had no GPUs, and is not told so.
                ("ears".to_owned(), "http://127.0.0.1:1/".to_owned()),
            ])),
            ..NoticeSection::default()
        };
        let begun = || WeeklyDigests::of(&section).expect("addresses").expect("named");
        let teams = Teams::new(&CostSection::default(), &[]);
        let at = |hours: u64| MONDAY_MS + hours * HOUR_MS;
        let mut send = |digests: &mut WeeklyDigests, now_ms, until_ms| {
            let how = (&teams, None);
            digests.send_due(&mut ledger, "west", how, (now_ms, until_ms)).expect("a ledger");
            let told =
                ledger.run(|store| Notices { cluster: "west" }.told(store)).expect("a ledger");
            told.get("digest eyes").copied()
        };
        let mut digests = begun();
        // Nothing is there yet; then it is early, then the ledger is not filled so far.
        assert_eq!(send(&mut digests, at(1), at(1)), None);
        let mut filling = Ledger::open("--store", &address).expect("a ledger");
        let reading = reading();
        filling.run(|store| store.keep(&reading, MONDAY_MS)).expect("kept");
        assert_eq!(send(&mut digests, at(5), at(5)), None);
        assert_eq!(send(&mut digests, at(6), at(0) - 1), None);
        // It is not taken, and not tried again at once; an hour later it is.
        assert_eq!(send(&mut digests, at(6), at(6)), None);
        assert_eq!(send(&mut digests, at(6) + 60_000, at(6)), None);
        assert!(send(&mut digests, at(7), at(7)).is_some());
        assert_eq!(answers.join().expect("two requests"), 2);
        // Nobody listens any more; what is not sent is not missed.
        assert!(send(&mut begun(), at(9), at(9)).is_some());
        let none = NoticeSection { weekly_digest: None, ..section.clone() };
        assert!(WeeklyDigests::of(&none).expect("nothing").is_none());
    }
}
