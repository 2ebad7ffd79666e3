//! The questions by name.

use clap::ValueEnum;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum QuestionName {
    /// Which ten workloads waste the most?
    Top,
    /// How busy are each team's GPUs on average, and how much of their time is active?
    Teams,
    /// How many allocated GPU-hours are idle, and whose?
    Idle,
    /// Which pods had a mean utilization below 30% in any 6 hours?
    Low,
    /// Which GPU nodes run pods that do not need a GPU?
    Beside,
    /// How much training runs on spot capacity?
    Spot,
    /// What does each training run cost, including failed attempts?
    Runs,
    /// How long do the jobs of each team wait until their first and last pod are scheduled?
    Wait,
    /// What do 1,000 requests and a million tokens cost?
    Requests,
}

impl QuestionName {
    /// As on the command line.
    pub fn text(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// In words.
    pub fn words(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}
