//! `sillage permissions`: what agents ask a person for, and the answers.

use clap::{Args, Subcommand};
use serde::Serialize;
use sillage::Reader;
use sillage::core::id::Seq;
use sillage::core::plain;
use sillage::core::ports::Clock as _;
use sillage::core::run::{PermissionAnswer, PermissionId, PermissionView};
use sillage::core::time::human;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `permissions`.
#[derive(Debug, Args)]
pub(crate) struct Permissions {
    #[command(subcommand)]
    answer: Option<AnswerCommand>,
}

/// Answers.
#[derive(Debug, Subcommand)]
enum AnswerCommand {
    /// Let it be done, this once.
    Allow {
        #[command(flatten)]
        request: Asked,
    },
    /// Refuse it.
    Deny {
        #[command(flatten)]
        request: Asked,
    },
    /// Answer with one of the agent's own options, which may last.
    Answer {
        #[command(flatten)]
        request: Asked,
        /// The option's identifier, as the list tells it.
        option: String,
    },
}

/// The request that is answered.
#[derive(Debug, Args)]
struct Asked {
    /// The request, as the list names it; its number is enough where only one run has that number.
    #[arg(value_name = "REQUEST")]
    id: String,
}

#[derive(Serialize)]
struct Listed<'a> {
    ok: bool,
    permissions: &'a [PermissionView],
}

#[derive(Serialize)]
struct Answered<'a> {
    ok: bool,
    permission: &'a PermissionView,
    answer: &'a PermissionAnswer,
}

/// Lists the requests that are open, or answers one; a process that drives the run passes the answer on.
pub(crate) fn run(arguments: &Permissions, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let Some(command) = &arguments.answer else {
        let open = drive::block_on(async { Ok(Reader::open(&data).await?.permissions().await?) })?;
        tell(&open, output)?;
        output.json(&Listed {
            ok: true,
            permissions: &open,
        })?;
        return Ok(Exit::Complete);
    };
    let (asked, answer) = match command {
        AnswerCommand::Allow { request } => (request, PermissionAnswer::Allow),
        AnswerCommand::Deny { request } => (request, PermissionAnswer::Deny),
        AnswerCommand::Answer { request, option } => (request, PermissionAnswer::Option(option.clone())),
    };
    let permission = drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let permission = find(&asked.id, reader.permissions().await?)?;
        let PermissionId { run, asked } = &permission.id;
        reader.answer_permission(run, *asked, answer.clone()).await?;
        Ok(permission)
    })?;
    output.line(format_args!(
        "{}: {} is told so: {}",
        said(&answer),
        output.paint(Tone::Strong, &permission.agent),
        visible(&permission.to_string())
    ))?;
    output.json(&Answered {
        ok: true,
        permission: &permission,
        answer: &answer,
    })?;
    Ok(Exit::Complete)
}

fn said(answer: &PermissionAnswer) -> String {
    match answer {
        PermissionAnswer::Allow => "allowed".to_owned(),
        PermissionAnswer::Deny => "denied".to_owned(),
        PermissionAnswer::Option(option) => format!("answered with `{}`", visible(option)),
    }
}

/// The open request that a person means.
fn find(id: &str, open: Vec<PermissionView>) -> Result<PermissionView, Failure> {
    let number = id.parse().ok().map(Seq);
    let named: Option<PermissionId> = match number {
        Some(_) => None,
        None => Some(id.parse().map_err(|error| Failure::new(Kind::Usage, error))?),
    };
    let mut meant: Vec<PermissionView> = open
        .into_iter()
        .filter(|open| named.as_ref() == Some(&open.id) || number == Some(open.id.asked))
        .collect();
    let hint = "`sillage permissions` lists those that are open";
    match (meant.pop(), meant.is_empty()) {
        (Some(permission), true) => Ok(permission),
        (Some(_), false) => {
            let words = format!("several runs have an open permission request {id}: name its run too");
            Err(Failure::new(Kind::Usage, words).hint(hint))
        }
        (None, _) => {
            let words =
                format!("no permission request {id} is open: it was answered or cancelled, or never asked");
            Err(Failure::new(Kind::Usage, words).hint(hint))
        }
    }
}

fn tell(open: &[PermissionView], output: &mut Output) -> Result<(), Failure> {
    if open.is_empty() {
        output.line("no agent waits for a permission")?;
        return Ok(());
    }
    let now = sillage::SystemClock.now();
    for request in open {
        let id = output.paint(Tone::Strong, &request.id);
        let ago = human(now.since(request.since));
        let kind = match &request.kind {
            Some(kind) => format!("{}: ", plain::line(kind)),
            None => String::new(),
        };
        output.line(format_args!(
            "{id}  {} asked {ago} ago\n  {kind}{}",
            plain::line(&request.agent),
            plain::line(&request.title)
        ))?;
        for path in &request.paths {
            output.line(format_args!("    {}", plain::line(&path.to_string_lossy())))?;
        }
        let options: Vec<String> = request
            .options
            .iter()
            .map(|option| format!("`{}` ({}, {})", option.id, option.name, option.kind))
            .collect();
        output.line(format_args!("  options: {}", plain::line(&options.join(", "))))?;
    }
    output.line("\nanswer with: sillage permissions allow|deny REQUEST, or answer REQUEST OPTION")?;
    Ok(())
}
