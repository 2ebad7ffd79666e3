//! The section `[notices]` of the settings file: who is told what. Nobody is told anything that is
//! not named here.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::duration::DurationFlag;

/// What the section can say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeSection {
    /// Whether `dovetail serve` writes an event on an owner all of whose GPUs idle.
    pub idle_events: Option<bool>,
    /// Whether it writes an event on a job that ended, with what it came to.
    pub receipts: Option<bool>,
    /// After how long GPUs count as idle, such as "15m".
    pub idle_after: Option<String>,
    /// After how long GPUs of notebooks count as idle.
    pub idle_after_notebooks: Option<String>,
    /// The same owner is told again after so long.
    pub repeat: Option<String>,
    /// No more notices than this in an hour.
    pub most_per_hour: Option<u32>,
    /// Whether it hands each team its digest once a week, to the address below.
    pub weekly_digest: Option<bool>,
    /// Where a team's weekly digest goes: address by team.
    pub webhooks: Option<BTreeMap<String, String>>,
}

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

fn duration(name: &str, text: &Option<String>, least_ms: u64, most_ms: u64) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    let ms = text.parse::<DurationFlag>().map_err(|problem| format!("notices.{name}: {problem}"));
    match ms?.ms {
        ms if (least_ms..=most_ms).contains(&ms) => Ok(()),
        _ => {
            let (least, most) = (least_ms / MINUTE_MS, most_ms / DAY_MS);
            Err(format!(
                "notices.{name} = \"{text}\": expected a duration from {least}m to {most}d"
            ))
        }
    }
}

impl NoticeSection {
    /// Refuses what nobody could be told by.
    pub fn check(&self) -> Result<(), String> {
        duration("idle_after", &self.idle_after, 5 * MINUTE_MS, 3 * DAY_MS)?;
        duration("idle_after_notebooks", &self.idle_after_notebooks, 5 * MINUTE_MS, 3 * DAY_MS)?;
        duration("repeat", &self.repeat, 60 * MINUTE_MS, 365 * DAY_MS)?;
        if self.weekly_digest == Some(true) && self.webhooks.as_ref().is_none_or(BTreeMap::is_empty)
        {
            return Err(
                "notices.weekly_digest = true: requires a webhook for the digest: add one to \
                 [notices.webhooks], as TEAM = \"https://HOST/PATH\""
                    .to_owned(),
            );
        }
        match self.most_per_hour {
            Some(most) if !(1..=10_000).contains(&most) => Err(format!(
                "notices.most_per_hour = {most}: expected a whole number from 1 to 10000"
            )),
            _ => Ok(()),
        }
    }

    /// Whether anything is written to a cluster.
    pub fn writes_events(&self) -> bool {
        self.idle_events == Some(true) || self.receipts == Some(true)
    }

    /// A duration that was looked at when the file was read.
    fn ms(text: &Option<String>, default_ms: u64) -> u64 {
        text.as_deref()
            .and_then(|text| text.parse().ok())
            .map_or(default_ms, |d: DurationFlag| d.ms)
    }

    /// After how long GPUs count as idle, in ms: those of notebooks, and all others.
    pub fn idle_after_ms(&self, is_notebook: bool) -> u64 {
        match is_notebook {
            true => Self::ms(&self.idle_after_notebooks, 60 * MINUTE_MS),
            false => Self::ms(&self.idle_after, 15 * MINUTE_MS),
        }
    }

    /// The same owner is told again after so long, in ms.
    pub fn repeat_ms(&self) -> u64 {
        Self::ms(&self.repeat, DAY_MS)
    }

    /// Every setting with its value and whether the file gives it.
    pub fn lines(&self) -> Vec<(&'static str, String, bool)> {
        let text = |name, value: &Option<String>, default: &str| {
            (name, value.clone().unwrap_or_else(|| default.to_owned()), value.is_some())
        };
        vec![
            (
                "notices.idle_events",
                self.idle_events.unwrap_or(false).to_string(),
                self.idle_events.is_some(),
            ),
            (
                "notices.receipts",
                self.receipts.unwrap_or(false).to_string(),
                self.receipts.is_some(),
            ),
            (
                "notices.weekly_digest",
                self.weekly_digest.unwrap_or(false).to_string(),
                self.weekly_digest.is_some(),
            ),
            text("notices.idle_after", &self.idle_after, "15m"),
            text("notices.idle_after_notebooks", &self.idle_after_notebooks, "60m"),
            text("notices.repeat", &self.repeat, "24h"),
            (
                "notices.most_per_hour",
                self.most_per_hour.unwrap_or(50).to_string(),
                self.most_per_hour.is_some(),
            ),
            // Addresses are secrets: their number has to do.
            (
                "notices.webhooks",
                match self.webhooks.as_ref().map_or(0, BTreeMap::len) {
                    0 => "none".to_owned(),
                    count => count.to_string(),
                },
                self.webhooks.is_some(),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let section = |idle_after: &str, repeat: &str, most_per_hour| NoticeSection {
            idle_after: Some(idle_after.to_owned()),
            repeat: Some(repeat.to_owned()),
            most_per_hour: Some(most_per_hour),
            ..NoticeSection::default()
        };
        assert_eq!(section("15m", "24h", 50).check(), Ok(()));
        for (section, told) in [
            (
                section("1m", "24h", 50),
                "notices.idle_after = \"1m\": expected a duration from 5m to 3d",
            ),
            (section("soon", "24h", 50), "notices.idle_after: `soon` is not a duration"),
            (
                section("15m", "5m", 50),
                "notices.repeat = \"5m\": expected a duration from 60m to 365d",
            ),
            (section("15m", "24h", 0), "notices.most_per_hour = 0: expected"),
            (
                NoticeSection { weekly_digest: Some(true), ..NoticeSection::default() },
                "notices.weekly_digest = true: requires a webhook for the digest",
            ),
        ] {
            let problem = section.check().unwrap_err();
            assert!(problem.starts_with(told), "{problem}");
        }
    }
}
