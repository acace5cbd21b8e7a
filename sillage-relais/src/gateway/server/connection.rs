//! A connection that cannot be held for nothing: a client that sends nothing while nothing is being answered, or takes
//! nothing of what is written to it, is cut.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::Bounds;

/// How many requests of a connection are being answered.
#[derive(Debug, Default)]
pub(super) struct Occupation {
    requests: AtomicUsize,
    /// When the last of them had been answered.
    ended: Mutex<Option<Instant>>,
}

/// A request being answered, until this is dropped.
pub(super) struct Busy(Arc<Occupation>);

impl Occupation {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Since when nothing is being answered; none while something is.
    fn idle_since(&self, before: Instant) -> Option<Instant> {
        if self.requests.load(Ordering::Acquire) > 0 {
            return None;
        }
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ended.map_or(before, |ended| ended.max(before)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Busy {
    /// A body whose end is that of the request.
    pub(super) fn until_the_end_of(self, body: Body) -> BusyBody {
        BusyBody { body, _busy: self }
    }
}

/// The body of an answer, whose request is being answered as long as it is there.
pub(super) struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream with deadlines.
pub(super) struct Bounded {
    stream: TcpStream,
    occupation: Arc<Occupation>,
    first: Duration,
    idle: Duration,
    write: Duration,
    heard: bool,
    /// Since when nothing came and nothing was being answered.
    quiet_since: Instant,
    /// Fires when that may be too long. It is not set anew for each byte, which would cost more than the byte.
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl Bounded {
    pub(super) fn new(stream: TcpStream, occupation: Arc<Occupation>, bounds: &Bounds) -> Self {
        Self {
            stream,
            occupation,
            first: bounds.headers,
            idle: bounds.idle,
            write: bounds.write,
            heard: false,
            quiet_since: Instant::now(),
            reading: None,
            writing: None,
        }
    }

    /// Something is to be written, or was: whether the client takes too long over it.
    fn bounded_write<T>(
        &mut self,
        context: &mut Context<'_>,
        told: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if told.is_ready() {
            self.writing = None;
            return told;
        }
        let span = self.write;
        let timer = self
            .writing
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(span)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(late("nothing of what is written to it is taken"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn late(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, words)
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let told = Pin::new(&mut self.stream).poll_read(context, buffer);
        if told.is_ready() {
            self.quiet_since = Instant::now();
            self.heard = true;
            return told;
        }
        let span = if self.heard { self.idle } else { self.first };
        loop {
            // While something is being answered it waits for us, and is looked at again later.
            let idle_since = self.occupation.idle_since(self.quiet_since);
            self.quiet_since = idle_since.unwrap_or_else(Instant::now);
            let due = self.quiet_since + span;
            let timer = self
                .reading
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if due <= Instant::now() {
                return Poll::Ready(Err(late("nothing comes from it")));
            }
            timer.as_mut().reset(due);
        }
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let told = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded_write(context, told)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let told = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.bounded_write(context, told)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let told = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded_write(context, told)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let told = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded_write(context, told)
    }
}
