//! A turn: one prompt, the steps it leads to, and its answer.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::agent::{Ending, Shared, lock, until_exists, update_frame};
use super::placeholder;
use super::record::Event;
use super::script::{Method, Rule};
use super::session::{Kept, Session};
use super::step::{Delivery, Names, OnCancel, RpcError, Silent, Step, TokenUse, WaitFor};
use super::wire::response;

/// One prompt being answered.
pub(super) struct Turn {
    pub(super) agent: Arc<Shared>,
    pub(super) session: Arc<Mutex<Session>>,
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    request: Value,
    number: u64,
    text: String,
    captures: Vec<String>,
    cancelled: watch::Receiver<bool>,
    on_cancel: OnCancel,
    delivery: Delivery,
    held: Vec<Value>,
    tokens: Option<TokenUse>,
    /// What was said and is kept when the prompt is answered.
    pub(super) unkept: Vec<String>,
    answered: bool,
    /// Values of placeholders that steps set.
    pub(super) last: Names,
    /// Tool calls that were told.
    pub(super) tools: BTreeSet<String>,
}

/// How a turn ends before its last step is done.
pub(super) enum TurnEnd {
    /// With a stop reason.
    Stop(String),
    /// With an error.
    Error(RpcError),
    /// As the script says of cancellations.
    Cancelled,
}

/// Break: the turn ends.
pub(super) type Played<T = ()> = Result<T, TurnEnd>;

impl From<io::Error> for TurnEnd {
    fn from(error: io::Error) -> Self {
        TurnEnd::Error(RpcError::new(-32603, error.to_string()))
    }
}

impl Turn {
    pub(super) fn new(
        agent: Arc<Shared>,
        session: Arc<Mutex<Session>>,
        request: Value,
        text: String,
        cancelled: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let (id, cwd, number) = {
            let mut session = lock(&session);
            session.prompts += 1;
            session.keep(&Kept::User(text.clone()))?;
            (session.id.clone(), session.cwd.clone(), session.prompts)
        };
        agent.record.write(Event::Prompted {
            session: id.clone(),
            number,
            text: text.clone(),
        });
        Ok(Turn {
            on_cancel: agent.script.on_cancel.clone(),
            agent,
            session,
            id,
            cwd,
            request,
            number,
            text,
            captures: Vec::new(),
            cancelled,
            delivery: Delivery::default(),
            held: Vec::new(),
            tokens: None,
            unkept: Vec::new(),
            answered: false,
            last: Names::new(),
            tools: BTreeSet::new(),
        })
    }

    /// Plays the whole turn: what the script says of the method, the steps, the answer, and what comes after it.
    pub(super) async fn play(mut self, method: Option<Method>) {
        let (script, method) = (self.agent.script.clone(), method.unwrap_or_default());
        if self.agent.hold_back(&method, Some(&self.id)).await.is_break() {
            return;
        }
        self.agent.send_all(&method.before, Some(&self.id)).await;
        let mut after: &[Step] = &[];
        let end = match (method.error, method.result) {
            (Some(error), _) => Err(TurnEnd::Error(error)),
            (None, Some(result)) => self.answer(Ok(result)).await,
            (None, None) => match self.rule(&script.prompts) {
                Ok(Some(rule)) => {
                    self.on_cancel = rule.on_cancel.clone().unwrap_or_else(|| self.on_cancel.clone());
                    after = &rule.after;
                    self.steps(&rule.steps).await
                }
                Ok(None) => match &script.default {
                    Some(steps) => self.steps(steps).await,
                    None => Err(self.no_rule()),
                },
                Err(error) => Err(error),
            },
        };
        self.finish(end).await;
        self.on_cancel = OnCancel::Ignore;
        self.agent.send_all(&method.after, Some(&self.id)).await;
        // The prompt has its answer: how these end matters to nobody.
        let _ = self.steps(after).await;
    }

