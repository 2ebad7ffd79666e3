//! Which runs there are, and how those of one world are made.

use crate::arena::catalogue::Regime;
use crate::arena::data::ArenaData;
use crate::arena::recipe::ArenaError;
use crate::arena::verdict::ArenaRun;

/// Everything that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaPlan {
    /// Regimes whose data is there.
    pub regimes: Vec<Regime>,
    /// Policies, by name.
    pub policies: Vec<String>,
    /// Seeds of the jobs.
    pub seeds: Vec<u64>,
    /// Orders of the machines for each seed.
    pub orders: u64,
}

/// One world of a plan, in which every policy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorldKey {
    /// Place of the regime in the plan.
    pub regime: usize,
    /// Seed of the jobs.
    pub seed: u64,
    /// Order of the machines.
    pub order: u64,
}

impl ArenaPlan {
    /// Every world, regime by regime.
    pub fn worlds(&self) -> Vec<WorldKey> {
        let mut keys = Vec::new();
        for (place, regime) in self.regimes.iter().enumerate() {
            let draws = regime.draws_per_seed();
            for seed in &self.seeds {
                let seeds = (0..draws).map(|draw| seed * draws + draw);
                for seed in seeds {
                    let key = |order| WorldKey { regime: place, seed, order };
                    keys.extend((0..regime.orders(self.orders)).map(key));
                }
            }
        }
        keys
    }

    /// Runs policies in one world, one after another; the world is made once.
    ///
    /// # Errors
    /// [`ArenaError`] if the world cannot be made or the engine refuses it.
    pub fn run(
        &self,
        data: &ArenaData,
        key: WorldKey,
        policies: &[&str],
    ) -> Result<Vec<ArenaRun>, ArenaError> {
        let world = self.regimes[key.regime].recipe.world(data, key.seed, key.order)?;
        let run = |policy: &&str| {
            let figures = world.run(policy, key.seed)?;
            let policy = (*policy).to_owned();
            Ok(ArenaRun { seed: key.seed, order: key.order, policy, figures })
        };
        policies.iter().map(run).collect()
    }
}
