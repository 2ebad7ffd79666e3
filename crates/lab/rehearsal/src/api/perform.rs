//! Doing what a call asks for.

use serde_json::Value;

use super::binding::bind;
use super::call::{Call, Route, Verb};
use super::create::create;
use super::delete::{DeleteOptions, delete, delete_object};
use super::discovery;
use super::eviction::evict;
use super::failure::ApiFailure;
use super::list::{list, selected};
use super::patch::patch;
use super::reply::ApiReply;
use super::server::ApiServer;
use super::state::ServerState;
use super::update::update;

impl ApiServer {
    /// Does what a call asks for, or in a dry run answers as if it were done. Watches are not among
    /// the calls: see [`OpenWatch`](super::OpenWatch).
    ///
    /// # Errors
    /// When the server refuses it.
    pub fn perform(
        &mut self,
        call: &Call,
        content_type: &str,
        body: &[u8],
    ) -> Result<ApiReply, ApiFailure> {
        self.state.store.is_trial = is_trial(call, body)?;
        let reply = carry_out(call, content_type, body, &mut self.state);
        self.state.store.is_trial = false;
        reply
    }

    /// Answers a request that is about no objects.
    pub fn describe(&self, route: &Route) -> ApiReply {
        let found = match route {
            Route::Version => Some(discovery::version(self.state.settings.minor)),
            Route::CoreVersions => Some(discovery::core_versions()),
            Route::Groups => Some(discovery::groups(&self.state.kinds)),
            Route::Group(group) => discovery::group(&self.state.kinds, group),
            Route::Resources { group, version } => {
                discovery::resources(&self.state.kinds, group, version)
            }
            Route::Healthy => return ApiReply::text(200, "ok"),
            Route::Call(_) => None,
        };
        let missing = || ApiReply::text(404, "404 page not found\n");
        found.map_or_else(missing, |body| ApiReply::json(200, &body))
    }
}

/// Whether a call is a dry run.
fn is_trial(call: &Call, body: &[u8]) -> Result<bool, ApiFailure> {
    match call.verb {
        Verb::Delete => Ok(DeleteOptions::read(call, body)?.is_trial),
        Verb::Patch => Ok(call.query.has("dryRun")),
        Verb::Create if call.subresource == "eviction" && !call.query.has("dryRun") => {
            let eviction = parse(body)?;
            Ok(DeleteOptions::from_value(&eviction["deleteOptions"]).is_trial)
        }
        _ if call.query.has("dryRun") => Err(ApiFailure::bad_request(
            "the model server knows dryRun for DELETE, PATCH and evictions only",
        )),
        _ => Ok(false),
    }
}

fn carry_out(
    call: &Call,
    content_type: &str,
    body: &[u8],
    state: &mut ServerState,
) -> Result<ApiReply, ApiFailure> {
    let kind = &call.kind;
    let is_pod = kind.group.is_empty() && kind.plural == "pods";
    match (call.verb, call.subresource.as_str()) {
        (Verb::Create, "") => {
            let object = create(kind, call.namespace.as_deref(), parse(body)?, state)?;
            Ok(ApiReply::object(201, kind, &object))
        }
        (Verb::Create, "binding") if is_pod => bind(call, &parse(body)?, state),
        (Verb::Create, "eviction") if is_pod => evict(call, &parse(body)?, state),
        (Verb::Get, "" | "status") => Ok(ApiReply::object(200, kind, &*state.named(call)?)),
        (Verb::List, "") => list(call, state),
        (Verb::Update, "" | "status") => {
            let object = update(call, parse(body)?, state)?;
            Ok(ApiReply::object(200, kind, &object))
        }
        (Verb::Patch, "" | "status") => {
            let object = patch(call, content_type, body, state)?;
            Ok(ApiReply::object(200, kind, &object))
        }
        (Verb::Delete, "") => delete(call, &DeleteOptions::read(call, body)?, state),
        (Verb::DeleteCollection, "") => {
            let options = DeleteOptions::read(call, body)?;
            let listed = list(call, state)?;
            for object in selected(call, state)? {
                delete_object(kind, &object, &options, state)?;
            }
            Ok(listed)
        }
        _ => Err(ApiFailure::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )),
    }
}

fn parse(body: &[u8]) -> Result<Value, ApiFailure> {
    serde_json::from_slice(body).map_err(|error| {
        ApiFailure::bad_request(format!("the object provided is unrecognized: {error}"))
    })
}
