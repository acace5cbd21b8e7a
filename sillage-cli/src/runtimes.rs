//! Who holds a run's sessions: this program itself, or a gateway. A run stays with who held it at its launch.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use directories::{BaseDirs, ProjectDirs};
use sillage::acp::{AcpRuntime, AgentCommand};
use sillage::core::ports::AgentRuntime;
use sillage::core::ports::runtime::{ModelOffer, RuntimeError};
use sillage::core::run::{RunDefinition, RunGateway};
use sillage::core::settings::{RelaisAddress, Settings, expand_home};
use sillage_relais::wire::{Status, capability};
use sillage_relais::{ClientOptions, Gateways, RelaisClient};

use crate::adapters::{self, Adapters};
use crate::arguments::Global;
use crate::failure::{Failure, Kind};

/// What each run needs of a gateway, and what it would be without it.
const NEEDED: [(&str, &str); 2] = [
    (
        capability::IDEMPOTENT_SESSION_CREATION,
        "a session could be started twice",
    ),
    (
        capability::FILESYSTEM_SCOPE,
        "the task's folders would bind no agent",
    ),
];

/// How many sessions may be at work at a gateway whose settings do not say, where several share a run's. It is what a
/// gateway holds at most by itself.
const USUAL_CAPACITY: NonZeroU32 = NonZeroU32::new(256).unwrap();

/// The most bytes of a token file that are read.
const LONGEST_TOKEN: u64 = 4096;

/// Where a new run's sessions are held.
#[derive(Debug, Default, Args)]
pub(crate) struct Where {
    /// Have the gateway at this address hold the sessions, so that they outlive this program [default: those of the
    /// settings, else none].
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    relais: Option<String>,
    #[command(flatten)]
    token: TokenFile,
    /// Hold the sessions in this program even where the settings name a gateway.
    #[arg(long, conflicts_with_all = ["relais", "token_file"])]
    direct: bool,
}

/// Where a gateway's token is.
#[derive(Debug, Default, Args)]
pub(crate) struct TokenFile {
    /// The file of the gateway's token [default: as in the settings or at the run's launch, else relais/token in the
    /// folder for settings].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
}

/// A gateway that is to hold sessions of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    gateway: RunGateway,
    /// Sessions that may be at work there at once; none: the settings do not say.
    capacity: Option<NonZeroU32>,
}

/// The gateways that were chosen for a new run: one at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen(Vec<Named>);

impl Where {
    /// What was said here; else as in the earlier run, where there is one; else as the settings say.
    ///
    /// # Errors
    /// When what is named is no gateway's address, or one token's file is named for several.
    pub(crate) fn choose(
        &self,
        earlier: Option<&RunDefinition>,
        settings: &Settings,
    ) -> Result<Option<Chosen>, Failure> {
        if self.direct {
            return Ok(None);
        }
        let urls: Vec<&str> = match (&self.relais, earlier) {
            (Some(url), _) => vec![url],
            (None, Some(earlier)) => earlier.gateways.iter().map(|one| one.url.as_str()).collect(),
            (None, None) => settings.relais.iter().map(|one| one.url.as_str()).collect(),
        };
        if urls.is_empty() {
            self.token.refuse("no gateway is named: name one by --relais")?;
            return Ok(None);
        }
        let named = self.token.named(&urls, earlier, settings)?;
        Ok(Some(Chosen(named)))
    }
}

impl Chosen {
    /// Sessions at work at once, where the program allows so many: as many as the gateways may be given all in all.
    pub(crate) fn parallel(chosen: Option<&Chosen>, program: Option<NonZeroU32>) -> Option<NonZeroU32> {
        let capacities = chosen.and_then(|chosen| {
            let each = chosen.0.iter().map(|named| named.capacity);
            let all: Option<Vec<NonZeroU32>> = each.collect();
            all?.into_iter()
                .reduce(|sum, capacity| sum.saturating_add(capacity.get()))
        });
        program.into_iter().chain(capacities).min()
    }
}

