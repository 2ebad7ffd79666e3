//! What happens to a request on its way, and to its answer.

use crate::dice::Dice;
use crate::recipe::Recipe;
use crate::scene::Options;

/// Everything that may go wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkFault {
    /// It never leaves.
    Unsent,
    /// It is lost, and the connection breaks.
    Lost,
    /// It is lost, and nobody is told.
    Silent,
    /// It takes effect, and the connection breaks.
    AnswerLost,
    /// It takes effect, and nobody is told.
    AnswerSilent,
    /// It takes effect, and the answer is that it failed.
    DoneAndFailed(u16),
    /// It has no effect.
    Failed(u16),
    /// It, or its answer, takes as long as it may.
    Late,
    /// Its answer does.
    AnswerLate,
}

/// Times of a request from its sending, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) there_ms: u64,
    pub(crate) back_ms: u64,
    pub(crate) fault: Option<NetworkFault>,
}

impl NetworkFault {
    fn of(number: u64, is_read: bool) -> Self {
        let code = |list: &[u16]| list[(number / 64) as usize % list.len()];
        match number % 12 {
            0 => Self::Unsent,
            1 => Self::Lost,
            2 => Self::Silent,
            3 | 4 => Self::AnswerLost,
            5 => Self::AnswerSilent,
            6 => Self::DoneAndFailed(code(&[500, 503, 504])),
            7 | 8 if !is_read => Self::Failed(code(&[409, 429, 500, 503])),
            7 | 8 => Self::Failed(code(&[429, 500, 503])),
            9 | 10 => Self::Late,
            _ => Self::AnswerLate,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unsent => "unsent",
            Self::Lost => "lost",
            Self::Silent => "silent",
            Self::AnswerLost => "answer-lost",
            Self::AnswerSilent => "answer-silent",
            Self::DoneAndFailed(_) => "done-and-failed",
            Self::Failed(_) => "failed",
            Self::Late => "late",
            Self::AnswerLate => "answer-late",
        }
    }
}

/// The network between the server and everybody.
#[derive(Debug)]
pub(crate) struct Network {
    delay_ms: (u64, u64),
    faults: u64,
    /// Faults that struck, by name.
    pub(crate) struck: Vec<String>,
}

impl Network {
    pub(crate) fn new(options: &Options) -> Self {
        let (delay_ms, faults, struck) = (options.delay_ms, options.faults, Vec::new());
        Self { delay_ms, faults, struck }
    }

    /// From now on nothing goes wrong.
    pub(crate) fn calm_down(&mut self) {
        self.faults = 0;
        self.delay_ms = (2, 10);
    }

    /// A delay: usually short, at times as long as it may be.
    pub(crate) fn delay_ms(&self, dice: &mut Dice, what: &str, about: &str) -> u64 {
        let number = dice.draw(what, about).0;
        let (usual, most) = self.delay_ms;
        let bound = if number.is_multiple_of(8) { most } else { usual };
        1 + (number / 8) % bound
    }

    /// What happens to a request that may take so long.
    pub(crate) fn way(
        &mut self,
        dice: &mut Dice,
        recipe: &Recipe,
        (method, path): (&str, &str),
        limit_ms: u64,
    ) -> Way {
        let there_ms = self.delay_ms(dice, "there", path).min(limit_ms);
        let back_ms = self.delay_ms(dice, "back", path);
        let mut way = Way { there_ms, back_ms, fault: None };
        let (number, which) = dice.draw(method, path);
        if self.faults == 0 || number % 1_000 >= self.faults {
            return way;
        }
        let fault = NetworkFault::of(number / 1_000, method == "GET");
        let name = format!("{} {method} {path} {which}", fault.name());
        if !recipe.has(&name) {
            return way;
        }
        self.struck.push(name);
        way.fault = Some(fault);
        match fault {
            NetworkFault::Late => way.there_ms = limit_ms,
            NetworkFault::AnswerLate => way.back_ms = limit_ms,
            _ => {}
        }
        way
    }
}
