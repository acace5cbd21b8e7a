use proptest::prelude::*;
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{
    Answer, PermissionOption, PermissionRequest, RuntimeError, StopReason, Usage,
};

use super::*;
use crate::wire::{ContentBlock, EventBody, MessageState};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn creation(n: u128, ttl: u64) -> CreateSession {
    let json = serde_json::json!({
        "client_session_id": id(n), "application_name": "a", "model": "m", "effort": "e", "workspace": "/w",
        "ttl_seconds": ttl,
    });
    serde_json::from_value(json).unwrap()
}

fn message(n: u128, text: &str) -> SendMessage {
    SendMessage {
        client_message_id: id(n),
        content: vec![ContentBlock::Text {
            text: text.to_owned(),
        }],
    }
}

fn opened() -> OpenedSession {
    OpenedSession {
        native: None,
        agent: "a".to_owned(),
        pid: None,
    }
}

fn answer(n: u128) -> SessionEventKind {
    SessionEventKind::Answer {
        message: ClientMessageId(id(n)),
        answer: Answer {
            text: "done".to_owned(),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        },
    }
}

fn permission(name: &str) -> SessionEventKind {
    let option = PermissionOption {
        id: "allow".to_owned(),
        name: "allow".to_owned(),
        kind: "allow_once".to_owned(),
    };
    SessionEventKind::Permission {
        request: PermissionRequest {
            id: name.to_owned(),
            title: name.to_owned(),
            kind: None,
            paths: Vec::new(),
            options: vec![option],
        },
    }
}

fn event(number: u64, kind: SessionEventKind) -> SessionEvent {
    SessionEvent { number, kind }
}

/// A book with session 1 open.
fn open() -> Book {
    let mut book = Book::new(3);
    assert!(matches!(
        book.create(&creation(1, 60), NOW),
        Ok(Creation::Begin(_))
    ));
    book.opened(id(1), opened(), NOW);
    book
}

fn state(book: &Book, n: u128) -> SessionState {
    book.session(id(n), false).unwrap().state
}

fn bodies(changes: &[Change]) -> Vec<&EventBody> {
    let mut told = Vec::new();
    for change in changes {
        if let Change::Event(_, event) = change {
            told.push(&event.body);
        }
    }
    told
}

/// L4: a session's state by what happens, each change an event.
#[test]
fn states_follow_what_happens() {
    let mut book = open();
    assert_eq!(state(&book, 1), SessionState::Idle);
    assert!(matches!(
        book.message(id(1), &message(5, "x"), NOW),
        Ok(Taking::Pass(_))
    ));
    assert_eq!(state(&book, 1), SessionState::Working);
    for (number, kind, after) in [
        (1, permission("p"), SessionState::Waiting),
        (2, permission("q"), SessionState::Waiting),
        (
            3,
            SessionEventKind::PermissionAnswered {
                id: "p".to_owned(),
                option: None,
                by: "person".to_owned(),
            },
            SessionState::Waiting,
        ),
        (
            4,
            SessionEventKind::PermissionAnswered {
                id: "q".to_owned(),
                option: None,
                by: "cancel".to_owned(),
            },
            SessionState::Working,
        ),
        (5, answer(5), SessionState::Idle),
        (6, SessionEventKind::Ended, SessionState::Lost),
    ] {
        let changes = book.event(id(1), &event(number, kind), NOW);
        assert_eq!(state(&book, 1), after);
        assert!(!changes.is_empty());
    }
    let session = book.session(id(1), false).unwrap();
    assert_eq!(
        session.last_message.map(|last| last.state),
        Some(MessageState::Answered)
    );
    assert!(
        book.event(id(1), &event(7, answer(5)), NOW).is_empty(),
        "something follows the end"
    );
}

/// L5: a message under an identifier that came before is the same one or a conflict, whatever became of it.
#[test]
fn r5_a_message_is_taken_once() {
    let mut book = open();
    assert!(matches!(
        book.message(id(1), &message(5, "x"), NOW),
        Ok(Taking::Pass(_))
    ));
    assert_eq!(book.message(id(1), &message(5, "x"), NOW), Ok(Taking::Known));
    let conflict = book.message(id(1), &message(5, "y"), NOW);
    assert!(matches!(conflict, Err(Refusal::Conflict { ref fields, .. }) if fields == &["content"]));
    assert_eq!(
        book.message(id(1), &message(6, "z"), NOW),
        Err(Refusal::Busy(id(5)))
    );
    book.over(id(1), SessionState::Ended, "a client closed it", NOW);
    assert_eq!(book.message(id(1), &message(5, "x"), NOW), Ok(Taking::Known));
    assert!(matches!(
        book.message(id(1), &message(6, "z"), NOW),
        Err(Refusal::Over { .. })
    ));
    assert_eq!(
        book.message(id(2), &message(6, "z"), NOW),
        Err(Refusal::Unknown(id(2)))
    );
}

