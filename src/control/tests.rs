#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set its scene must fail"
)]

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_core::ports::store::Which;
use sillage_core::run::{Event, PermissionAnswer, RunEnd};
use sillage_store::MemoryStore;
use sillage_testkit::scripted_runtime::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::active::ActiveRuns;
use crate::feed::FeedItem;
use crate::reader::ReadError;
use crate::world::{self, Random, every, id, see};

/// A server over a store in memory, in a folder of its own.
struct Served {
    folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    active: ActiveRuns,
    server: ControlServer,
}

impl Served {
    fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let active = ActiveRuns::new();
        let server = ControlServer::start(folder.path(), Arc::clone(&store), active.clone()).unwrap();
        Served {
            folder,
            store,
            active,
            server,
        }
    }

    fn client(&self) -> ControlClient {
        ControlClient::new(self.folder.path())
    }

    async fn launch(&self, run: &str, agents: u32, reply: Reply) -> crate::RunHandle {
        let handle = world::engine(&self.store, reply)
            .launch(world::definition(run, agents))
            .await
            .unwrap();
        self.active.add(handle.clone());
        handle
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_each_fact_once_whenever_they_come() {
    let served = Served::start();
    for seed in 1..=10 {
        let handle = served
            .launch(&format!("r{seed}"), 8, world::report_after(3))
            .await;
        let mut random = Random(seed);
        let mut followers = Vec::new();
        for _ in 0..5 {
            for _ in 0..random.below(40) {
                tokio::task::yield_now().await;
            }
            let from = Seq(1 + random.below(30));
            let items = served.client().follow(handle.id(), from).await.unwrap();
            followers.push((from, tokio::spawn(see(items))));
        }
        handle.wait().await.unwrap();
        let last = served.store.run(handle.id()).await.unwrap().unwrap().last;
        for (from, follower) in followers {
            assert_eq!(
                follower.await.unwrap().facts,
                every(from, last),
                "seed {seed}, from {from}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_asked_is_answered_as_the_store_would() {
    let served = Served::start();
    let client = served.client();
    assert_eq!(client.runs(Which::All, 10).await.unwrap(), []);
    let handle = served.launch("r", 2, world::report_after(1)).await;
    handle.wait().await.unwrap();
    let run = handle.id();
    let summary = served.store.run(run).await.unwrap().unwrap();
    assert_eq!(
        client.runs(Which::All, 10).await.unwrap(),
        std::slice::from_ref(&summary)
    );
    assert_eq!(client.runs(Which::Unfinished, 10).await.unwrap(), []);
    assert_eq!(client.run(run).await.unwrap(), summary);
    let facts = client.events(run, Seq::FIRST).await.unwrap();
    assert_eq!(
        facts,
        crate::follow::read_all(&*served.store, run, Seq::FIRST)
            .await
            .unwrap()
    );
    let mut sessions = facts.iter().filter_map(|fact| {
        let Event::SessionPlanned { request, .. } = &fact.event else {
            return None;
        };
        Some(request.client_session_id)
    });
    let transcript = client.transcript(run, sessions.next().unwrap()).await.unwrap();
    assert!(transcript.contains("piece 0"), "{transcript}");
    assert!(matches!(client.run(&id("no")).await, Err(ReadError::NoSuchRun(run)) if run == id("no")));
}

#[tokio::test]
async fn r4_a_stop_is_passed_on_and_a_second_one_forces() {
    let served = Served::start();
    let client = served.client();
    let handle = served.launch("r", 2, Reply::Silent).await;
    let mut items = client.follow(handle.id(), Seq::FIRST).await.unwrap();
    until(&mut items, |event| matches!(event, Event::MessagePlanned { .. })).await;
    assert!(!client.stop(handle.id()).await.unwrap().again);
    until(&mut items, |event| {
        matches!(event, Event::StopAsked { forced: false })
    })
    .await;
    // It may have ended already, when its sessions obeyed at once.
    match client.stop(handle.id()).await {
        Ok(asked) => assert!(asked.again),
        Err(error) => assert!(
            matches!(error, ReadError::Over { .. } | ReadError::NotDriven(_)),
            "{error}"
        ),
    }
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Stopped);
    assert!(
        matches!(client.stop(handle.id()).await, Err(ReadError::Over { state, .. }) if state == "stopped")
    );
    assert!(matches!(
        client.stop(&id("no")).await,
        Err(ReadError::NoSuchRun(_))
    ));
}

async fn until(items: &mut crate::Followed<ReadError>, wanted: impl Fn(&Event) -> bool) {
    while let Some(item) = items.next().await {
        if matches!(item.unwrap(), FeedItem::Fact(fact) if wanted(&fact.event)) {
            return;
        }
    }
    panic!("it ended first");
}

#[tokio::test]
async fn a_run_under_way_that_nobody_drives_cannot_be_stopped() {
    let served = Served::start();
    let launch = sillage_core::run::Run::launch(Default::default(), world::definition("r", 1));
    let summary = sillage_core::run::Run::start(launch.clone()).unwrap().summary();
    let bytes = sillage_core::run::codec::encode(&launch).unwrap();
    served
        .store
        .append(&id("r"), Seq::FIRST, vec![bytes], &summary)
        .await
        .unwrap();
    assert!(matches!(served.client().stop(&id("r")).await, Err(ReadError::NotDriven(run)) if run == id("r")));
    assert_eq!(
        see(served.client().follow(&id("r"), Seq::FIRST).await.unwrap())
            .await
            .facts,
        [Seq::FIRST]
    );
}

#[tokio::test]
async fn a5_answers_go_through_the_socket_and_are_durable_before_they_are_passed_on() {
    let served = Served::start();
    let client = served.client();
    let asks = Reply::permission("p", "May it?", world::report_after(0), Reply::Silent);
    let mut definition = world::definition("r", 1);
    definition.policy.permissions = sillage_core::ports::runtime::PermissionPolicy::Ask;
    let handle = world::engine(&served.store, asks)
        .launch(definition)
        .await
        .unwrap();
    served.active.add(handle.clone());
    let mut items = client.follow(&id("r"), Seq::FIRST).await.unwrap();
    until(&mut items, |event| matches!(event, Event::PermissionAsked { .. })).await;
    let reader = crate::Reader::through(client.clone());
    let open = reader.permissions().await.unwrap();
    assert_eq!((open.len(), open[0].title.as_str()), (1, "May it?"));
    assert_eq!(client.run(&id("r")).await.unwrap().asking, 1);
    let asked = open[0].id.asked;
    for (number, answer) in [
        (Seq(1), PermissionAnswer::Allow),
        (asked, PermissionAnswer::Option("always".to_owned())),
    ] {
        let refused = reader.answer_permission(&id("r"), number, answer).await;
        assert!(matches!(refused, Err(ReadError::Refused(_))), "{refused:?}");
    }
    reader
        .answer_permission(&id("r"), asked, PermissionAnswer::Allow)
        .await
        .unwrap();
    let facts = client.events(&id("r"), Seq::FIRST).await.unwrap();
    let durable = |fact: &sillage_core::run::Recorded| matches!(fact.event, Event::PermissionAnswered { .. });
    assert!(facts.iter().any(durable), "durable when it is acknowledged");
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let late = reader
        .answer_permission(&id("r"), asked, PermissionAnswer::Allow)
        .await;
    assert!(matches!(late, Err(ReadError::Over { .. })), "{late:?}");
    let unknown = reader
        .answer_permission(&id("no"), asked, PermissionAnswer::Allow)
        .await;
    assert!(matches!(unknown, Err(ReadError::NoSuchRun(_))), "{unknown:?}");
}

#[tokio::test]
async fn heard_tells_the_steps_of_a_run_that_is_driven() {
    let served = Served::start();
    let client = served.client();
    let asks = Reply::permission("p", "May it?", Reply::Silent, Reply::Silent);
    let handle = served.launch("r", 1, asks).await;
    // Chatter is told once: it may be over before anybody listens.
    let heard = async {
        loop {
            let told = client.heard(handle.id()).await.unwrap();
            if !told.is_empty() {
                return told;
            }
        }
    };
    let told = tokio::time::timeout(std::time::Duration::from_secs(20), heard)
        .await
        .unwrap();
    let steps: Vec<_> = told.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [sillage_core::id::StepIndex(0)]);
    assert_eq!(client.driven().await.unwrap(), [id("r")]);
    assert_eq!(client.heard(&id("no")).await.unwrap(), []);
}

#[tokio::test]
async fn the_socket_is_its_owners_alone_replaces_a_stale_one_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    // What a killed process leaves.
    drop(UnixListener::bind(&socket).unwrap());
    drop(UnixListener::bind(folder.path().join("control.new")).unwrap());
    let client = ControlClient::new(folder.path());
    assert!(matches!(
        client.runs(Which::All, 1).await,
        Err(ReadError::Control(ControlError::Unusable { .. }))
    ));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let server = ControlServer::start(folder.path(), Arc::clone(&store), ActiveRuns::new()).unwrap();
    let found = socket.metadata().unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(client.runs(Which::All, 1).await.unwrap(), []);
    server.close().await;
    assert_eq!(names(folder.path()), Vec::<String>::new());
    assert_eq!(Arc::strong_count(&store), 1, "nothing of the server is left");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_folder_with_a_name_too_long_for_a_sockets_address_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a-long-name/".repeat(20));
    std::fs::create_dir_all(&deep).unwrap();
    let server = ControlServer::start(&deep, Arc::new(MemoryStore::new()), ActiveRuns::new()).unwrap();
    assert_eq!(ControlClient::new(&deep).runs(Which::All, 1).await.unwrap(), []);
    server.close().await;
    assert_eq!(names(&deep), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_what_is_too_long_is_not_read() {
    let served = Served::start();
    let long = "x".repeat(100_000) + "\n";
    for said in [
        "\n",
        "{}\n",
        "{\"stop\":{\"run\":\"A b\"}}\n",
        "\"end\"\n",
        "\0\u{ff}\n",
        &long,
    ] {
        let mut stream = UnixStream::connect(served.folder.path().join("control"))
            .await
            .unwrap();
        // The server may close before it is said.
        let _ = stream.write_all(said.as_bytes()).await;
        let mut answer = String::new();
        match stream.read_to_string(&mut answer).await {
            Ok(_) => assert!(
                answer.starts_with("{\"failed\":{\"other\":\"this is no request: "),
                "{answer}"
            ),
            // What was not read makes the system cut the connection.
            Err(error) => assert_eq!(
                (error.kind(), said.len()),
                (io::ErrorKind::ConnectionReset, long.len())
            ),
        }
    }
    assert_eq!(served.client().runs(Which::All, 1).await.unwrap(), []);
}

#[tokio::test]
async fn clients_that_are_silent_slow_or_gone_hold_up_nobody() {
    let served = Served::start();
    let silent = UnixStream::connect(served.folder.path().join("control"))
        .await
        .unwrap();
    let handle = served.launch("r", 4, world::report_after(3000)).await;
    let slow = served.client().follow(handle.id(), Seq::FIRST).await.unwrap();
    drop(served.client().follow(handle.id(), Seq::FIRST).await.unwrap());
    // The run ends though one follower reads nothing.
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let last = served.store.run(handle.id()).await.unwrap().unwrap().last;
    assert_eq!(see(slow).await.facts, every(Seq::FIRST, last));
    served.server.close().await;
    drop(silent);
}

#[tokio::test]
async fn who_closes_the_server_lets_followers_see_the_end() {
    let served = Served::start();
    let handle = served.launch("r", 4, world::report_after(100)).await;
    let items = served.client().follow(handle.id(), Seq::FIRST).await.unwrap();
    let follower = tokio::spawn(see(items));
    handle.wait().await.unwrap();
    served.server.close().await;
    let last = served.store.run(handle.id()).await.unwrap().unwrap().last;
    assert_eq!(follower.await.unwrap().facts, every(Seq::FIRST, last));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told() {
    let served = Served::start();
    let handle = served.launch("r", 1, Reply::Silent).await;
    let mut items = served.client().follow(handle.id(), Seq::FIRST).await.unwrap();
    until(&mut items, |event| matches!(event, Event::MessagePlanned { .. })).await;
    drop(served.server);
    let rest: Vec<_> = items.collect().await;
    assert!(
        matches!(rest.last(), Some(Err(ReadError::Control(ControlError::Closed)))),
        "{rest:?}"
    );
}
