//! What follows from an input: the table of transitions.

use std::collections::BTreeSet;

use super::member::{Member, Phase, Process, Start, Then};
use super::{Agents, Definition, Input, Output, PoolLimits, ProcessNumber, Refusal, UserId};
use crate::time::Timestamp;

/// What is wanted of an agent that is to run.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Start,
    Restart,
    Use(UserId),
}

/// Takes an input: first what is said of one agent or all, then the starts for which there is a place now.
pub(super) fn decide<D: Clone + PartialEq>(
    agents: &mut Agents<D>,
    now: Timestamp,
    input: Input<D>,
) -> Result<Vec<Output<D>>, Refusal> {
    let mut turn = Turn {
        agents,
        now,
        outputs: Vec::new(),
    };
    match input {
        Input::Configured { definitions, limits } => turn.configured(definitions, limits),
        Input::Start(name) => turn.wanted(&name, Wish::Start)?,
        Input::Restart(name) => turn.wanted(&name, Wish::Restart)?,
        Input::Use(name, user) => turn.wanted(&name, Wish::Use(user))?,
        Input::Stop(name) => {
            let at = turn.find(&name)?;
            turn.stop(at);
        }
        Input::Release(name, user) => turn.release(&name, user),
        Input::Quit => {
            turn.agents.quitting = true;
            (0..turn.agents.members.len()).for_each(|at| turn.stop(at));
        }
        Input::Started(process) => turn.started(process),
        Input::StartFailed(process, words) | Input::Exited(process, words) => turn.gone(process, words),
        Input::Ended(process, trouble) => turn.ended(process, trouble),
        Input::Checked => turn.stop_the_idle(),
    }
    turn.launch_those_with_a_place();
    turn.forget_the_removed();
    Ok(turn.outputs)
}

struct Turn<'a, D> {
    agents: &'a mut Agents<D>,
    now: Timestamp,
    outputs: Vec<Output<D>>,
}

