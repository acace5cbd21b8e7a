//! Seeded simulation: the real engine and the real machine in a world where everything goes wrong, watched by a judge.
//! `docs/simulation.md` says how it is used.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program"
)]

mod everywhere;
mod live;
#[cfg(feature = "planted-bugs")]
mod planted;
mod search;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use search::Search;
use sillage_testkit::simulator::Story;

/// Stories that `cargo test` lives.
const MODEST: u64 = 150;

/// Seeds within which each planted bug is found.
#[cfg(feature = "planted-bugs")]
const SEEDS_A_BUG: u64 = 20_000;

/// Seeds that once failed.
const KEPT: &str = include_str!("kept-seeds.txt");

type Test = fn() -> Result<(), String>;

const TESTS: [(&str, Test); 3] = [
    (
        "b1_b2_b3_b12_b14_h1_no_order_of_faults_breaks_a_promise",
        b1_b2_b3_b12_b14_h1_no_order_of_faults_breaks_a_promise,
    ),
    (
        "a1_a3_an_engine_that_dies_anywhere_comes_to_the_same_end",
        a1_a3_an_engine_that_dies_anywhere_comes_to_the_same_end,
    ),
    (
        "seeds_that_once_failed_do_not_fail_again",
        seeds_that_once_failed_do_not_fail_again,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--list", ..] => {
            for (name, _) in TESTS {
                println!("{name}: test");
            }
            ExitCode::SUCCESS
        }
        ["seeds", words @ ..] => many(words),
        ["everywhere", graphs] => every_point(graphs),
        ["story", options @ ..] => one(options),
        ["planted", rest @ ..] => bugs(rest),
        filters => tests(filters),
    }
}

