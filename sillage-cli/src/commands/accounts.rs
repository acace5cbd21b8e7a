//! `sillage accounts`: the provider accounts that runs wait for, and a person's word that one can be used again (R8).

use clap::{Args, Subcommand};
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::run::AccountView;
use sillage::{ReadError, Reader};

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `accounts`.
#[derive(Debug, Args)]
pub(crate) struct Accounts {
    #[command(subcommand)]
    command: Option<AccountCommand>,
}

/// What to do with an account.
#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Use it again at once, after a sign-in or when its quota is back: all its agents go on.
    Try {
        /// The account, as the list names it.
        account: String,
        /// Only in this run [default: in all that wait for it].
        #[arg(long)]
        run: Option<RunId>,
    },
}

#[derive(Serialize)]
struct Waited<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    account: &'a AccountView,
}

#[derive(Serialize)]
struct Listed<'a> {
    ok: bool,
    accounts: Vec<Waited<'a>>,
}

#[derive(Serialize)]
struct Tried<'a> {
    ok: bool,
    account: &'a str,
    runs: &'a [RunId],
}

/// Lists what is waited for, or tells the processes that drive the runs to use an account again.
pub(crate) fn run(arguments: &Accounts, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let Some(AccountCommand::Try { account, run }) = &arguments.command else {
        let waited = drive::block_on(async { Ok(Reader::open(&data).await?.accounts().await?) })?;
        if waited.is_empty() {
            output.line("no run waits for an account")?;
        }
        for (run, account) in &waited {
            let run = output.paint(Tone::Strong, run);
            output.line(format_args!("{run}  {}", visible(&account.to_string())))?;
        }
        let accounts = waited.iter().map(|(run, account)| Waited { run, account });
        output.json(&Listed {
            ok: true,
            accounts: accounts.collect(),
        })?;
        return Ok(Exit::Complete);
    };
    let runs = drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let runs: Vec<RunId> = match run {
            Some(run) => vec![run.clone()],
            None => {
                let waited = reader.accounts().await?.into_iter();
                let waiting = waited.filter(|(_, waited)| waited.account == *account);
                waiting.map(|(run, _)| run).collect()
            }
        };
        if runs.is_empty() {
            let words = format!("no run that is driven waits for account {}", visible(account));
            return Err(
                Failure::new(Kind::Usage, words).hint("`sillage accounts` lists those that are waited for")
            );
        }
        for run in &runs {
            let tried = reader.try_account(run, account).await;
            tried.map_err(|error| {
                if let ReadError::Refused(_) = error {
                    return Failure::new(Kind::Usage, error)
                        .hint("`sillage accounts` lists those that are waited for");
                }
                error.into()
            })?;
        }
        Ok(runs)
    })?;
    for run in &runs {
        let account = output.paint(Tone::Strong, visible(account));
        output.line(format_args!("account {account} is used again in run {run}"))?;
    }
    output.json(&Tried {
        ok: true,
        account,
        runs: &runs,
    })?;
    Ok(Exit::Complete)
}