impl TokenFile {
    /// The gateways at these addresses, each once, with what the settings and the run at its launch said of them.
    fn named(
        &self,
        urls: &[&str],
        before: Option<&RunDefinition>,
        settings: &Settings,
    ) -> Result<Vec<Named>, Failure> {
        let mut all: Vec<Named> = Vec::new();
        for url in urls {
            let url = address(url)?;
            if all.iter().any(|named| named.gateway.url == url) {
                continue;
            }
            let known = settings
                .relais
                .iter()
                .find(|one| one.url.trim_end_matches('/') == url);
            let before = before.and_then(|run| run.gateways.iter().find(|gateway| gateway.url == url));
            let token_file = self.find(known, before)?;
            all.push(Named {
                gateway: RunGateway { url, token_file },
                capacity: known.and_then(|known| known.capacity),
            });
        }
        if all.len() > 1 {
            self.refuse(&format!(
                "{} are named: write where each has its token into `relais` of the settings",
                all.len()
            ))?;
        }
        Ok(all)
    }

    /// The token's file: that named here, that of the settings, that of the run's launch, the usual one.
    fn find(&self, named: Option<&RelaisAddress>, before: Option<&RunGateway>) -> Result<PathBuf, Failure> {
        let named = || named.and_then(|named| named.token_file.as_deref()).map(in_home);
        let before = || before.map(|gateway| gateway.token_file.clone());
        let usual = || ProjectDirs::from("", "", "relais").map(|folders| folders.config_dir().join("token"));
        let file = self
            .token_file
            .clone()
            .or_else(named)
            .or_else(before)
            .or_else(usual);
        let file = file.ok_or_else(|| {
            Failure::new(Kind::Usage, "this machine names no folder for settings")
                .hint("name the file of the gateway's token by --token-file")
        })?;
        std::path::absolute(&file).map_err(|error| Failure::reading(&file, &error))
    }

    fn refuse(&self, why: &str) -> Result<(), Failure> {
        match self.token_file {
            Some(_) => Err(Failure::new(
                Kind::Usage,
                format_args!("--token-file is one gateway's, and {why}"),
            )),
            None => Ok(()),
        }
    }
}

/// The runtime of a run.
pub(crate) struct Runtime {
    pub(crate) sessions: Arc<dyn AgentRuntime>,
    /// The models on offer.
    pub(crate) offers: Vec<ModelOffer>,
    /// The agents of this machine as they are started; empty at a gateway.
    pub(crate) agents: Vec<AgentCommand>,
    /// The gateways, where they hold the sessions.
    pub(crate) gateways: Vec<RunGateway>,
}