impl<D: Clone + PartialEq> Turn<'_, D> {
    fn find(&self, name: &str) -> Result<usize, Refusal> {
        let mut members = self.agents.members.iter();
        let found = members.position(|member| member.name == name && !member.removed);
        found.ok_or_else(|| self.agents.unknown(name))
    }

    /// A start, a restart or a use is asked for.
    fn wanted(&mut self, name: &str, wish: Wish) -> Result<(), Refusal> {
        let at = self.find(name)?;
        if self.agents.quitting {
            return Err(Refusal::Quitting(name.to_owned()));
        }
        let user = match wish {
            Wish::Use(user) => Some(user),
            Wish::Start | Wish::Restart => None,
        };
        let restart = matches!(wish, Wish::Restart);
        match &mut self.agents.members[at].phase {
            Phase::Stopped | Phase::Error(_) => {
                self.make_room(at)?;
                self.begin(at, user.into_iter().collect());
            }
            Phase::Starting { then: Then::Stop, .. } => {
                self.make_room(at)?;
                let member = &mut self.agents.members[at];
                let outdated = member.status().outdated;
                if let Phase::Starting { then, users, .. } = &mut member.phase {
                    *then = if restart && outdated {
                        Then::Restart
                    } else {
                        Then::Serve
                    };
                    users.extend(user);
                }
            }
            Phase::Starting { users, .. } => {
                users.extend(user);
                let member = &mut self.agents.members[at];
                let outdated = member.status().outdated;
                if let Phase::Starting { then, .. } = &mut member.phase
                    && restart
                    && outdated
                {
                    *then = Then::Restart;
                }
            }
            Phase::Ready { process, .. } => match wish {
                Wish::Start => {}
                Wish::Use(user) => {
                    let (process, users) = (process.clone(), BTreeSet::from([user]));
                    self.become_(at, Phase::Busy { process, users });
                }
                Wish::Restart => self.restart(at)?,
            },
            Phase::Busy { users, .. } => match wish {
                Wish::Start => {}
                Wish::Use(user) => {
                    users.insert(user);
                }
                Wish::Restart => self.restart(at)?,
            },
        }
        Ok(())
    }

    /// Ends what runs of an agent and asks for another start.
    fn restart(&mut self, at: usize) -> Result<(), Refusal> {
        self.make_room(at)?;
        self.stop(at);
        self.begin(at, BTreeSet::new());
        Ok(())
    }

    fn begin(&mut self, at: usize, users: BTreeSet<UserId>) {
        self.agents.last_start += 1;
        let start = Start::Awaited(self.agents.last_start);
        let then = Then::Serve;
        self.become_(at, Phase::Starting { start, then, users });
    }

    /// Sees to it that an agent may take a place: stops the idle agents that were used least recently, as many as
    /// needed. Where they are too few none is stopped.
    fn make_room(&mut self, at: usize) -> Result<(), Refusal> {
        let Some(most) = self.agents.limits.most else {
            return Ok(());
        };
        let others = || self.agents.members.iter().enumerate();
        let running = others()
            .filter(|(other, member)| *other != at && member.takes_place())
            .count();
        let limit = most.get() as usize;
        let excess = (running + 1).saturating_sub(limit);
        let mut idle: Vec<(Timestamp, usize)> = others()
            .filter(|(other, _)| *other != at)
            .filter_map(|(other, member)| idle_since(member).map(|since| (since, other)))
            .collect();
        if idle.len() < excess {
            let busy = others().filter(|(other, member)| {
                *other != at && member.takes_place() && idle_since(member).is_none()
            });
            return Err(Refusal::TooMany {
                busy: busy.map(|(_, member)| member.name.clone()).collect(),
                limit: most.get(),
            });
        }
        idle.sort_unstable();
        for (_, other) in idle.into_iter().take(excess) {
            self.stop(other);
        }
        Ok(())
    }

    /// A stop, whatever asks for it.
    fn stop(&mut self, at: usize) {
        match &mut self.agents.members[at].phase {
            Phase::Stopped | Phase::Error(_) => {}
            Phase::Starting {
                start: Start::Awaited(_),
                ..
            } => self.become_(at, Phase::Stopped),
            Phase::Starting { then, users, .. } => {
                *then = Then::Stop;
                users.clear();
            }
            Phase::Ready { process, .. } | Phase::Busy { process, .. } => {
                let number = process.number;
                self.become_(at, Phase::Stopped);
                self.end(at, number);
            }
        }
    }

    fn end(&mut self, at: usize, process: ProcessNumber) {
        let member = &mut self.agents.members[at];
        member.ending = Some(process);
        let agent = member.name.clone();
        self.outputs.push(Output::End { agent, process });
    }

    fn release(&mut self, name: &str, user: UserId) {
        // It may have been taken out of the settings meanwhile: then nobody uses it any more.
        let Ok(at) = self.find(name) else { return };
        let since = self.now;
        let member = &mut self.agents.members[at];
        match &mut member.phase {
            Phase::Starting { users, .. } => {
                users.remove(&user);
            }
            Phase::Busy { process, users } => {
                users.remove(&user);
                if users.is_empty() {
                    let process = process.clone();
                    self.become_(at, Phase::Ready { process, since });
                }
            }
            Phase::Stopped | Phase::Ready { .. } | Phase::Error(_) => {}
        }
    }

    /// The agent whose current process this is.
    fn holder(&self, process: ProcessNumber) -> Option<usize> {
        let has = |member: &Member<D>| member.process().is_some_and(|current| current.number == process);
        self.agents.members.iter().position(has)
    }

    fn started(&mut self, process: ProcessNumber) {
        let Some(at) = self.holder(process) else { return };
        let since = self.now;
        let Phase::Starting {
            start: Start::Launched(process),
            then,
            users,
        } = &mut self.agents.members[at].phase
        else {
            return;
        };
        let (process, users, number) = (process.clone(), std::mem::take(users), process.number);
        match then {
            Then::Serve => {
                let serving = process.clone();
                self.become_(at, Phase::Ready { process, since });
                if !users.is_empty() {
                    let process = serving;
                    self.become_(at, Phase::Busy { process, users });
                }
            }
            Then::Stop => {
                self.become_(at, Phase::Stopped);
                self.end(at, number);
            }
            Then::Restart => {
                self.end(at, number);
                self.begin(at, users);
            }
        }
    }

    /// A process is gone that nobody told to go.
    fn gone(&mut self, process: ProcessNumber, words: String) {
        let Some(at) = self.holder(process) else { return };
        match &mut self.agents.members[at].phase {
            Phase::Starting { then: Then::Stop, .. } => self.become_(at, Phase::Stopped),
            Phase::Starting {
                then: Then::Restart,
                users,
                ..
            } => {
                let users = std::mem::take(users);
                self.begin(at, users);
            }
            Phase::Starting { .. }
            | Phase::Ready { .. }
            | Phase::Busy { .. }
            | Phase::Stopped
            | Phase::Error(_) => self.become_(at, Phase::Error(words)),
        }
    }

    /// A process that was told to go is gone, or will not go: then its agent is not started again over it.
    fn ended(&mut self, process: ProcessNumber, trouble: Option<String>) {
        let of = |member: &Member<D>| member.ending == Some(process);
        let Some(at) = self.agents.members.iter().position(of) else {
            return;
        };
        self.agents.members[at].ending = None;
        if let Some(words) = trouble {
            self.become_(at, Phase::Error(words));
        }
    }

    fn stop_the_idle(&mut self) {
        let Some(longest) = self.agents.limits.idle else {
            return;
        };
        for at in 0..self.agents.members.len() {
            if idle_since(&self.agents.members[at]).is_some_and(|since| self.now.since(since) >= longest) {
                self.stop(at);
            }
        }
    }

    fn configured(&mut self, definitions: Vec<Definition<D>>, limits: PoolLimits) {
        self.agents.limits = limits;
        let named = |name: &str| definitions.iter().position(|definition| definition.name == name);
        for at in 0..self.agents.members.len() {
            let member = &self.agents.members[at];
            if named(&member.name).is_none() && !member.removed {
                self.stop(at);
                self.agents.members[at].removed = true;
            }
        }
        for definition in &definitions {
            let of = |member: &Member<D>| member.name == definition.name;
            let Some(member) = self.agents.members.iter_mut().find(|member| of(member)) else {
                self.agents.members.push(Member::new(definition.clone()));
                continue;
            };
            if member.launch != definition.launch || member.removed {
                member.launch = definition.launch.clone();
                member.removed = false;
                self.outputs.push(Output::Changed(member.change()));
            }
        }
        let place = |member: &Member<D>| named(&member.name).unwrap_or(usize::MAX);
        self.agents.members.sort_by_key(place);
    }

    /// Launches the starts that wait, in their order, as far as there are places. Where nothing is about to be gone
    /// there is nothing to wait for: a start that was let in may then exceed a limit that was lowered since.
    fn launch_those_with_a_place(&mut self) {
        loop {
            let members = &self.agents.members;
            let live: usize = members.iter().map(Member::processes).sum();
            let room = self
                .agents
                .limits
                .most
                .is_none_or(|most| live < most.get() as usize);
            if !room && members.iter().any(Member::is_leaving) {
                return;
            }
            let waiting = members.iter().enumerate();
            let next = waiting
                .filter(|(_, member)| member.ending.is_none())
                .filter_map(|(at, member)| awaited(member).map(|number| (number, at)))
                .min();
            let Some((_, at)) = next else { return };
            self.launch(at);
        }
    }

    fn launch(&mut self, at: usize) {
        self.agents.last_process += 1;
        let number = ProcessNumber(self.agents.last_process);
        let member = &mut self.agents.members[at];
        let launch = member.launch.clone();
        if let Phase::Starting { start, .. } = &mut member.phase {
            *start = Start::Launched(Process {
                number,
                launch: launch.clone(),
            });
        }
        self.outputs.push(Output::Launch {
            agent: member.name.clone(),
            process: number,
            launch,
        });
    }

    fn forget_the_removed(&mut self) {
        let members = &mut self.agents.members;
        members.retain(|member| !member.removed || !member.at_rest());
    }

    /// Puts an agent in a phase, and tells it where that is another state.
    fn become_(&mut self, at: usize, phase: Phase<D>) {
        let member = &mut self.agents.members[at];
        let before = member.state();
        member.phase = phase;
        if member.state() != before {
            self.outputs.push(Output::Changed(member.change()));
        }
    }
}

fn idle_since<D>(member: &Member<D>) -> Option<Timestamp> {
    match &member.phase {
        Phase::Ready { since, .. } => Some(*since),
        Phase::Stopped | Phase::Starting { .. } | Phase::Busy { .. } | Phase::Error(_) => None,
    }
}

/// The number of a start that was not launched yet.
fn awaited<D>(member: &Member<D>) -> Option<u64> {
    match &member.phase {
        Phase::Starting {
            start: Start::Awaited(number),
            ..
        } => Some(*number),
        Phase::Starting {
            start: Start::Launched(_),
            ..
        }
        | Phase::Stopped
        | Phase::Ready { .. }
        | Phase::Busy { .. }
        | Phase::Error(_) => None,
    }
}
