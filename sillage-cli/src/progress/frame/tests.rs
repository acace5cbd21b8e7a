use std::sync::Arc;

use sillage::core::document::Format;
use sillage::core::folders::Folders;
use sillage::core::id::{ClientSessionId, RunId};
use sillage::core::ports::runtime::SessionEvent;
use sillage::core::run::{RunDefinition, RunPolicy};
use sillage::core::task;

use unicode_width::UnicodeWidthStr as _;

use super::*;

const SIZE: Size = Size {
    width: 40,
    height: 12,
};

fn says(text: &str) -> Agent {
    let mut agent = Agent::default();
    agent.listen(&SessionEventKind::Text {
        text: text.to_owned(),
    });
    agent
}

#[test]
fn a_text_fits_on_one_line_and_controls_nothing() {
    assert_eq!(fitting("short", 10), "short");
    assert_eq!(fitting("0123456789", 10), "01234567…");
    assert_eq!(fitting("漢字漢字漢字", 10), "漢字漢字…");
    assert_eq!(fitting("a\nb\t\u{1b}[2J", 40), "a b \\u{1b}[2J");
    for width in 0..12 {
        assert!(
            fitting("漢字漢字 and more", width).width() <= width.max(1),
            "{width}"
        );
    }
}

#[test]
fn an_agents_last_line_is_told_and_its_silence() {
    let mut frame = Frame::of(Heard::from(vec![(StepIndex(0), Timestamp(0))]));
    assert_eq!(
        frame.told(StepIndex(0), Timestamp(600_000)),
        "last heard 10 minutes ago  "
    );
    frame.agents.insert(StepIndex(0), says("first\nsecond\n\n"));
    assert_eq!(frame.told(StepIndex(0), Timestamp(1_000)), "second");
    assert_eq!(
        frame.told(StepIndex(0), Timestamp(90_000)),
        "last heard 1m30s ago  second"
    );
    assert_eq!(frame.told(StepIndex(1), Timestamp(90_000)), "");
    // What is kept is bounded, and cut between characters.
    let long = says(&"é".repeat(10_000));
    assert!(long.says.len() <= KEPT);
}

/// A run of so many agents, side by side, none of which has started.
fn run(agents: usize) -> Run {
    let task: String = (0..agents)
        .map(|number| format!("  - {{ id: n{number}, mission: Do nothing., model: m, effort: low }}\n"))
        .collect();
    let text = format!("task: Many\nfolders: {{ write: [.] }}\nagents:\n{task}");
    let task = task::read(&text, Format::Either, None).unwrap();
    let definition = RunDefinition {
        run: RunId::new("20260101-000000-abcd").unwrap(),
        task: Arc::new(task),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders::default(),
        step_folder: "/nowhere".into(),
        repository: None,
        worktrees: vec![],
        parallel: std::num::NonZeroU32::MIN,
        accounts: Default::default(),
        files: "/nowhere".into(),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    };
    Run::start(Run::launch(Timestamp(0), definition)).unwrap()
}

fn output() -> Output {
    let terminal = crate::terminal::Terminal {
        interactive: false,
        color: false,
        cursor: true,
    };
    Output::stdout(false, terminal)
}

#[test]
fn a_picture_has_room_in_the_terminal_and_says_what_it_hides() {
    let frame = Frame::default();
    let few = frame.picture(&run(3), Timestamp(0), SIZE, &output());
    assert_eq!(few.len(), 4, "{few:#?}");
    let many = frame.picture(&run(30), Timestamp(0), SIZE, &output());
    assert!(many.len() < SIZE.height, "{many:#?}");
    assert!(many.iter().all(|line| line.width() < SIZE.width), "{many:#?}");
    assert_eq!(many.last().map(String::as_str), Some("and 21 more steps"));
}

#[test]
fn chatter_is_noticed_and_draws_no_line_of_its_own() {
    let (run, mut frame) = (run(1), Frame::default());
    let event = SessionEvent {
        number: 1,
        kind: SessionEventKind::Text {
            text: "hello\n".to_owned(),
        },
    };
    let session = "00000000-0000-4000-8000-000000000001"
        .parse::<ClientSessionId>()
        .unwrap();
    let item = FeedItem::Chatter {
        step: StepIndex(0),
        session,
        event: Arc::new(event),
    };
    frame.take(&run, &item, Timestamp(5), &output());
    assert!(frame.staying.is_empty());
    assert_eq!(frame.heard.last(StepIndex(0)), Some(Timestamp(5)));
}
