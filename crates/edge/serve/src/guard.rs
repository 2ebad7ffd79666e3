//! Who may ask: whoever knows the token of a file, or has one that the cluster knows and allows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// What a cluster says of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// Its owner may read the path.
    Allowed,
    /// Its owner is known and may not.
    Forbidden,
    /// It is nobody's.
    Unknown,
}

/// Asks a cluster.
pub trait Reviewer: Send + Sync {
    /// Whether the owner of a token may read a path.
    ///
    /// # Errors
    /// In words, where the cluster does not answer.
    fn review<'a>(&'a self, token: &'a str, path: &'a str)
    -> BoxFuture<'a, Result<Review, String>>;
}

/// Who may ask.
#[derive(Default)]
pub struct AccessGuard {
    /// Not the token itself: what is compared has one length, and nothing to find in memory.
    token: Option<[u8; 32]>,
    reviewer: Option<Arc<dyn Reviewer>>,
    reviews: Mutex<Reviews>,
}

/// A file that has no token.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct GuardError {
    pub path: PathBuf,
    pub why: String,
}

/// Shorter ones can be guessed.
const SHORTEST_TOKEN: usize = 16;
/// The cluster's are about a thousand bytes long.
const LONGEST_TOKEN: usize = 8192;

impl AccessGuard {
    /// Lets those in who know the token in a file, and those of whom a cluster says so; everybody
    /// where there is neither.
    ///
    /// # Errors
    /// A file without a token, or with one that can be guessed.
    pub fn new(
        token_file: Option<&Path>,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Result<Self, GuardError> {
        let token = token_file.map(token_of).transpose()?;
        Ok(Self { token, reviewer, reviews: Mutex::default() })
    }

    /// Whether somebody can be kept out.
    pub fn is_closed(&self) -> bool {
        self.token.is_some() || self.reviewer.is_some()
    }

    /// Whether who sends this header `Authorization` may read a path.
    ///
    /// # Errors
    /// As [`Reviewer::review`].
    pub(crate) async fn admits(
        &self,
        authorization: Option<&str>,
        path: &str,
    ) -> Result<Review, String> {
        if !self.is_closed() {
            return Ok(Review::Allowed);
        }
        let token = authorization.and_then(bearer).filter(|token| token.len() <= LONGEST_TOKEN);
        let Some(token) = token else { return Ok(Review::Unknown) };
        let digest = digest(token.as_bytes());
        if self.token.is_some_and(|known| bool::from(known.ct_eq(&digest))) {
            return Ok(Review::Allowed);
        }
        let Some(reviewer) = &self.reviewer else { return Ok(Review::Unknown) };
        let key = (digest, path.to_owned());
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let found = reviewer.review(token, path).await?;
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner).add(key, found, Instant::now());
        Ok(found)
    }

    fn known(&self, key: &Asked) -> Option<Review> {
        let reviews = self.reviews.lock().unwrap_or_else(PoisonError::into_inner);
        let (review, until) = reviews.0.get(key)?;
        (*until > Instant::now()).then_some(*review)
    }
}

