//! Serving over loopback: connections whose every phase is bounded, and nothing before the guard has let it pass.
//!
//! The accept loop is our own, over hyper: a ready-made one bounds neither how long headers take nor how many connect.

mod connection;
mod guard;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use connection::{Bounded, Occupation};
use guard::Guard;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service as _;

use super::{Gateway, Token, routes};

/// How long after an accept that failed for want of something the next is tried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long each phase of a connection may take, and how many there may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the first byte of a request to the end of its headers; from the start of a connection to its first byte.
    pub headers: Duration,
    /// From the end of the headers to the end of the body.
    pub body: Duration,
    /// Between the end of an answer and the next request.
    pub idle: Duration,
    /// How long a client may take nothing of what is written to it.
    pub write: Duration,
    /// Between two signs of life on an event stream.
    pub keep_alive: Duration,
    /// The most bytes of a request's headers.
    pub header_bytes: usize,
    /// The most headers of a request.
    pub header_count: usize,
    /// The most connections at once. More wait to be accepted.
    pub connections: usize,
    /// How long what is being answered may still take once the server is to end.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            headers: Duration::from_secs(5),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            header_bytes: 16 << 10,
            header_count: 100,
            connections: 1024,
            drain: Duration::from_secs(10),
        }
    }
}

/// Why a listener is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadListener {
    /// It could be reached from other machines.
    #[error("{0} is not loopback: listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// The system does not say what it listens on.
    #[error("cannot tell the listener's address")]
    Unknown(#[source] std::io::Error),
}

/// Serves a gateway's routes.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    bounds: Bounds,
    shared: Arc<Shared>,
}

struct Shared {
    guard: Guard,
    router: Router,
}

impl Server {
    /// A server of the gateway on a listener of this machine's own.
    ///
    /// # Errors
    /// [`BadListener`].
    pub fn new(
        gateway: &Gateway,
        listener: TcpListener,
        token: Token,
        bounds: Bounds,
    ) -> Result<Server, BadListener> {
        let address = listener.local_addr().map_err(BadListener::Unknown)?;
        if !address.ip().is_loopback() {
            return Err(BadListener::NotLoopback(address));
        }
        let shared = Arc::new(Shared {
            guard: Guard::new(address.port(), token),
            router: routes::router(Arc::clone(&gateway.inner), bounds),
        });
        Ok(Server {
            listener,
            address,
            bounds,
            shared,
        })
    }

    /// What it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is ready; then takes no more connections, ends event streams, and lets what is being answered
    /// come to its end within a bound.
    pub async fn serve(self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        let places = Arc::new(Semaphore::new(self.bounds.connections));
        let ending = watch::Sender::new(false);
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accept = async {
                // Its place comes first: who finds none waits with the kernel.
                let place = Arc::clone(&places).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = &mut end => break,
                accepted = accept => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let serving = serve(stream, Arc::clone(&self.shared), self.bounds, ending.subscribe());
                    connections.spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        ending.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.bounds.drain, drained).await.is_err() {
            connections.shutdown().await;
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, bounds: Bounds, mut ending: watch::Receiver<bool>) {
    // What is written at once is small, and waited for.
    let _ = stream.set_nodelay(true);
    let occupation = Arc::new(Occupation::default());
    let stream = Bounded::new(stream, Arc::clone(&occupation), &bounds);
    let ended = ending.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, ended) = (Arc::clone(&shared), ended.clone());
        let busy = occupation.begin();
        async move {
            let answer = answer(&shared, request, ended).await;
            Ok::<_, Infallible>(answer.map(|body| Body::new(busy.until_the_end_of(body))))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers)
        .max_buf_size(bounds.header_bytes)
        .max_headers(bounds.header_count);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let is_ending = async { ending.wait_for(|ending| *ending).await.map(drop) };
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        _ = is_ending => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        // Clients come and go as they like.
        tracing::debug!(%error, "a connection was cut");
    }
}

/// When the server is to end, for those who answer for long.
#[derive(Clone)]
pub(super) struct Ending(pub(super) watch::Receiver<bool>);

async fn answer(shared: &Shared, request: Request<Incoming>, ended: watch::Receiver<bool>) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    if let Err(refused) = shared.guard.check(&head) {
        return routes::refused(&refused);
    }
    head.extensions.insert(Ending(ended));
    let mut router = shared.router.clone();
    match router.call(Request::from_parts(head, Body::new(body))).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}
