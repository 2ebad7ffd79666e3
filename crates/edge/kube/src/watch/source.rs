//! The changes of one kind.

use futures_util::stream::{self, BoxStream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use super::watched::Watched;
use super::{Notice, Settings};
use crate::object::Kind;
use crate::world::Change;

/// One kind's watch, with the way its lists come.
struct Source {
    api: Api<Watched>,
    kind: Kind,
    settings: Settings,
    /// Whether lists stream; false once the server has refused that.
    streams: bool,
    events: BoxStream<'static, watcher::Result<watcher::Event<Watched>>>,
}

/// Watches one kind, for ever.
pub(super) fn changes(
    client: Client,
    kind: Kind,
    settings: Settings,
) -> BoxStream<'static, Notice> {
    let api = Api::all_with(client, &kind);
    let events = events(&api, settings, true);
    let source = Source { api, kind, settings, streams: true, events };
    stream::unfold(source, |mut source| async move {
        let notice = source.next().await?;
        Some((notice, source))
    })
    .boxed()
}

fn events(
    api: &Api<Watched>,
    settings: Settings,
    streams: bool,
) -> BoxStream<'static, watcher::Result<watcher::Event<Watched>>> {
    let config = watcher::Config::default().timeout(settings.timeout_s);
    let config = match streams {
        true => config.streaming_lists(),
        false => config.page_size(settings.page_size),
    };
    watcher(api.clone(), config).default_backoff().boxed()
}

impl Source {
    async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.events.next().await? {
                Ok(event) => return Some(Notice::Change(self.change(event))),
                Err(problem) if self.streams && is_refusal(&problem) => {
                    self.streams = false;
                    self.events = events(&self.api, self.settings, false);
                }
                Err(problem) => {
                    let problem = Box::new(problem);
                    return Some(Notice::Interrupted { kind: self.kind, problem });
                }
            }
        }
    }

    fn change(&self, event: watcher::Event<Watched>) -> Change {
        match event {
            watcher::Event::Init => Change::Listing(self.kind),
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                Change::Applied(object.object(self.kind))
            }
            watcher::Event::InitDone => Change::Listed(self.kind),
            watcher::Event::Delete(object) => {
                Change::Deleted(self.kind, object.object(self.kind).meta().clone())
            }
        }
    }
}

/// Servers whose lists do not stream say that the request is not valid.
fn is_refusal(problem: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = problem else { return false };
    matches!(status.code, 400 | 422)
}
