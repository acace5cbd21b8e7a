use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::document::check::MOST_FAULTS;
use crate::task::{AgentKind, DelegatedField, Port, WorktreeWish};

fn read_yaml(text: &str) -> Result<Task, Vec<Fault>> {
    read(text, Format::Either, None)
}

fn agents(count: usize) -> String {
    let mut text = "task: t\nagents:\n".to_owned();
    for index in 0..count {
        writeln!(
            text,
            "  - {{id: agent-{index}, mission: Do it., model: sonnet, effort: low, outputs: [x]}}"
        )
        .unwrap();
    }
    text + "links:\n"
}

#[test]
fn w5_to_w10_everything_that_is_written_is_read() {
    let task = read_yaml(
        "task: Limits
context: |
  Some context.
folders: {read: [../docs], write: [.]}
limits: {parallel: 4, models: {opus: 2}}
check: cargo test
autocompact_tokens: 200000
agents:
  - id: explore
    title: Explorer
    mission: Find it.
    resources: [src, https://example.org/rfc]
    deliverable: A list.
    model: sonnet
    effort: low
    browser: true
    worktree: never
    outputs: [findings]
  - id: build
    kind: dynamic
    mission: Build it.
    deliverable: {text: Code., files: [src/limit.rs]}
    model: opus
    effort: high
    max_duration: 1h30m
    sub_agents: {max: 4, delegate: [effort, mission, mission], allow: [{model: sonnet, efforts: [low, high]}]}
links:
  - explore.findings -> build
  - {from: explore.report, to: build}
",
    )
    .unwrap();
    assert_eq!(
        (task.title.as_str(), task.context.as_deref()),
        ("Limits", Some("Some context.\n"))
    );
    assert_eq!((task.method, task.check.as_deref()), (None, Some("cargo test")));
    assert_eq!(task.folders.read, [PathBuf::from("../docs")]);
    assert_eq!(task.folders.write, [PathBuf::from(".")]);
    assert_eq!(task.limits.parallel.map(NonZeroU32::get), Some(4));
    assert_eq!(task.limits.models["opus"].get(), 2);
    assert_eq!(
        task.autocompact,
        Autocompact::Tokens(NonZeroU64::new(200_000).unwrap())
    );
    let [explore, build] = task.agents.as_slice() else {
        panic!("two agents")
    };
    assert_eq!(
        (explore.id.as_str(), explore.title.as_deref()),
        ("explore", Some("Explorer"))
    );
    assert_eq!(
        explore.resources.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(),
        ["src", "https://example.org/rfc"]
    );
    assert_eq!(
        (explore.browser, explore.worktree),
        (Some(true), WorktreeWish::Never)
    );
    assert_eq!(
        (build.kind, build.worktree),
        (AgentKind::Dynamic, WorktreeWish::Auto)
    );
    assert_eq!(build.max_duration, Some(std::time::Duration::from_secs(5400)));
    let deliverable = build.deliverable.as_ref().unwrap();
    assert_eq!(
        (deliverable.text.as_deref(), deliverable.files.len()),
        (Some("Code."), 1)
    );
    let rules = build.sub_agents.as_ref().unwrap();
    assert_eq!(rules.max.get(), 4);
    assert_eq!(rules.delegate, [DelegatedField::Mission, DelegatedField::Effort]);
    assert_eq!(rules.allow[0].efforts, ["low", "high"]);
    let port = |agent, name: Option<&str>| Port {
        agent,
        name: name.map(str::to_owned),
    };
    assert_eq!(
        (&task.links[0].from, &task.links[0].to),
        (&port(0, Some("findings")), &port(1, None))
    );
    assert_eq!(
        (&task.links[1].from, &task.links[1].to),
        (&port(0, None), &port(1, None))
    );
}

#[test]
fn w5_yaml_and_json_make_the_same_task() {
    let yaml = read_yaml("task: t\nagents:\n  - {id: a, mission: m, model: s, effort: l}\n");
    let json = r#"{"task": "t", "agents": [{"id": "a", "mission": "m", "model": "s", "effort": "l"}]}"#;
    assert_eq!(yaml, read(json, Format::Json, None));
    assert_eq!(
        read("task: t", Format::Json, None).unwrap_err()[0].code,
        FaultCode::Syntax
    );
    assert_eq!(read("", Format::Json, None).unwrap_err().len(), 2);
}

#[test]
fn w12_ten_thousand_agents_in_a_chain_and_a_mesh_are_read() {
    const COUNT: usize = 10_000;
    let mut text = agents(COUNT);
    for index in 1..COUNT {
        writeln!(text, "  - agent-{} -> agent-{index}", index - 1).unwrap();
        writeln!(text, "  - {{from: agent-{}.x, to: agent-{index}}}", index / 2).unwrap();
    }
    // The second agent hears of the first twice by different ports; that is no fault.
    let task =
        read_yaml(&text.replace("from: agent-0.x, to: agent-1}", "from: agent-0.x, to: agent-2}")).unwrap();
    assert_eq!((task.agents.len(), task.links.len()), (COUNT, 2 * COUNT - 2));
}

#[test]
fn w12_ten_thousand_agents_in_a_ring_are_one_cycle_in_order() {
    const COUNT: usize = 10_000;
    let mut text = agents(COUNT);
    for index in 0..COUNT {
        writeln!(text, "  - agent-{index} -> agent-{}", (index + 1) % COUNT).unwrap();
    }
    let faults = read_yaml(&text).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message.matches(" -> ").count(), COUNT);
}

