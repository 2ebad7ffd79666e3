//! The settings file of a process that runs for months, looked at again and again.

use std::path::PathBuf;

use super::file::settings_of;
use super::scheduler::SchedulerSection;

/// The section `[scheduler]` of a file that may change.
#[derive(Debug)]
pub struct FollowedSection {
    path: PathBuf,
    section: SchedulerSection,
    /// What was wrong at the last look.
    problem: Option<String>,
}

impl FollowedSection {
    /// The file at `path`, in which the section was this when it was last read.
    pub fn new(path: PathBuf, section: SchedulerSection) -> Self {
        Self { path, section, problem: None }
    }

    /// The section before and after, if the file says something else than at the last look, or what
    /// is wrong with it, once. A file that is not there says nothing.
    ///
    /// # Errors
    /// What is wrong with the file, with its name.
    pub fn changed(&mut self) -> Result<Option<(SchedulerSection, SchedulerSection)>, String> {
        let Ok(text) = std::fs::read_to_string(&self.path) else { return Ok(None) };
        match settings_of(&self.path, &text) {
            Ok(settings) => {
                self.problem = None;
                let section = settings.scheduler.unwrap_or_default();
                let before = std::mem::replace(&mut self.section, section);
                Ok((before != self.section).then(|| (before, self.section.clone())))
            }
            Err(error) => {
                let problem = error.to_string();
                match self.problem.replace(problem.clone()) == Some(problem.clone()) {
                    true => Ok(None),
                    false => Err(problem),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_and_a_mistake_are_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dovetail.toml");
        let mut followed = FollowedSection::new(path.clone(), SchedulerSection::default());
        assert_eq!(followed.changed(), Ok(None), "there is no file");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("[scheduler]\npolicy = \"best-fit\"");
        let (before, now) = followed.changed().unwrap().unwrap();
        assert_eq!((before.policy, now.policy.as_deref()), (None, Some("best-fit")));
        assert_eq!(followed.changed(), Ok(None));
        write("[scheduler]\npolicy = \"best\"");
        let problem = followed.changed().unwrap_err();
        assert!(problem.contains("dovetail.toml:2: scheduler.policy"), "{problem}");
        assert_eq!(followed.changed(), Ok(None), "told before");
        write("seed = 7");
        let (before, now) = followed.changed().unwrap().unwrap();
        assert_eq!((before.policy.as_deref(), now.policy), (Some("best-fit"), None));
    }
}
