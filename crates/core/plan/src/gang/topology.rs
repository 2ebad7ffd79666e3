//! The search over topology domains.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Placer, SetPart};
use dovetail_state::scope::Scope;

impl Placer<'_> {
    /// Places the parts inside the scope, at the levels asked for.
    pub(super) fn place_at(
        &mut self,
        scope: Scope,
        required: Option<usize>,
        preferred: Option<usize>,
        parts: &[SetPart<'_>],
    ) -> bool {
        let wanted = required.filter(|depth| !scope.is_within(self.state, *depth));
        let Some(depth) = wanted else {
            return self.place_preferring(scope, preferred, parts);
        };
        let candidates = self.roomy(scope, depth, parts);
        candidates
            .into_iter()
            .any(|domain| self.attempt(|p| p.place_preferring(domain, preferred, parts)))
    }

    /// Uses as few domains of the preferred level as possible, and any place if that fails.
    fn place_preferring(
        &mut self,
        scope: Scope,
        preferred: Option<usize>,
        parts: &[SetPart<'_>],
    ) -> bool {
        let top = scope.depth(self.state).map_or(0, |depth| depth + 1);
        let Some(depth) = preferred.filter(|depth| *depth >= top) else {
            return self.place_flat(scope, parts);
        };
        for level in (top..=depth).rev() {
            for domain in self.roomy(scope, level, parts) {
                let placed = self.attempt(|placer| match level == depth {
                    true => placer.place_flat(domain, parts),
                    false => placer.place_over(domain, depth, parts),
                });
                if placed {
                    return true;
                }
            }
        }
        self.attempt(|placer| placer.place_over(scope, depth, parts))
            || self.attempt(|placer| placer.place_flat(scope, parts))
    }

    /// Spreads the parts over domains of a level inside the scope: the largest first, the smallest
    /// that suffices for the rest; domains the gang already uses win ties.
    fn place_over(&mut self, scope: Scope, depth: usize, parts: &[SetPart<'_>]) -> bool {
        let mut used: BTreeSet<Vec<String>> = BTreeSet::new();
        parts.iter().all(|part| {
            if part.count == 0 {
                self.scopes.insert(part.set.pod_set, scope);
                return true;
            }
            if let Some(own) = part.own_levels() {
                return self.place_at(scope, part.set.required, part.set.preferred, &[own]);
            }
            self.scopes.insert(part.set.pod_set, scope);
            self.spread_part(scope, depth, part, &mut used)
        })
    }

    fn spread_part(
        &mut self,
        scope: Scope,
        depth: usize,
        part: &SetPart<'_>,
        used: &mut BTreeSet<Vec<String>>,
    ) -> bool {
        let shape = part.set.shape;
        let mut exhausted: BTreeSet<Vec<String>> = BTreeSet::new();
        let mut remaining = part.count;
        while remaining > 0 {
            let mut rooms: Vec<(u64, Vec<String>, Scope)> = Vec::new();
            for domain in scope.domains(self.state, depth) {
                let name = domain.name(self.state);
                let room = self.finder.room(self.state, shape, domain);
                if room > 0 && !exhausted.contains(&name) {
                    rooms.push((room, name, domain));
                }
            }
            let enough = rooms
                .iter()
                .filter(|(room, ..)| *room >= u64::from(remaining))
                .min_by_key(|(room, name, _)| (!used.contains(name), *room, name));
            let most = || {
                let by_size = |room: &u64, name| (Reverse(*room), !used.contains(name));
                rooms.iter().min_by_key(|(room, name, _)| (by_size(room, name), name))
            };
            let Some((room, name, domain)) = enough.or_else(most) else { return false };
            let wanted = remaining.min(u32::try_from(*room).unwrap_or(u32::MAX));
            let placed = self.place_pods(part.set, *domain, wanted);
            remaining -= placed;
            used.insert(name.clone());
            if placed < wanted {
                exhausted.insert(name.clone());
            }
        }
        true
    }

    /// Domains of a level inside the scope with room for every part, the smallest first.
    fn roomy(&mut self, scope: Scope, depth: usize, parts: &[SetPart<'_>]) -> Vec<Scope> {
        let mut found = Vec::new();
        for domain in scope.domains(self.state, depth) {
            let mut rooms = parts.iter().map(|part| {
                let room = self.finder.room(self.state, part.set.shape, domain);
                (room >= u64::from(part.count)).then_some(room)
            });
            let first = rooms.next().flatten();
            if let Some(room) = first
                && rooms.all(|room| room.is_some())
            {
                found.push((room, domain.name(self.state), domain));
            }
        }
        found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        found.into_iter().map(|(_, _, domain)| domain).collect()
    }
}
