//! Who may speak to the API server: the token file and one kubeconfig per user.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::certificates::{Authority, CA};
use super::{Options, StartError, User};

/// The user who may do everything.
pub(super) const ADMIN: &str = "admin";
/// Kubernetes gives these two their rights, and their own place in the server's queues.
pub(super) const SCHEDULER: &str = "system:kube-scheduler";
pub(super) const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

pub(super) const TOKENS: &str = "tokens.csv";

#[derive(Debug)]
pub(super) struct Access {
    folder: PathBuf,
    server: String,
    admin_token: String,
}

impl Access {
    /// Writes the token file and the kubeconfigs of all users.
    pub(super) fn write(
        folder: &Path,
        port: u16,
        authority: &Authority,
        options: &Options,
    ) -> Result<Self, StartError> {
        let admin = User { name: ADMIN.to_owned(), groups: vec!["system:masters".to_owned()] };
        let mut users = vec![admin, User::named(SCHEDULER), User::named(CONTROLLER_MANAGER)];
        users.extend(options.users.iter().cloned());
        let server = format!("https://127.0.0.1:{port}");
        let admin_token = authority.token_for(ADMIN);
        let access = Self { folder: folder.to_owned(), server, admin_token };
        let mut tokens = String::new();
        for user in &users {
            check_names(user)?;
            let token = authority.token_for(&user.name);
            tokens.push_str(&token_line(user, &token));
            let text = kubeconfig(&access.server, &folder.join(CA), &user.name, &token);
            let path = access.kubeconfig_of(&user.name);
            std::fs::write(&path, text).map_err(StartError::file(&path))?;
        }
        let path = folder.join(TOKENS);
        std::fs::write(&path, tokens).map_err(StartError::file(&path))?;
        Ok(access)
    }

    pub(super) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        kubeconfig_in(&self.folder, user)
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }
}

/// Where the kubeconfig of a user lies in the folder of a control plane.
pub(super) fn kubeconfig_in(folder: &Path, user: &str) -> PathBuf {
    folder.join(format!("{}.kubeconfig", user.replace(':', "-")))
}

fn check_names(user: &User) -> Result<(), StartError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-.:".contains(letter);
    let bad = |name: &&String| name.is_empty() || !name.chars().all(fits);
    let names = std::iter::once(&user.name).chain(&user.groups);
    names.into_iter().find(bad).map_or(Ok(()), |name| Err(StartError::UserName(name.clone())))
}

/// `token,user,uid,"group,group"`.
fn token_line(user: &User, token: &str) -> String {
    let groups = user.groups.join(",");
    format!("{token},{name},{name},\"{groups}\"\n", name = user.name)
}

/// A kubeconfig as JSON, which is YAML too.
fn kubeconfig(server: &str, authority: &Path, user: &str, token: &str) -> String {
    let name = "dovetail-test";
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name,
            "cluster": { "server": server, "certificate-authority": authority },
        }],
        "users": [{ "name": user, "user": { "token": token } }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": user } }],
        "current-context": name,
    });
    format!("{config:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_the_token_file_are_refused() {
        let user = User { name: "ann".to_owned(), groups: vec!["a,b".to_owned()] };
        assert!(check_names(&user).is_err());
        assert!(check_names(&User::named("a\"b")).is_err());
        assert!(check_names(&User::named("system:serviceaccount:ns:name")).is_ok());
    }
}
