//! What a seed stands for: which faults, how often, until when, over which task.

use std::fmt;

use super::dice::Dice;
use super::faults::{Fault, Faults};

/// Most agents of a random task.
pub const MOST_AGENTS: u64 = 12;

/// Streams of the dice that are not those of a kind of fault (which are numbered like the kinds).
pub(crate) const STORY: usize = 40;
pub(crate) const TASK: usize = 41;
pub(crate) const TIME: usize = 42;
pub(crate) const AGENT: usize = 43;
pub(crate) const LIFE: usize = 44;
pub(crate) const PERSON: usize = 45;
pub(crate) const GROUP: usize = 46;

/// Kinds of fault that are drawn before a story's frequency and its date of calm; others after them, so that a new kind
/// leaves stories that are known as they were.
const DRAWN_FIRST: usize = 30;

/// When engines die.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crashes {
    /// As the dice say.
    AsRolled,
    /// At these points only: each thing that an engine does has one before it and one after it, counted from 0.
    At(Vec<u64>),
}

/// One story: everything that follows from a seed.
#[derive(Debug, Clone)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// The kinds of fault that are switched on.
    pub faults: Faults,
    /// Most agents of its task.
    pub most_agents: u64,
    /// When engines die.
    pub crashes: Crashes,
    /// How often a fault happens where it can, in a thousand.
    pub per_mille: u64,
    /// When faults end, in milliseconds from the story's beginning.
    pub calm: u64,
    /// Whether what happens is written down for people; otherwise only its digest.
    pub told: bool,
}

impl Story {
    /// The story of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Story {
        let mut dice = Dice::new(seed);
        let mut faults = Faults::NONE;
        // Few kinds at once show more than all of them: some stories have two or three, some most.
        let share = [120, 250, 400, 700][usize::try_from(dice.below(STORY, 4)).unwrap_or(0)];
        for fault in &Fault::ALL[..DRAWN_FIRST] {
            if dice.chance(STORY, share) {
                faults = faults.with(*fault);
            }
        }
        let per_mille = [15, 40, 100, 200][usize::try_from(dice.below(STORY, 4)).unwrap_or(0)];
        // The logarithm is what is evenly spread: from half a minute to a working day.
        let calm = 30_000 << dice.below(STORY, 11);
        for fault in &Fault::ALL[DRAWN_FIRST..] {
            if dice.chance(STORY, share) {
                faults = faults.with(*fault);
            }
        }
        Story {
            seed,
            faults,
            most_agents: MOST_AGENTS,
            crashes: Crashes::AsRolled,
            per_mille,
            calm,
            told: false,
        }
    }

    /// The same task without any fault.
    #[must_use]
    pub fn calm(seed: u64) -> Story {
        Story {
            faults: Faults::NONE,
            ..Story::of(seed)
        }
    }

    /// Reads what [`Story`] writes.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn read(words: &[&str]) -> Result<Story, String> {
        let mut words = words.iter();
        let mut story = Story::of(0);
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .copied()
                    .ok_or_else(|| format!("{word} needs a value"))
            };
            let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
            match *word {
                "--seed" => story = Story::of(number(value()?)?),
                "--faults" => story.faults = Faults::read(value()?)?,
                "--agents" => story.most_agents = number(value()?)?,
                "--crash-at" => {
                    let points = value()?.split(',').filter(|point| !point.is_empty()).map(number);
                    story.crashes = Crashes::At(points.collect::<Result<_, _>>()?);
                }
                other => return Err(format!("`{other}` is no option of a story")),
            }
        }
        Ok(story)
    }
}

/// The options that tell it again.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {} --faults '{}'", self.seed, self.faults)?;
        if self.most_agents != MOST_AGENTS {
            write!(f, " --agents {}", self.most_agents)?;
        }
        if let Crashes::At(points) = &self.crashes {
            let points: Vec<String> = points.iter().map(ToString::to_string).collect();
            write!(f, " --crash-at '{}'", points.join(","))?;
        }
        Ok(())
    }
}