/// What is wrong with a token's file that everybody on the machine may read, and what to do;
/// nothing where only its owner and group may, and where files have no modes.
pub fn open_to_others(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
        let name = path.display();
        (mode & 0o004 != 0).then(|| {
            let what = format!("{name}: other users can read the file (mode {mode:04o})");
            format!("{what}: run `chmod 600 {name}`, and replace the token")
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// A token's digest and a path.
type Asked = ([u8; 32], String);

/// What the cluster said lately.
#[derive(Debug, Default)]
struct Reviews(BTreeMap<Asked, (Review, Instant)>);

impl Reviews {
    const MOST: usize = 1024;

    fn add(&mut self, key: Asked, review: Review, now: Instant) {
        if self.0.len() >= Self::MOST {
            self.0.retain(|_, (_, until)| *until > now);
        }
        if self.0.len() >= Self::MOST {
            return;
        }
        // What was given may be taken back, what was refused may be given.
        let lasts = Duration::from_secs(if review == Review::Allowed { 60 } else { 10 });
        self.0.insert(key, (review, now + lasts));
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn token_of(path: &Path) -> Result<[u8; 32], GuardError> {
    let wrong = |why: &str| GuardError { path: path.to_owned(), why: why.to_owned() };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let token = text.trim();
    let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
    match token.len() {
        0 => Err(wrong(
            "the file is empty: write a token to it, such as the output of `openssl rand -hex 32`",
        )),
        length if length < SHORTEST_TOKEN => {
            Err(wrong("its token has fewer than 16 characters and can be guessed"))
        }
        length if length > LONGEST_TOKEN => Err(wrong("its token has more than 8192 characters")),
        _ if !is_token => {
            Err(wrong("its token has spaces or characters that are invalid in a header"))
        }
        _ => Ok(digest(token.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Cluster(AtomicUsize);

    impl Reviewer for Cluster {
        fn review<'a>(
            &'a self,
            token: &'a str,
            path: &'a str,
        ) -> BoxFuture<'a, Result<Review, String>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                match (token, path) {
                    ("lost", _) => Err("no answer".to_owned()),
                    ("prometheus", "/metrics") => Ok(Review::Allowed),
                    ("prometheus", _) => Ok(Review::Forbidden),
                    _ => Ok(Review::Unknown),
                }
            })
        }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_told() {
        use std::os::unix::fs::PermissionsExt as _;
        let secret = file("0123456789abcdef");
        let told = |mode: u32| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(secret.path(), mode).unwrap();
            open_to_others(secret.path())
        };
        assert_eq!(told(0o600), None);
        // A group may be that of a pod's own volume.
        assert_eq!(told(0o440), None);
        let name = secret.path().display();
        let text = format!(
            "{name}: other users can read the file (mode 0644): run `chmod 600 {name}`, and \
             replace the token"
        );
        assert_eq!(told(0o644), Some(text));
        assert!(told(0o604).is_some());
    }

    #[tokio::test]
    async fn a_token_of_the_file_or_of_the_cluster_opens_and_nothing_else_does() {
        let secret = file("0123456789abcdef\n");
        let cluster = Arc::new(Cluster::default());
        let guard = AccessGuard::new(Some(secret.path()), Some(cluster.clone())).unwrap();
        for (header, path, expected) in [
            (None, "/metrics", Ok(Review::Unknown)),
            (Some("Bearer 0123456789abcdef"), "/allocation", Ok(Review::Allowed)),
            (Some("bearer 0123456789abcdef"), "/metrics", Ok(Review::Allowed)),
            (Some("Bearer 0123456789abcde"), "/metrics", Ok(Review::Unknown)),
            (Some("Basic 0123456789abcdef"), "/metrics", Ok(Review::Unknown)),
            (Some("Bearer "), "/metrics", Ok(Review::Unknown)),
            (Some("Bearer prometheus"), "/metrics", Ok(Review::Allowed)),
            (Some("Bearer prometheus"), "/allocation", Ok(Review::Forbidden)),
            (Some("Bearer lost"), "/metrics", Err("no answer".to_owned())),
        ] {
            assert_eq!(guard.admits(header, path).await, expected, "{header:?} {path}");
        }
        // What the cluster said is not asked for again; no answer is none.
        let asked = cluster.0.load(Ordering::Relaxed);
        guard.admits(Some("Bearer prometheus"), "/metrics").await.unwrap();
        assert_eq!(cluster.0.load(Ordering::Relaxed), asked);
        guard.admits(Some("Bearer lost"), "/metrics").await.unwrap_err();
        assert_eq!(cluster.0.load(Ordering::Relaxed), asked + 1);
        assert_eq!(AccessGuard::default().admits(None, "/metrics").await, Ok(Review::Allowed));
    }

    #[test]
    fn what_the_cluster_said_is_forgotten_and_bounded() {
        let (mut reviews, now) = (Reviews::default(), Instant::now());
        for number in 0..5000_u32 {
            reviews.add((digest(&number.to_be_bytes()), String::new()), Review::Unknown, now);
        }
        assert_eq!(reviews.0.len(), Reviews::MOST);
        let later = now + Duration::from_secs(11);
        reviews.add((digest(b"new"), String::new()), Review::Unknown, later);
        assert_eq!(reviews.0.len(), 1);
    }

    #[test]
    fn a_file_without_a_good_token_is_refused_by_name() {
        for text in ["", "  \n", "short", "two words of some length", "zwölf Zeichen und mehr"] {
            let file = file(text);
            let error = AccessGuard::new(Some(file.path()), None).err().unwrap().to_string();
            let name = file.path().display().to_string();
            assert!(
                error.starts_with(&name) && (text.trim().is_empty() || !error.contains(text)),
                "{error}"
            );
        }
    }
}
