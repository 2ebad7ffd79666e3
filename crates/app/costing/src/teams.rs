//! Which team pays: by a mapping of namespaces, else by labels.

use std::collections::BTreeMap;

use dovetail_settings::cost::{CostSection, TeamFrom};

/// How teams are recognized.
#[derive(Clone, Debug)]
pub struct Teams {
    mapping: BTreeMap<String, String>,
    labels: Vec<String>,
    from: TeamFrom,
}

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

impl Teams {
    /// By the settings; labels named on the command line come instead of theirs.
    pub fn new(section: &CostSection, labels: &[String]) -> Self {
        let default = || dovetail_inventory::facts::TEAM_LABELS.map(str::to_owned).to_vec();
        let labels = match labels.is_empty() {
            true => section.team_labels.clone().unwrap_or_else(default),
            false => labels.to_vec(),
        };
        let mapping = section.teams.clone().unwrap_or_default();
        Self { mapping, labels, from: section.team_from.unwrap_or_default() }
    }

    /// That the past is told by the mapping of now, where there is one.
    pub fn restated(&self) -> Option<&'static str> {
        (!self.mapping.is_empty()).then_some(
            "teams follow the current [cost.teams] in dovetail.toml for the whole period; if the \
             setting has changed, earlier answers may name other teams",
        )
    }

    /// Labels that can name a team.
    pub fn labels(&self) -> impl Iterator<Item = &String> {
        self.labels.iter()
    }

    /// The team of a pod; `None` if nothing names it.
    pub fn team(&self, namespace: &str, of_namespace: &Labels, of_pod: &Labels) -> Option<String> {
        if let Some(team) = self.mapped(namespace) {
            return Some(team.to_owned());
        }
        let both = match self.from {
            TeamFrom::Namespace => [of_namespace, of_pod],
            TeamFrom::Pod => [of_pod, of_namespace],
        };
        let found = both.into_iter().find_map(|labels| {
            let mut named = self.labels.iter().filter_map(|key| labels.get(key));
            named.find(|team| !team.is_empty())
        });
        found.cloned()
    }

    /// The name itself, else the longest pattern that it matches.
    fn mapped(&self, namespace: &str) -> Option<&str> {
        if let Some(team) = self.mapping.get(namespace) {
            return Some(team);
        }
        let patterns = self.mapping.iter().filter(|(pattern, _)| matches(pattern, namespace));
        patterns.max_by_key(|(pattern, _)| pattern.len()).map(|(_, team)| team.as_str())
    }
}

/// Whether a name matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_mapping_beats_labels_and_a_name_beats_patterns() {
        let mut section = CostSection {
            teams: Some(labels(&[("ml-vision", "eyes"), ("ml-*", "ml"), ("*-eu-*", "europe")])),
            team_labels: Some(vec!["team".into(), "owner".into()]),
            ..CostSection::default()
        };
        let (space, pod) = (labels(&[("owner", "bea")]), labels(&[("team", "nlp")]));
        let none = Labels::new();
        let teams = Teams::new(&section, &[]);
        let team = |namespace| teams.team(namespace, &space, &pod);
        assert_eq!(team("ml-vision").as_deref(), Some("eyes"));
        assert_eq!(team("ml-speech").as_deref(), Some("ml"));
        // The longest pattern that matches.
        assert_eq!(team("ml-eu-1").as_deref(), Some("europe"));
        // Labels of the namespace before those of the pod, whatever their order in the list.
        assert_eq!(team("research").as_deref(), Some("bea"));
        assert_eq!(teams.team("research", &none, &pod).as_deref(), Some("nlp"));
        assert_eq!(teams.team("research", &none, &none), None);
        section.team_from = Some(TeamFrom::Pod);
        let teams = Teams::new(&section, &[]);
        assert_eq!(teams.team("research", &space, &pod).as_deref(), Some("nlp"));
        let teams = Teams::new(&section, &["owner".to_owned()]);
        assert_eq!(teams.team("research", &space, &pod).as_deref(), Some("bea"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, is) in [
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*b", "ab", true),
            ("*b", "abc", false),
            ("a*b", "ab", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "ac", false),
            ("ab*b", "ab", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
