//! Commands that a person copies into a shell.

use dovetail_audit::PatchChange;
use dovetail_facts::ObjectRef;

use super::form::{Form, NodeChange, Operation, Patch};
use super::json::Json;

/// Whether text can be the group and version of an object.
pub(super) fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-./".contains(letter))
}

/// Whether all letters of words can be seen, and are what they seem.
pub(super) fn is_plain(words: &[String]) -> bool {
    words.iter().flat_map(|word| word.bytes()).all(|byte| (b' '..=b'~').contains(&byte))
}

/// The words of a command, and what else is to be known of it.
pub(super) struct CommandWords {
    pub(super) words: Vec<String>,
    pub(super) effect: &'static str,
    pub(super) warnings: Vec<String>,
    pub(super) nodes: Option<NodeChange>,
}

/// A change of an object that can only be deleted.
pub(super) fn of_object(object: &ObjectRef, change: &PatchChange) -> Option<CommandWords> {
    if object.kind != "Pod" || *change != PatchChange::Stop {
        return None;
    }
    let words = ["kubectl", "delete", "pod", &object.name, "-n", &object.namespace];
    let effect = "the pod is deleted, and no controller recreates it";
    let words = words.map(str::to_owned).to_vec();
    Some(CommandWords { words, effect, warnings: Vec::new(), nodes: None })
}

impl Patch {
    /// The body of the patch: what `kubectl patch --patch-file` or `kubectl create -f` reads.
    /// `None` where there is none.
    pub fn body(&self) -> Option<Json> {
        match &self.form {
            Form::Merge(body) | Form::Strategic(body) | Form::Create(body) => Some(body.clone()),
            Form::Operations(operations) => {
                Some(Json::List(operations.iter().map(Operation::to_json).collect()))
            }
            Form::Source | Form::Command(_) => None,
        }
    }

    /// The name of the form: `merge`, `strategic`, `json`, `create`, `source`, `command`.
    pub fn form_name(&self) -> &'static str {
        match self.form {
            Form::Merge(_) => "merge",
            Form::Strategic(_) => "strategic",
            Form::Operations(_) => "json",
            Form::Create(_) => "create",
            Form::Source => "source",
            Form::Command(_) => "command",
        }
    }

    /// The command that applies it, quoted for a shell; with a file that holds the body, or with
    /// the body in it. `None` where only the object's source can be changed.
    pub fn command(&self, file: Option<&str>) -> Option<String> {
        let words = match (&self.form, self.body()) {
            (Form::Command(words), _) => return Some(shell(words)),
            (_, None) => return None,
            (Form::Create(_), Some(body)) => {
                return Some(match file {
                    Some(file) => shell(&["kubectl", "create", "-f", file].map(str::to_owned)),
                    None => {
                        let text = shell(&["printf", "%s", &body.to_line()].map(str::to_owned));
                        format!("{text} | kubectl create -f -")
                    }
                });
            }
            (_, Some(body)) => {
                let mut words = vec!["kubectl".to_owned(), "patch".to_owned(), self.resource()];
                words.push(self.object.name.clone());
                if !self.object.namespace.is_empty() {
                    words.extend(["-n".to_owned(), self.object.namespace.clone()]);
                }
                words.push(format!("--type={}", self.form_name()));
                words.extend(match file {
                    Some(file) => ["--patch-file".to_owned(), file.to_owned()],
                    None => ["-p".to_owned(), body.to_line()],
                });
                words
            }
        };
        Some(shell(&words))
    }

    /// The kind with version and group, as kubectl takes it for any kind.
    fn resource(&self) -> String {
        match self.api_version.split_once('/') {
            Some((group, version)) => format!("{}.{version}.{group}", self.object.kind),
            None => self.object.kind.clone(),
        }
    }
}

impl Operation {
    fn to_json(&self) -> Json {
        match self {
            Self::Test { path, value } => Json::object([
                ("op", "test".into()),
                ("path", path.as_str().into()),
                ("value", value.clone()),
            ]),
            Self::Add { path, value } => Json::object([
                ("op", "add".into()),
                ("path", path.as_str().into()),
                ("value", value.clone()),
            ]),
            Self::Remove { path } => {
                Json::object([("op", "remove".into()), ("path", path.as_str().into())])
            }
        }
    }
}

/// Words as a POSIX shell reads them back: quoted, if a letter of them could mean anything to it.
fn shell(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
