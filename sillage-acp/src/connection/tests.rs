use proptest::prelude::*;

use super::*;

mod lines;

async fn frames(bytes: &[u8]) -> Vec<Incoming> {
    frames_of(std::io::Cursor::new(bytes.to_vec())).await
}

async fn frames_of(output: impl AsyncRead + Send + Unpin + 'static) -> Vec<Incoming> {
    let (input, _keep) = tokio::io::duplex(64);
    let mut connection = Connection::new("a", input, output, Duration::from_secs(5));
    let mut seen = Vec::new();
    loop {
        let incoming = connection.next().await;
        if matches!(incoming, Incoming::Closed(_)) {
            return seen;
        }
        seen.push(incoming);
    }
}

fn note(n: u64) -> Incoming {
    Incoming::Notification {
        method: "m".to_owned(),
        params: json!(n),
    }
}

#[tokio::test]
async fn a4_lines_that_are_no_protocol_are_noise_and_the_rest_is_read() {
    let bytes = b"Welcome!\n\x1b[32mmigrating\x1b[0m\n\xef\xbb\xbf{\"method\":\"m\",\"params\":1}\r\n\n\
        [debug] leaked {not json}\n42\n{\"level\":\"info\"}\n\xff\xfe\0\n[{\"method\":\"m\",\"params\":2},{\"id\":7,\"result\":null}]\n\
        {\"jsonrpc\":\"2.0\",\"method\":\"m\xff\"}\n{\"jsonrpc\":\"2.0\",\"meth";
    let seen = frames(bytes).await;
    let kinds: String = seen
        .iter()
        .map(|incoming| match incoming {
            Incoming::Noise(_) => 'n',
            Incoming::Notification { .. } => 'm',
            Incoming::Response { .. } => 'r',
            Incoming::Damaged { .. } => 'd',
            Incoming::Request { .. } | Incoming::Invalid { .. } | Incoming::Closed(_) => '?',
        })
        .collect();
    assert_eq!(kinds, "nnmnnnnmrdn");
    assert_eq!(seen[1], Incoming::Noise(" [32mmigrating [0m".to_owned()));
}

#[tokio::test]
async fn a4_a_line_over_the_limit_is_skipped_and_told() {
    let mut bytes = br#"{"jsonrpc":"2.0","method":"x","params":""#.to_vec();
    bytes.resize(LINE_CAP + 1, b'y');
    bytes.extend_from_slice(b"\n{\"method\":\"m\",\"params\":1}\n");
    let seen = frames(&bytes).await;
    assert!(matches!(&seen[0], Incoming::Damaged { words, .. } if words.contains("16777217 bytes")));
    assert_eq!(seen[1..], [note(1)]);
}

#[tokio::test]
async fn errors_are_read_whatever_their_shape() {
    let seen = frames(b"{\"id\":\"x\",\"error\":{\"code\":\"500\",\"data\":null}}\n").await;
    let Incoming::Response {
        id,
        outcome: Err(error),
    } = &seen[0]
    else {
        panic!("{seen:?}")
    };
    assert_eq!((id, error.code, error.data.as_ref()), (&json!("x"), 500, None));
}

#[tokio::test(start_paused = true)]
async fn c4_an_agent_that_never_reads_is_told_apart() {
    let (input, _unread) = tokio::io::duplex(16);
    let (_silent, output) = tokio::io::duplex(16);
    let mut connection = Connection::new("a", input, output, Duration::from_secs(5));
    connection
        .notify("m", &json!("a text longer than the pipe"))
        .unwrap();
    assert_eq!(connection.next().await, Incoming::Closed(NotReading.to_string()));
    let refused = (0..=OUTGOING_QUEUE).any(|_| connection.notify("m", &Value::Null).is_err());
    assert!(refused, "the queue has no bound");
}

#[tokio::test]
async fn identifiers_of_each_side_are_apart() {
    let (input, mut agent) = tokio::io::duplex(1024);
    let (_silent, output) = tokio::io::duplex(16);
    let mut connection = Connection::new("a", input, output, Duration::from_secs(5));
    assert_eq!(connection.request("m", &Value::Null), Ok(1));
    connection.respond(&json!(1), &json!({})).unwrap();
    assert!(connection.was_asked(&json!(1)) && !connection.was_asked(&json!(0)));
    assert!(!connection.was_asked(&json!("1")) && !connection.was_asked(&json!(2)));
    connection.close_input();
    let mut written = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut agent, &mut written)
        .await
        .unwrap();
}

/// Bytes as an agent might write them: at random, or pieces of protocol in any order.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        proptest::sample::select(vec![
            &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"[..],
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3\xa9\xe4\xb8\xad\"}",
            b"[{\"jsonrpc\":\"2.0\",\"method\":\"m\"},1]",
            b"\"jsonrpc\"",
            b"{\"id\":",
            b"\n",
            b"\r\n",
            b"\xef\xbb\xbf",
            b"}",
            b"\xf0\x9f\x99\x82",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Gives bytes in pieces of chosen sizes.
struct Cut {
    bytes: std::collections::VecDeque<u8>,
    sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let size = self.sizes.next().unwrap().min(buffer.remaining());
        let size = size.min(self.bytes.len());
        let piece: Vec<u8> = self.bytes.drain(..size).collect();
        buffer.put_slice(&piece);
        std::task::Poll::Ready(Ok(()))
    }
}

