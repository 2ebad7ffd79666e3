//! The changes of one kind.

use dovetail_cluster::world::Change;
use dovetail_objects::{Kind, ReadFields};
use futures_util::stream::{self, BoxStream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use super::served::served;
use super::watched::Watched;
use super::{Notice, Settings};

/// One kind's watch, with the way its lists come.
struct WatchSource {
    client: Client,
    api: Api<Watched>,
    kind: Kind,
    /// The version in which the server has it.
    version: &'static str,
    settings: Settings,
    /// For the JSON that is kept, if it is.
    fields: Option<ReadFields>,
    /// Whether lists stream; false once the server has refused that.
    streams: bool,
    /// Whether the server had the kind and has it no more.
    is_gone: bool,
    /// What is to be said next.
    next: Option<Notice>,
    events: BoxStream<'static, watcher::Result<watcher::Event<Watched>>>,
}

/// Watches one kind in a version that the server has, for ever.
pub(super) fn changes(
    client: Client,
    (kind, version): (Kind, &'static str),
    settings: Settings,
) -> BoxStream<'static, Notice> {
    let api = Api::all_with(client.clone(), &(kind, version));
    let events = events(&api, settings, true);
    let fields = settings.keeps_json.then(ReadFields::default);
    let (streams, is_gone, next) = (true, false, None);
    let source = WatchSource {
        client,
        api,
        kind,
        version,
        settings,
        fields,
        streams,
        is_gone,
        next,
        events,
    };
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

impl WatchSource {
    async fn next(&mut self) -> Option<Notice> {
        if let Some(notice) = self.next.take() {
            return Some(notice);
        }
        loop {
            match self.events.next().await? {
                // A new list may begin before the server is asked; what it has says that the kind
                // is back.
                Ok(event) => {
                    self.is_gone &= matches!(event, watcher::Event::Init);
                    let (change, json) = self.change(event);
                    return Some(Notice::Change(change, json));
                }
                Err(problem) if is_not_found(&problem) && self.is_gone => {}
                Err(problem) if is_not_found(&problem) => {
                    match version_now(&self.client, self.kind).await {
                        Some(None) => return Some(self.absent()),
                        Some(Some(version)) if version != self.version => self.change_to(version),
                        _ => return Some(self.interrupted(problem)),
                    }
                }
                Err(problem) if self.streams && is_refusal(&problem) => {
                    self.streams = false;
                    self.events = events(&self.api, self.settings, false);
                }
                Err(problem) => return Some(self.interrupted(problem)),
            }
        }
    }

    fn interrupted(&self, problem: watcher::Error) -> Notice {
        Notice::Interrupted { kind: self.kind, problem: Box::new(problem) }
    }

    /// The server has the kind no more. One that comes back begins with a list.
    fn absent(&mut self) -> Notice {
        self.is_gone = true;
        self.events = events(&self.api, self.settings, self.streams);
        self.next = Some(Notice::Change(Change::Absent(self.kind), None));
        Notice::Absent { kind: self.kind }
    }

    /// The server was upgraded, and has the kind in another version.
    fn change_to(&mut self, version: &'static str) {
        self.version = version;
        self.api = Api::all_with(self.client.clone(), &(self.kind, version));
        self.events = events(&self.api, self.settings, self.streams);
    }

    fn change(&mut self, event: watcher::Event<Watched>) -> (Change, Option<Box<str>>) {
        let mut read = |object: &Watched| object.object(self.kind, self.fields.as_mut());
        match event {
            watcher::Event::Init => (Change::Listing(self.kind), None),
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                let (object, json) = read(&object);
                (Change::Applied(object), json)
            }
            watcher::Event::InitDone => (Change::Listed(self.kind), None),
            watcher::Event::Delete(object) => {
                let (object, json) = read(&object);
                (Change::Deleted(self.kind, object.meta().clone()), json)
            }
        }
    }
}

/// The version in which the server has a kind now: none where its definition was deleted, and
/// `None` where the server does not say. Kubernetes' own first kinds are always there, whatever
/// answers in their place.
async fn version_now(client: &Client, kind: Kind) -> Option<Option<&'static str>> {
    if kind.group().is_empty() {
        return None;
    }
    let served = served(client).await.ok()?;
    Some(served.get(&kind).copied())
}

/// Whether the server does not know what is asked for.
fn is_not_found(problem: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        problem
    else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Servers whose lists do not stream say that the request is not valid.
fn is_refusal(problem: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = problem else { return false };
    matches!(status.code, 400 | 422)
}
