//! Giving finite demand to free pieces: each waiting milli-GPU explains one free one.

use dovetail_model::FreeCause;

use crate::cause::CAUSES;
use crate::verdicts::{ANSWERS, FITS, OpenPiece};

/// Milli-GPU by number of the cause.
pub(crate) type ByCause = [i64; CAUSES];

/// What keeps one shape off each piece, as the numbers of `Verdicts::row`.
#[derive(Clone, Debug)]
pub(crate) struct ShapeAnswers {
    answers: Vec<u8>,
    /// Which numbers are among the answers.
    seen: [bool; ANSWERS],
}

impl ShapeAnswers {
    pub(crate) fn new(answers: Vec<u8>) -> Self {
        let mut seen = [false; ANSWERS];
        answers.iter().for_each(|answer| seen[usize::from(*answer)] = true);
        Self { answers, seen }
    }

    /// Whether the shape could use a piece.
    pub(crate) fn fits_somewhere(&self) -> bool {
        self.seen[usize::from(FITS)]
    }
}

/// Demand of one shape with one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShapeDemand {
    /// Row of what keeps it off each piece.
    pub(crate) row: usize,
    /// Why it does not start where it fits; `None`: such a piece is not explained by it.
    pub(crate) where_it_fits: Option<FreeCause>,
    pub(crate) gpu_milli: i64,
}

/// Splits every piece by cause. Causes go from the nearest to starting to the farthest, demand in
/// the order given, pieces in the order given; what is left is without demand.
pub(crate) fn assign(
    pieces: &[OpenPiece],
    rows: &[ShapeAnswers],
    mut demand: Vec<ShapeDemand>,
) -> Vec<ByCause> {
    let mut split: Vec<ByCause> = vec![[0; CAUSES]; pieces.len()];
    let mut left: Vec<i64> = pieces.iter().map(|open| open.piece.gpu_milli).collect();
    let mut left_in_all: i64 = left.iter().sum();
    for cause in FreeCause::OF_DEMAND {
        for entry in demand.iter_mut().filter(|entry| entry.gpu_milli > 0) {
            let fate = if entry.where_it_fits == Some(cause) { FITS } else { cause as u8 };
            let row = &rows[entry.row];
            if left_in_all == 0 || !(row.seen[cause as usize] || row.seen[usize::from(fate)]) {
                continue;
            }
            for (place, answer) in row.answers.iter().enumerate() {
                if *answer != cause as u8 && *answer != fate || left[place] == 0 {
                    continue;
                }
                let given = left[place].min(entry.gpu_milli);
                left[place] -= given;
                left_in_all -= given;
                split[place][cause as usize] += given;
                entry.gpu_milli -= given;
                if entry.gpu_milli == 0 {
                    break;
                }
            }
        }
    }
    for (split, left) in split.iter_mut().zip(left) {
        split[FreeCause::NoDemand as usize] += left;
    }
    split
}