proptest! {
    /// Whatever the bytes, they are read without a panic and to their end; where they are cut changes nothing.
    #[test]
    fn c2_any_bytes_are_read_the_same_however_they_are_cut(
        bytes in bytes(),
        sizes in proptest::collection::vec(1usize..40, 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let whole = frames(&bytes).await;
            let cut = Cut { bytes: bytes.into(), sizes: sizes.into_iter().cycle() };
            prop_assert_eq!(frames_of(cut).await, whole);
            Ok(())
        })?;
    }

    /// A line that is too long is never kept, whatever its length.
    #[test]
    fn c1_no_more_than_the_limit_is_kept(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        cap in 1usize..64,
        chunk in 1usize..9,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut source = BufReader::with_capacity(chunk, &bytes[..]);
            let (mut line, mut total) = (Vec::new(), 0);
            loop {
                match next_line(&mut source, &mut line, cap).await.unwrap() {
                    Line::Whole => total += line.len() + 1,
                    Line::Cut => total += line.len(),
                    Line::TooLong(length) => { total += length + 1; assert!(length > cap && line.is_empty()); }
                    Line::End => break,
                }
                assert!(line.len() <= cap);
            }
            assert!(total == bytes.len() || total == bytes.len() + 1);
        });
    }
}

/// An agent's output without an end, and how much of it was taken.
struct Endless(u64);

impl AsyncRead for Endless {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let size = self.0.min(buffer.remaining() as u64);
        buffer.put_slice(&vec![b'x'; size as usize]);
        self.0 -= size;
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn c1_a_line_without_a_newline_costs_no_more_than_the_limit() {
    let mut line = Vec::new();
    let mut source = BufReader::with_capacity(64 << 10, Endless(10 << 20));
    assert_eq!(
        next_line(&mut source, &mut line, LINE_CAP).await.unwrap(),
        Line::Cut
    );
    assert_eq!(line.len(), 10 << 20);
    let mut source = BufReader::with_capacity(1 << 20, Endless(64 << 20));
    assert_eq!(
        next_line(&mut source, &mut line, LINE_CAP).await.unwrap(),
        Line::TooLong(64 << 20)
    );
    assert!(line.capacity() <= 64 << 10, "{} bytes are kept", line.capacity());
}

#[tokio::test]
async fn c11_what_waits_to_be_handled_has_a_bound_in_frames_and_in_bytes() {
    let note = b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n".repeat(100_000);
    let large = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n",
        "x".repeat(10 << 20)
    )
    .repeat(8);
    for (bytes, most) in [
        (note, 64 << 10),
        (large.into_bytes(), INCOMING_BYTES + 2 * LINE_CAP),
    ] {
        let (input, _keep) = tokio::io::duplex(64);
        let (mut agent, output) = tokio::io::duplex(64 << 10);
        let length = bytes.len();
        let taken = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let writer = tokio::spawn(async move {
            for piece in bytes.chunks(16 << 10) {
                agent.write_all(piece).await.unwrap();
                count.fetch_add(piece.len(), std::sync::atomic::Ordering::SeqCst);
            }
        });
        let mut connection = Connection::new("a", input, output, Duration::from_secs(30));
        // All that can go on without a reader has gone on when nothing changes any more.
        let (mut before, mut same) = (0, 0);
        while same < 1000 {
            tokio::task::yield_now().await;
            let now = taken.load(std::sync::atomic::Ordering::SeqCst);
            same = if now == before { same + 1 } else { 0 };
            before = now;
        }
        assert!(
            before < length && before <= most + (256 << 10),
            "{before} bytes were taken"
        );
        let mut seen = 0;
        while matches!(connection.next().await, Incoming::Notification { .. }) {
            seen += 1;
        }
        writer.await.unwrap();
        assert!(seen == 100_000 || seen == 8, "{seen} frames");
    }
}

#[tokio::test]
async fn c11_an_agent_that_asks_faster_than_it_reads_waits() {
    let (input, mut agent_reads) = tokio::io::duplex(64);
    let (mut agent, output) = tokio::io::duplex(1 << 20);
    let asked = tokio::spawn(async move {
        for id in 0..5000 {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"fs/read\"}}\n");
            agent.write_all(line.as_bytes()).await.unwrap();
        }
    });
    let mut connection = Connection::new("a", input, output, Duration::from_secs(30));
    let refusing = tokio::spawn(async move {
        while let Incoming::Request { id, .. } = connection.next().await {
            connection.refuse(&id, METHOD_NOT_FOUND, "no").unwrap();
        }
        // What was queued is still written.
        std::future::pending::<()>().await;
    });
    asked.await.unwrap();
    let mut answers = BufReader::new(&mut agent_reads).lines();
    for id in 0..5000 {
        let answer: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id);
    }
    refusing.abort();
}

#[tokio::test(start_paused = true)]
async fn c4_an_agent_that_asks_and_never_reads_is_told_apart() {
    let (input, _unread) = tokio::io::duplex(16);
    let (mut agent, output) = tokio::io::duplex(1 << 20);
    for id in 0..5000 {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"fs/read\"}}\n");
        agent.write_all(line.as_bytes()).await.unwrap();
    }
    let mut connection = Connection::new("a", input, output, Duration::from_secs(5));
    let last = loop {
        let incoming = connection.next().await;
        let Incoming::Request { id, .. } = incoming else {
            break incoming;
        };
        // No room is left in the end.
        let _ = connection.refuse(&id, METHOD_NOT_FOUND, "no");
    };
    assert_eq!(last, Incoming::Closed(NotReading.to_string()));
}
