//! The table of states and events, cell by cell, and what holds whatever happens.

use super::*;

mod anything;

type Pool = Agents<&'static str>;

const START: Timestamp = Timestamp(1_000_000);

pub(super) fn defined(names: &[(&str, &'static str)]) -> Vec<Definition<&'static str>> {
    let definitions = names.iter().map(|(name, launch)| Definition {
        name: (*name).to_owned(),
        launch: *launch,
    });
    definitions.collect()
}

fn pool(names: &[&str], most: Option<u32>) -> Pool {
    let names: Vec<_> = names.iter().map(|name| (*name, "v1")).collect();
    let limits = PoolLimits {
        most: most.and_then(NonZeroU32::new),
        idle: Some(Duration::from_secs(600)),
    };
    Agents::new(defined(&names), limits)
}

fn name(agent: &str) -> String {
    agent.to_owned()
}

/// What follows, in short: `a=ready`, `launch a#1 v1`, `end a#1`, or the refusal.
fn told(outcome: Result<Vec<Output<&'static str>>, Refusal>) -> Vec<String> {
    let outputs = match outcome {
        Ok(outputs) => outputs,
        Err(refusal) => return vec![refusal.to_string()],
    };
    let short = |output| match output {
        Output::Changed(StateChange { agent, state, error }) => {
            let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
            format!("{agent}={}{error}", state.word())
        }
        Output::Launch {
            agent,
            process,
            launch,
        } => format!("launch {agent}#{} {launch}", process.0),
        Output::End { agent, process } => format!("end {agent}#{}", process.0),
    };
    outputs.into_iter().map(short).collect()
}

/// Takes an input a second after the one before.
fn take(pool: &mut Pool, second: i64, input: Input<&'static str>) -> Vec<String> {
    told(pool.decide(Timestamp(START.0 + second * 1000), input))
}

fn word(pool: &Pool, agent: &str) -> &'static str {
    pool.status(agent).map_or("none", |status| status.state.word())
}

const USER: UserId = UserId(1);
const FIRST: ProcessNumber = ProcessNumber(1);

/// The agent `a` in a state, by the inputs that lead there.
fn in_state(state: &str) -> Pool {
    let mut pool = pool(&["a"], None);
    let inputs: Vec<Input<&'static str>> = match state {
        "stopped" => vec![],
        "starting" => vec![Input::Start(name("a"))],
        "starting, to stop" => vec![Input::Start(name("a")), Input::Stop(name("a"))],
        "ready" => vec![Input::Start(name("a")), Input::Started(FIRST)],
        "busy" => vec![Input::Use(name("a"), USER), Input::Started(FIRST)],
        "error" => vec![Input::Start(name("a")), Input::StartFailed(FIRST, name("no key"))],
        "stopped, ending" => vec![
            Input::Start(name("a")),
            Input::Started(FIRST),
            Input::Stop(name("a")),
        ],
        other => panic!("{other}"),
    };
    for input in inputs {
        pool.decide(START, input).unwrap();
    }
    pool
}

fn event(event: &str) -> Input<&'static str> {
    let configured = |names: &[(&str, &'static str)]| Input::Configured {
        definitions: defined(names),
        limits: PoolLimits {
            most: None,
            idle: Some(Duration::from_secs(600)),
        },
    };
    match event {
        "start" => Input::Start(name("a")),
        "use" => Input::Use(name("a"), UserId(2)),
        "stop" => Input::Stop(name("a")),
        "restart" => Input::Restart(name("a")),
        "release" => Input::Release(name("a"), USER),
        "started" => Input::Started(FIRST),
        "start failed" => Input::StartFailed(FIRST, name("bad")),
        "exited" => Input::Exited(FIRST, name("crash")),
        "ended" => Input::Ended(FIRST, None),
        "not ended" => Input::Ended(FIRST, Some(name("stuck"))),
        "idle" => Input::Checked,
        "changed" => configured(&[("a", "v2")]),
        "removed" => configured(&[("b", "v1")]),
        "same" => configured(&[("a", "v1")]),
        "quit" => Input::Quit,
        other => panic!("{other}"),
    }
}

/// Every event in every state: the state that follows, and what is told and ordered. An event that is not named
/// leaves the state as it is and nothing follows.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a1_every_event_in_every_state() {
    const EVENTS: [&str; 15] = [
        "start",
        "use",
        "stop",
        "restart",
        "release",
        "started",
        "start failed",
        "exited",
        "ended",
        "not ended",
        "idle",
        "changed",
        "removed",
        "same",
        "quit",
    ];
    type Cell = (&'static str, &'static str, &'static [&'static str]);
    let table: [(&str, &[Cell]); 7] = [
        (
            "stopped",
            &[
                ("start", "starting", &["a=starting", "launch a#1 v1"]),
                ("use", "starting", &["a=starting", "launch a#1 v1"]),
                ("restart", "starting", &["a=starting", "launch a#1 v1"]),
                ("changed", "stopped", &["a=stopped"]),
                ("removed", "none", &[]),
            ],
        ),
        (
            "error",
            &[
                ("start", "starting", &["a=starting", "launch a#2 v1"]),
                ("use", "starting", &["a=starting", "launch a#2 v1"]),
                ("restart", "starting", &["a=starting", "launch a#2 v1"]),
                ("changed", "error", &["a=error (no key)"]),
                ("removed", "none", &[]),
            ],
        ),
        (
            "starting",
            &[
                ("started", "ready", &["a=ready"]),
                ("start failed", "error", &["a=error (bad)"]),
                ("exited", "error", &["a=error (crash)"]),
                ("changed", "starting", &["a=starting"]),
                // It is hidden, and stopped once the start ends.
                ("removed", "none", &[]),
            ],
        ),
        (
            "starting, to stop",
            &[
                ("started", "stopped", &["a=stopped", "end a#1"]),
                ("start failed", "stopped", &["a=stopped"]),
                ("exited", "stopped", &["a=stopped"]),
                ("changed", "starting", &["a=starting"]),
                ("removed", "none", &[]),
            ],
        ),
        (
            "ready",
            &[
                ("use", "busy", &["a=busy"]),
                ("stop", "stopped", &["a=stopped", "end a#1"]),
                ("restart", "starting", &["a=stopped", "end a#1", "a=starting"]),
                ("exited", "error", &["a=error (crash)"]),
                ("start failed", "error", &["a=error (bad)"]),
                ("idle", "stopped", &["a=stopped", "end a#1"]),
                ("changed", "ready", &["a=ready"]),
                ("removed", "none", &["a=stopped", "end a#1"]),
                ("quit", "stopped", &["a=stopped", "end a#1"]),
            ],
        ),
        (
            "busy",
            &[
                ("stop", "stopped", &["a=stopped", "end a#1"]),
                ("restart", "starting", &["a=stopped", "end a#1", "a=starting"]),
                ("release", "ready", &["a=ready"]),
                ("exited", "error", &["a=error (crash)"]),
                ("start failed", "error", &["a=error (bad)"]),
                ("changed", "busy", &["a=busy"]),
                ("removed", "none", &["a=stopped", "end a#1"]),
                ("quit", "stopped", &["a=stopped", "end a#1"]),
            ],
        ),
        (
            "stopped, ending",
            &[
                // The process is still there: its successor waits for its end.
                ("start", "starting", &["a=starting"]),
                ("use", "starting", &["a=starting"]),
                ("restart", "starting", &["a=starting"]),
                ("not ended", "error", &["a=error (stuck)"]),
                ("changed", "stopped", &["a=stopped"]),
                ("removed", "none", &[]),
            ],
        ),
    ];
    for (state, cells) in table {
        for what in EVENTS {
            let mut pool = in_state(state);
            let before = word(&pool, "a");
            let (after, outputs) = cells
                .iter()
                .find(|(event, ..)| *event == what)
                .map_or((before, &[][..]), |(_, after, outputs)| (*after, *outputs));
            let told = take(&mut pool, 600, event(what));
            assert_eq!(told, outputs, "{what} in {state}");
            assert_eq!(word(&pool, "a"), after, "{what} in {state}");
        }
    }
}

