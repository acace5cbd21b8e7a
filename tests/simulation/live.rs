//! Living a story: the real engine, life after life, in a simulated world.

use std::sync::Arc;
use std::time::Duration;

use sillage::{DiskPatience, Engine, EngineError, FeedItem, RunHandle};
use sillage_testkit::simulator::{
    Deed, Life, Promise, SimClock, SimFiles, SimIds, SimRuntime, SimStore, SimWorkspace, Simulation, Story,
    Tale,
};
use tokio::runtime::Builder;

/// How a life ended.
enum Over {
    /// The engine died.
    Died,
    /// The run is over.
    Ended,
    /// The engine stopped with an error, or nothing is left to do.
    Stopped,
}

/// Lives the story to its end.
pub(crate) fn live(story: Story) -> Option<Tale> {
    let simulation = Simulation::new(story)?;
    // After the last fault a run that ended badly is taken up once more.
    let mut last_chance = true;
    loop {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .ok()?;
        let over = runtime.block_on(one_life(&simulation));
        drop(runtime);
        if simulation.is_violated() {
            break;
        }
        match over {
            Over::Died => {}
            // Nobody takes up a run that is over but a person.
            Over::Ended if simulation.resumes() => {}
            Over::Ended if last_chance => {
                last_chance = false;
                simulation.sleep_until_calm();
            }
            Over::Ended => break,
            Over::Stopped => {}
        }
    }
    Some(simulation.tale())
}

async fn one_life(simulation: &Simulation) -> Over {
    let life = simulation.begin_life();
    tokio::spawn(life.clone().go_on());
    let engine = engine(simulation, &life);
    let over = tokio::select! {
        biased;
        () = life.died() => Over::Died,
        over = drive(simulation, &engine) => over,
    };
    // Here, where the time is still the story's.
    simulation.end_life();
    over
}

fn engine(simulation: &Simulation, life: &Life) -> Engine {
    let ids = simulation.clone();
    Engine::builder(
        Arc::new(SimStore(life.clone())),
        Arc::new(SimRuntime(life.clone())),
        Arc::new(SimWorkspace(life.clone())),
    )
    .clock(Arc::new(SimClock(simulation.clone())))
    .ids(move || Box::new(SimIds(ids.clone())))
    .files(Arc::new(SimFiles(life.clone())))
    .disk_patience(DiskPatience::LONG)
    .build()
}

/// Launches the run, or takes it up, and does to it what the person does.
async fn drive(simulation: &Simulation, engine: &Engine) -> Over {
    let definition = simulation.definition();
    let begun = match simulation.is_launched() {
        true => engine.resume(&definition.run).await,
        false => engine.launch(definition).await,
    };
    let handle = match begun {
        Ok(handle) => handle,
        Err(EngineError::Refused(_)) => return Over::Ended,
        Err(EngineError::Store(_)) => return pause(Over::Stopped).await,
        Err(error) => {
            simulation.violated(Promise::Replays, || {
                format!("the run cannot be taken up: {error:?}")
            });
            return Over::Stopped;
        }
    };
    tokio::spawn(watch(simulation.clone(), handle.clone()));
    let mut person = simulation.person();
    loop {
        let deed = tokio::select! {
            biased;
            ended = handle.wait() => return match ended {
                Ok(_) => {
                    simulation.ended();
                    Over::Ended
                }
                Err(error) => stopped(simulation, &error).await,
            },
            Some(deed) = person.recv() => deed,
        };
        match deed {
            // Whoever stops a run that just ended is told so.
            Deed::Stop => drop(handle.stop()),
            Deed::Answer(asked, answer) => {
                let (handle, simulation) = (handle.clone(), simulation.clone());
                tokio::spawn(async move {
                    let told = handle.answer_permission(asked, answer).await;
                    simulation.tell(|| format!("the person is told {told:?}"));
                });
            }
        }
    }
}

/// What is shown is in the log.
async fn watch(simulation: Simulation, handle: RunHandle) {
    let mut feed = handle.follow();
    drop(handle);
    while let Some(item) = feed.next().await {
        if let FeedItem::Fact(fact) = item
            && !simulation.holds(&fact)
        {
            simulation.violated(Promise::NothingLost, || {
                format!("event {} was shown, and is not in the log", fact.seq)
            });
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever is neither the store's fault nor a panic is a log that cannot be believed"
)]
async fn stopped(simulation: &Simulation, error: &EngineError) -> Over {
    match error {
        EngineError::Store(_) => {}
        EngineError::Gone(_) => {
            simulation.violated(Promise::NoPanic, || "the engine went without a word".to_owned());
        }
        other => simulation.violated(Promise::Replays, || format!("the engine stopped: {other:?}")),
    }
    pause(Over::Stopped).await
}

/// Whoever runs the program waits a while before it is tried again.
async fn pause(over: Over) -> Over {
    tokio::time::sleep(Duration::from_secs(20)).await;
    over
}
