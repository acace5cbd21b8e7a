//! `sillage exchanges`: every message that an agent was sent, byte for byte, and what it answered (R30).

use std::collections::HashMap;

use clap::Args;
use serde::Serialize;
use sillage::core::id::{ClientMessageId, ClientSessionId, Seq};
use sillage::core::ports::runtime::Answer as FinalAnswer;
use sillage::core::run::{Event, MessagePurpose, Recorded, Run};
use sillage::core::time::Timestamp;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::reading::Chosen;
use crate::terminal::visible;

/// Arguments of `exchanges`.
#[derive(Debug, Args)]
pub(crate) struct Exchanges {
    #[command(flatten)]
    chosen: Chosen,
    /// Those of one agent only.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a str,
    exchanges: Vec<Exchange<'a>>,
}

/// A message and its answer. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, PartialEq, Serialize)]
struct Exchange<'a> {
    seq: Seq,
    at: Timestamp,
    agent: &'a str,
    session: ClientSessionId,
    message: ClientMessageId,
    purpose: MessagePurpose,
    /// What was sent, byte for byte.
    text: &'a str,
    /// None: not answered, or not yet.
    answered_at: Option<Timestamp>,
    answer: Option<&'a FinalAnswer>,
}

/// Tells the exchanges in the order in which messages were sent.
pub(crate) fn run(arguments: &Exchanges, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let story = arguments.chosen.read(global)?;
    let mut exchanges = exchanges(&story.run, &story.log);
    if let Some(wanted) = &arguments.agent {
        if story.run.step_named(wanted).is_none() {
            let known: Vec<&str> = story.run.step_names().collect();
            let run = story.run.id();
            return Err(
                Failure::new(Kind::Usage, format_args!("run {run} has no agent `{wanted}`"))
                    .hint(format_args!("its agents are {}", known.join(", "))),
            );
        }
        exchanges.retain(|exchange| exchange.agent == wanted);
    }
    for exchange in &exchanges {
        tell(exchange, output)?;
    }
    if exchanges.is_empty() {
        output.line("No message was sent yet.")?;
    }
    output.json(&Answer {
        ok: true,
        run: story.run.id().as_str(),
        exchanges,
    })?;
    Ok(Exit::Complete)
}

fn exchanges<'a>(run: &'a Run, log: &'a [Recorded]) -> Vec<Exchange<'a>> {
    let mut exchanges: Vec<Exchange<'a>> = Vec::new();
    let mut places: HashMap<ClientMessageId, usize> = HashMap::new();
    for fact in log {
        if let Event::MessagePlanned {
            step,
            session,
            purpose,
            message,
        } = &fact.event
        {
            places.insert(message.client_message_id, exchanges.len());
            exchanges.push(Exchange {
                seq: fact.seq,
                at: fact.at,
                agent: run.step_name(*step),
                session: *session,
                message: message.client_message_id,
                purpose: *purpose,
                text: &message.text,
                answered_at: None,
                answer: None,
            });
        } else if let Event::Answered { message, answer, .. } = &fact.event
            && let Some(place) = places.get(message)
        {
            exchanges[*place].answered_at = Some(fact.at);
            exchanges[*place].answer = Some(answer);
        }
    }
    exchanges
}

fn tell(exchange: &Exchange<'_>, output: &mut Output) -> Result<(), Failure> {
    let purpose = match exchange.purpose {
        MessagePurpose::Mission => "mission",
        MessagePurpose::Correction => "correction",
        MessagePurpose::Continuation => "continuation",
        MessagePurpose::Conflict => "conflict",
        MessagePurpose::Plan => "plan",
        MessagePurpose::PlanCorrection => "correction of the plan",
        MessagePurpose::Synthesis => "synthesis",
    };
    let agent = output.paint(Tone::Strong, exchange.agent);
    let session = exchange.session;
    output.line(format_args!(
        "{} → {agent}, {purpose}, session {session}",
        exchange.at
    ))?;
    output.line(format_args!("{}\n", visible(exchange.text.trim_end())))?;
    match (exchange.answered_at, exchange.answer) {
        (Some(at), Some(answer)) => {
            output.line(format_args!("{at} ← {agent}"))?;
            output.line(format_args!("{}\n", visible(answer.text.trim_end())))?;
        }
        (_, _) => output.line(output.paint(Tone::Faint, "not answered\n"))?,
    }
    Ok(())
}
