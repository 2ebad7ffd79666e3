//! Interning: equal values get one small number.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A table of distinct values, numbered in the order of their first appearance.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    values: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of `value`, and whether it is new.
    pub fn intern(&mut self, value: &T) -> (u32, bool) {
        if let Some(number) = self.numbers.get(value) {
            return (*number, false);
        }
        let number = u32::try_from(self.values.len()).expect("fewer than 2^32 distinct values");
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        (number, true)
    }

    /// The number of `value`, if it has one.
    pub fn find<Q>(&self, value: &Q) -> Option<u32>
    where
        T: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.numbers.get(value).copied()
    }

    /// The value behind a number.
    pub fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    /// How many distinct values there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }
}
