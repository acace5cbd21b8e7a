//! A gateway of a test: its folder, its runtime, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{MessageRequest, PermissionPolicy, SessionRequest};
use sillage_core::time::Timestamp;
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{ClientOptions, Gateway, GatewayOptions, RelaisClient};
use sillage_testkit::condition;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Longer than anything that ends takes, on a machine with much else to do.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// A gateway that is being served.
pub(crate) struct House {
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl House {
    pub(crate) async fn open(runtime: Arc<dyn AgentRuntime>, folder: &TempDir) -> House {
        House::with(
            runtime,
            GatewayOptions::new(folder.path().join("relais")),
            Bounds::default(),
            0,
        )
        .await
    }

    pub(crate) async fn with(
        runtime: Arc<dyn AgentRuntime>,
        options: GatewayOptions,
        bounds: Bounds,
        port: u16,
    ) -> House {
        let gateway = Gateway::open(runtime, options).expect("a gateway");
        gateway.begin();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let server = Server::new(&gateway, listener, Token::new(TOKEN), bounds).expect("a server");
        let address = server.address();
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async move {
            let _ = ended.await;
        }));
        House {
            gateway,
            address,
            end: Some(end),
            serving,
        }
    }

    pub(crate) fn client(&self) -> RelaisClient {
        client(self.address)
    }

    /// Ends serving and the gateway, its sessions left as they are.
    pub(crate) async fn end(mut self) {
        drop(self.end.take());
        let ended = tokio::time::timeout(BOUND, &mut self.serving).await;
        ended
            .expect("the server ends")
            .expect("the server does not panic");
        self.gateway.end().await;
    }
}

pub(crate) fn client(address: SocketAddr) -> RelaisClient {
    let options = ClientOptions {
        // These tests end gateways and start them again, on machines with much else to do.
        patience: BOUND,
        ..ClientOptions::new("test")
    };
    RelaisClient::new(&format!("http://{address}"), TOKEN, options).expect("a client")
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

pub(crate) fn request() -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "fake".to_owned(),
        effort: "low".to_owned(),
        workspace: "/nowhere".into(),
        filesystem_scope: Folders {
            read: Vec::new(),
            write: vec!["/nowhere".into()],
        },
        protected: Default::default(),
        permissions: PermissionPolicy::Ask,
        autocompact_tokens: None,
    }
}

pub(crate) fn message(text: &str) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: text.to_owned(),
    }
}

/// Waits for something that nothing tells of.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    condition::eventually(what, BOUND, holds).await;
}

/// A date of tests.
pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);
