//! Sessions: what was chosen in them, and their history on disk.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::script::{Choice, ConfigOption, Script};
use super::step::RpcError;

/// Code of "invalid params" in JSON-RPC.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// One session of the agent's.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    /// Prompts so far, those of earlier processes included.
    pub(super) prompts: u64,
    /// Values of the configuration options.
    chosen: BTreeMap<String, String>,
    model: Option<String>,
    mode: Option<String>,
    history: Option<PathBuf>,
}

/// A line of a session's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept {
    /// The first line.
    Session {
        /// Its folder.
        cwd: PathBuf,
    },
    /// A prompt's text.
    User(String),
    /// A piece of an answer.
    Agent(String),
}

impl Session {
    /// A new session, with its file when conversations are kept.
    pub(super) fn start(
        id: String,
        cwd: PathBuf,
        folder: Option<&Path>,
        script: &Script,
    ) -> io::Result<Self> {
        let history = folder.map(|folder| file_of(folder, &id));
        let session = Session {
            history,
            ..Session::idle(id, cwd, script)
        };
        if let Some(folder) = folder {
            fs::create_dir_all(folder)?;
        }
        session.keep(&Kept::Session {
            cwd: session.cwd.clone(),
        })?;
        Ok(session)
    }

    /// A session of an earlier process, and what was said in it. None when there is no such session.
    pub(super) fn restore(id: &str, folder: &Path, script: &Script) -> io::Result<Option<(Self, Vec<Kept>)>> {
        // An identifier is a file's name here, so nothing that could lead elsewhere is looked for.
        if !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Ok(None);
        }
        let file = file_of(folder, id);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let lines: Vec<Kept> = text
            .lines()
            .map(|line| serde_json::from_str(line).map_err(io::Error::from))
            .collect::<Result<_, _>>()?;
        let mut session = Session::idle(id.to_owned(), PathBuf::new(), script);
        session.history = Some(file);
        for line in &lines {
            match line {
                Kept::Session { cwd } => session.cwd.clone_from(cwd),
                Kept::User(_) => session.prompts += 1,
                Kept::Agent(_) => {}
            }
        }
        Ok(Some((session, lines)))
    }

    fn idle(id: String, cwd: PathBuf, script: &Script) -> Self {
        let first = |choice: &Choice| {
            choice
                .current
                .clone()
                .or_else(|| choice.available.first().cloned())
        };
        let mut session = Session {
            id,
            cwd,
            prompts: 0,
            chosen: BTreeMap::new(),
            model: script.models.as_ref().and_then(first),
            mode: script.modes.as_ref().and_then(first),
            history: None,
        };
        for option in &script.options {
            if let Some(value) = option.current.clone().or_else(|| option.values.first().cloned()) {
                session.chosen.insert(option.id.clone(), value);
            }
        }
        session.settle(script);
        session
    }

    /// Adds a line to the session's file.
    pub(super) fn keep(&self, line: &Kept) -> io::Result<()> {
        let Some(file) = &self.history else { return Ok(()) };
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)?
            .write_all(&text)
    }

    /// The model in force, however it was told.
    pub(super) fn model(&self, script: &Script) -> Option<String> {
        self.of_category(script, "model").or_else(|| self.model.clone())
    }

    /// The effort in force.
    pub(super) fn effort(&self, script: &Script) -> Option<String> {
        self.of_category(script, "thought_level")
    }

    fn of_category(&self, script: &Script, category: &str) -> Option<String> {
        let option = script
            .options
            .iter()
            .find(|o| o.category.as_deref() == Some(category))?;
        self.chosen.get(&option.id).cloned()
    }

    fn values<'a>(&self, script: &Script, option: &'a ConfigOption) -> &'a [String] {
        let model = self.of_category(script, "model");
        model
            .and_then(|model| option.by_model.get(&model))
            .unwrap_or(&option.values)
    }

    /// Replaces values that the model in force does not have.
    fn settle(&mut self, script: &Script) {
        for option in &script.options {
            let values = self.values(script, option).to_vec();
            let in_force = self.chosen.get(&option.id);
            if !in_force.is_some_and(|value| values.contains(value)) {
                match values.into_iter().next() {
                    Some(value) => self.chosen.insert(option.id.clone(), value),
                    None => self.chosen.remove(&option.id),
                };
            }
        }
    }

    /// The configuration options as the protocol tells them.
    pub(super) fn config_options(&self, script: &Script) -> Value {
        let told = script.options.iter().filter_map(|option| {
            let current = self.chosen.get(&option.id)?;
            let values: Vec<Value> =
                self.values(script, option).iter().map(|v| json!({ "value": v, "name": v })).collect();
            let mut json = json!({
                "type": "select", "id": option.id, "name": option.id, "currentValue": current, "options": values,
            });
            if let Some(category) = &option.category {
                json["category"] = json!(category);
            }
            Some(json)
        });
        told.collect()
    }

    /// Takes a value of a configuration option.
    pub(super) fn set_option(&mut self, script: &Script, id: &str, value: &str) -> Result<(), RpcError> {
        let option = script
            .options
            .iter()
            .find(|option| option.id == id)
            .filter(|o| self.chosen.contains_key(&o.id));
        let option = option.ok_or_else(|| invalid(format!("unknown configuration option {id}")))?;
        if option.refused.iter().any(|v| v == value)
            || !self.values(script, option).iter().any(|v| v == value)
        {
            return Err(invalid(format!("invalid value {value} for {id}")));
        }
        if !option.ignored.iter().any(|v| v == value) {
            self.chosen.insert(id.to_owned(), value.to_owned());
            self.settle(script);
        }
        Ok(())
    }

    /// Takes a model of the legacy list.
    pub(super) fn set_model(&mut self, choice: &Choice, model: &str) -> Result<(), RpcError> {
        choose(choice, model, &mut self.model)
    }

    /// Takes a mode.
    pub(super) fn set_mode(&mut self, choice: &Choice, mode: &str) -> Result<(), RpcError> {
        choose(choice, mode, &mut self.mode)
    }

    /// What `session/new`, `session/load` and `session/resume` tell of a session besides its identifier.
    pub(super) fn told(&self, script: &Script) -> Value {
        let mut told = json!({});
        if !script.options.is_empty() {
            told["configOptions"] = self.config_options(script);
        }
        if let (Some(models), Some(current)) = (&script.models, &self.model) {
            let all: Vec<Value> = models
                .available
                .iter()
                .map(|m| json!({ "modelId": m, "name": m }))
                .collect();
            told["models"] = json!({ "currentModelId": current, "availableModels": all });
        }
        if let (Some(modes), Some(current)) = (&script.modes, &self.mode) {
            let all: Vec<Value> = modes
                .available
                .iter()
                .map(|m| json!({ "id": m, "name": m }))
                .collect();
            told["modes"] = json!({ "currentModeId": current, "availableModes": all });
        }
        told
    }
}

fn choose(choice: &Choice, value: &str, in_force: &mut Option<String>) -> Result<(), RpcError> {
    if choice.refused.iter().any(|v| v == value) || !choice.available.iter().any(|v| v == value) {
        return Err(invalid(format!("invalid value {value}")));
    }
    if !choice.ignored.iter().any(|v| v == value) {
        *in_force = Some(value.to_owned());
    }
    Ok(())
}

fn invalid(message: String) -> RpcError {
    RpcError::new(INVALID_PARAMS, message)
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Identifiers and folders of the sessions kept in `folder`.
pub(super) fn list(folder: &Path, script: &Script) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) else {
            continue;
        };
        if let Some((session, _)) = Session::restore(id, folder, script)? {
            found.push((session.id, session.cwd));
        }
    }
    found.sort();
    Ok(found)
}
