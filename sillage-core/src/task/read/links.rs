//! The links of a task (W8).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::{Link, Port, REPORT_PORT};
use super::Reading;
use super::agent::{KnownAgents, Ports};
use crate::document::check::{Spot, brief, field_path};
use crate::document::{Place, Value};
use crate::fault::FaultCode;
use crate::graph::Graph;

pub(in crate::task) const LINK_FIELDS: &[&str] = &["from", "to"];

/// One end of a link as it is written.
struct End<'a> {
    text: &'a str,
    path: String,
    place: Place,
}

/// The two sides of a link.
#[derive(Clone, Copy)]
enum Side {
    From,
    To,
}

impl Reading<'_> {
    /// The links. Without a list of agents to check them against, only their form is checked.
    pub(super) fn links(&mut self, spot: &Spot<'_>, known: Option<&KnownAgents<'_>>) -> Vec<Link> {
        let items = self.checker.list(spot).unwrap_or_default();
        let mut pointer = Pointer {
            rest: self.text,
            place: Place::START,
        };
        let mut links = Vec::with_capacity(items.len());
        // Where each link that joins two agents stands, for the faults of cycles.
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut spots = Vec::new();
        let mut seen = HashSet::new();
        for item in items {
            let ends = self.ends(&item, &mut pointer);
            let (Some((from, to)), Some(known)) = (ends, known) else {
                continue;
            };
            let from = from.and_then(|end| self.end(end, Side::From, known));
            let to = to.and_then(|end| self.end(end, Side::To, known));
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            if from.agent == to.agent {
                self.checker.fault_at(
                    &item,
                    FaultCode::SelfLink,
                    "this link goes from an agent to itself",
                );
                continue;
            }
            edges.push((from.agent, to.agent));
            spots.push(item.clone());
            let (Some(from), Some(to)) = (from.port, to.port) else {
                continue;
            };
            let link = Link { from, to };
            if !seen.insert(link.clone()) {
                let message = "this link stands here a second time, leave it out";
                self.checker.fault_at(&item, FaultCode::DuplicateLink, message);
            }
            links.push(link);
        }
        if let Some(known) = known {
            self.cycles(&edges, &spots, known);
        }
        links
    }

    /// The ends of a link in either form; those that are at fault are left out.
    fn ends<'a>(
        &mut self,
        item: &Spot<'a>,
        pointer: &mut Pointer<'_>,
    ) -> Option<(Option<End<'a>>, Option<End<'a>>)> {
        match &item.node.value {
            Value::Text(text) => {
                let (from, to) = self.short_form(item, text, pointer)?;
                Some((Some(from), Some(to)))
            }
            Value::Map(_) => {
                let fields = self.checker.fields(item.clone(), "a link", LINK_FIELDS)?;
                let mut end = |name| {
                    let spot = fields.required(name, &mut self.checker)?;
                    let text = self.checker.text(&spot)?;
                    Some(End {
                        text: text.trim(),
                        path: spot.path,
                        place: spot.node.place,
                    })
                };
                Some((end("from"), end("to")))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) => {
                self.bad_link(item);
                None
            }
        }
    }

    fn short_form<'a>(
        &mut self,
        item: &Spot<'a>,
        text: &'a str,
        pointer: &mut Pointer<'_>,
    ) -> Option<(End<'a>, End<'a>)> {
        let sides = text
            .split_once("->")
            .filter(|(from, to)| is_end(from) && is_end(to));
        let Some((from, to)) = sides else {
            self.bad_link(item);
            return None;
        };
        let start = pointer.start_of(item.node.place, text);
        let end = |side: &'a str, name: &str| {
            let end = side.trim_start();
            // Both sides end where the text or the arrow does; what is before `end` leads to its place.
            let before = &text[..text.len() - if name == "from" { to.len() + 2 } else { 0 } - end.len()];
            let place = start.map_or(item.node.place, |start| start.after(before));
            End {
                text: end.trim_end(),
                path: field_path(&item.path, name),
                place,
            }
        };
        Some((end(from, "from"), end(to, "to")))
    }

    fn bad_link(&mut self, item: &Spot<'_>) {
        let message = "a link is written `a -> b`, or as a map of `from` and `to`";
        self.checker.fault_at(item, FaultCode::BadType, message);
    }

    /// The agent and port that an end names.
    fn end(&mut self, end: End<'_>, side: Side, known: &KnownAgents<'_>) -> Option<Joined> {
        // An id with a dot has its own fault, and is found all the same.
        let (id, port) = match end.text.split_once('.') {
            Some((id, port)) if !known.by_id.contains_key(end.text) => (id, Some(port)),
            Some(_) | None => (end.text, None),
        };
        let Some(&agent) = known.by_id.get(id) else {
            let near = self.checker.near(id, known.ids.iter().copied());
            let message = format!("no agent of this task has the id `{}`", brief(id));
            self.checker
                .fault(FaultCode::UnknownAgent, message, end.path, Some(end.place), near);
            return None;
        };
        let name = port.filter(|port| *port != REPORT_PORT);
        let declared = known
            .ports
            .get(agent as usize)
            .and_then(|ports| side.ports(ports));
        let port = match (name, declared) {
            (Some(name), Some(declared)) if !declared.contains(name) => {
                self.unknown_port(end, name, side, declared);
                None
            }
            (name, _) => Some(Port {
                agent,
                name: name.map(str::to_owned),
            }),
        };
        Some(Joined { agent, port })
    }

    fn unknown_port(&mut self, end: End<'_>, name: &str, side: Side, declared: &BTreeSet<&str>) {
        let (kind, list) = match side {
            Side::From => ("output", "outputs"),
            Side::To => ("input", "inputs"),
        };
        let near = self
            .checker
            .near(name, declared.iter().copied().chain([REPORT_PORT]));
        let message = format!("this agent declares no {kind} `{}` in its `{list}`", brief(name));
        self.checker
            .fault(FaultCode::UnknownPort, message, end.path, Some(end.place), near);
    }

    fn cycles(&mut self, edges: &[(u32, u32)], spots: &[Spot<'_>], known: &KnownAgents<'_>) {
        let agents = u32::try_from(known.ports.len()).unwrap_or(u32::MAX);
        let Err(cycles) = Graph::new(agents, edges) else {
            return;
        };
        let mut first_of = HashMap::new();
        for (edge, spot) in edges.iter().zip(spots) {
            first_of.entry(*edge).or_insert(spot);
        }
        for cycle in cycles {
            let edge = cycle.along.first().copied().zip(cycle.along.get(1).copied());
            if let Some(spot) = edge.and_then(|edge| first_of.get(&edge)) {
                self.checker
                    .fault_at(spot, FaultCode::Cycle, cycle.told(&known.ids));
            }
        }
    }
}

