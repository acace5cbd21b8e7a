//! A connection that cannot be held for nothing: a client that sends nothing while nothing is being answered, or takes
//! nothing of what is written to it, is cut.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
pub(super) struct Occupation(AtomicUsize);

/// A request being answered, until this is dropped.
pub(super) struct Busy(Arc<Occupation>);

impl Occupation {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.0.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
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
    was_busy: bool,
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
            was_busy: false,
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
            self.reading = None;
            self.heard = true;
            return told;
        }
        let span = if self.heard { self.idle } else { self.first };
        let busy = self.occupation.is_busy();
        let was_busy = std::mem::replace(&mut self.was_busy, busy);
        let timer = self
            .reading
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(span)));
        if busy || was_busy {
            // It waits for us, or did until now. Looked at again later, for nobody says when the answer has ended.
            timer.as_mut().reset(Instant::now() + span);
        }
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(late("nothing comes from it"))),
            Poll::Pending => Poll::Pending,
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
