//! Which selectors count a pod, and how often.

use std::slice;

use serde::{Deserialize, Serialize};

/// The selectors that count a pod (see [`crate::CounterRule`]), in ascending order. Most count it
/// once. One that is listed several times counts it as often: a selector that stands for devices
/// counts a pod once per device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Selectors(Vec<String>);

impl Selectors {
    /// Adds a selector that counts the pod once; nothing changes if it is there.
    pub fn insert(&mut self, selector: String) {
        self.insert_times(selector, 1);
    }

    /// Adds a selector that counts the pod `times` times; nothing changes if it is there.
    pub fn insert_times(&mut self, selector: String, times: u32) {
        if let Err(place) = self.0.binary_search(&selector) {
            let repeated = std::iter::repeat_n(selector, times as usize);
            self.0.splice(place..place, repeated);
        }
    }

    /// Whether a selector counts the pod.
    pub fn contains(&self, selector: &str) -> bool {
        self.times(selector) > 0
    }

    /// How often a selector counts the pod.
    pub fn times(&self, selector: &str) -> u32 {
        let from = self.0.partition_point(|one| &**one < selector);
        self.0[from..].iter().take_while(|one| *one == selector).count() as u32
    }

    /// Each selector as often as it counts the pod.
    pub fn iter(&self) -> slice::Iter<'_, String> {
        self.0.iter()
    }

    /// Whether nothing counts the pod.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing counts the pod any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<Vec<String>> for Selectors {
    /// Selectors that are listed several times count the pod as often.
    fn from(mut listed: Vec<String>) -> Self {
        listed.sort_unstable();
        Self(listed)
    }
}

impl<const N: usize> From<[String; N]> for Selectors {
    /// Selectors that are listed several times count the pod as often.
    fn from(listed: [String; N]) -> Self {
        Vec::from(listed).into()
    }
}

impl Extend<String> for Selectors {
    /// Each counts the pod once.
    fn extend<I: IntoIterator<Item = String>>(&mut self, selectors: I) {
        selectors.into_iter().for_each(|selector| self.insert(selector));
    }
}

impl FromIterator<String> for Selectors {
    /// Each counts the pod once.
    fn from_iter<I: IntoIterator<Item = String>>(selectors: I) -> Self {
        let mut collected = Self::default();
        collected.extend(selectors);
        collected
    }
}

impl<'s> IntoIterator for &'s Selectors {
    type Item = &'s String;
    type IntoIter = slice::Iter<'s, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
