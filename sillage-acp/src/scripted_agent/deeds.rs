//! What a turn does to files and processes, and how it tells and asks about it.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::record::Event;
use super::step::{Ask, AskOption, Delete, Edit, Grandchild, Group, Run, Tool, Write};
use super::turn::{Played, Turn};

/// What is told of a deed.
struct Deed {
    title: String,
    kind: &'static str,
    path: Option<PathBuf>,
    raw_input: Value,
    quiet: bool,
    ask: bool,
}

/// What became of a request for permission.
enum Outcome {
    Allowed,
    Rejected,
    Cancelled,
}

impl Turn {
    pub(super) async fn tool(&mut self, tool: &Tool) -> Played {
        let id = self.expand(&tool.id)?;
        let first = self.tools.insert(id.clone()) && !tool.update;
        let mut update = json!({
            "sessionUpdate": if first { "tool_call" } else { "tool_call_update" }, "toolCallId": id,
        });
        let title = tool.title.as_ref().map(|title| self.expand(title)).transpose()?;
        if let Some(title) = title.or_else(|| first.then(|| id.clone())) {
            update["title"] = json!(title);
        }
        if let Some(kind) = &tool.kind {
            update["kind"] = json!(kind);
        }
        if let Some(status) = &tool.status {
            update["status"] = json!(status);
        }
        if !tool.paths.is_empty() {
            update["locations"] = self.locations(&tool.paths)?;
        }
        if let Some(content) = &tool.content {
            update["content"] = text_content(&self.expand(content)?);
        }
        for (key, value) in [("rawInput", &tool.raw_input), ("rawOutput", &tool.raw_output)] {
            if let Some(value) = value {
                update[key] = self.expand_json(value)?;
            }
        }
        self.update(update).await;
        Ok(())
    }

    fn locations(&self, paths: &[String]) -> Played<Value> {
        paths
            .iter()
            .map(|path| Ok(json!({ "path": self.path(path)?.display().to_string() })))
            .collect()
    }

    pub(super) async fn write_file(&mut self, write: &Write) -> Played {
        let (path, content) = (self.path(&write.path)?, self.expand(&write.content)?);
        let deed = Deed::on(&path, "Write", "edit", write.quiet, write.ask);
        let before = std::fs::read_to_string(&path).ok();
        self.deed(deed, async move {
            make_folder_of(&path).await?;
            tokio::fs::write(&path, &content).await?;
            Ok(diff(&path, before.as_deref(), &content))
        })
        .await
    }

    pub(super) async fn append_file(&mut self, write: &Write) -> Played {
        let (path, content) = (self.path(&write.path)?, self.expand(&write.content)?);
        let deed = Deed::on(&path, "Append to", "edit", write.quiet, write.ask);
        self.deed(deed, async move {
            make_folder_of(&path).await?;
            let before = std::fs::read_to_string(&path).ok();
            let mut file = tokio::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .await?;
            file.write_all(content.as_bytes()).await?;
            file.flush().await?;
            let after = before.clone().unwrap_or_default() + &content;
            Ok(diff(&path, before.as_deref(), &after))
        })
        .await
    }

    pub(super) async fn edit_file(&mut self, edit: &Edit) -> Played {
        let (path, find, replace) = (
            self.path(&edit.path)?,
            self.expand(&edit.find)?,
            self.expand(&edit.replace)?,
        );
        let deed = Deed::on(&path, "Edit", "edit", edit.quiet, edit.ask);
        self.deed(deed, async move {
            let before = tokio::fs::read_to_string(&path).await?;
            let found = before.matches(&find).count();
            if found != 1 {
                return Err(io::Error::other(format!(
                    "`{find}` occurs {found} times in {}, not once",
                    path.display()
                )));
            }
            let after = before.replacen(&find, &replace, 1);
            tokio::fs::write(&path, &after).await?;
            Ok(diff(&path, Some(&before), &after))
        })
        .await
    }

    pub(super) async fn delete_file(&mut self, delete: &Delete) -> Played {
        let path = self.path(&delete.path)?;
        let deed = Deed::on(&path, "Delete", "delete", delete.quiet, delete.ask);
        self.deed(deed, async move {
            tokio::fs::remove_file(&path).await?;
            Ok(json!([]))
        })
        .await
    }