/// A message that the runtime refused may be sent again, under its identifier.
#[test]
fn a_refused_message_may_be_sent_again() {
    let mut book = open();
    assert!(matches!(
        book.message(id(1), &message(5, "x"), NOW),
        Ok(Taking::Pass(_))
    ));
    let changes = book.not_taken(id(1), id(5), NOW);
    assert!(changes.contains(&Change::NoMessage(id(1), id(5))));
    assert_eq!(state(&book, 1), SessionState::Idle);
    assert!(matches!(
        book.message(id(1), &message(5, "y"), NOW),
        Ok(Taking::Pass(_))
    ));
}

/// A session that ends while it answers tells who waits for the answer.
#[test]
fn a4_an_end_tells_the_message_that_it_cuts() {
    let mut book = open();
    assert!(matches!(
        book.message(id(1), &message(5, "x"), NOW),
        Ok(Taking::Pass(_))
    ));
    let (_, closing) = book.closing(id(1), "a client closed it", NOW);
    assert_eq!(closing, Closing::Close);
    let changes = book.event(id(1), &event(1, SessionEventKind::Ended), NOW);
    let [
        EventBody::Error {
            client_message_id,
            words,
            ..
        },
        EventBody::State { state: told },
    ] = bodies(&changes)[..]
    else {
        panic!("{changes:?}")
    };
    assert_eq!(
        (*client_message_id, words.as_str(), *told),
        (Some(id(5)), "a client closed it", SessionState::Ended)
    );
}

/// R12: what becomes of the message in hand when its session is found again.
#[test]
fn r12_finding_says_what_became_of_the_message() {
    let cases = [
        (MessageFate::InHand, SessionState::Working, false, None),
        (MessageFate::NotReceived, SessionState::Working, true, None),
        (
            MessageFate::Replayed("half".to_owned()),
            SessionState::Idle,
            false,
            Some(("half", "replayed")),
        ),
        (MessageFate::Unknown, SessionState::Idle, false, Some(("", "cut"))),
    ];
    for (in_flight, after, passes, told) in cases {
        let mut book = open();
        assert!(matches!(
            book.message(id(1), &message(5, "x"), NOW),
            Ok(Taking::Pass(_))
        ));
        book.event(id(1), &event(1, permission("p")), NOW);
        let found = FoundSession {
            opened: opened(),
            restarted: true,
            in_flight,
        };
        let (changes, next) = book.found(id(1), found, NOW);
        assert_eq!(state(&book, 1), after);
        assert_eq!(
            matches!(next, Found::PassOn(ref message) if message.text == "x"),
            passes
        );
        let mut answers = Vec::new();
        for body in bodies(&changes) {
            if let EventBody::Answer {
                text, stop_reason, ..
            } = body
            {
                answers.push((text.as_str(), stop_reason.as_str()));
            }
        }
        assert_eq!(answers, told.into_iter().collect::<Vec<_>>());
        // Its events begin anew, and are ours only once.
        assert!(!bodies(&book.event(id(1), &event(1, answer(5)), NOW)).is_empty());
        assert!(bodies(&book.event(id(1), &event(1, answer(5)), NOW)).is_empty());
    }
}

/// L3: seven days after its end an identifier is free again, and not a millisecond before.
#[test]
fn l3_an_identifier_is_remembered_for_seven_days() {
    let mut book = open();
    book.over(id(1), SessionState::Ended, "x", NOW);
    let (_, closing) = book.closing(id(9), "x", NOW);
    assert_eq!(closing, Closing::Nothing);
    let last = Timestamp(NOW.plus(MEMORY).0 - 1);
    assert_eq!(book.due(last, |_| false), (Vec::new(), Vec::new()));
    assert_eq!(book.create(&creation(1, 60), last), Ok(Creation::Known));
    assert_eq!(book.create(&creation(9, 60), last), Err(Refusal::Deleted(id(9))));
    let (expired, forgotten) = book.due(NOW.plus(MEMORY), |_| false);
    assert_eq!(expired, Vec::<Uuid>::new());
    assert_eq!(forgotten, [Change::Forgotten(id(1)), Change::Forgotten(id(9))]);
    assert!(matches!(
        book.create(&creation(1, 60), last),
        Ok(Creation::Begin(_))
    ));
}