/// Looking for near names among all agents for every wrong link would compare a hundred million names.
#[test]
fn w12_ten_thousand_wrong_links_are_told_and_the_first_have_suggestions() {
    const COUNT: usize = 9_000;
    let mut text = agents(COUNT);
    for index in 0..COUNT {
        writeln!(text, "  - agnet-{index} -> agent-0").unwrap();
    }
    let faults = read_yaml(&text).unwrap_err();
    assert_eq!(faults.len(), COUNT);
    assert_eq!(faults[0].suggestion.as_deref(), Some("agent-0"));
    assert_eq!(faults[COUNT - 1].suggestion, None);
}

/// So would looking through all the ports of an agent for every link to it.
#[test]
fn w12_fifty_thousand_links_from_as_many_ports_are_read() {
    const COUNT: usize = 50_000;
    let mut text = "task: t\nagents:\n  - {id: b, mission: m, model: s, effort: l}\n".to_owned();
    text += "  - {id: a, mission: m, model: s, effort: l, outputs: [";
    (0..COUNT).for_each(|port| write!(text, "p{port},").unwrap());
    text += "]}\nlinks:\n";
    (0..COUNT).for_each(|port| writeln!(text, "  - a.p{port} -> b").unwrap());
    assert_eq!(read_yaml(&text).unwrap().links.len(), COUNT);
    let faults = read_yaml(&text.replace("- a.p", "- a.q")).unwrap_err();
    assert_eq!(faults.len(), MOST_FAULTS);
}

#[test]
fn w12_a_text_of_nothing_but_faults_is_not_multiplied() {
    let faults = read_yaml(&format!("task: t\nagents: [{}]", "1,".repeat(100_000))).unwrap_err();
    assert_eq!(faults.len(), MOST_FAULTS);
}

/// One line holds all: finding the places in it must not start from its beginning for each.
#[test]
fn w12_a_hundred_thousand_links_on_one_line_have_their_places() {
    const COUNT: usize = 100_000;
    let links = "\"a -> zed\",".repeat(COUNT - 1);
    let text = format!(
        r#"{{"task":"t","agents":[{{"id":"a","mission":"m","model":"s","effort":"l"}}],"links":[{links}"a -> b"]}}"#
    );
    let faults = read_yaml(&text).unwrap_err();
    let first = faults[0].column.unwrap();
    assert_eq!(faults[1].column, Some(first + 11));
    assert_eq!(
        text.chars().skip(first as usize - 1).take(3).collect::<String>(),
        "zed"
    );
}