    /// Runs a command. Its code and its output become `{{code}}` and `{{output}}`; a code other than 0 is a tool
    /// call that failed.
    pub(super) async fn run(&mut self, run: &Run) -> Played {
        let command = self.expand(&run.command)?;
        let args = match &run.args {
            Some(args) => Some(
                args.iter()
                    .map(|arg| self.expand(arg))
                    .collect::<Played<Vec<_>>>()?,
            ),
            None => None,
        };
        let mut program = program(&command, args.as_deref(), run.group, &self.cwd);
        program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let line = args.map_or_else(|| command.clone(), |args| format!("{command} {}", args.join(" ")));
        let deed = Deed {
            title: format!("`{line}`"),
            kind: "execute",
            path: None,
            raw_input: json!({ "command": line }),
            quiet: run.quiet,
            ask: run.ask,
        };
        let record = self.agent.record.clone();
        self.deed(deed, async move {
            let child = program.spawn()?;
            record.write(Event::Spawned {
                child: child.id().unwrap_or_default(),
                command,
            });
            let output = child.wait_with_output().await?;
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            if output.status.success() {
                Ok(text_content(&text))
            } else {
                Err(io::Error::other(CommandFailed {
                    code: output.status.code(),
                    output: text,
                }))
            }
        })
        .await
    }

    /// Starts a command that nobody waits for.
    pub(super) fn grandchild(&mut self, grandchild: &Grandchild) -> Played {
        let command = self.expand(&grandchild.command)?;
        let mut program = program(&command, None, grandchild.group, &self.cwd);
        if !grandchild.hold_stdout {
            program.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let child = program.spawn()?;
        self.agent.record.write(Event::Spawned {
            child: child.id().unwrap_or_default(),
            command,
        });
        Ok(())
    }

    /// Does something and tells of it. A deed that fails is told as a failed tool call, and the turn goes on.
    async fn deed(&mut self, deed: Deed, work: impl Future<Output = io::Result<Value>>) -> Played {
        let id = self.next_tool();
        if !deed.quiet {
            let mut update = json!({
                "sessionUpdate": "tool_call", "toolCallId": id, "title": deed.title, "kind": deed.kind,
                "status": if deed.ask { "pending" } else { "in_progress" }, "rawInput": deed.raw_input,
            });
            if let Some(path) = &deed.path {
                update["locations"] = json!([{ "path": path.display().to_string() }]);
            }
            self.update(update).await;
        }
        let done = if deed.ask {
            self.permitted(&id, &deed).await?
        } else {
            Outcome::Allowed
        };
        let (status, content) = match done {
            Outcome::Allowed => match self.unless_cancelled(work).await? {
                Ok(content) => {
                    self.note("0", text_of(&content));
                    ("completed", content)
                }
                Err(error) => {
                    let failed = error
                        .get_ref()
                        .and_then(|inner| inner.downcast_ref::<CommandFailed>());
                    let code = failed
                        .and_then(|failed| failed.code)
                        .map_or_else(|| "error".to_owned(), |c| c.to_string());
                    self.note(&code, error.to_string());
                    ("failed", text_content(&error.to_string()))
                }
            },
            Outcome::Rejected => ("failed", text_content("rejected")),
            Outcome::Cancelled => {
                self.after_cancelled_request()?;
                ("failed", text_content("cancelled"))
            }
        };
        if !deed.quiet {
            self.update(json!({
                "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content,
            }))
            .await;
        }
        Ok(())
    }

    fn note(&mut self, code: &str, output: String) {
        self.last.insert("code".to_owned(), code.to_owned());
        self.last.insert("output".to_owned(), output);
    }

    fn next_tool(&mut self) -> String {
        let id = (1..)
            .map(|n| format!("tool-{n}"))
            .find(|id| !self.tools.contains(id))
            .unwrap_or_default();
        self.tools.insert(id.clone());
        id
    }

    async fn permitted(&mut self, id: &str, deed: &Deed) -> Played<Outcome> {
        let mut tool = json!({
            "toolCallId": id, "title": deed.title, "kind": deed.kind, "rawInput": deed.raw_input,
        });
        if let Some(path) = &deed.path {
            tool["locations"] = json!([{ "path": path.display().to_string() }]);
        }
        Ok(self.ask_about(tool, &AskOption::usual()).await)
    }

    pub(super) async fn ask(&mut self, ask: &Ask) -> Played {
        let id = match &ask.tool {
            Some(id) => self.expand(id)?,
            None => self.next_tool(),
        };
        let title = self.expand(ask.title.as_deref().unwrap_or("Do it"))?;
        let mut tool = json!({ "toolCallId": id });
        if !ask.bare {
            tool["title"] = json!(title);
            tool["kind"] = json!(ask.kind.as_deref().unwrap_or("other"));
            if !ask.paths.is_empty() {
                tool["locations"] = self.locations(&ask.paths)?;
            }
            if let Some(input) = &ask.raw_input {
                tool["rawInput"] = self.expand_json(input)?;
            }
        }
        if ask.announce {
            let mut update = tool.clone();
            update["sessionUpdate"] = json!("tool_call");
            update["title"] = json!(title);
            update["status"] = json!("pending");
            self.tools.insert(id.clone());
            self.update(update).await;
        }
        let outcome = self.ask_about(tool, &ask.options).await;
        let status = match outcome {
            Outcome::Allowed => "completed",
            Outcome::Rejected | Outcome::Cancelled => "failed",
        };
        match outcome {
            Outcome::Allowed => self.steps(&ask.allowed).await?,
            Outcome::Rejected => self.steps(&ask.rejected).await?,
            // The cancellation has been seen already; these steps come before it takes effect.
            Outcome::Cancelled => self.steps_although_cancelled(&ask.cancelled).await?,
        }
        if ask.announce {
            self.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status }))
                .await;
        }
        match outcome {
            Outcome::Cancelled => self.after_cancelled_request(),
            Outcome::Allowed | Outcome::Rejected => Ok(()),
        }
    }

    /// Sends a request for permission and waits for its answer, cancelled or not: the client owes one either way.
    async fn ask_about(&mut self, tool: Value, options: &[AskOption]) -> Outcome {
        let told: Vec<Value> = options
            .iter()
            .map(|o| json!({ "optionId": o.id, "name": o.name.as_ref().unwrap_or(&o.id), "kind": o.kind }))
            .collect();
        let params = json!({ "sessionId": self.id, "toolCall": tool, "options": told });
        let (frame, answered) = self.agent.wire.request("session/request_permission", &params);
        self.send(frame).await;
        let answer = answered.await.unwrap_or_default();
        let outcome = &answer["result"]["outcome"];
        let (word, outcome) = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("cancelled"), _) => ("cancelled", Outcome::Cancelled),
            (Some("selected"), Some(chosen)) => {
                let allowed = options
                    .iter()
                    .any(|o| o.id == chosen && o.kind.starts_with("allow"));
                (
                    chosen,
                    if allowed {
                        Outcome::Allowed
                    } else {
                        Outcome::Rejected
                    },
                )
            }
            _ => ("error", Outcome::Rejected),
        };
        self.last.insert("permission".to_owned(), word.to_owned());
        outcome
    }
}

