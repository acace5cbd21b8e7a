//! What a person does to a run by hand, under a seed.

use std::num::NonZeroU64;
use std::time::Duration;

use sillage_core::id::StepIndex;
use sillage_core::run::{BudgetChange, BudgetMode, CeilingChange, Command};

use super::faults::Fault;
use super::world::{Deed, World};

impl World {
    /// Retries, skips and other ceilings, some time before the faults are over.
    pub(super) fn plan_hands(&mut self) {
        let calm = self.story.calm;
        if self.story.faults.has(Fault::Hands) {
            for _ in 0..self.dice.below(Fault::Hands as usize, 9) {
                // Most of what happens happens early.
                let within = calm >> self.dice.below(Fault::Hands as usize, 6);
                let at = self.dice.below(Fault::Hands as usize, within.max(1));
                self.later(
                    at,
                    Box::new(|world| {
                        if let Some(command) = world.hand() {
                            world.deed(Deed::Command(command));
                        }
                    }),
                );
            }
        }
        if self.story.faults.has(Fault::Budgets) {
            for _ in 0..self.dice.below(Fault::Budgets as usize, 3) {
                let within = calm >> self.dice.below(Fault::Budgets as usize, 6);
                let at = self.dice.below(Fault::Budgets as usize, within.max(1));
                self.later(
                    at,
                    Box::new(|world| {
                        let change = world.other_ceilings();
                        world.deed(Deed::Command(Command::ChangeBudget(change)));
                    }),
                );
            }
        }
    }

    /// A command on some step, often on one that did not succeed.
    pub(super) fn hand(&mut self) -> Option<Command> {
        let stream = Fault::Hands as usize;
        let steps = self.judge.count_steps();
        if steps == 0 {
            return None;
        }
        let lost = self.judge.lost_steps();
        let step = match usize::try_from(self.dice.below(stream, 2 * lost.len() as u64)) {
            Ok(place) if place < lost.len() => lost[place],
            Ok(_) | Err(_) => StepIndex(u32::try_from(self.dice.below(stream, steps)).unwrap_or(0)),
        };
        // Half of the hands that would be laid on a sub-agent are laid on its coordinator.
        let coordinator = self.judge.coordinator_of(step);
        let step = coordinator
            .filter(|_| self.dice.chance(stream, 500))
            .unwrap_or(step);
        Some(match self.dice.below(stream, 4) {
            0 => Command::Skip { step },
            1 => Command::Redo { step },
            _ => Command::Retry { step },
        })
    }

    /// Other ceilings, mostly higher ones.
    pub(super) fn other_ceilings(&mut self) -> BudgetChange {
        let stream = Fault::Budgets as usize;
        let higher = self.dice.between(stream, 500, 60_000);
        let tokens = match self.dice.below(stream, 3) {
            0 => CeilingChange::Keep,
            1 => CeilingChange::Lift,
            _ => NonZeroU64::new(higher).map_or(CeilingChange::Lift, CeilingChange::Set),
        };
        let time = match self.dice.below(stream, 3) {
            0 => CeilingChange::Keep,
            1 => CeilingChange::Lift,
            _ => CeilingChange::Set(Duration::from_secs(higher)),
        };
        let mode = [None, Some(BudgetMode::Enforce), Some(BudgetMode::Audit)]
            [usize::try_from(self.dice.below(stream, 3)).unwrap_or(0)];
        BudgetChange {
            mode,
            tokens,
            time,
            ..BudgetChange::default()
        }
    }

    /// How a person takes the run up: with other ceilings, or for one step's sake.
    pub(super) fn taking_up(&mut self) -> Command {
        let hand = self.strikes_at(Fault::Hands, 500).then(|| self.hand()).flatten();
        hand.unwrap_or_else(|| {
            let budget = match self.strikes_at(Fault::Budgets, 600) {
                true => self.other_ceilings(),
                false => BudgetChange::default(),
            };
            Command::Resume { budget }
        })
    }
}
