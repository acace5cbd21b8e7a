//! What the agent does for each method of the protocol but `session/prompt`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::agent::{Shared, lock, update_frame};
use super::script::Choice;
use super::session::{self, INVALID_PARAMS, Kept, Session};
use super::step::RpcError;

impl Shared {
    pub(super) async fn carry_out(&self, name: &str, params: &Value) -> Result<Value, RpcError> {
        match name {
            "initialize" => Ok(self.initialize()),
            "authenticate" => self.authenticate(params),
            "session/new" => self.new_session(params),
            "session/load" => self.load(params).await,
            "session/resume" => self.resume(params),
            "session/list" if self.announces(self.script.agent.list) => self.list(),
            "session/close" if self.script.agent.close => self.close(params),
            "session/set_config_option" if !self.script.options.is_empty() => {
                let session = self.session(params)?;
                let mut session = lock(&session);
                session.set_option(&self.script, text(params, "configId")?, text(params, "value")?)?;
                Ok(json!({ "configOptions": session.config_options(&self.script) }))
            }
            "session/set_model" if self.script.models.is_some() => {
                self.choose(params, "modelId", self.script.models.as_ref(), Session::set_model)
            }
            "session/set_mode" if self.script.modes.is_some() => {
                self.choose(params, "modeId", self.script.modes.as_ref(), Session::set_mode)
            }
            _ => Err(RpcError::new(-32601, format!("method not found: {name}"))),
        }
    }

    fn initialize(&self) -> Value {
        let agent = &self.script.agent;
        let mut session = json!({});
        for (name, announced) in [
            ("resume", self.announces(agent.resume)),
            ("list", self.announces(agent.list)),
            ("close", agent.close),
        ] {
            if announced {
                session[name] = json!({});
            }
        }
        let methods = self.script.auth.iter().flat_map(|auth| &auth.methods);
        json!({
            "protocolVersion": agent.protocol,
            "agentInfo": { "name": agent.name, "version": agent.version },
            "agentCapabilities": {
                "loadSession": self.announces(agent.load),
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "sessionCapabilities": session,
            },
            "authMethods": methods.map(|id| json!({ "id": id, "name": id })).collect::<Vec<_>>(),
        })
    }

    /// Whether a capability is announced that depends on conversations being kept.
    fn announces(&self, said: Option<bool>) -> bool {
        said.unwrap_or(self.kept_in.is_some())
    }

    fn authenticate(&self, params: &Value) -> Result<Value, RpcError> {
        let method = text(params, "methodId")?;
        match &self.script.auth {
            Some(auth) if auth.methods.iter().any(|known| known == method) => {
                self.signed_in.fetch_or(!auth.in_vain, Ordering::Relaxed);
                Ok(json!({}))
            }
            Some(_) | None => Err(RpcError::new(
                INVALID_PARAMS,
                format!("unknown way to sign in: {method}"),
            )),
        }
    }

    fn check_signed_in(&self) -> Result<(), RpcError> {
        if self.signed_in.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(RpcError::new(-32000, "Authentication required"))
        }
    }

    fn new_session(&self, params: &Value) -> Result<Value, RpcError> {
        self.check_signed_in()?;
        let (cwd, id) = (folder(params)?, uuid::Uuid::new_v4().to_string());
        let session =
            Session::start(id.clone(), cwd, self.kept_in.as_deref(), &self.script).map_err(own_failure)?;
        let mut told = session.told(&self.script);
        told["sessionId"] = json!(id);
        lock(&self.sessions).insert(id, Arc::new(Mutex::new(session)));
        Ok(told)
    }

    async fn load(&self, params: &Value) -> Result<Value, RpcError> {
        if !self.announces(self.script.agent.load) {
            return Err(RpcError::new(-32601, "method not found: session/load"));
        }
        let (told, history) = self.bring_back(params)?;
        let id = text(params, "sessionId")?;
        for line in history {
            let (kind, said) = match line {
                Kept::Session { .. } => continue,
                Kept::User(said) => ("user_message_chunk", said),
                Kept::Agent(said) => ("agent_message_chunk", said),
            };
            let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": said } });
            self.wire.send(update_frame(id, &update)).await;
        }
        Ok(told)
    }

    fn resume(&self, params: &Value) -> Result<Value, RpcError> {
        if !self.announces(self.script.agent.resume) {
            return Err(RpcError::new(-32601, "method not found: session/resume"));
        }
        self.bring_back(params).map(|(told, _)| told)
    }

    /// Opens a session of an earlier process again.
    fn bring_back(&self, params: &Value) -> Result<(Value, Vec<Kept>), RpcError> {
        self.check_signed_in()?;
        let (id, cwd) = (text(params, "sessionId")?, folder(params)?);
        let restored = match &self.kept_in {
            Some(kept_in) => Session::restore(id, kept_in, &self.script).map_err(own_failure)?,
            None => None,
        };
        let (mut session, history) = restored.ok_or_else(|| no_session(id))?;
        session.cwd = cwd;
        let told = session.told(&self.script);
        lock(&self.sessions).insert(id.to_owned(), Arc::new(Mutex::new(session)));
        Ok((told, history))
    }

    fn list(&self) -> Result<Value, RpcError> {
        let mut known: BTreeMap<String, PathBuf> = lock(&self.sessions)
            .iter()
            .map(|(id, session)| (id.clone(), lock(session).cwd.clone()))
            .collect();
        if let Some(kept_in) = &self.kept_in {
            known.extend(session::list(kept_in, &self.script).map_err(own_failure)?);
        }
        let sessions: Vec<Value> = known
            .iter()
            .map(|(id, cwd)| json!({ "sessionId": id, "cwd": cwd.display().to_string() }))
            .collect();
        Ok(json!({ "sessions": sessions }))
    }

    /// Forgets a session; what it is doing is cancelled.
    fn close(&self, params: &Value) -> Result<Value, RpcError> {
        let id = text(params, "sessionId")?;
        self.cancel(params);
        lock(&self.sessions)
            .remove(id)
            .map(|_| json!({}))
            .ok_or_else(|| no_session(id))
    }

    fn choose(
        &self,
        params: &Value,
        key: &str,
        choice: Option<&Choice>,
        set: fn(&mut Session, &Choice, &str) -> Result<(), RpcError>,
    ) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        if let Some(choice) = choice {
            set(&mut lock(&session), choice, text(params, key)?)?;
        }
        Ok(json!({}))
    }

    pub(super) fn session(&self, params: &Value) -> Result<Arc<Mutex<Session>>, RpcError> {
        let id = text(params, "sessionId")?;
        lock(&self.sessions)
            .get(id)
            .cloned()
            .ok_or_else(|| no_session(id))
    }
}

fn text<'a>(params: &'a Value, key: &str) -> Result<&'a str, RpcError> {
    params[key].as_str().ok_or_else(|| missing(key))
}

fn folder(params: &Value) -> Result<PathBuf, RpcError> {
    let cwd = PathBuf::from(text(params, "cwd")?);
    if !cwd.is_absolute() {
        return Err(RpcError::new(INVALID_PARAMS, "`cwd` is not an absolute path"));
    }
    params["mcpServers"]
        .as_array()
        .ok_or_else(|| missing("mcpServers"))?;
    Ok(cwd)
}

pub(super) fn missing(key: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("`{key}` is missing or of the wrong type"))
}

fn no_session(id: &str) -> RpcError {
    RpcError::new(-32002, format!("Resource not found: session {id}"))
}

pub(super) fn own_failure(error: io::Error) -> RpcError {
    RpcError::new(-32603, error.to_string())
}
