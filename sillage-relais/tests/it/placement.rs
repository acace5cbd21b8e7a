//! L12: sessions over several gateways, one of which fails.

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{MessageFate, ModelOffer, PermissionPolicy, RuntimeError, SessionRequest};
use sillage_relais::gateway::Bounds;
use sillage_relais::{GatewayOptions, Gateways};
use sillage_testkit::runtime_suite::{ScriptedStage, Stage};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::house::{House, client, eventually, folder, message, request};

fn most(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).expect("a capacity")
}

/// Two gateways over runtimes of their own; a restart of the engine knows what is on disk alone.
struct TwoGateways {
    scripted: [ScriptedStage; 2],
    folders: [TempDir; 2],
    houses: OnceCell<[House; 2]>,
    records: TempDir,
}

impl TwoGateways {
    fn new() -> Self {
        Self {
            scripted: [ScriptedStage::new(), ScriptedStage::new()],
            folders: [folder(), folder()],
            houses: OnceCell::new(),
            records: folder(),
        }
    }
}

#[async_trait]
impl Stage for TwoGateways {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        let open = || async {
            let [first, second] = &self.scripted;
            [
                House::open(first.runtime().await, &self.folders[0]).await,
                House::open(second.runtime().await, &self.folders[1]).await,
            ]
        };
        let houses = self.houses.get_or_init(open).await;
        let clients = houses.iter().map(|house| (house.client(), most(8)));
        Arc::new(Gateways::new(clients.collect(), self.records.path()))
    }

    async fn restart(&self, runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        drop(runtime);
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        self.scripted[0].request(permissions)
    }

    fn times_asked(&self, text: &str) -> usize {
        self.scripted.iter().map(|stage| stage.times_asked(text)).sum()
    }
}

sillage_testkit::runtime_suite!(TwoGateways::new());

fn offering(models: &[&str]) -> ScriptedRuntime {
    let offers = models.iter().map(|model| ModelOffer {
        agent: "scripted".to_owned(),
        model: (*model).to_owned(),
        efforts: Vec::new(),
        account: "one".to_owned(),
    });
    ScriptedRuntime::new(|_| Reply::Silent).offering(offers.collect())
}