/// What a link's end joins; the port is none when it has a fault of its own.
struct Joined {
    agent: u32,
    port: Option<Port>,
}

impl Side {
    fn ports<'p, 'a>(self, ports: &'p Ports<'a>) -> Option<&'p BTreeSet<&'a str>> {
        match self {
            Side::From => ports.outputs.as_ref(),
            Side::To => ports.inputs.as_ref(),
        }
    }
}

fn is_end(side: &str) -> bool {
    !side.trim().is_empty() && !side.contains("->")
}

/// Finds places inside texts of one line, in one pass over the source as long as they are asked for in order.
struct Pointer<'t> {
    rest: &'t str,
    place: Place,
}

impl Pointer<'_> {
    /// Where the characters of a value start that is at `place`: there, or behind its quote. None when they do not
    /// stand in the source as they are read (escapes, several lines), or the place has been passed (an alias).
    fn start_of(&mut self, place: Place, text: &str) -> Option<Place> {
        while self.place < place {
            let step = if self.rest.starts_with("\r\n") {
                2
            } else {
                self.rest.chars().next()?.len_utf8()
            };
            let (passed, rest) = self.rest.split_at(step);
            self.place = if passed == "\r" {
                self.place.after("\n")
            } else {
                self.place.after(passed)
            };
            self.rest = rest;
        }
        if self.place != place {
            return None;
        }
        match self.rest.strip_prefix(['"', '\'']) {
            Some(quoted) => quoted.starts_with(text).then(|| place.after(" ")),
            None => self.rest.starts_with(text).then_some(place),
        }
    }
}