/// Pieces of task files in any order: much of it is well formed, and nearly all of it at fault.
fn nearly_a_task() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("a"),
        Just("b"),
        Just("a.x"),
        Just("1"),
        Just("-1"),
        Just("''"),
        Just("~"),
        Just("true"),
        Just("1h"),
        Just("a -> b"),
        Just("b -> a"),
        Just("dynamic"),
        Just("always"),
        Just("[a, b]"),
        Just("{from: a, to: b}"),
        Just("{max: 1, delegate: [mission], allow: [{model: m, efforts: []}]}"),
        Just("{}"),
        Just("[]"),
    ];
    let key = prop::sample::select([AGENT_FIELDS, TASK_FIELDS, DELIVERABLE_FIELDS].concat());
    let entries = prop::collection::vec((key.clone(), scalar.clone()), 0..8);
    let agents = prop::collection::vec(entries.clone(), 0..4);
    let links = prop::collection::vec(scalar, 0..4);
    (entries, agents, links).prop_map(|(top, agents, links)| {
        let lines = |entries: Vec<(&str, &str)>, indent: &str| -> String {
            let mut seen = std::collections::BTreeSet::new();
            let entries = entries.into_iter().filter(|(key, _)| seen.insert(*key));
            entries
                .map(|(key, value)| format!("{key}: {value}\n{indent}"))
                .collect()
        };
        let top = top
            .into_iter()
            .filter(|(key, _)| !["agents", "links"].contains(key))
            .collect();
        let mut text = lines(top, "");
        text.push_str("agents:\n");
        for agent in agents {
            let _ = writeln!(text, "  - {}", lines(agent, "    "));
        }
        text.push_str("links:\n");
        for link in links {
            let _ = writeln!(text, "  - {link}");
        }
        text
    })
}

proptest! {
    #[test]
    fn w12_no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = read_yaml(&text);
    }

    #[test]
    fn w11_every_fault_of_anything_like_a_task_has_its_place(text in nearly_a_task()) {
        match read_yaml(&text) {
            Ok(task) => prop_assert!(!task.agents.is_empty()),
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                for fault in faults {
                    let line = fault.line.unwrap() as usize;
                    prop_assert!(line >= 1 && line <= text.lines().count() + 1, "{:?}", fault);
                    prop_assert!(!fault.message.ends_with('.'), "{:?}", fault);
                }
            }
        }
    }
}

/// Definitions that want to harm the reader: each is told as a fault with its place, and none costs more than one pass.
mod hostile {
    use super::*;
    use crate::fault::FaultCode::{
        AliasBomb, BadDuration, BadLimit, BadType, Cycle, DuplicateId, MissingField, NoAgents, SelfLink,
        Syntax, TooDeep, TooLarge, UnknownAgent,
    };

    fn codes(text: &str) -> Vec<FaultCode> {
        match read_yaml(text) {
            Ok(_) => Vec::new(),
            Err(faults) => {
                let placed = |fault: &Fault| fault.line.is_some() || fault.code == TooLarge;
                assert!(faults.iter().all(placed), "{faults:?}");
                faults.into_iter().map(|fault| fault.code).collect()
            }
        }
    }

    /// One agent, with this text in the place of a value.
    fn with(field: &str, value: &str) -> String {
        let agent = "id: a, mission: m, model: s, effort: l";
        match field {
            "max_duration" => format!("task: t\nagents:\n  - {{{agent}, max_duration: {value}}}\n"),
            _ => format!("task: t\n{field}: {value}\nagents:\n  - {{{agent}}}\n"),
        }
    }

    #[test]
    fn g1_a_chain_of_ten_thousand_is_read_and_a_million_are_refused_by_their_size() {
        const COUNT: usize = 10_000;
        let mut text = agents(COUNT);
        for index in 1..COUNT {
            writeln!(text, "  - agent-{} -> agent-{index}", index - 1).unwrap();
        }
        assert_eq!(codes(&text), []);
        let million = format!("task: t\nagents: [{}]", "{id: a},".repeat(1_000_000));
        assert_eq!(codes(&million), [TooLarge]);
    }

    #[test]
    fn g2_graphs_that_are_none_are_told_each_by_its_fault() {
        let two = "task: t\nagents:\n  - {id: a, mission: m, model: s, effort: l}\n  - {id: b, mission: m, model: s, effort: l}\n";
        let linked = |links: &str| codes(&format!("{two}links: [{links}]"));
        assert_eq!(linked("a -> b, b -> a"), [Cycle]);
        assert_eq!(linked("a -> a"), [SelfLink]);
        assert_eq!(linked("a -> c"), [UnknownAgent]);
        assert_eq!(codes(&two.replace("id: b", "id: a")), [DuplicateId]);
        assert_eq!(codes("task: t\nagents: []\n"), [NoAgents]);
        // Two that nothing joins are two roots, and no fault.
        assert_eq!(codes(two), []);
    }

