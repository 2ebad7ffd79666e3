//! Kinds of errors that libraries do not know: each has an exit code of its own.

/// The command line or a setting asks for something that does not exist.
#[derive(Debug)]
pub struct UsageError(pub String);

/// Refuses a list in which something stands twice.
///
/// # Errors
/// Names the flag and what is there twice.
pub fn refuse_twice<'n>(
    flag: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> anyhow::Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => {
            let text = format!("{flag}: {name} is listed twice; remove one");
            Err(UsageError(text).into())
        }
    }
}

/// Input data that no reader of a library has refused.
#[derive(Debug)]
pub struct BadInput(pub String);

/// A decision broke what must always hold.
#[derive(Debug)]
pub struct Violated(pub String);

/// A replay decided otherwise than its recording.
#[derive(Debug)]
pub struct Diverged(pub String);

/// An audit found what it is to fail on.
#[derive(Debug)]
pub struct FailingFindings(pub String);

macro_rules! plain_error {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl std::error::Error for $name {}
    )*};
}
plain_error!(UsageError, BadInput, Violated, Diverged, FailingFindings);
