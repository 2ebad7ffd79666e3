//! Disks that fill and servers that crash: an error that says so, and then everything goes on.

use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_store::{Address, Store, StoreError};
use dovetail_testkit::PostgresServer;

use crate::databases::{open, run};
use crate::world::{START_MS, World, everything};

fn span(from_hour: u64, to_hour: u64) -> Span {
    Span { from_ms: START_MS + from_hour * HOUR_MS, to_ms: START_MS + to_hour * HOUR_MS }
}

async fn undisturbed(folder: &std::path::Path, world: &World) -> Vec<String> {
    let mut store = open(&Address::File(folder.join("undisturbed.db"))).await;
    store.keep(&world.reading(world.period()), world.period().to_ms).await.unwrap();
    everything(&mut store, world).await
}

#[test]
fn a_full_disk_is_told_and_with_room_it_goes_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::File(folder.path().join("ledger.db"));
        let world = World::new("one", 5);
        let now_ms = world.period().to_ms;
        let mut store = open(&address).await;
        store.keep(&world.reading(span(0, 3)), now_ms).await.unwrap();
        // As many pages as there are: the next one is one too many.
        store.bound_file(1).await.unwrap();
        let told = store.keep(&world.reading(world.period()), now_ms).await.unwrap_err();
        assert!(matches!(told, StoreError::Full { .. }), "{told:?}");
        assert!(told.to_string().contains("ledger.db: the disk is full"), "{told}");
        let source = world.reading(span(0, 1)).source;
        let missing = store.missing("one", Some(&source), world.period()).await.unwrap();
        let [Span { from_ms, .. }] = missing[..] else { panic!("{missing:?}") };
        assert!(from_ms >= span(3, 4).from_ms, "what was written is there");
        store.bound_file(1 << 30).await.unwrap();
        for span in missing {
            store.keep(&world.reading(span), now_ms).await.unwrap();
        }
        assert_eq!(everything(&mut store, &world).await, undisturbed(folder.path(), &world).await);
    });
}

#[test]
fn a_server_that_crashes_is_told_and_when_it_is_back_it_goes_on() {
    let Some(mut server) = PostgresServer::start() else { return };
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new("one", 6);
        let now_ms = world.period().to_ms;
        let mut store = open(&Address::Server(server.url())).await;
        store.keep(&world.reading(span(0, 11)), now_ms).await.unwrap();
        server.crash();
        // The first finds a connection that ended, the next none at all.
        for _ in 0..2 {
            let told = store.keep(&world.reading(span(11, 20)), now_ms).await.unwrap_err();
            assert!(matches!(told, StoreError::Lost { .. }), "{told:?}");
            assert!(told.is_passing());
        }
        server.start_again();
        store.keep(&world.reading(span(9, 30)), now_ms).await.unwrap();
        assert_eq!(everything(&mut store, &world).await, undisturbed(folder.path(), &world).await);
    });
}

#[test]
fn what_is_no_ledger_is_left_as_it_is() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.txt");
        std::fs::write(&file, "not a database, but longer than a header of one ".repeat(40))
            .unwrap();
        let before = std::fs::read(&file).unwrap();
        let told = Store::open(&Address::File(file.clone())).await.unwrap_err();
        assert!(matches!(told, StoreError::Foreign { .. }), "{told:?}");
        assert_eq!(std::fs::read(&file).unwrap(), before);
        let told = Store::open(&Address::File(folder.path().join("none/ledger.db"))).await;
        assert!(matches!(told.unwrap_err(), StoreError::Address { .. }));
    });
}