/// Places are counted by what lives.
#[test]
fn a_full_book_refuses_what_is_new() {
    let mut book = Book::new(1);
    assert!(matches!(
        book.create(&creation(1, 60), NOW),
        Ok(Creation::Begin(_))
    ));
    assert_eq!(book.create(&creation(2, 60), NOW), Err(Refusal::Full(1)));
    assert_eq!(book.create(&creation(1, 60), NOW), Ok(Creation::Known));
    assert_eq!(book.not_opened(id(1)), [Change::Forgotten(id(1))]);
    assert!(matches!(
        book.create(&creation(2, 60), NOW),
        Ok(Creation::Begin(_))
    ));
}

/// What may happen to a book of three sessions.
#[derive(Debug, Clone)]
enum Happening {
    Create(u128, u64),
    Opened(u128),
    NotOpened(u128),
    Message(u128, u128, bool),
    NotTaken(u128, u128),
    Told(u128, SessionEventKind),
    Found(u128, bool, MessageFate),
    Closing(u128),
    Over(u128, bool),
    Later(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let session = 1_u128..4;
    let said = 10_u128..13;
    let kind = prop_oneof![
        said.clone().prop_map(answer),
        Just(permission("p")),
        Just(SessionEventKind::Text { text: "t".to_owned() }),
        Just(SessionEventKind::Ended),
        said.clone().prop_map(|n| SessionEventKind::Error {
            message: Some(ClientMessageId(id(n))),
            error: RuntimeError::SignIn {
                words: "w".to_owned()
            },
        }),
        Just(SessionEventKind::Error {
            message: None,
            error: RuntimeError::Lost {
                words: "w".to_owned()
            },
        }),
    ];
    let fate = prop_oneof![
        Just(MessageFate::None),
        Just(MessageFate::NotReceived),
        Just(MessageFate::InHand),
        Just(MessageFate::Unknown),
        Just(MessageFate::Replayed("r".to_owned())),
    ];
    prop_oneof![
        (session.clone(), 60_u64..62).prop_map(|(n, ttl)| Happening::Create(n, ttl)),
        session.clone().prop_map(Happening::Opened),
        session.clone().prop_map(Happening::NotOpened),
        (session.clone(), said.clone(), any::<bool>())
            .prop_map(|(n, m, same)| Happening::Message(n, m, same)),
        (session.clone(), said).prop_map(|(n, m)| Happening::NotTaken(n, m)),
        (session.clone(), kind).prop_map(|(n, kind)| Happening::Told(n, kind)),
        (session.clone(), any::<bool>(), fate).prop_map(|(n, again, fate)| Happening::Found(n, again, fate)),
        session.clone().prop_map(Happening::Closing),
        (session, any::<bool>()).prop_map(|(n, ended)| Happening::Over(n, ended)),
        (0_u64..400_000).prop_map(Happening::Later),
    ]
}

/// What is on disk, by what the book says is to be kept.
#[derive(Default)]
struct Shelf {
    requests: HashMap<Uuid, CreateSession>,
    heads: HashMap<Uuid, Head>,
    messages: HashMap<(Uuid, Uuid), KeptMessage>,
    events: HashMap<Uuid, Vec<Arc<wire::Event>>>,
    tombs: HashMap<Uuid, Timestamp>,
}

impl Shelf {
    fn keep(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Request(id, request) => drop(self.requests.insert(id, (*request).clone())),
                Change::Head(id, head) => drop(self.heads.insert(id, *head)),
                Change::Message(id, message, kept) => drop(self.messages.insert((id, message), kept)),
                Change::NoMessage(id, message) => drop(self.messages.remove(&(id, message))),
                Change::Event(id, event) => self.events.entry(id).or_default().push(event),
                Change::Deleted(id, at) => drop(self.tombs.insert(id, at)),
                Change::Forgotten(id) => {
                    self.requests.remove(&id);
                    self.heads.remove(&id);
                    self.messages.retain(|(session, _), _| *session != id);
                    self.events.remove(&id);
                    self.tombs.remove(&id);
                }
            }
        }
    }

    fn read(&self, now: Timestamp) -> Book {
        let mut book = Book::new(3);
        for (id, request) in &self.requests {
            let messages = self.messages.iter().filter(|((session, _), _)| session == id);
            let kept = Kept {
                request: request.clone(),
                head: self.heads[id].clone(),
                messages: messages
                    .map(|((_, message), kept)| (*message, kept.clone()))
                    .collect(),
            };
            book.restore(kept, now);
        }
        self.tombs
            .iter()
            .for_each(|(id, at)| book.restore_tomb(*id, Tomb { at: *at }));
        book
    }
}