fn wanting(model: &str) -> SessionRequest {
    SessionRequest {
        model: model.to_owned(),
        ..request()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l12_sessions_spread_by_load_and_capacity_over_those_that_offer_the_model() {
    let runtimes = [offering(&["fake", "left"]), offering(&["fake"])];
    let (folders, records) = ([folder(), folder()], folder());
    let left = House::open(Arc::new(runtimes[0].clone()), &folders[0]).await;
    let right = House::open(Arc::new(runtimes[1].clone()), &folders[1]).await;
    let both = vec![(left.client(), most(4)), (right.client(), most(2))];
    let gateways = Gateways::new(both, records.path());

    let models: Vec<String> = gateways
        .status()
        .await
        .expect("status")
        .models
        .into_iter()
        .map(|m| m.model)
        .collect();
    assert_eq!(models, ["fake", "left"], "each once");
    let all: Vec<SessionRequest> = (0..6).map(|_| request()).collect();
    let opened = futures_util::future::join_all(all.iter().map(|asked| gateways.open(asked))).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    let held = || runtimes.each_ref().map(|runtime| runtime.open_sessions().len());
    assert_eq!(held(), [4, 2]);
    let full = gateways.open(&request()).await;
    assert!(matches!(full, Err(RuntimeError::Capacity { .. })), "{full:?}");
    // A session that is closed gives its place back, and what is told of it on disk.
    gateways.close(all[0].client_session_id).await.expect("close");
    assert_eq!(held().iter().sum::<usize>(), 5);
    assert_eq!(std::fs::read_dir(records.path()).expect("records").count(), 5);
    // One that has nothing to do keeps its session and gives its place to another, as a coordinator does.
    let done = &all[1];
    gateways
        .send(done.client_session_id, &message("one"))
        .await
        .expect("send");
    let full = gateways.open(&request()).await.map(|_| ());
    assert_eq!(full, Ok(()), "the place of the one that was closed");
    let full = gateways.open(&request()).await;
    assert!(matches!(full, Err(RuntimeError::Capacity { .. })), "{full:?}");
    for runtime in &runtimes {
        runtime.answer(done.client_session_id, Reply::text("done"));
    }
    let waits = async || gateways.open(&request()).await.is_ok();
    eventually("its place is free", waits).await;
    assert_eq!(held().iter().sum::<usize>(), 7, "one more than may work at once");
    let refused = gateways.open(&wanting("nobody's")).await;
    let Err(RuntimeError::Permanent { words }) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        words.contains("nobody's") && words.contains("fake, left"),
        "{words}"
    );
    left.end().await;
    right.end().await;
}

/// A gateway that stops answering keeps its sessions waiting, and no others: they are started nowhere else, by this
/// engine or one that comes after a crash, and go on once it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l12_a_session_is_never_started_on_another_gateway_while_it_may_be_alive_on_the_first() {
    let runtimes = [offering(&["fake", "left"]), offering(&["fake"])];
    let (folders, records) = ([folder(), folder()], folder());
    let left = House::open(Arc::new(runtimes[0].clone()), &folders[0]).await;
    let right = House::open(Arc::new(runtimes[1].clone()), &folders[1]).await;
    let addresses = [left.address, right.address];
    let engine = || {
        let both = addresses.map(|address| (client(address), most(8)));
        Gateways::new(both.into(), records.path())
    };
    let (first, asked, said) = (engine(), request(), message("one"));
    let id = asked.client_session_id;
    let opened = first.open(&asked).await.expect("open");
    first.send(id, &said).await.expect("send");
    assert_eq!(runtimes[0].open_sessions(), [id], "of equals the first");
    left.end().await;

    let native = opened.native.as_deref();
    for engine in [first, engine()] {
        // Its answer was lost, and it is asked for again; or it is looked for, by its record alone too.
        for told in [
            engine.open(&asked).await.map(|_| ()),
            engine.find(&asked, native, Some(&said)).await.map(|_| ()),
            engine.find(&asked, None, Some(&said)).await.map(|_| ()),
            engine.close(id).await,
            engine.open(&wanting("left")).await.map(|_| ()),
        ] {
            assert!(matches!(told, Err(RuntimeError::Temporary { .. })), "{told:?}");
        }
        let other = request();
        engine.open(&other).await.expect("others go on");
        assert_eq!(runtimes[1].starts(other.client_session_id), 1);
        assert_eq!(runtimes[1].starts(id), 0, "it is started nowhere else");
    }

    let options = GatewayOptions::new(folders[0].path().join("relais"));
    let port = addresses[0].port();
    let left = House::with(Arc::new(runtimes[0].clone()), options, Bounds::default(), port).await;
    let engine = engine();
    let found = engine.find(&asked, None, Some(&said)).await.expect("find");
    assert_eq!(
        (found.in_flight, &found.opened.native),
        (MessageFate::InHand, &opened.native)
    );
    engine.close(id).await.expect("close");
    assert_eq!((runtimes[0].starts(id), runtimes[0].asked()), (1, 1));
    left.end().await;
    right.end().await;
}

/// A gateway that is named no more may hold its sessions all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l12_a_session_of_a_gateway_that_is_named_no_more_is_not_started_anew() {
    let runtimes = [offering(&["fake"]), offering(&["fake"])];
    let (folders, records) = ([folder(), folder()], folder());
    let left = House::open(Arc::new(runtimes[0].clone()), &folders[0]).await;
    let right = House::open(Arc::new(runtimes[1].clone()), &folders[1]).await;
    let asked = request();
    let before = Gateways::new(vec![(left.client(), most(1))], records.path());
    before.open(&asked).await.expect("open");
    let after = Gateways::new(vec![(right.client(), most(1))], records.path());
    for told in [
        after.open(&asked).await.map(|_| ()),
        after.find(&asked, None, None).await.map(|_| ()),
    ] {
        let Err(RuntimeError::Temporary { words, .. }) = told else {
            panic!("{told:?}")
        };
        assert!(words.contains("name it again"), "{words}");
    }
    left.end().await;
    right.end().await;
}