/// Runs the tests whose names hold one of the filters.
fn tests(filters: &[&str]) -> ExitCode {
    let filters: Vec<_> = filters.iter().filter(|word| !word.starts_with('-')).collect();
    let mut failed = false;
    for (name, test) in TESTS {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(**filter)) {
            continue;
        }
        match test() {
            Ok(()) => println!("test {name} ... ok"),
            Err(words) => {
                failed = true;
                println!("test {name} ... FAILED\n{words}");
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn b1_b2_b3_b12_b14_h1_no_order_of_faults_breaks_a_promise() -> Result<(), String> {
    searched(Search {
        first: 1,
        count: MODEST,
        threads: threads(),
        until: None,
    })
}

/// Lives stories and tells what came of them; of a failing one everything that helps to understand it.
fn searched(search: Search) -> Result<(), String> {
    let began = Instant::now();
    let found = search.run();
    let took = began.elapsed().as_secs_f64();
    println!(
        "{} stories, {:.0} a second: {} lives, {} deaths, {} events, {:.1} years",
        found.stories,
        found.stories as f64 / took,
        found.lives,
        found.deaths,
        found.events,
        found.seconds as f64 / (365.25 * 86_400.0)
    );
    match found.failing {
        Some((seed, violation)) => Err(told(&Story::of(seed), &violation.to_string())),
        // No promise is broken; but what was to be tried was not.
        None if found.stories < search.count => Err(format!(
            "time was up after {} of {} stories",
            found.stories, search.count
        )),
        None => Ok(()),
    }
}

/// A failing story, small, with what happened last and the command that tells it again.
fn told(story: &Story, broken: &str) -> String {
    let commit = std::env::var("GITHUB_SHA").unwrap_or_default();
    let small = search::shrink(story);
    let again = live::live(Story {
        told: true,
        ..small.clone()
    })
    .expect("a story can be lived");
    let mut words = format!("seed {} {commit}: {broken}\n  as a whole: {story}\n", story.seed);
    for line in again.last.iter().skip(again.last.len().saturating_sub(50)) {
        words.push_str("    ");
        words.push_str(line);
        words.push('\n');
    }
    let violation = again
        .violation
        .map(|violation| violation.to_string())
        .unwrap_or_default();
    words.push_str(&format!(
        "  made small: {violation}\n  again: cargo test --profile simulation --test simulation -- story {small}\n"
    ));
    words
}

fn many(words: &[&str]) -> ExitCode {
    let numbers: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
    let (count, first, seconds) = match numbers.as_deref() {
        Ok([count]) => (*count, 1, None),
        Ok([count, first]) => (*count, *first, None),
        Ok([count, first, seconds]) => (*count, *first, Some(*seconds)),
        Ok(_) | Err(_) => {
            eprintln!("seeds COUNT [FIRST [SECONDS]]");
            return ExitCode::FAILURE;
        }
    };
    match searched(Search {
        first,
        count,
        threads: threads(),
        until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn one(options: &[&str]) -> ExitCode {
    let story = match Story::read(options) {
        Ok(story) => Story { told: true, ..story },
        Err(words) => {
            eprintln!("{words}");
            return ExitCode::FAILURE;
        }
    };
    let tale = live::live(story.clone()).expect("a story can be lived");
    for line in &tale.last {
        println!("{line}");
    }
    println!(
        "{}; {} events, {} lives, deaths at {:?} of {} points, {} s; digest {:016x}",
        tale.outcome,
        tale.events,
        tale.lives,
        tale.deaths,
        tale.points,
        tale.took / 1000,
        tale.digest
    );
    match tale.violation {
        Some(violation) => {
            println!(
                "{}",
                told(&Story { told: false, ..story }, &violation.to_string())
            );
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn seeds_that_once_failed_do_not_fail_again() -> Result<(), String> {
    for line in KEPT
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    {
        // As a shell reads it, for the options hold no blanks.
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_matches('\''))
            .collect();
        let story = Story::read(&words)?;
        if let Some(violation) = live::live(story.clone()).expect("a story can be lived").violation {
            return Err(told(&story, &violation.to_string()));
        }
    }
    Ok(())
}

fn a1_a3_an_engine_that_dies_anywhere_comes_to_the_same_end() -> Result<(), String> {
    anywhere(everywhere::GRAPHS, 29)
}

fn anywhere(graphs: u64, stride: u64) -> Result<(), String> {
    let next = std::sync::atomic::AtomicU64::new(0);
    let worker = || -> Result<u64, String> {
        let mut cut = 0;
        loop {
            let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if seed >= graphs {
                return Ok(cut);
            }
            cut += everywhere::everywhere(1000 + seed, stride)?;
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads()).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .collect()
    });
    let mut cut = 0;
    for result in results {
        cut += result?;
    }
    println!("{cut} lives cut over {graphs} graphs");
    Ok(())
}

fn every_point(graphs: &str) -> ExitCode {
    let graphs = graphs.parse().unwrap_or(everywhere::GRAPHS);
    match anywhere(graphs, 1) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

/// Looks for planted bugs: all, or those that are named; in so many seeds at most, or in the `whole` of them.
#[cfg(feature = "planted-bugs")]
fn bugs(words: &[&str]) -> ExitCode {
    use sillage_core::planted::Bug;

    let mut most = SEEDS_A_BUG;
    let (mut whole, mut named) = (false, Vec::new());
    for word in words {
        let bug = Bug::ALL.iter().find(|bug| bug.word() == *word);
        match (*word, word.parse(), bug) {
            ("whole", _, _) => whole = true,
            (_, Ok(seeds), _) => most = seeds,
            (_, _, Some(bug)) => named.push(*bug),
            (_, Err(_), None) => {
                eprintln!("planted [SEEDS] [whole] [BUG...]: there is no bug `{word}`");
                return ExitCode::FAILURE;
            }
        }
    }
    if named.is_empty() {
        named = Bug::ALL.to_vec();
    }
    println!("| bug | found by | first seed | seeds that find it |\n|---|---|---|---|");
    let caught = planted::catch_all(&named, most, whole, threads());
    let missed: Vec<_> = caught.iter().filter(|caught| caught.first.is_none()).collect();
    println!(
        "{} of {} planted bugs are found",
        caught.len() - missed.len(),
        caught.len()
    );
    for caught in &missed {
        eprintln!("nobody finds `{}` in {} seeds", caught.bug.word(), caught.lived);
    }
    // Where the engine breaks promises by itself, nothing is known of the judge.
    let by_itself: u64 = caught.iter().map(|caught| caught.without).sum();
    if by_itself > 0 {
        eprintln!("{by_itself} stories break a promise without a bug");
    }
    match missed.is_empty() && !caught.is_empty() && by_itself == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(not(feature = "planted-bugs"))]
fn bugs(_: &[&str]) -> ExitCode {
    eprintln!("no bug can be planted here: build with `--features planted-bugs`");
    ExitCode::FAILURE
}