    /// The first rule that matches and is not used up.
    fn rule<'a>(&mut self, rules: &'a [Rule]) -> Played<Option<&'a Rule>> {
        for (index, rule) in rules.iter().enumerate() {
            let captures = match &rule.matches {
                Some(pattern) => pattern.captures(&self.text),
                None => Some(vec![self.text.clone()]),
            };
            let Some(captures) = captures else { continue };
            if let Some(path) = &rule.if_exists
                && !self.path(path)?.exists()
            {
                continue;
            }
            if let Some(path) = &rule.unless_exists
                && self.path(path)?.exists()
            {
                continue;
            }
            if self.agent.uses.take(index, rule.times)? {
                self.captures = captures;
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    fn no_rule(&self) -> TurnEnd {
        let head: String = self.text.chars().take(80).collect();
        TurnEnd::Error(RpcError::new(
            -32603,
            format!(
                "the script has no rule left for prompt {} ({head}): add one, or `default`",
                self.number
            ),
        ))
    }

    /// Plays steps one after the other, looking between them whether the prompt was cancelled.
    pub(super) fn steps<'a>(
        &'a mut self,
        steps: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Played> + Send + 'a>> {
        Box::pin(async move {
            for step in steps {
                self.unless_cancelled(std::future::ready(())).await?;
                self.step(step).await?;
            }
            Ok(())
        })
    }

    /// What a cancelled request for permission does to the turn.
    pub(super) fn after_cancelled_request(&self) -> Played {
        match self.on_cancel {
            OnCancel::Ignore => Ok(()),
            OnCancel::Obey | OnCancel::Stop(_) | OnCancel::Error(_) => Err(TurnEnd::Cancelled),
        }
    }

    /// Plays steps although the prompt has been cancelled.
    pub(super) async fn steps_although_cancelled(&mut self, steps: &[Step]) -> Played {
        let on_cancel = std::mem::replace(&mut self.on_cancel, OnCancel::Ignore);
        let played = self.steps(steps).await;
        self.on_cancel = on_cancel;
        played
    }

    async fn step(&mut self, step: &Step) -> Played {
        match step {
            Step::Say(say) => self.say(say, "agent_message_chunk").await,
            Step::Think(say) => self.say(say, "agent_thought_chunk").await,
            Step::Report(report) => self.report(report).await,
            Step::Plan(entries) => self.plan(entries).await,
            Step::Tool(tool) => self.tool(tool).await,
            Step::Write(write) => self.write_file(write).await,
            Step::Append(write) => self.append_file(write).await,
            Step::Edit(edit) => self.edit_file(edit).await,
            Step::Delete(delete) => self.delete_file(delete).await,
            Step::Run(run) => self.run(run).await,
            Step::Grandchild(grandchild) => self.grandchild(grandchild),
            Step::Ask(ask) => self.ask(ask).await,
            Step::Usage(usage) => self.usage(usage).await,
            Step::TurnUsage(tokens) => {
                self.tokens = Some(*tokens);
                Ok(())
            }
            Step::Wait(ms) => {
                self.unless_cancelled(tokio::time::sleep(Duration::from_millis(*ms)))
                    .await
            }
            Step::WaitFor(wait) => self.wait_for(wait).await,
            Step::Touch(path) => self.touch(path),
            Step::Silent(Silent::UntilCancelled) => self.unless_cancelled(std::future::pending()).await,
            Step::Silent(Silent::ForEver) => std::future::pending().await,
            Step::Exit(code) => self.agent.end(Ending::Code(*code)).await,
            Step::Crash => self.agent.end(Ending::Crash).await,
            Step::Deaf => {
                self.agent.stop_listening();
                Ok(())
            }
            Step::Stderr(repeated) => {
                let line = self.expand(&repeated.text)? + "\n";
                Ok(io::stderr().write_all(line.repeat(repeated.times).as_bytes())?)
            }
            Step::Raw(raw) => self.raw(raw).await,
            Step::Frame(frame) => {
                let frame = self.expand_json(frame)?;
                self.send(frame).await;
                Ok(())
            }
            Step::Update(update) => {
                let update = self.expand_json(update)?;
                self.update(update).await;
                Ok(())
            }
            Step::Request(request) => self.request(request).await,
            Step::Huge(bytes) => self.huge(*bytes).await,
            Step::Delivery(delivery) => {
                self.delivery = *delivery;
                Ok(())
            }
            Step::OnCancel(on_cancel) => {
                self.on_cancel = on_cancel.clone();
                Ok(())
            }
            Step::RecordEnv(names) => {
                let values = names
                    .iter()
                    .map(|name| (name.clone(), std::env::var(name).ok()))
                    .collect();
                self.agent.record.write(Event::Env { values });
                Ok(())
            }
            Step::Stop(reason) => Err(TurnEnd::Stop(self.expand(reason)?)),
            Step::Error(error) => {
                let data = error
                    .data
                    .as_ref()
                    .map(|data| self.expand_json(data))
                    .transpose()?;
                Err(TurnEnd::Error(RpcError {
                    code: error.code,
                    message: self.expand(&error.message)?,
                    data,
                }))
            }
            Step::Answer(result) => {
                let result = self.expand_json(result)?;
                self.answer(Ok(result)).await
            }
        }
    }

    /// Does `work`, unless the prompt is cancelled meanwhile and that matters.
    pub(super) async fn unless_cancelled<F: Future>(&mut self, work: F) -> Played<F::Output> {
        if matches!(self.on_cancel, OnCancel::Ignore) {
            return Ok(work.await);
        }
        let mut cancelled = self.cancelled.clone();
        tokio::select! {
            biased;
            Ok(_) = cancelled.wait_for(|cancelled| *cancelled) => Err(TurnEnd::Cancelled),
            done = work => Ok(done),
        }
    }

    async fn wait_for(&mut self, wait: &WaitFor) -> Played {
        let path = self.path(&wait.path)?;
        let limit = Duration::from_millis(wait.timeout_ms);
        match self
            .unless_cancelled(tokio::time::timeout(limit, until_exists(&path)))
            .await?
        {
            Ok(()) => Ok(()),
            Err(_) => Err(TurnEnd::Error(RpcError::new(
                -32603,
                format!("{} did not appear within {} ms", path.display(), wait.timeout_ms),
            ))),
        }
    }

    fn touch(&self, path: &str) -> Played {
        let path = self.path(path)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        Ok(())
    }

    /// Sends an update of the session.
    pub(super) async fn update(&mut self, update: Value) {
        let frame = update_frame(&self.id, &update);
        self.send(frame).await;
    }

    /// Sends a frame, the way in force.
    pub(super) async fn send(&mut self, frame: Value) {
        match self.delivery {
            Delivery::Normal => self.agent.wire.send(frame).await,
            Delivery::ByteByByte => self.agent.wire.send_byte_by_byte(frame).await,
            Delivery::OneWrite | Delivery::Batch => self.held.push(frame),
        }
    }

    async fn finish(&mut self, end: Played) {
        let answer = match end {
            Ok(()) => Ok("end_turn".to_owned()),
            Err(TurnEnd::Stop(reason)) => Ok(reason),
            Err(TurnEnd::Error(error)) => Err(error),
            Err(TurnEnd::Cancelled) => match &self.on_cancel {
                OnCancel::Obey | OnCancel::Ignore => Ok("cancelled".to_owned()),
                OnCancel::Stop(reason) => Ok(reason.clone()),
                OnCancel::Error(error) => Err(error.clone()),
            },
        };
        if self.answered {
            return;
        }
        let answer = answer.map(|reason| {
            let mut result = json!({ "stopReason": reason });
            if let Some(tokens) = self.tokens {
                result["usage"] = tokens.to_json();
            }
            result
        });
        // `answer` goes on, so how it ends is no end of the turn.
        let _ = self.answer(answer).await;
    }

    /// Answers the prompt.
    async fn answer(&mut self, answer: Result<Value, RpcError>) -> Played {
        for said in std::mem::take(&mut self.unkept) {
            lock(&self.session).keep(&Kept::Agent(said))?;
        }
        let frame = response(self.request.clone(), answer);
        let mut told = frame.clone();
        if let Some(fields) = told.as_object_mut() {
            fields.retain(|key, _| key == "result" || key == "error");
        }
        self.agent.record.write(Event::Answered {
            session: self.id.clone(),
            number: self.number,
            text: self.text.clone(),
            response: told,
        });
        // Answered twice, as the script may want: the turn registered now could be the next one.
        if !std::mem::replace(&mut self.answered, true) {
            self.agent.release(&self.id);
        }
        let mut held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.delivery) {
            Delivery::Normal => self.agent.wire.send(frame).await,
            Delivery::ByteByByte => self.agent.wire.send_byte_by_byte(frame).await,
            how @ (Delivery::OneWrite | Delivery::Batch) => {
                held.push(frame);
                self.agent.wire.send_together(held, how == Delivery::Batch).await;
            }
        }
        Ok(())
    }

    /// A path of the script: from the session's folder, or absolute.
    pub(super) fn path(&self, path: &str) -> Played<PathBuf> {
        Ok(self.cwd.join(self.expand(path)?))
    }

    pub(super) fn expand(&self, text: &str) -> Played<String> {
        placeholder::expand(text, &|name| self.value(name)).map_err(no_value)
    }

    pub(super) fn expand_json(&self, json: &Value) -> Played<Value> {
        placeholder::expand_json(json, &|name| self.value(name)).map_err(no_value)
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "cwd" => Some(self.cwd.display().to_string()),
            "prompt" => Some(self.number.to_string()),
            "text" => Some(self.text.clone()),
            "model" => Some(lock(&self.session).model(&self.agent.script).unwrap_or_default()),
            "effort" => Some(lock(&self.session).effort(&self.agent.script).unwrap_or_default()),
            "permission" | "response" | "output" | "code" => {
                Some(self.last.get(name).cloned().unwrap_or_default())
            }
            _ => match name
                .strip_prefix("match.")
                .and_then(|group| group.parse::<usize>().ok())
            {
                Some(group) => self.captures.get(group).cloned(),
                None => self.agent.value_for(name, Some(&self.id)),
            },
        }
    }
}

fn no_value(name: String) -> TurnEnd {
    TurnEnd::Error(RpcError::new(
        -32603,
        format!("the placeholder {{{{{name}}}}} has no value here"),
    ))
}
