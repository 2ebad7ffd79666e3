//! A tournament tree with eight children per node: the best of many keys, kept while keys change.
//!
//! Keys are compared whole, so the tie-break is part of the key and the position of a leaf means
//! nothing. Leaves are only ever appended; no growth rebuilds anything.

const FAN_OUT: usize = 8;
const FAN_OUT_BITS: usize = 3;

/// Keys by leaf; 0 is “not there”.
#[derive(Clone, Debug, Default)]
pub struct WideTree {
    /// `levels[0]` are the leaves; an entry above is the greatest of its eight children.
    levels: Vec<Vec<u64>>,
    /// Parents to compare anew, see [`WideTree::put`].
    dirty: Vec<usize>,
}

impl WideTree {
    /// Builds the tree over given leaves.
    pub fn rebuild(&mut self, leaves: impl Iterator<Item = u64>) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].clear();
        self.levels[0].extend(leaves);
        let mut depth = 0;
        while self.levels[depth].len() > 1 {
            if self.levels.len() == depth + 1 {
                self.levels.push(Vec::new());
            }
            let (below, above) = self.levels.split_at_mut(depth + 1);
            above[0].clear();
            above[0].extend(below[depth].chunks(FAN_OUT).map(greatest));
            depth += 1;
        }
        self.levels.truncate(depth + 1);
    }

    /// Sets the key of a leaf, with new leaves of 0 before it where there are none yet.
    #[inline]
    pub fn set(&mut self, leaf: usize, key: u64) {
        if leaf >= self.len() {
            self.grow(leaf + 1);
        }
        let (mut place, mut key) = (leaf, key);
        for depth in 0..self.levels.len() {
            let old = std::mem::replace(&mut self.levels[depth][place], key);
            let Some(above) = self.levels.get(depth + 1) else { return };
            let parent = above[place >> FAN_OUT_BITS];
            if old == key || (old < parent && key <= parent) {
                return;
            }
            // The greatest child grew, or another one overtook it; else it fell and all are
            // compared.
            if key < parent {
                let first = place & !(FAN_OUT - 1);
                let last = (first + FAN_OUT).min(self.levels[depth].len());
                key = greatest(&self.levels[depth][first..last]);
            }
            place >>= FAN_OUT_BITS;
        }
    }

    /// Like [`WideTree::set`] for one of many leaves: the tree answers again after
    /// [`WideTree::settle`].
    #[inline]
    pub fn put(&mut self, leaf: usize, key: u64) {
        if leaf >= self.len() {
            self.grow(leaf + 1);
        }
        let old = std::mem::replace(&mut self.levels[0][leaf], key);
        let parent = leaf >> FAN_OUT_BITS;
        if old != key && self.dirty.last() != Some(&parent) {
            self.dirty.push(parent);
        }
    }

    /// Ends a row of [`WideTree::put`]. Leaves in ascending order cost least: each parent is
    /// compared once.
    pub fn settle(&mut self) {
        for depth in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(depth);
            let (below, above) = (&below[depth - 1], &mut above[0]);
            let mut kept = 0;
            for place in 0..self.dirty.len() {
                let parent = self.dirty[place];
                let first = parent << FAN_OUT_BITS;
                let key = greatest(&below[first..(first + FAN_OUT).min(below.len())]);
                let next = parent >> FAN_OUT_BITS;
                if std::mem::replace(&mut above[parent], key) != key
                    && (kept == 0 || self.dirty[kept - 1] != next)
                {
                    self.dirty[kept] = next;
                    kept += 1;
                }
            }
            self.dirty.truncate(kept);
        }
        self.dirty.clear();
    }

    /// The greatest key and its leaf; `None` if all keys are 0.
    #[inline]
    pub fn best(&self) -> Option<(u64, usize)> {
        let key = *self.levels.last()?.first()?;
        if key == 0 {
            return None;
        }
        let mut place = 0;
        for depth in (0..self.levels.len() - 1).rev() {
            let first = place << FAN_OUT_BITS;
            let last = (first + FAN_OUT).min(self.levels[depth].len());
            let offset = self.levels[depth][first..last].iter().position(|child| *child == key);
            place = first + offset.expect("a parent is one of its children");
        }
        Some((key, place))
    }

    /// How many leaves there are.
    fn len(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum()
    }

    fn grow(&mut self, leaves: usize) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].resize(leaves, 0);
        let mut depth = 0;
        while self.levels[depth].len() > 1 {
            let above = self.levels[depth].len().div_ceil(FAN_OUT);
            if self.levels.len() == depth + 1 {
                let top = greatest(&self.levels[depth]);
                self.levels.push(vec![top]);
            }
            self.levels[depth + 1].resize(above, 0);
            depth += 1;
        }
    }
}

#[inline]
fn greatest(keys: &[u64]) -> u64 {
    keys.iter().copied().max().unwrap_or(0)
}