#[test]
fn a1_a_start_waits_for_the_end_of_the_process_before() {
    for wish in ["start", "restart", "use"] {
        let mut pool = in_state("stopped, ending");
        take(&mut pool, 1, event(wish));
        assert_eq!(take(&mut pool, 2, event("ended")), ["launch a#2 v1"], "{wish}");
        // Whom the earlier process told of its end no longer matters.
        assert_eq!(take(&mut pool, 3, event("exited")), [""; 0]);
        let ready = take(&mut pool, 4, Input::Started(ProcessNumber(2)));
        let used = wish == "use";
        assert_eq!(
            ready,
            if used {
                vec!["a=ready", "a=busy"]
            } else {
                vec!["a=ready"]
            }
        );
    }
    // One that cannot be ended gets no successor by itself.
    let mut pool = in_state("stopped, ending");
    take(&mut pool, 1, event("start"));
    assert_eq!(take(&mut pool, 2, event("not ended")), ["a=error (stuck)"]);
}

#[test]
fn a1_the_last_wish_counts_while_an_agent_starts() {
    let mut pool = in_state("starting, to stop");
    assert_eq!(take(&mut pool, 1, event("start")), [""; 0]);
    assert_eq!(take(&mut pool, 2, event("started")), ["a=ready"]);

    let mut pool = in_state("starting");
    take(&mut pool, 1, event("changed"));
    take(&mut pool, 1, event("restart"));
    assert_eq!(
        take(&mut pool, 2, event("started")),
        ["end a#1"],
        "it was launched with what is no longer so"
    );
    assert_eq!(take(&mut pool, 3, event("ended")), ["launch a#2 v2"]);

    let mut pool = in_state("starting");
    take(&mut pool, 1, event("changed"));
    take(&mut pool, 1, event("restart"));
    assert_eq!(take(&mut pool, 2, event("start failed")), ["launch a#2 v2"]);
}

