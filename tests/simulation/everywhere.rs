//! A1, A3: the engine dies before and after everything that it does, and again while it takes the run up.

use sillage_testkit::simulator::{Crashes, Story, Tale};

use crate::live::live;

/// How many graphs.
pub(crate) const GRAPHS: u64 = 50;

/// The engine of a task dies at each point, once and twice; each time the end is that of a run that nobody disturbed.
/// Gives the number of lives that were cut.
///
/// # Errors
/// The story that came to another end.
pub(crate) fn everywhere(seed: u64, stride: u64) -> Result<u64, String> {
    let calm = Story::calm(seed);
    let undisturbed = told(&calm)?;
    let mut cut = 0;
    for point in (0..undisturbed.points).step_by(usize::try_from(stride).unwrap_or(1)) {
        // The second time within what the next engine does first.
        for points in [vec![point], vec![point, point + 1 + point % 7]] {
            let story = Story {
                crashes: Crashes::At(points),
                ..calm.clone()
            };
            let tale = told(&story)?;
            cut += tale.deaths.len() as u64;
            if tale.outcome != undisturbed.outcome {
                return Err(format!(
                    "{story}: it came to `{}` instead of `{}`",
                    tale.outcome, undisturbed.outcome
                ));
            }
        }
    }
    Ok(cut)
}

fn told(story: &Story) -> Result<Tale, String> {
    let tale = live(story.clone()).ok_or("a story can be lived")?;
    match tale.violation {
        Some(violation) => Err(format!("{story}: {violation}")),
        None => Ok(tale),
    }
}
