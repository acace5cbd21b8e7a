//! R8, Q2: `sillage wait parse`.

use crate::{Sandbox, cases};

#[test]
fn q2_limit_texts_answer_as_the_cases_say() {
    let sandbox = Sandbox::new();
    let golden = cases("limit-texts.json");
    assert!(golden.len() > 6);
    let more = cases("more-limit-texts.json");
    for (at, case) in golden.iter().chain(&more).enumerate() {
        let field = |name: &str| case["input"][name].as_str().expect("a text");
        let (text, now, zone) = (field("text"), field("now"), field("zone"));
        let mut words = vec!["wait", "parse", "--json", "--now", now, "--zone", zone];
        // Each of the golden ones both ways; of the others every tenth, which differ in nothing but their text.
        if at < golden.len() || at % 10 == 0 {
            let ended = sandbox.run_with_input(words.iter().chain(&["-"]), text);
            assert_eq!(
                (ended.code, ended.json()),
                (0, case["expect"].clone()),
                "{}",
                case["name"]
            );
            words.extend(["--", text]);
            let ended = sandbox.run(&words);
            assert_eq!(
                (ended.code, ended.json()),
                (0, case["expect"].clone()),
                "{}",
                case["name"]
            );
        }
    }
}

#[test]
fn r8_a_person_is_told_the_instant_in_their_zone_and_how_long_it_is() {
    let sandbox = Sandbox::new();
    let now = ["--now", "2026-11-30T14:00:00Z", "--zone", "Europe/Paris"];
    let told = |text: &str| {
        let ended = sandbox.run(["wait", "parse", text].iter().chain(&now));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        ended.stdout
    };
    assert_eq!(
        told("resets 3:20pm (UTC)"),
        "until 2026-11-30 16:20 +01:00 (2026-11-30T15:20:00Z), in 1h20m\n"
    );
    assert_eq!(
        told("try again later"),
        "no instant that can be relied on: tried again every 15m00s\n"
    );
}

#[test]
fn r8_how_often_an_account_is_tried_is_as_in_the_settings_that_runs_use() {
    let sandbox = Sandbox::new();
    sandbox.write("config.yaml", "waits: { tryAccountEvery: 2h }\n");
    let ended = sandbox.run(["wait", "parse", "try again later", "--config", "config.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.ends_with("tried again every 2h00m\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn r8_an_instant_that_no_calendar_has_is_told_to_be_that() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(["wait", "parse", "later", "--now", "9999-12-31T23:59:59Z"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("instants are known from"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("is written as"), "{}", ended.stderr);
}

#[test]
fn r8_without_now_and_zone_they_are_the_machines() {
    let sandbox = Sandbox::new();
    // A day that is far enough away to be ahead, whenever this is read.
    let text = "resets at 2999-01-01 00:00";
    for (zone, until) in [
        ("Asia/Kathmandu", "2998-12-31T18:15:00Z"),
        (":America/New_York", "2999-01-01T05:00:00Z"),
        ("UTC", "2999-01-01T00:00:00Z"),
        ("Mars/Olympus", "2999-01-01T00:00:00Z"),
    ] {
        let output = sandbox
            .command(["wait", "parse", "--json", text])
            .env("TZ", zone)
            .output()
            .expect("the program runs");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an answer");
        assert_eq!(answer["until"], until, "{zone}");
    }
    let ended = sandbox.run(["wait", "parse", "--json", "resets at 2020-01-01T00:00:00Z"]);
    assert!(ended.json()["until"].is_null(), "what is over is over now");
}

#[test]
fn h14_a_wrong_instant_or_zone_is_a_mistake() {
    let sandbox = Sandbox::new();
    for (option, value) in [
        ("--now", "yesterday"),
        ("--now", "2026-11-30"),
        ("--zone", "Mars/Olympus"),
        ("--zone", ""),
    ] {
        let ended = sandbox.run(["wait", "parse", "--json", option, value, "resets 3pm"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (2, ""), "{option} {value}");
        assert_eq!(ended.json()["error"]["kind"], "usage", "{option} {value}");
    }
    assert_eq!(sandbox.run(["wait", "parse"]).code, 2);
}
