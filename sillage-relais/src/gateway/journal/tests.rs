use proptest::prelude::*;

use super::*;
use crate::gateway::book::{Book, Creation, Taking};
use crate::wire::{ContentBlock, CreateSession, EventBody, SendMessage};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn creation(n: u128, model: &str) -> CreateSession {
    let json = serde_json::json!({
        "client_session_id": id(n), "application_name": "a", "model": model, "effort": "e", "workspace": "/w",
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

fn begun(book: &mut Book, request: &CreateSession) -> Vec<Change> {
    match book.create(request, NOW).unwrap() {
        Creation::Begin(changes) => changes,
        Creation::Known => panic!("it is known"),
    }
}

fn taken(book: &mut Book, n: u128, message: &SendMessage) -> Vec<Change> {
    match book.message(id(n), message, NOW).unwrap() {
        Taking::Pass(changes) => changes,
        Taking::Known => panic!("it is known"),
    }
}

fn opened() -> sillage_core::ports::runtime::OpenedSession {
    sillage_core::ports::runtime::OpenedSession {
        native: Some("n".to_owned()),
        agent: "a".to_owned(),
        pid: None,
    }
}

fn events(changes: &[Change]) -> Vec<Arc<wire::Event>> {
    let mut events = Vec::new();
    for change in changes {
        if let Change::Event(_, event) = change {
            events.push(Arc::clone(event));
        }
    }
    events
}

/// L11: what was waited for is there after the next start, large or small; what was forgotten is not.
#[tokio::test]
async fn l11_what_was_acknowledged_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let large = "é\0\n".repeat(20_000);
    let (mut book, mut told) = (Book::new(9), Vec::new());
    let (journal, loaded) = Journal::open(folder.path()).unwrap();
    assert!(loaded.sessions.is_empty() && loaded.tombs.is_empty());
    for n in 1..=3 {
        let changes = begun(&mut book, &creation(n, &large));
        journal.write(changes, None).await.unwrap();
        let changes = book.opened(id(n), opened(), NOW);
        told.extend(events(&changes));
        journal.write(changes, None).await.unwrap();
        let changes = taken(&mut book, n, &message(n + 10, &large));
        told.extend(events(&changes));
        journal.write(changes, None).await.unwrap();
    }
    let gone = vec![Change::Forgotten(id(2)), Change::Deleted(id(7), NOW)];
    journal.write(gone, None).await.unwrap();
    let changes = book.not_taken(id(3), id(13), NOW);
    journal.write(changes, None).await.unwrap();
    drop(journal);

    let (journal, mut loaded) = Journal::open(folder.path()).unwrap();
    loaded.sessions.sort_by_key(|kept| kept.request.client_session_id);
    let ids: Vec<Uuid> = loaded
        .sessions
        .iter()
        .map(|kept| kept.request.client_session_id)
        .collect();
    assert_eq!(ids, [id(1), id(3)]);
    let first = &loaded.sessions[0];
    assert_eq!(first.request, creation(1, &large));
    assert_eq!(
        (first.head.current, first.messages[0].1.text.as_str()),
        (Some(id(11)), large.as_str())
    );
    assert_eq!(
        (loaded.sessions[1].head.current, loaded.sessions[1].messages.len()),
        (None, 0)
    );
    assert_eq!(loaded.tombs, [(id(7), Tomb { at: NOW })]);
    assert_eq!(journal.events(id(1), 0, 9).unwrap(), told[..2]);
    assert_eq!(journal.events(id(1), 1, 9).unwrap(), told[1..2]);
    assert_eq!(journal.events(id(1), 0, 1).unwrap(), told[..1]);
    assert_eq!(journal.events(id(2), 0, 9).unwrap(), []);
    let mut again = Book::new(9);
    loaded
        .sessions
        .into_iter()
        .for_each(|kept| again.restore(kept, NOW));
    assert_eq!(again.in_hand(id(1)).map(|message| message.text), Some(large));
}

/// A head that became shorter is read as it is, not with the rest of the longer one.
#[tokio::test]
async fn a_record_that_became_shorter_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(folder.path()).unwrap();
    let mut book = Book::new(9);
    let changes = begun(&mut book, &creation(1, "m"));
    journal.write(changes, None).await.unwrap();
    let head = |because: Option<String>| {
        let (_, mut head) = book.looked_up(id(1)).unwrap();
        head.because = because;
        Change::Head(id(1), Box::new(head))
    };
    journal
        .write(vec![head(Some("x".repeat(50_000)))], None)
        .await
        .unwrap();
    journal.write(vec![head(None)], None).await.unwrap();
    drop(journal);
    let (_journal, loaded) = Journal::open(folder.path()).unwrap();
    assert_eq!(loaded.sessions[0].head.because, None);
}

/// An event is announced once it is durable, in order, and whether or not anybody waits.
#[tokio::test]
async fn an_event_is_announced_once_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(folder.path()).unwrap();
    let published = watch::Sender::new(0);
    let mut told = published.subscribe();
    for number in [3, 5, 4] {
        drop(journal.write(
            vec![Change::Deleted(id(1), NOW)],
            Some((published.clone(), number)),
        ));
    }
    journal.write(Vec::new(), None).await.unwrap();
    assert_eq!(*told.borrow_and_update(), 5);
}

/// A9: a byte that was changed on disk is told, never read as something else.
#[tokio::test]
async fn a9_a_changed_byte_is_told() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (journal, _) = Journal::open(folder.path()).unwrap();
        let mut book = Book::new(9);
        let changes = begun(&mut book, &creation(1, "a-model-that-is-easily-found"));
        journal.write(changes, None).await.unwrap();
    }
    let path = folder.path().join("sled").join("db");
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"a-model-that-is-easily-found";
    let places: Vec<usize> = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, window)| window == needle)
        .map(|(place, _)| place)
        .collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    match Journal::open(folder.path()) {
        Err(JournalError::Damaged { .. }) => {}
        Err(other) => panic!("{other}"),
        // sled may take its changed tail for one that was cut, and says so by having nothing.
        Ok((_, loaded)) => assert!(loaded.sessions.is_empty(), "what was changed is believed"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever its length, a text comes back as it went in.
    #[test]
    fn any_length_is_read_back(length in 0_usize..20_000) {
        let folder = tempfile::tempdir().unwrap();
        let event = Arc::new(wire::Event {
            number: 1,
            at: "2026-11-30T14:00:00Z".to_owned(),
            body: EventBody::Text { text: "x".repeat(length) },
        });
        let (journal, _) = Journal::open(folder.path()).unwrap();
        let ticket = journal.write(vec![Change::Event(id(1), Arc::clone(&event))], None);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(ticket).unwrap();
        prop_assert_eq!(journal.events(id(1), 0, 9).unwrap(), [event]);
    }
}

/// A log that the system does not give now is not called damaged, for that would have it moved away.
#[test]
fn a_log_that_cannot_be_opened_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("sled/db")).unwrap();
    let told = Journal::open(folder.path()).map(|_| ()).unwrap_err();
    assert!(matches!(told, JournalError::Folder { .. }), "{told}");
}
