//! Relais over ACP keeps what every runtime promises: when the engine is started again and the gateway stays, and when
//! the gateway is started again as well, and its agents with it.

use std::sync::Arc;

use async_trait::async_trait;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{PermissionPolicy, SessionRequest};
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{ClientOptions, Gateway, GatewayOptions, RelaisClient};
use sillage_testkit::runtime_suite::Stage;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use crate::theatre::Theatre;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct House {
    gateway: Gateway,
    address: String,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl House {
    async fn open(theatre: &Theatre) -> House {
        let options = GatewayOptions::new(theatre.place("relais"));
        let gateway = Gateway::open(Arc::new(theatre.runtime()), options).expect("a gateway");
        gateway.begin();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Server::new(&gateway, listener, Token::new(TOKEN), Bounds::default()).expect("a server");
        let address = format!("http://{}", server.address());
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async move {
            let _ = ended.await;
        }));
        House {
            gateway,
            address,
            end,
            serving,
        }
    }

    fn client(&self) -> Arc<dyn AgentRuntime> {
        let client = RelaisClient::new(&self.address, TOKEN, ClientOptions::new("suite"));
        Arc::new(client.expect("a client"))
    }

    async fn end(self) {
        drop(self.end);
        self.serving.await.expect("no panic");
        self.gateway.end().await;
    }
}

struct RelaisStage {
    theatre: Theatre,
    house: Mutex<Option<House>>,
    /// Whether the gateway is started again with the engine.
    gateway_too: bool,
}

impl RelaisStage {
    fn new(gateway_too: bool) -> Self {
        Self {
            theatre: Theatre::new(),
            house: Mutex::new(None),
            gateway_too,
        }
    }
}

#[async_trait]
impl Stage for RelaisStage {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        let mut house = self.house.lock().await;
        if house.is_none() {
            *house = Some(House::open(&self.theatre).await);
        }
        house.as_ref().expect("it was just opened").client()
    }

    async fn restart(&self, runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        drop(runtime);
        if self.gateway_too
            && let Some(house) = self.house.lock().await.take()
        {
            house.end().await;
        }
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        self.theatre.request(permissions)
    }

    fn times_asked(&self, text: &str) -> usize {
        self.theatre.times_asked(text)
    }
}

mod over_acp {
    use super::RelaisStage;

    sillage_testkit::runtime_suite!(RelaisStage::new(false));
}

mod over_acp_with_the_gateway_started_again {
    use sillage_testkit::runtime_suite;

    use super::RelaisStage;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn finding_after_a_restart_asks_nothing_twice() {
        runtime_suite::finding_after_a_restart_asks_nothing_twice(&RelaisStage::new(true)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn closing_outlasts_a_search_on_its_way() {
        runtime_suite::closing_outlasts_a_search_on_its_way(&RelaisStage::new(true)).await;
    }
}
