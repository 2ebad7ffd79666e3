//! Where a ledger is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::any::AnyConnectOptions;

use crate::error::StoreError;

/// A file for SQLite, or the URL of a PostgreSQL server. Shown without what is secret in it.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// A file; it is made where it is not there.
    File(PathBuf),
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`.
    Server(String),
}

impl Address {
    /// How sqlx connects to it.
    pub(crate) fn options(&self) -> Result<AnyConnectOptions, StoreError> {
        let url = match self {
            Self::Server(url) => url.clone(),
            Self::File(path) => format!("sqlite:{}?mode=rwc", as_url_path(path)?),
        };
        url.parse().map_err(|error: sqlx::Error| self.unusable(&error.to_string()))
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(crate) fn unusable(&self, why: &str) -> StoreError {
        StoreError::Address { address: self.to_string(), why: why.to_owned() }
    }
}

impl FromStr for Address {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("postgres" | "postgresql") => Ok(Self::Server(text.to_owned())),
            Some(_) => Err(StoreError::Address {
                address: without_secret(text),
                why: "write the path of a file, or postgres://USER@HOST/DATABASE".to_owned(),
            }),
            None if text.is_empty() => Err(StoreError::Address {
                address: String::new(),
                why: "it is empty: write the path of a file".to_owned(),
            }),
            None => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(url) => f.write_str(&without_secret(url)),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// A URL without its query, which may hold a password, and without the password before its host.
fn without_secret(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // A password may hold what ends a host; the last `@` ends the password.
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    }
}

/// A path in which every byte that means something in a URL is written as its number.
fn as_url_path(path: &Path) -> Result<String, StoreError> {
    let Some(text) = path.to_str() else {
        let address = path.display().to_string();
        return Err(StoreError::Address { address, why: "the path is not UTF-8".to_owned() });
    };
    if text.contains('\0') || text == ":memory:" {
        let why = "a ledger must be a file".to_owned();
        return Err(StoreError::Address { address: text.to_owned(), why });
    }
    let mut url = String::new();
    for byte in text.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => url.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_never_shown() {
        for (url, shown) in [
            ("postgres://ada:s3cret@db:5432/costs", "postgres://ada@db:5432/costs"),
            ("postgresql://ada:p@ss/word@db/costs", "postgresql://ada@db/costs"),
            ("postgres:///costs?host=/run&password=s3cret", "postgres:///costs"),
            ("mysql://ada:s3cret@db/costs", "mysql://ada@db/costs"),
        ] {
            let told = match url.parse::<Address>() {
                Ok(address) => format!("{address} {address:?}"),
                Err(error) => error.to_string(),
            };
            assert!(told.contains(shown), "{told}");
            assert!(!told.contains("cret") && !told.contains("word@"), "{told}");
        }
    }

    #[test]
    fn any_name_of_a_file_is_the_name_of_that_file() {
        let address = Address::File(PathBuf::from("/tmp/a b?mode=ro#c%20é.db"));
        let url = address.options().unwrap().database_url.to_string();
        assert_eq!(url, "sqlite:/tmp/a%20b%3Fmode%3Dro%23c%2520%C3%A9.db?mode=rwc");
        assert!("".parse::<Address>().is_err());
        assert!(Address::File(PathBuf::from(":memory:")).options().is_err());
    }
}