impl Runtime {
    /// The agents of the settings, held by this program.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(crate) fn here(adapters: &Adapters, settings: &Settings) -> Result<Runtime, Failure> {
        let agents = adapters::commands(settings)?;
        let options = adapters::options(settings, &adapters.data)?;
        Ok(Runtime {
            sessions: Arc::new(AcpRuntime::new(agents.clone(), options)),
            offers: settings.offers(),
            agents,
            gateways: Vec::new(),
        })
    }

    /// The runtime of a new run.
    ///
    /// # Errors
    /// When no agent is configured, or no gateway is there, or one cannot do what a run needs (L2).
    pub(crate) async fn of_new(
        chosen: Option<&Chosen>,
        adapters: &Adapters,
        settings: &Settings,
        global: &Global,
    ) -> Result<Runtime, Failure> {
        match chosen {
            Some(Chosen(named)) => {
                let start = "start it with `sillage relais`, name another by --relais, or run without one by --direct";
                Runtime::at(named, &adapters.data, start).await
            }
            None => Runtime::here(adapters, global.with_agents(settings)?),
        }
    }

    /// The runtime that holds the sessions of a run that there is.
    ///
    /// # Errors
    /// When no agent is configured, or no gateway is there, or one cannot do what a run needs (L2).
    pub(crate) async fn of_run(
        definition: &RunDefinition,
        token: &TokenFile,
        adapters: &Adapters,
        global: &Global,
    ) -> Result<Runtime, Failure> {
        let settings = global.settings()?.unwrap_or_default();
        let run = &definition.run;
        let urls: Vec<&str> = definition.gateways.iter().map(|one| one.url.as_str()).collect();
        if urls.is_empty() {
            token.refuse(&format!("run {run} was launched without one"))?;
            return Runtime::here(adapters, global.with_agents(&settings)?);
        }
        let named = token.named(&urls, Some(definition), &settings)?;
        let start = format!(
            "run {run} has its sessions there: start that gateway again at the same address and with its folder, and its \
             sessions are found; with an empty folder they are lost, and what they did is done again"
        );
        Runtime::at(&named, &adapters.data, &start).await
    }

    /// The gateways, once it is known that they do what a run needs. Of several some may be out of reach: their own
    /// sessions wait for them, and new ones go to the others. `start`: what to do where none is there.
    async fn at(named: &[Named], data: &Path, start: &str) -> Result<Runtime, Failure> {
        let mut clients = Vec::new();
        let mut out_of_reach = Vec::new();
        for Named { gateway, capacity } in named {
            let token = read_token(gateway)?;
            let client = RelaisClient::new(&gateway.url, &token, ClientOptions::new("Sillage"));
            let client = client.map_err(|error| Failure::new(Kind::Usage, error))?;
            match client.gateway().await {
                Ok(status) => refuse_missing(&gateway.url, &status)?,
                Err(error @ RuntimeError::Temporary { .. }) => out_of_reach.push((gateway, error)),
                Err(error) => return Err(not_there(gateway, error, start)),
            }
            clients.push((client, capacity.unwrap_or(USUAL_CAPACITY)));
        }
        if out_of_reach.len() == named.len()
            && let Some((gateway, error)) = out_of_reach.pop()
        {
            return Err(not_there(gateway, error, start));
        }
        for (gateway, error) in out_of_reach {
            let words = format!("sillage: {}", not_there(gateway, error, start).words());
            // Whoever reads standard error may be gone.
            let _ = writeln!(std::io::stderr(), "{words}; the others are used");
        }
        let gateways: Vec<RunGateway> = named.iter().map(|named| named.gateway.clone()).collect();
        let sessions: Arc<dyn AgentRuntime> = match <[_; 1]>::try_from(clients) {
            Ok([(client, _)]) => Arc::new(client),
            Err(several) => Arc::new(Gateways::new(several, data.join("placements"))),
        };
        let status = sessions.status().await;
        // Whoever answered a moment ago may be gone.
        let status = status.map_err(|error| not_there(&gateways[0], error, start))?;
        Ok(Runtime {
            sessions,
            offers: status.models,
            agents: Vec::new(),
            gateways,
        })
    }
}

/// Why a gateway cannot be used.
fn not_there(gateway: &RunGateway, error: RuntimeError, start: &str) -> Failure {
    let url = &gateway.url;
    if let RuntimeError::Temporary { words, .. } = error {
        let words = format!("the gateway at {url} is out of reach: {words}");
        return Failure::new(Kind::OutOfReach, words).hint(start);
    }
    let words = format!("the gateway at {url} refuses to be asked: {error}");
    let file = gateway.token_file.display();
    let hint = format!("is {file} the file of its token? Name it by --token-file");
    Failure::new(Kind::Refused, words).hint(hint)
}