#[test]
fn a1_those_who_wait_for_a_start_use_it() {
    let mut pool = in_state("starting");
    take(&mut pool, 1, Input::Use(name("a"), UserId(7)));
    take(&mut pool, 1, Input::Use(name("a"), UserId(8)));
    take(&mut pool, 1, Input::Release(name("a"), UserId(7)));
    assert_eq!(take(&mut pool, 2, event("started")), ["a=ready", "a=busy"]);
    assert!(pool.uses("a", UserId(8)) && !pool.uses("a", UserId(7)));
    assert_eq!(take(&mut pool, 3, Input::Release(name("a"), UserId(7))), [""; 0]);
    assert_eq!(
        take(&mut pool, 3, Input::Release(name("a"), UserId(8))),
        ["a=ready"]
    );
    // A use ends with the process.
    take(&mut pool, 4, Input::Use(name("a"), UserId(9)));
    take(&mut pool, 5, event("exited"));
    assert!(!pool.uses("a", UserId(9)));
}

#[test]
fn a1_an_idle_agent_is_stopped_after_its_time_and_not_before() {
    let mut pool = in_state("busy");
    assert_eq!(take(&mut pool, 5000, Input::Checked), [""; 0], "it is used");
    take(&mut pool, 5000, event("release"));
    assert_eq!(take(&mut pool, 5599, Input::Checked), [""; 0]);
    assert_eq!(take(&mut pool, 5600, Input::Checked), ["a=stopped", "end a#1"]);
    // Without a limit none is.
    let mut pool = in_state("ready");
    pool.limits.idle = None;
    assert_eq!(take(&mut pool, 1_000_000, Input::Checked), [""; 0]);
}

/// Agents of which `a` and `b` run and `a` was used last.
fn two_of_three(most: u32) -> Pool {
    let mut pool = pool(&["a", "b", "c"], Some(most));
    take(&mut pool, 0, Input::Use(name("a"), USER));
    take(&mut pool, 0, Input::Started(FIRST));
    take(&mut pool, 1, Input::Start(name("b")));
    take(&mut pool, 2, Input::Started(ProcessNumber(2)));
    take(&mut pool, 3, Input::Release(name("a"), USER));
    pool
}

#[test]
fn a1_the_idle_agent_that_was_used_least_recently_makes_room() {
    let mut pool = two_of_three(2);
    assert_eq!(
        take(&mut pool, 4, Input::Start(name("c"))),
        ["b=stopped", "end b#2", "c=starting"]
    );
    // Its place is free once it is gone.
    assert_eq!(
        take(&mut pool, 5, Input::Ended(ProcessNumber(2), None)),
        ["launch c#3 v1"]
    );
    // With more places nobody goes.
    let mut pool = two_of_three(3);
    assert_eq!(
        take(&mut pool, 4, Input::Start(name("c"))),
        ["c=starting", "launch c#3 v1"]
    );
}

#[test]
fn a1_where_all_are_busy_a_start_is_refused_in_these_words() {
    let mut pool = two_of_three(2);
    take(&mut pool, 4, Input::Use(name("a"), UserId(4)));
    take(&mut pool, 4, Input::Use(name("b"), UserId(5)));
    let before = pool.statuses();
    for wish in [
        Input::Start(name("c")),
        Input::Restart(name("c")),
        Input::Use(name("c"), UserId(6)),
    ] {
        assert_eq!(
            take(&mut pool, 5, wish),
            ["too many agents running: 2 agent(s) busy (a, b), the limit is 2"]
        );
    }
    assert_eq!(pool.statuses(), before);
    // The limit is no matter of those who run already.
    assert_eq!(take(&mut pool, 6, Input::Use(name("a"), UserId(6))), [""; 0]);
    // One that starts is not stopped for another.
    let mut pool = super::tests::pool(&["a", "b"], Some(1));
    take(&mut pool, 0, Input::Start(name("a")));
    assert_eq!(
        take(&mut pool, 1, Input::Start(name("b"))),
        ["too many agents running: 1 agent(s) busy (a), the limit is 1"]
    );
    // But one that stops once it has started leaves its place.
    take(&mut pool, 2, Input::Stop(name("a")));
    assert_eq!(take(&mut pool, 3, Input::Start(name("b"))), ["b=starting"]);
    assert_eq!(
        take(&mut pool, 4, Input::Start(name("a"))),
        ["too many agents running: 1 agent(s) busy (b), the limit is 1"],
        "its place is taken"
    );
    assert_eq!(
        take(&mut pool, 5, Input::Started(FIRST)),
        ["a=stopped", "end a#1"]
    );
    assert_eq!(take(&mut pool, 6, Input::Ended(FIRST, None)), ["launch b#2 v1"]);
}