proptest! {
    /// L6, L11: whatever happens, events are numbered without gaps, nothing follows the end, a session starts once, and
    /// a book that is read back says what the book said that was written.
    #[test]
    fn a_book_keeps_its_promises_whatever_happens(all in proptest::collection::vec(happening(), 0..60)) {
        let (mut book, mut shelf, mut now) = (Book::new(3), Shelf::default(), NOW);
        let mut upstream: HashMap<Uuid, u64> = HashMap::new();
        for one in all {
            let changes = match one {
                Happening::Create(n, ttl) => match book.create(&creation(n, ttl), now) {
                    Ok(Creation::Begin(changes)) => {
                        prop_assert!(!shelf.requests.contains_key(&id(n)), "started twice");
                        upstream.insert(id(n), 0);
                        changes
                    }
                    Ok(Creation::Known) | Err(_) => Vec::new(),
                },
                Happening::Opened(n) => book.opened(id(n), opened(), now),
                Happening::NotOpened(n) => book.not_opened(id(n)),
                Happening::Message(n, m, same) => {
                    let said = message(m, if same { "x" } else { "y" });
                    match book.message(id(n), &said, now) {
                        Ok(Taking::Pass(changes)) => {
                            prop_assert!(!shelf.messages.contains_key(&(id(n), id(m))), "taken twice");
                            changes
                        }
                        Ok(Taking::Known) => {
                            prop_assert!(shelf.messages.contains_key(&(id(n), id(m))), "known and not kept");
                            Vec::new()
                        }
                        Err(_) => Vec::new(),
                    }
                }
                Happening::NotTaken(n, m) => book.not_taken(id(n), id(m), now),
                Happening::Told(n, kind) => {
                    let number = upstream.entry(id(n)).or_default();
                    *number += 1;
                    book.event(id(n), &event(*number, kind), now)
                }
                Happening::Found(n, restarted, in_flight) => {
                    if restarted {
                        upstream.insert(id(n), 0);
                    }
                    book.found(id(n), FoundSession { opened: opened(), restarted, in_flight }, now).0
                }
                Happening::Closing(n) => book.closing(id(n), "closed", now).0,
                Happening::Over(n, ended) => {
                    let state = if ended { SessionState::Ended } else { SessionState::Lost };
                    book.over(id(n), state, "over", now)
                }
                Happening::Later(seconds) => {
                    now = now.plus(Duration::from_secs(seconds));
                    let (_, changes) = book.due(now, |_| false);
                    changes
                }
            };
            shelf.keep(changes);
            for (session, events) in &shelf.events {
                let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
                prop_assert_eq!(&numbers, &(1..=events.len() as u64).collect::<Vec<_>>());
                let over = |event: &&Arc<wire::Event>| {
                    matches!(event.body, EventBody::State { state } if state.is_over())
                };
                let ends = events.iter().filter(over).count();
                prop_assert!(ends <= 1 && (ends == 0 || over(&events.last().unwrap())), "something follows the end");
                prop_assert_eq!(book.session(*session, false).unwrap().last_event, events.len() as u64);
            }
            let again = shelf.read(now);
            for n in 1..4 {
                let (mut before, mut after) = (book.session(id(n), true), again.session(id(n), true));
                // What lives counts as used by the start, and a use alone is not kept.
                for session in [&mut before, &mut after].into_iter().flatten() {
                    session.last_activity_at.clear();
                }
                prop_assert_eq!(before, after);
                prop_assert_eq!(book.in_hand(id(n)), again.in_hand(id(n)));
            }
        }
    }
}