    #[test]
    fn g3_a_key_given_twice_is_refused_in_json_and_in_yaml() {
        for text in [
            r#"{"task": "t", "task": "u", "agents": []}"#,
            "{\"task\": \"t\", \"agents\": [{\"id\": \"a\", \"id\": \"b\"}]}",
            "task: t\ntask: u\nagents: []\n",
            "task: t\nagents:\n  - {id: a, \"id\": b, mission: m, model: s, effort: l}\n",
            // The same key, spelled with an escape.
            "{\"task\": \"t\", \"t\\u0061sk\": \"u\", \"agents\": []}",
        ] {
            assert_eq!(codes(text), [Syntax], "{text}");
        }
    }

    #[test]
    fn g4_bombs_depths_and_yaml_of_other_worlds_are_refused() {
        let mut bomb = "task: t\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..30 {
            let before = level - 1;
            writeln!(
                bomb,
                "a{level}: &a{level} [*a{before}, *a{before}, *a{before}, *a{before}, *a{before}]"
            )
            .unwrap();
        }
        assert_eq!(codes(&bomb), [AliasBomb]);
        assert_eq!(codes(&format!("task: {}", "[".repeat(100_000))), [TooDeep]);
        assert_eq!(codes(&format!("{{\"task\": {}", "[".repeat(100_000))), [TooDeep]);
        assert_eq!(
            codes(&format!(
                "task: t\ncontext: {}\nagents: []\n",
                "x".repeat(10 << 20)
            )),
            [TooLarge]
        );
        // `no` is a word, not a truth: the text of a title, and no id is changed by it.
        let norway = "task: no\nagents:\n  - {id: \"no\", title: no, mission: yes, model: off, effort: on}\n";
        assert_eq!(read_yaml(norway).unwrap().agents[0].title.as_deref(), Some("no"));
        for strange in [
            "task: !!python/object/apply:os.system [id]\nagents: []\n",
            "task: !include /etc/passwd\nagents: []\n",
            "base: &b {task: t}\n<<: *b\nagents: []\n",
            "task: t\nagents: &a [*a]\n",
            "task: t\n---\ntask: u\n",
        ] {
            assert!(!codes(strange).is_empty(), "{strange}");
        }
    }

    #[test]
    fn g5_numbers_that_are_none_or_out_of_range_are_refused_by_their_range() {
        for value in [
            "0",
            "-1",
            "-0",
            "1e400",
            "-1e400",
            "1.5",
            "99999999999999999999999",
            ".nan",
            ".inf",
            "-.inf",
            "1e18",
        ] {
            let found = codes(&with("limits", &format!("{{parallel: {value}}}")));
            assert!(
                matches!(found[..], [BadLimit | BadType]),
                "parallel: {value}: {found:?}"
            );
            let found = codes(&with("limits", &format!("{{models: {{s: {value}}}}}")));
            assert!(
                matches!(found[..], [BadLimit | BadType]),
                "models: {value}: {found:?}"
            );
            let found = codes(&with("max_duration", value));
            assert!(
                matches!(found[..], [BadDuration | BadType]),
                "max_duration: {value}: {found:?}"
            );
        }
        for duration in [
            "0s",
            "-1h",
            "1e18s",
            "1.5h",
            "NaNs",
            "1h1h",
            "5m1h",
            "999999999999999999999h",
            "h",
            "\"\"",
            "1 h",
            "١h",
        ] {
            let found = codes(&with("max_duration", duration));
            assert!(
                matches!(found[..], [BadDuration | BadType]),
                "{duration}: {found:?}"
            );
        }
        assert_eq!(codes("task: t\nagents:\n  - {}\n").first(), Some(&MissingField));
    }
}

#[test]
fn w10b_a_blank_check_is_a_fault_and_not_no_check() {
    for blank in ["\"\"", "\"  \"", "|\n\n"] {
        let text =
            format!("task: t\ncheck: {blank}\nagents:\n  - {{id: a, mission: m, model: x, effort: y}}\n");
        let faults = read(&text, Format::Either, None).unwrap_err();
        let told: Vec<_> = faults
            .iter()
            .map(|fault| (fault.code, fault.path.as_str()))
            .collect();
        assert_eq!(told, [(FaultCode::BadValue, "/check")], "{blank}");
    }
}

#[test]
fn w3_the_folders_of_a_faulty_task_are_read_all_the_same() {
    let text = "tsk: t\nfolders: { write: [., src], read: 3 }\n";
    let folders = read_its_folders(text, Format::Either).unwrap();
    assert_eq!(folders.write, [PathBuf::from("."), PathBuf::from("src")]);
    assert_eq!(read_its_folders("agents: [", Format::Either), None);
}