impl Deed {
    fn on(path: &Path, verb: &str, kind: &'static str, quiet: bool, ask: bool) -> Self {
        Deed {
            title: format!("{verb} {}", path.display()),
            kind,
            path: Some(path.to_owned()),
            raw_input: json!({ "path": path.display().to_string() }),
            quiet,
            ask,
        }
    }
}

/// A command that ended otherwise than with code 0.
#[derive(Debug, thiserror::Error)]
#[error("{output}")]
struct CommandFailed {
    code: Option<i32>,
    output: String,
}

/// The command to start, in a folder, with nothing on its standard input.
fn program(command: &str, args: Option<&[String]>, group: Group, cwd: &Path) -> Command {
    let shell = [String::from("-c"), command.to_owned()];
    let (name, args) = match args {
        Some(args) => (command, args),
        None => ("sh", shell.as_slice()),
    };
    let mut program = match group {
        Group::Same | Group::Own => Command::new(name),
        Group::Session => {
            let mut setsid = Command::new("setsid");
            setsid.arg(name);
            setsid
        }
    };
    #[cfg(unix)]
    if group == Group::Own {
        program.process_group(0);
    }
    program.args(args).current_dir(cwd).stdin(Stdio::null());
    program
}

async fn make_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => tokio::fs::create_dir_all(folder).await,
        None => Ok(()),
    }
}

fn diff(path: &Path, before: Option<&str>, after: &str) -> Value {
    json!([{ "type": "diff", "path": path.display().to_string(), "oldText": before, "newText": after }])
}

fn text_content(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

fn text_of(content: &Value) -> String {
    content[0]["content"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
