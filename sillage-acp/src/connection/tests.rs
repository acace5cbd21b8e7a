use proptest::prelude::*;

use super::*;

async fn frames(bytes: &[u8]) -> Vec<Incoming> {
    let (input, _keep) = tokio::io::duplex(64);
    let mut connection = Connection::new(
        "a",
        input,
        std::io::Cursor::new(bytes.to_vec()),
        Duration::from_secs(5),
    );
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
            Incoming::Damaged(_) => 'd',
            Incoming::Request { .. } | Incoming::Closed(_) => '?',
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
    assert!(matches!(&seen[0], Incoming::Damaged(words) if words.contains("16777217 bytes")));
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

proptest! {
    /// Whatever the bytes and however they are cut, lines are read without panic and within the cap.
    #[test]
    fn c2_any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 0..400), cap in 1usize..64, chunk in 1usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut source = BufReader::with_capacity(chunk, &bytes[..]);
            let (mut line, mut total) = (Vec::new(), 0);
            loop {
                match next_line(&mut source, &mut line, cap).await.unwrap() {
                    Line::Whole => { total += line.len() + 1; decode_line(&line); }
                    Line::Cut => { total += line.len(); }
                    Line::TooLong(length) => { total += length + 1; assert!(length > cap && line.is_empty()); }
                    Line::End => break,
                }
                assert!(line.len() <= cap);
            }
            assert!(total == bytes.len() || total == bytes.len() + 1);
        });
    }
}
