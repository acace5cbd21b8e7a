//! The table of lines: bytes in, what the connection makes of them.

use serde_json::json;

use super::*;

/// What is expected of a row, in short.
#[derive(Debug, Clone, PartialEq)]
enum Row {
    /// A notification of this method.
    Note(&'static str),
    /// A request with this identifier and method.
    Asks(Value, &'static str),
    /// An answer to this identifier; none: with an error.
    Told(Value, Option<Value>),
    /// Noise: counted, and nothing follows.
    Noise,
    /// Noise that says so.
    CutOff,
    /// Answered -32600 under this identifier.
    Invalid(Value),
    /// The session is told of an error.
    Damaged,
    /// The same, and it is answered -32700.
    DamagedRequest,
}

fn row(incoming: Incoming) -> Row {
    match incoming {
        Incoming::Notification { method, .. } => Row::Note(leak(method)),
        Incoming::Request { id, method, .. } => Row::Asks(id, leak(method)),
        Incoming::Response { id, outcome } => Row::Told(id, outcome.ok()),
        Incoming::Noise(text) if text.starts_with("a line without an end") => Row::CutOff,
        Incoming::Noise(_) => Row::Noise,
        Incoming::Invalid { id, code, .. } => {
            assert_eq!(code, -32600);
            Row::Invalid(id)
        }
        Incoming::Damaged { asks: false, .. } => Row::Damaged,
        Incoming::Damaged { asks: true, .. } => Row::DamagedRequest,
        Incoming::Closed(words) => panic!("{words}"),
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn nested(depth: usize) -> Vec<u8> {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"deep\",\"params\":{open}{close}}}\n").into_bytes()
}

/// Every row is a line of its own, so that none may disturb the next: all of them together are read as one by one.
fn table() -> Vec<(&'static str, Vec<u8>, Vec<Row>)> {
    use Row::{Asks, CutOff, Damaged, DamagedRequest, Invalid, Noise, Note, Told};
    let ok = || Told(json!(1), Some(json!({})));
    let text: Vec<(&'static str, &'static [u8], Vec<Row>)> = vec![
        // Frames as they should be.
        (
            "a notification",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n",
            vec![Note("m")],
        ),
        (
            "a request",
            b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\",\"params\":{}}\n",
            vec![Asks(json!(0), "m")],
        ),
        (
            "an answer",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
            vec![ok()],
        ),
        (
            "an error",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"x\"}}\n",
            vec![Told(json!(1), None)],
        ),
        (
            "a null result",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n",
            vec![Told(json!(1), Some(Value::Null))],
        ),
        (
            "members of no meaning",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"trace\":\"x\"}\n",
            vec![ok()],
        ),
        (
            "an unknown method without id",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"_vendor/status\"}\n",
            vec![Note("_vendor/status")],
        ),
        (
            "an unknown method with id",
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"_vendor/ask\"}\n",
            vec![Asks(json!(9), "_vendor/ask")],
        ),
        (
            "an empty method",
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\"}\n",
            vec![Asks(json!(9), "")],
        ),
        (
            "params that are a number",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":7}\n",
            vec![Note("m")],
        ),
        // Ends of lines, and what is around them.
        (
            "CRLF",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\r\n",
            vec![Note("m")],
        ),
        (
            "a byte order mark",
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n",
            vec![Note("m")],
        ),
        (
            "blanks around",
            b" \t {\"jsonrpc\":\"2.0\",\"method\":\"m\"} \t\n",
            vec![Note("m")],
        ),
        ("a blank line", b"\n", vec![]),
        ("a blank line with a return", b"\r\n", vec![]),
        ("only blanks", b"   \t \n", vec![]),
        ("only a byte order mark", b"\xef\xbb\xbf\n", vec![]),
        (
            "a form feed before",
            b"\x0c{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n",
            vec![Note("m")],
        ),
        (
            "a return in the middle of a frame",
            b"{\"jsonrpc\":\"2.0\",\r\"method\":\"m\"}\n",
            vec![Note("m")],
        ),
        // What is no protocol at all.
        ("a banner", b"Welcome to the agent!\n", vec![Noise]),
        ("colours", b"\x1b[32mmigrating...\x1b[0m\n", vec![Noise]),
        ("a log line", b"[debug] leaked {not json}\n", vec![Noise]),
        ("NUL", b"\0\n", vec![Noise]),
        (
            "NUL in a frame",
            b"{\"jsonrpc\":\"2.0\",\0\"method\":\"m\"}\n",
            vec![Damaged],
        ),
        (
            "NUL in a text",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\0\"}\n",
            vec![Damaged],
        ),
        (
            "NUL after a frame",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\0\n",
            vec![Damaged],
        ),
        ("a number", b"42\n", vec![Noise]),
        ("a text", b"\"ready\"\n", vec![Noise]),
        ("null", b"null\n", vec![Noise]),
        ("true", b"true\n", vec![Noise]),
        ("an empty object", b"{}\n", vec![Noise]),
        (
            "a log line in JSON",
            b"{\"level\":\"info\",\"msg\":\"hello\"}\n",
            vec![Noise],
        ),
        (
            "a log line that resembles an answer",
            b"{\"level\":\"error\",\"id\":1,\"error\":\"boom\"}\n",
            vec![Noise],
        ),
        (
            "a log line that resembles a request",
            b"{\"ts\":1,\"id\":1,\"method\":\"GET\"}\n",
            vec![Noise],
        ),
        (
            "an access log with method alone",
            b"{\"method\":5}\n",
            vec![Noise],
        ),
        ("an identifier and nothing else", b"{\"id\":7}\n", vec![Noise]),
        // The version.
        (
            "no version, otherwise a frame",
            b"{\"id\":1,\"result\":{}}\n",
            vec![ok()],
        ),
        (
            "no version, a notification",
            b"{\"method\":\"m\",\"params\":{}}\n",
            vec![Note("m")],
        ),
        (
            "version 1.0",
            b"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}\n",
            vec![ok()],
        ),
        (
            "a version that is a number",
            b"{\"jsonrpc\":2.0,\"method\":\"m\"}\n",
            vec![Note("m")],
        ),
        (
            "a version that is null",
            b"{\"jsonrpc\":null,\"id\":1,\"result\":{}}\n",
            vec![ok()],
        ),
        ("only a version", b"{\"jsonrpc\":\"2.0\"}\n", vec![Noise]),
        // Identifiers.
        (
            "a text",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"method\":\"m\"}\n",
            vec![Asks(json!("p-1"), "m")],
        ),
        (
            "an empty text",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\"}\n",
            vec![Asks(json!(""), "m")],
        ),
        (
            "null",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}\n",
            vec![Asks(Value::Null, "m")],
        ),
        (
            "negative",
            b"{\"jsonrpc\":\"2.0\",\"id\":-5,\"method\":\"m\"}\n",
            vec![Asks(json!(-5), "m")],
        ),
        (
            "a float",
            b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}\n",
            vec![Asks(json!(1.5), "m")],
        ),
        (
            "the largest",
            b"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"m\"}\n",
            vec![Asks(json!(u64::MAX), "m")],
        ),
        (
            "beyond 64 bits",
            b"{\"jsonrpc\":\"2.0\",\"id\":1e30,\"method\":\"m\"}\n",
            vec![Asks(json!(1e30), "m")],
        ),
        (
            "beyond a float",
            b"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"m\"}\n",
            vec![DamagedRequest],
        ),
        (
            "true",
            b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}\n",
            vec![Invalid(Value::Null)],
        ),
        (
            "an object",
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}\n",
            vec![Invalid(Value::Null)],
        ),
        (
            "a list",
            b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}\n",
            vec![Invalid(Value::Null)],
        ),
        (
            "of an answer, negative",
            b"{\"jsonrpc\":\"2.0\",\"id\":-1,\"result\":{}}\n",
            vec![Told(json!(-1), Some(json!({})))],
        ),
        (
            "of an answer, a float",
            b"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{}}\n",
            vec![Told(json!(1.0), Some(json!({})))],
        ),
        (
            "of an answer, a text",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n",
            vec![Told(json!("1"), Some(json!({})))],
        ),
        (
            "of an answer, null",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}\n",
            vec![Told(Value::Null, None)],
        ),
        (
            "of an answer, missing",
            b"{\"jsonrpc\":\"2.0\",\"result\":{}}\n",
            vec![Damaged],
        ),
        // Requests that are none.
        (
            "a method that is a number",
            b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":7}\n",
            vec![Invalid(json!(3))],
        ),
        (
            "a method that is null",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":null}\n",
            vec![Invalid(json!("a"))],
        ),
        (
            "a notification whose method is a number",
            b"{\"jsonrpc\":\"2.0\",\"method\":7}\n",
            vec![Noise],
        ),
        // Answers of every shape.
        (
            "a result left out",
            b"{\"jsonrpc\":\"2.0\",\"id\":1}\n",
            vec![Told(json!(1), Some(Value::Null))],
        ),
        (
            "result and error",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"x\"}}\n",
            vec![Told(json!(1), None)],
        ),
        (
            "result and a null error",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":null}\n",
            vec![ok()],
        ),
        (
            "an error that is a text",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"boom\"}\n",
            vec![Told(json!(1), None)],
        ),
        (
            "an error without a code",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n",
            vec![Told(json!(1), None)],
        ),
        // Keys.
        (
            "a key twice: the last counts",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}\n",
            vec![Note("b")],
        ),
        (
            "an identifier twice",
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":1,\"result\":{}}\n",
            vec![ok()],
        ),
        (
            "keys that are escaped",
            b"{\"json\\u0072pc\":\"2.0\",\"m\\u0065thod\":\"m\"}\n",
            vec![Note("m")],
        ),
        // Text.
        (
            "invalid UTF-8 in a text",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\xff\"}\n",
            vec![Damaged],
        ),
        (
            "a character cut in two",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3\"}\n",
            vec![Damaged],
        ),
        ("invalid UTF-8 that is no protocol", b"latin \xe9\n", vec![Noise]),
        ("UTF-16", b"\xff\xfe{\0}\0\n", vec![Noise]),
        (
            "characters of every size",
            "{\"jsonrpc\":\"2.0\",\"method\":\"é中🙂\"}\n".as_bytes(),
            vec![Note("é中🙂")],
        ),
        (
            "half of a pair",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\\ud800\"}\n",
            vec![Damaged],
        ),
        (
            "a control character in a text",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"a\tb\"}\n",
            vec![Damaged],
        ),
        // JSON that is broken.
        (
            "a request cut in the middle",
            b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"m\",\n",
            vec![DamagedRequest],
        ),
        (
            "an answer cut in the middle",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\n",
            vec![Damaged],
        ),
        (
            "two frames on one line",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}{\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n",
            vec![Damaged],
        ),
        (
            "noise before a frame",
            b"log: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n",
            vec![Noise],
        ),
        (
            "a comma too many",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",}\n",
            vec![Damaged],
        ),
        (
            "NaN",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":NaN}\n",
            vec![Damaged],
        ),
        ("single quotes", b"{'jsonrpc':'2.0','method':'m'}\n", vec![Noise]),
        // Batches.
        (
            "a batch",
            b"[{\"jsonrpc\":\"2.0\",\"method\":\"a\"},{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n",
            vec![Note("a"), ok()],
        ),
        ("an empty batch", b"[]\n", vec![Noise]),
        ("a batch of no frames", b"[1,2,3]\n", vec![Noise]),
        (
            "a mixed batch: the frames count",
            b"[1,{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},\"x\",{\"level\":\"info\"}]\n",
            vec![Noise, ok(), Noise, Noise],
        ),
        (
            "a batch in a batch",
            b"[[{\"jsonrpc\":\"2.0\",\"method\":\"a\"}]]\n",
            vec![Noise],
        ),
        (
            "a batch with a request that is none",
            b"[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":{}}]\n",
            vec![Invalid(json!(3))],
        ),
        (
            "a batch without versions",
            b"[{\"method\":\"a\"}]\n",
            vec![Note("a")],
        ),
        (
            "a batch that is cut",
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
            vec![Noise],
        ),
        // The end of the stream.
        (
            "half a line at the end",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"session/upd",
            vec![CutOff],
        ),
        ("half a word at the end", b"Bye", vec![CutOff]),
        ("blanks at the end", b"  ", vec![]),
        (
            "a whole frame without a newline",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
            vec![ok()],
        ),
    ];
    let mut rows: Vec<_> = text
        .into_iter()
        .map(|(name, bytes, expected)| (name, bytes.to_vec(), expected))
        .collect();
    let long_id = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"m\"}}\n",
        "x".repeat(2000)
    );
    let frames_of = |count: usize| {
        let one = "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}";
        format!("[{}]\n", vec![one; count].join(",")).into_bytes()
    };
    let long_line = [
        &b"{\"jsonrpc\":\"2.0\",\"method\":\""[..],
        &vec![b'x'; LINE_CAP],
        b"\"}\n",
    ]
    .concat();
    rows.extend([
        (
            "an identifier of two thousand characters",
            long_id.into_bytes(),
            vec![Invalid(Value::Null)],
        ),
        ("nested, as JSON may be", nested(100), vec![Note("deep")]),
        ("nested beyond reason", nested(100_000), vec![Damaged]),
        ("a batch of a thousand", frames_of(1000), vec![Note("m"); 1000]),
        ("a batch of more", frames_of(1001), vec![Damaged]),
        ("a line over the limit", long_line.clone(), vec![Damaged]),
        (
            "a line over the limit that never ends",
            long_line[..LINE_CAP + 9].to_vec(),
            vec![Damaged],
        ),
    ]);
    rows
}

#[tokio::test]
async fn c2_every_line_is_read_as_the_table_says() {
    let table = table();
    assert!(table.len() > 100, "{} rows", table.len());
    for (name, bytes, expected) in table {
        let seen: Vec<Row> = frames(&bytes).await.into_iter().map(row).collect();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        assert_eq!(seen, expected, "{name}: {shown}");
    }
}

#[tokio::test]
async fn c2_no_line_disturbs_the_next() {
    let whole =
        |(_, bytes, expected): (_, Vec<u8>, Vec<Row>)| bytes.ends_with(b"\n").then_some((bytes, expected));
    let (bytes, expected): (Vec<_>, Vec<_>) = table().into_iter().filter_map(whole).unzip();
    let seen: Vec<Row> = frames(&bytes.concat()).await.into_iter().map(row).collect();
    assert_eq!(seen, expected.concat());
}
