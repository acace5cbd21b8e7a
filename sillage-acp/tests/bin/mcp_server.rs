//! An MCP server for tests, over standard input and output: one tool, `repeat_it`, which repeats a text; and a record of
//! what it was asked.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

/// Serves until standard input ends. Each request is added to the file `record`, a line of JSON each.
///
/// # Errors
/// When the file or a pipe cannot be used.
pub(crate) fn serve(record: &Path) -> io::Result<()> {
    let mut record = File::options().create(true).append(true).open(record)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Ok(asked) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let mark = std::env::var("REPEATER_MARK").unwrap_or_default();
        writeln!(record, "{}", json!({ "mark": mark, "asked": asked }))?;
        // What has no identifier is a notification, which nobody answers.
        let Some(id) = asked.get("id") else {
            continue;
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        match result(&asked) {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({ "code": -32601, "message": "no such method" }),
        }
        let mut output = io::stdout().lock();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn result(asked: &Value) -> Option<Value> {
    let params = &asked["params"];
    match asked["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": params["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "repeater", "version": "1" },
        })),
        "tools/list" => {
            let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
            let tool = json!({ "name": "repeat_it", "description": "Repeats a text", "inputSchema": schema });
            Some(json!({ "tools": [tool] }))
        }
        "tools/call" => {
            let text = params["arguments"]["text"].as_str()?;
            Some(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        "ping" => Some(json!({})),
        _ => None,
    }
}
