//! What a turn says: messages, plans, usage, and what is not protocol.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::agent::{lock, update_frame};
use super::script::Keep;
use super::session::Kept;
use super::step::{ContextUse, PlanEntry, Raw, Request, RpcError, Say};
use super::turn::{Played, Turn, TurnEnd};

impl Turn {
    pub(super) async fn say(&mut self, say: &Say, kind: &str) -> Played {
        let text = self.expand(&say.text)?;
        for piece in cut(&text, say.chunks) {
            if say.delay_ms > 0 {
                self.unless_cancelled(tokio::time::sleep(Duration::from_millis(say.delay_ms)))
                    .await?;
            }
            let mut update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": piece } });
            if let Some(message) = &say.message {
                update["messageId"] = json!(message);
            }
            if kind == "agent_message_chunk" {
                self.keep(piece)?;
            }
            self.update(update).await;
        }
        Ok(())
    }

    fn keep(&mut self, said: String) -> io::Result<()> {
        match self.agent.script.sessions.as_ref().map(|sessions| sessions.keep) {
            None => Ok(()),
            Some(Keep::AsSaid) => lock(&self.session).keep(&Kept::Agent(said)),
            Some(Keep::WhenAnswered) => {
                self.unkept.push(said);
                Ok(())
            }
        }
    }

    pub(super) async fn report(&mut self, given: &Map<String, Value>) -> Played {
        let mut report = Map::from_iter([
            ("outcome".to_owned(), json!("complete")),
            ("summary".to_owned(), json!("Done.")),
        ]);
        for (key, value) in given {
            report.insert(key.clone(), self.expand_json(value)?);
        }
        // What stands in the values is not looked at again for placeholders.
        let json = serde_json::to_string_pretty(&report)
            .map_err(io::Error::from)?
            .replace("{{", "{{open}}");
        let text = format!("```json\n{json}\n```\n");
        self.say(
            &Say {
                text,
                chunks: 1,
                delay_ms: 0,
                message: None,
            },
            "agent_message_chunk",
        )
        .await
    }

    pub(super) async fn plan(&mut self, entries: &[PlanEntry]) -> Played {
        let mut told = Vec::with_capacity(entries.len());
        for entry in entries {
            let content = self.expand(&entry.content)?;
            told.push(json!({ "content": content, "priority": entry.priority, "status": entry.status }));
        }
        self.update(json!({ "sessionUpdate": "plan", "entries": told }))
            .await;
        Ok(())
    }

    pub(super) async fn raw(&mut self, raw: &Raw) -> Played {
        let mut bytes = self.expand(&raw.text)?.repeat(raw.times).into_bytes();
        bytes.extend(
            raw.bytes()
                .map_err(|words| TurnEnd::Error(RpcError::new(-32603, words)))?,
        );
        if raw.newline {
            bytes.push(b'\n');
        }
        self.agent.wire.send_bytes(&bytes).await;
        Ok(())
    }

    pub(super) async fn request(&mut self, request: &Request) -> Played {
        let params = self.expand_json(&request.params)?;
        let (frame, answered) = self.agent.wire.request(&request.method, &params);
        self.send(frame).await;
        if request.wait
            && let Ok(answer) = self.unless_cancelled(answered).await?
        {
            let said = answer
                .get("result")
                .or_else(|| answer.get("error"))
                .unwrap_or(&Value::Null);
            self.last.insert("response".to_owned(), said.to_string());
        }
        Ok(())
    }

    pub(super) async fn huge(&mut self, bytes: u64) -> Played {
        let size = usize::try_from(bytes).map_err(|_| {
            TurnEnd::Error(RpcError::new(
                -32603,
                format!("{bytes} bytes are too many for this machine"),
            ))
        })?;
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": "huge", "title": "huge", "status": "completed",
            "rawOutput": "x".repeat(size),
        });
        let line = format!("{}\n", update_frame(&self.id, &update));
        self.agent.wire.send_bytes(line.as_bytes()).await;
        Ok(())
    }

    pub(super) async fn usage(&mut self, usage: &ContextUse) -> Played {
        let mut update = json!({ "sessionUpdate": "usage_update", "used": usage.used, "size": usage.size });
        if let Some(cost) = &usage.cost {
            update["cost"] = json!({ "amount": cost.amount, "currency": cost.currency });
        }
        self.update(update).await;
        Ok(())
    }
}

/// Cuts a text into at most `pieces` parts of about the same size, between characters.
fn cut(text: &str, pieces: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(pieces.max(1)).max(1);
    if chars.is_empty() {
        return vec![String::new()];
    }
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn cuts_between_characters() {
        for (text, pieces, expected) in [
            ("", 3, vec![""]),
            ("abc", 0, vec!["abc"]),
            ("abc", 1, vec!["abc"]),
            ("abcd", 2, vec!["ab", "cd"]),
            ("é中🙂", 3, vec!["é", "中", "🙂"]),
            ("ab", 5, vec!["a", "b"]),
        ] {
            assert_eq!(cut(text, pieces), expected, "{text} in {pieces}");
        }
    }
}
