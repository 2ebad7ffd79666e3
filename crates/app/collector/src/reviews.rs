//! Whose token it is, and what its owner may read, by the cluster itself.

use anyhow::Result;
use dovetail_serve::{Review, Reviewer};
use futures_util::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client, Config};

/// Asks the API server: TokenReview, then SubjectAccessReview of verb `get` on the path. Neither is
/// stored there.
pub struct ClusterReviews(Client);

impl ClusterReviews {
    /// Asks over a connection.
    ///
    /// # Errors
    /// Certificates or credentials that cannot be used.
    pub fn new(config: Config) -> Result<Self> {
        Ok(Self(Client::try_from(config)?))
    }

    async fn ask(&self, token: &str, path: &str) -> kube::Result<Review> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let asked = TokenReview { spec, ..TokenReview::default() };
        let reviews = Api::<TokenReview>::all(self.0.clone());
        let found = reviews.create(&PostParams::default(), &asked).await?;
        let status = found.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Review::Unknown);
        };
        let attributes =
            NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            extra: user.extra,
            groups: user.groups,
            non_resource_attributes: Some(attributes),
            uid: user.uid,
            user: user.username,
            ..SubjectAccessReviewSpec::default()
        };
        let asked = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.0.clone());
        let found = reviews.create(&PostParams::default(), &asked).await?;
        let status = found.status.unwrap_or_default();
        let may = status.allowed && status.denied != Some(true);
        Ok(if may { Review::Allowed } else { Review::Forbidden })
    }
}

impl Reviewer for ClusterReviews {
    fn review<'a>(
        &'a self,
        token: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Review, String>> {
        Box::pin(async move {
            let asked = self.ask(token, path).await;
            asked.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        })
    }
}
