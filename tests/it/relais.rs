//! R7, R12: an engine over Relais whose gateway goes and comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sillage::Engine;
use sillage::core::document::Format;
use sillage::core::journal;
use sillage::core::ports::Store;
use sillage::core::ports::runtime::{SessionEvent, SessionEventKind, Usage};
use sillage::core::run::{Event, Recorded, Run, RunDefinition, RunEnd};
use sillage::core::task;
use sillage::store::MemoryStore;
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{ClientOptions, Gateway, GatewayOptions, RelaisClient};
use sillage_testkit::condition::eventually;
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::engine::{self, REPORT, log};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Longer than anything that ends takes, on a machine with much else to do.
const BOUND: Duration = Duration::from_secs(60);

/// A gateway that is being served.
struct Served {
    gateway: Gateway,
    address: SocketAddr,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

async fn serve(runtime: &ScriptedRuntime, folder: &TempDir, port: u16) -> Served {
    let options = GatewayOptions::new(folder.path().join("relais"));
    let gateway = Gateway::open(Arc::new(runtime.clone()), options).unwrap();
    gateway.begin();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let server = Server::new(&gateway, listener, Token::new(TOKEN), Bounds::default()).unwrap();
    let address = server.address();
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(server.serve(async move {
        let _ = ended.await;
    }));
    Served {
        gateway,
        address,
        end,
        serving,
    }
}

impl Served {
    /// Ends the gateway, its sessions left as they are.
    async fn end(self) {
        drop(self.end);
        tokio::time::timeout(BOUND, self.serving).await.unwrap().unwrap();
        self.gateway.end().await;
    }
}

fn client(address: SocketAddr, patience: Duration) -> RelaisClient {
    let options = ClientOptions {
        patience,
        ..ClientOptions::new("test")
    };
    RelaisClient::new(&format!("http://{address}"), TOKEN, options).unwrap()
}

/// One agent, whose waits are short.
fn definition(files: &TempDir) -> RunDefinition {
    let text = "task: One agent\nagents:\n  - { id: a, mission: Begin., model: m, effort: low }\n";
    let mut definition = engine::definition(files.path());
    definition.task = Arc::new(task::read(text, Format::Either, None).unwrap());
    definition.policy.backoff_first = Duration::from_millis(100);
    definition.policy.backoff_most = Duration::from_millis(400);
    definition
}

/// Waits until the run's log is so.
async fn until(store: &dyn Store, what: &str, is: impl Fn(&[Recorded]) -> bool) {
    eventually(what, BOUND, async || is(&log(store).await)).await;
}

fn count(log: &[Recorded], is: impl Fn(&Event) -> bool) -> usize {
    log.iter().filter(|fact| is(&fact.event)).count()
}

fn is_prompted(log: &[Recorded]) -> bool {
    count(log, |event| matches!(event, Event::MessagePlanned { .. })) > 0
}

fn waits(log: &[Recorded]) -> usize {
    count(log, |event| matches!(event, Event::WaitStarted { .. }))
}

/// An answer after a few words.
fn worded(text: &str) -> Reply {
    let Reply::Answer { answer, .. } = Reply::text(text) else {
        unreachable!("a text is an answer")
    };
    let say = |text: &str| SessionEventKind::Text {
        text: text.to_owned(),
    };
    let usage = Usage {
        input_tokens: Some(7),
        ..Usage::default()
    };
    Reply::Answer {
        before: vec![say("to"), say("be"), SessionEventKind::Usage { usage }],
        answer,
    }
}

/// The gateway goes in the middle of an answer, and comes back: the step waits meanwhile, try after try; nothing is asked
/// twice, and what was answered is collected, each event once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_b12_a_gateway_that_goes_and_comes_back_is_waited_for_and_nothing_is_asked_twice() {
    let files = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let scripted = ScriptedRuntime::new(|_| Reply::Silent);
    let served = serve(&scripted, &files, 0).await;
    let address = served.address;
    let runtime = client(address, Duration::from_millis(100));
    let engine = Engine::builder(store.clone(), Arc::new(runtime), Arc::new(NoWorkspace)).build();
    let handle = engine.launch(definition(&files)).await.unwrap();
    until(&*store, "a mission", is_prompted).await;
    eventually("it is asked", BOUND, async || scripted.asked() > 0).await;
    served.end().await;
    until(&*store, "three tries", |log| waits(log) >= 3).await;
    let session = scripted.open_sessions()[0];
    assert!(
        scripted.answer(session, worded(REPORT)),
        "nothing is being answered"
    );

    let served = serve(&scripted, &files, address.port()).await;
    let end = tokio::time::timeout(BOUND, handle.wait()).await.unwrap();
    assert_eq!(end.unwrap(), RunEnd::Complete);
    assert_eq!((scripted.asked(), scripted.starts(session)), (1, 1));
    let log = log(&*store).await;
    assert_eq!(
        count(&log, |event| matches!(event, Event::SessionPlanned { .. })),
        1
    );
    assert_eq!(
        count(&log, |event| matches!(event, Event::MessagePlanned { .. })),
        1
    );
    assert_eq!(
        count(&log, |event| matches!(event, Event::SessionFound { .. })),
        1
    );
    let run = Run::replay(log.clone()).unwrap();
    let told: Vec<String> = journal::entries(&run, &log)
        .into_iter()
        .filter(|entry| entry.kind == "wait_started")
        .map(|entry| entry.text)
        .collect();
    assert_eq!(told.len(), waits(&log));
    assert!(
        told.iter()
            .all(|line| line.contains("the gateway cannot be reached")),
        "{told:#?}"
    );
    assert!(run.steps()[0].waited(run.updated()) > Duration::ZERO);

    let chunks = store.transcript(run.id(), session).await.unwrap().concat();
    let numbers: Vec<u64> = chunks
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice::<SessionEvent>(line).unwrap().number)
        .collect();
    assert!(
        numbers.len() > 3 && numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
    served.end().await;
}

/// A session that is lost with its gateway begins anew, whether the gateway is back at once or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r12_a_session_lost_with_its_gateway_begins_anew() {
    for at_once in [true, false] {
        let files = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::new());
        let mut times = 0;
        let scripted = ScriptedRuntime::new(move |_| {
            times += 1;
            if times == 1 {
                Reply::Silent
            } else {
                Reply::text(REPORT)
            }
        });
        let served = serve(&scripted, &files, 0).await;
        let address = served.address;
        let patience = if at_once {
            BOUND
        } else {
            Duration::from_millis(100)
        };
        let runtime = client(address, patience);
        let engine = Engine::builder(store.clone(), Arc::new(runtime), Arc::new(NoWorkspace)).build();
        let handle = engine.launch(definition(&files)).await.unwrap();
        eventually("it is asked", BOUND, async || scripted.asked() > 0).await;
        served.end().await;
        scripted.lose_all("the machine was started again");
        if !at_once {
            until(&*store, "a wait", |log| waits(log) >= 1).await;
        }
        let served = serve(&scripted, &files, address.port()).await;
        let end = tokio::time::timeout(BOUND, handle.wait()).await.unwrap();
        assert_eq!(end.unwrap(), RunEnd::Complete, "at once: {at_once}");
        let log = log(&*store).await;
        assert_eq!(count(&log, |event| matches!(event, Event::SessionLost { .. })), 1);
        assert_eq!(
            count(&log, |event| matches!(event, Event::SessionPlanned { .. })),
            2
        );
        assert!(waits(&log) >= 1);
        assert_eq!(scripted.asked(), 2);
        served.end().await;
    }
}