#[test]
fn a1_a_lower_limit_stops_nothing_and_holds_for_the_next_start() {
    let mut pool = two_of_three(3);
    let limits = PoolLimits {
        most: NonZeroU32::new(1),
        idle: None,
    };
    let definitions = defined(&[("a", "v1"), ("b", "v1"), ("c", "v1")]);
    assert_eq!(
        take(&mut pool, 4, Input::Configured { definitions, limits }),
        [""; 0]
    );
    assert_eq!(
        take(&mut pool, 5, Input::Start(name("c"))),
        ["b=stopped", "end b#2", "a=stopped", "end a#1", "c=starting"]
    );
    take(&mut pool, 6, Input::Ended(FIRST, None));
    assert_eq!(
        take(&mut pool, 7, Input::Ended(ProcessNumber(2), None)),
        ["launch c#3 v1"]
    );
}

#[test]
fn a1_a_running_agent_is_outdated_until_its_restart_or_until_the_change_is_taken_back() {
    let outdated = |pool: &Pool| pool.status("a").unwrap().outdated;
    let mut pool = in_state("busy");
    take(&mut pool, 1, event("changed"));
    assert!(outdated(&pool));
    take(&mut pool, 2, event("same"));
    assert!(!outdated(&pool));
    take(&mut pool, 3, event("changed"));
    take(&mut pool, 4, event("restart"));
    assert_eq!(take(&mut pool, 5, event("ended")), ["launch a#2 v2"]);
    assert!(!outdated(&pool));
    for state in ["stopped", "error", "stopped, ending"] {
        let mut pool = in_state(state);
        take(&mut pool, 1, event("changed"));
        assert!(!outdated(&pool), "{state}");
    }
}

#[test]
fn a1_an_agent_that_comes_back_into_the_settings_never_has_two_processes() {
    let mut pool = in_state("ready");
    take(&mut pool, 1, event("removed"));
    assert_eq!(word(&pool, "a"), "none");
    assert!(!pool.at_rest());
    assert_eq!(take(&mut pool, 2, event("changed")), ["a=stopped"]);
    assert_eq!(take(&mut pool, 3, event("start")), ["a=starting"]);
    assert_eq!(take(&mut pool, 4, event("ended")), ["launch a#2 v2"]);
    // Removed while it starts: it stops once the start has ended, and then nothing is left of it.
    let mut pool = in_state("starting");
    take(&mut pool, 1, event("removed"));
    assert_eq!(
        take(&mut pool, 2, event("start")),
        ["no agent is called `a`; the settings have b"]
    );
    assert_eq!(take(&mut pool, 3, event("started")), ["a=stopped", "end a#1"]);
    take(&mut pool, 4, event("ended"));
    assert!(pool.at_rest());
    assert_eq!(pool.members.len(), 1);
}

#[test]
fn a1_nothing_starts_in_a_program_that_ends() {
    let mut pool = in_state("starting");
    take(&mut pool, 1, Input::Quit);
    assert_eq!(
        take(&mut pool, 2, event("start")),
        ["agent `a` is not started: the program is about to end"]
    );
    assert_eq!(take(&mut pool, 3, event("started")), ["a=stopped", "end a#1"]);
    assert!(!pool.at_rest());
    take(&mut pool, 4, event("ended"));
    assert!(pool.at_rest());
}

#[test]
fn a1_the_error_of_an_earlier_program_is_shown_until_a_start() {
    let mut pool = pool(&["a"], None);
    pool.recall("a", name("it crashed"));
    assert_eq!(pool.status("a").unwrap().error.as_deref(), Some("it crashed"));
    assert!(pool.at_rest());
    take(&mut pool, 1, event("start"));
    assert_eq!(pool.status("a").unwrap().error, None);
    pool.recall("a", name("too late"));
    assert_eq!(word(&pool, "a"), "starting");
}

#[test]
fn a1_a_change_of_state_is_written_as_the_interface_reads_it() {
    let change = StateChange {
        agent: name("a"),
        state: AgentState::Error,
        error: Some(name("no key")),
    };
    assert_eq!(
        serde_json::to_string(&change).unwrap(),
        r#"{"agent":"a","state":"error","error":"no key"}"#
    );
    let change = StateChange {
        state: AgentState::Starting,
        error: None,
        ..change
    };
    assert_eq!(
        serde_json::to_string(&change).unwrap(),
        r#"{"agent":"a","state":"starting"}"#
    );
    assert_eq!(AgentState::Starting.shown(), "starting…");
}
