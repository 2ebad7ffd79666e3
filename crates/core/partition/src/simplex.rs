//! A linear program that grows by columns: maximise profit, every row at most its limit.
//!
//! The revised simplex method with the inverse of the basis. There are few rows (links between
//! demand and supply, blocks of GPUs), so the inverse is small. Only additions, multiplications and
//! divisions are used, so the result is the same on every machine; what is concluded from it is
//! checked in integers by the caller.

/// Profits below this are none.
const LEAST_PROFIT: f64 = 1e-11;

/// Changes below this limit nothing.
const LEAST_CHANGE: f64 = 1e-9;

/// Limits differ a little from what was asked, so that no step is without progress.
const PERTURBATION: f64 = 1e-7;

/// A variable of the program.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) profit: f64,
    /// Row and coefficient.
    pub(crate) entries: Vec<(usize, f64)>,
}

pub(crate) struct Simplex {
    rows: usize,
    variables: Vec<Variable>,
    /// Which variable each row of the basis has.
    basis: Vec<usize>,
    is_basic: Vec<bool>,
    /// Row by row.
    inverse: Vec<f64>,
    values: Vec<f64>,
}

impl Simplex {
    /// A program whose variables are the slacks of its rows; limits are not negative.
    pub(crate) fn new(limits: &[f64]) -> Self {
        let rows = limits.len();
        let slack = |row: usize| Variable { profit: 0.0, entries: vec![(row, 1.0)] };
        let mut inverse = vec![0.0; rows * rows];
        (0..rows).for_each(|row| inverse[row * rows + row] = 1.0);
        let perturbed = |(row, limit): (usize, &f64)| limit + PERTURBATION * (row + 1) as f64;
        Self {
            rows,
            variables: (0..rows).map(slack).collect(),
            basis: (0..rows).collect(),
            is_basic: vec![true; rows],
            inverse,
            values: limits.iter().enumerate().map(perturbed).collect(),
        }
    }

    /// Adds a variable; returns its number.
    pub(crate) fn add(&mut self, variable: Variable) -> usize {
        self.variables.push(variable);
        self.is_basic.push(false);
        self.variables.len() - 1
    }

    /// What one unit more of each row's limit would earn.
    pub(crate) fn prices(&self) -> Vec<f64> {
        let mut prices = vec![0.0; self.rows];
        for (row, variable) in self.basis.iter().enumerate() {
            let profit = self.variables[*variable].profit;
            if profit != 0.0 {
                let inverse = &self.inverse[row * self.rows..(row + 1) * self.rows];
                prices.iter_mut().zip(inverse).for_each(|(price, cell)| *price += profit * cell);
            }
        }
        prices
    }

    /// What the solution earns.
    pub(crate) fn profit(&self) -> f64 {
        self.solution().map(|(number, value)| self.variables[number].profit * value).sum()
    }

    /// Variables above zero, with their value.
    pub(crate) fn solution(&self) -> impl Iterator<Item = (usize, f64)> {
        self.basis.iter().copied().zip(self.values.iter().copied())
    }

    /// Steps to the best of the present variables, at most `steps`; returns how many it took.
    pub(crate) fn run(&mut self, steps: u64) -> u64 {
        (0..steps).find(|_| !self.step()).unwrap_or(steps)
    }

    fn step(&mut self) -> bool {
        let prices = self.prices();
        let mut entering = None;
        let mut best = LEAST_PROFIT;
        for (number, variable) in self.variables.iter().enumerate() {
            if self.is_basic[number] {
                continue;
            }
            let gain = variable.profit - cost(variable, &prices);
            if gain > best {
                (best, entering) = (gain, Some(number));
            }
        }
        let Some(entering) = entering else { return false };
        let direction = self.direction(&self.variables[entering]);
        let mut leaving = None;
        for (row, change) in
            direction.iter().enumerate().filter(|(_, change)| **change > LEAST_CHANGE)
        {
            let ratio = self.values[row].max(0.0) / change;
            if leaving.is_none_or(|(least, _)| ratio < least) {
                leaving = Some((ratio, row));
            }
        }
        // Nothing limits it: every variable takes part in a limited row, so this is rounding.
        let Some((ratio, row)) = leaving else { return false };
        self.pivot(entering, row, ratio, &direction);
        true
    }

    fn direction(&self, variable: &Variable) -> Vec<f64> {
        let cell = |row: usize| {
            let of = |(column, coefficient): &(usize, f64)| {
                self.inverse[row * self.rows + column] * coefficient
            };
            variable.entries.iter().map(of).sum()
        };
        (0..self.rows).map(cell).collect()
    }

    fn pivot(&mut self, entering: usize, pivot: usize, ratio: f64, direction: &[f64]) {
        let rows = self.rows;
        for row in (0..rows).filter(|row| *row != pivot) {
            self.values[row] -= ratio * direction[row];
        }
        self.values[pivot] = ratio;
        let scale = 1.0 / direction[pivot];
        let of_pivot: Vec<f64> = self.inverse[pivot * rows..(pivot + 1) * rows]
            .iter()
            .map(|cell| cell * scale)
            .collect();
        for row in (0..rows).filter(|row| *row != pivot && direction[*row] != 0.0) {
            let factor = direction[row];
            let cells = &mut self.inverse[row * rows..(row + 1) * rows];
            cells.iter_mut().zip(&of_pivot).for_each(|(cell, of_pivot)| *cell -= factor * of_pivot);
        }
        self.inverse[pivot * rows..(pivot + 1) * rows].copy_from_slice(&of_pivot);
        self.is_basic[self.basis[pivot]] = false;
        self.is_basic[entering] = true;
        self.basis[pivot] = entering;
    }
}

fn cost(variable: &Variable, prices: &[f64]) -> f64 {
    variable.entries.iter().map(|(row, coefficient)| prices[*row] * coefficient).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_has_its_known_optimum_and_prices() {
        // Max 3x + 5y with x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18: x = 2, y = 6 (Hillier and Lieberman).
        let mut program = Simplex::new(&[4.0, 12.0, 18.0]);
        let x = program.add(Variable { profit: 3.0, entries: vec![(0, 1.0), (2, 3.0)] });
        let y = program.add(Variable { profit: 5.0, entries: vec![(1, 2.0), (2, 2.0)] });
        program.run(100);
        let value =
            |asked: usize| program.solution().find(|(number, _)| *number == asked).unwrap().1;
        assert!((value(x) - 2.0).abs() < 1e-5 && (value(y) - 6.0).abs() < 1e-5);
        let expected = [0.0, 1.5, 1.0];
        let prices = program.prices();
        assert!(
            prices.iter().zip(expected).all(|(price, expected)| (price - expected).abs() < 1e-9)
        );
    }
}
