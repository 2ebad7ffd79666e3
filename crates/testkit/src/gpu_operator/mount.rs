//! ConfigMaps as pods see them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A ConfigMap that a kubelet shows to a pod a while after it was written.
#[derive(Default)]
pub(super) struct Mount {
    coming: VecDeque<(Instant, Value)>,
    seen: Value,
}

impl Mount {
    pub(super) fn written(&mut self, data: Value, delay: Duration) {
        if self.coming.back().map_or(&self.seen, |(_, newest)| newest) != &data {
            self.coming.push_back((Instant::now() + delay, data));
        }
        while let Some((_, data)) = self.coming.pop_front_if(|(at, _)| *at <= Instant::now()) {
            self.seen = data;
        }
    }

    pub(super) fn seen(&self) -> &Value {
        &self.seen
    }
}
