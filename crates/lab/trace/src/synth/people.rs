//! Teams and their users; a few of each submit most jobs.

use super::profile::{TEAMS, USERS_PER_TEAM, ZIPF_EXPONENT};
use super::random::{Purpose, Random};

/// Draws the team and the user of each job.
pub(super) struct People {
    random: Random,
    teams: Vec<(u32, f64)>,
    users: Vec<(u32, f64)>,
}

/// Ranks 1, 2, ... with weight rank^-s (Zipf's law).
fn zipf(count: u32) -> Vec<(u32, f64)> {
    (1..=count).map(|rank| (rank, libm::pow(f64::from(rank), -ZIPF_EXPONENT))).collect()
}

/// Share of the jobs of the team of this rank.
pub(super) fn team_share(rank: u32) -> f64 {
    let weights = zipf(TEAMS);
    let total: f64 = weights.iter().map(|team| team.1).sum();
    weights.iter().find(|team| team.0 == rank).map_or(0.0, |team| team.1 / total)
}

impl People {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed, Purpose::People),
            teams: zipf(TEAMS),
            users: zipf(USERS_PER_TEAM),
        }
    }

    /// Names of a team and one of its users.
    pub(super) fn draw(&mut self) -> (String, String) {
        let team = self.random.weighted(&self.teams, |team| team.1).0;
        let user = self.random.weighted(&self.users, |user| user.1).0;
        (format!("team-{team:02}"), format!("team-{team:02}-user-{user:02}"))
    }
}