/// Refuses a gateway that lacks a capability which every run needs, and says which (L2).
fn refuse_missing(url: &str, status: &Status) -> Result<(), Failure> {
    let has = |name: &str| status.capabilities.get(name) == Some(&true);
    let missing: Vec<_> = NEEDED.iter().filter(|(name, _)| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let told: Vec<_> = missing
        .iter()
        .map(|(name, without)| format!("`{name}` (without it {without})"))
        .collect();
    let words = format!("the gateway at {url} lacks what a run needs: {}", told.join(", "));
    Err(Failure::new(Kind::Refused, words)
        .hint("nothing was started; name another gateway, or run without one"))
}

/// An address as it is kept and compared: it holds no secret, for it is shown.
fn address(url: &str) -> Result<String, Failure> {
    if url.contains(['@', '?', '#']) {
        let words = "a gateway's address holds neither a user, a password nor a query";
        return Err(Failure::new(Kind::Usage, words).hint("write it as in http://127.0.0.1:7433"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn in_home(path: &Path) -> PathBuf {
    BaseDirs::new().map_or_else(
        || path.to_path_buf(),
        |folders| expand_home(path, folders.home_dir()),
    )
}

fn read_token(gateway: &RunGateway) -> Result<String, Failure> {
    let path = &gateway.token_file;
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_TOKEN).read_to_string(&mut text));
    let hint = format!(
        "the gateway at {} told where its token is when it was started; name that file by --token-file",
        gateway.url
    );
    match read {
        Ok(_) if text.trim().is_empty() => {
            let words = format!("{} holds no token", path.display());
            Err(Failure::new(Kind::Usage, words).hint(hint))
        }
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) => Err(Failure::reading(path, &error).hint(hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(urls: &[&str]) -> Settings {
        let relais = urls.iter().map(|url| RelaisAddress {
            name: "one".to_owned(),
            url: (*url).to_owned(),
            token_file: Some("/tokens/one".into()),
            capacity: NonZeroU32::new(2),
        });
        Settings {
            relais: relais.collect(),
            ..Settings::default()
        }
    }

    fn at(url: &str) -> Where {
        Where {
            relais: Some(url.to_owned()),
            ..Where::default()
        }
    }

    #[test]
    fn the_command_line_comes_before_the_settings() {
        let known = settings(&["http://127.0.0.1:1/"]);
        let chosen = Where::default().choose(None, &known).unwrap().unwrap();
        assert_eq!(chosen.0[0].gateway.url, "http://127.0.0.1:1");
        assert_eq!(chosen.0[0].gateway.token_file, Path::new("/tokens/one"));
        assert_eq!(
            Chosen::parallel(Some(&chosen), NonZeroU32::new(4)),
            NonZeroU32::new(2)
        );
        assert_eq!(Chosen::parallel(None, NonZeroU32::new(4)), NonZeroU32::new(4));
        let other = at("http://127.0.0.1:2").choose(None, &known).unwrap().unwrap();
        assert!(
            other.0[0].gateway.token_file.ends_with("relais/token"),
            "{other:?}"
        );
        let direct = Where {
            direct: true,
            ..Where::default()
        };
        assert_eq!(direct.choose(None, &known).unwrap(), None);
    }

    /// L12: all gateways of the settings are used, each once and within its capacity; one of them where it is named.
    #[test]
    fn l12_the_gateways_of_the_settings_are_used_together() {
        let mut several = settings(&["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1/"]);
        let chosen = Where::default().choose(None, &several).unwrap().unwrap();
        let urls: Vec<&str> = chosen.0.iter().map(|named| &*named.gateway.url).collect();
        assert_eq!(urls, ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
        assert_eq!(Chosen::parallel(Some(&chosen), None), NonZeroU32::new(4));
        let one = at("http://127.0.0.1:2").choose(None, &several).unwrap().unwrap();
        assert_eq!(one.0.len(), 1);
        several.relais[1].capacity = None;
        let chosen = Where::default().choose(None, &several).unwrap();
        assert_eq!(Chosen::parallel(chosen.as_ref(), None), None, "one has no bound");
        let one_token = Where {
            token: TokenFile {
                token_file: Some("t".into()),
            },
            ..Where::default()
        };
        let refused = one_token.choose(None, &several).unwrap_err();
        assert!(refused.words().contains("2 are named"), "{refused:?}");
    }

    #[test]
    fn what_would_be_shown_is_refused() {
        for secret in ["http://:token@127.0.0.1:1", "http://127.0.0.1:1?token=x"] {
            let refused = at(secret).choose(None, &Settings::default()).unwrap_err();
            assert!(!refused.words().contains("token"), "{refused:?}");
        }
        let alone = Where {
            token: TokenFile {
                token_file: Some("t".into()),
            },
            ..Where::default()
        };
        assert!(alone.choose(None, &Settings::default()).is_err());
    }
}
