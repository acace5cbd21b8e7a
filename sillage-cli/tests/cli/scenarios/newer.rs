//! What a newer version left in the store (A12).

use sillage::core::id::Seq;
use sillage::core::ports::Store as _;
use sillage::core::ports::store::{RunSummary, Which};
use sillage::core::run::{Event, Recorded, codec};
use sillage::core::time::Timestamp;
use sillage::store::{Options, SledStore};

use super::Stage;

/// The newest run's log, byte for byte, and its line in the list of runs. Nobody else may hold the store.
async fn kept(store: &SledStore) -> (RunSummary, Vec<(Seq, Vec<u8>)>) {
    let newest = store.runs(Which::All, 1).await.expect("runs").remove(0);
    let log = store
        .read(&newest.run, Seq::FIRST, usize::MAX)
        .await
        .expect("a log");
    (newest, log)
}

fn with_store<T>(stage: &Stage, work: impl AsyncFnOnce(SledStore) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = SledStore::open(stage.path("data/store"), Options::default()).expect("a store");
        work(store).await
    })
}

/// An event that only a newer version knows, by its name or by its format.
fn of_tomorrow(seq: Seq, by_name: bool) -> Vec<u8> {
    let known = codec::encode(&Recorded {
        seq,
        at: Timestamp(1_795_000_000_000),
        event: Event::ResumeAsked,
    });
    let mut bytes = known.expect("an event");
    if by_name {
        let name = b"resume_asked";
        let place = bytes.windows(name.len()).position(|part| part == name);
        let place = place.expect("events have names");
        bytes[place..place + name.len()].copy_from_slice(b"agent_danced");
    } else {
        bytes[0] += 1;
    }
    bytes
}

#[test]
fn a12_an_event_of_a_newer_version_is_told_with_what_to_do_and_nothing_is_lost() {
    for by_name in [true, false] {
        let stage = Stage::without_repository(
            "prompts:\n  - { match: Alpha, times: always, steps: [error: { code: -32602, message: the model is not known }] }\n  - { times: always, steps: [report: { summary: Done. }] }\n",
        );
        stage.task("", &["id: alpha, mission: Alpha"], &[]);
        stage.run().expect(1);
        let (run, before) = with_store(&stage, async |store| {
            let (newest, log) = kept(&store).await;
            let next = log.last().expect("a log").0.next();
            let events = vec![of_tomorrow(next, by_name)];
            store
                .append(&newest.run, next, events, &newest)
                .await
                .expect("room");
            (newest.run.to_string(), kept(&store).await)
        });
        let asked = stage.record().len();

        for command in [
            &["resume", &run, "--json"][..],
            &["status", &run, "--json"],
            &["journal", &run, "--json"],
            &["recap", &run, "--json"],
            &["follow", &run, "--json"],
            &["retry", &run, "alpha", "--json"],
        ] {
            let ended = stage.start(command).wait();
            assert_eq!(ended.code, 6, "{command:?}: {}\n{}", ended.stdout, ended.stderr);
            let answer = ended.outcome();
            let words = answer["error"]["message"].as_str().expect("a message");
            assert!(
                words.contains(&run) && words.contains("newer"),
                "{command:?}: {words}"
            );
            assert!(
                !by_name || words.contains("`agent_danced`"),
                "{command:?}: {words}"
            );
            assert!(words.len() < 500, "no list of all that there is: {words}");
        }
        assert_eq!(stage.record().len(), asked, "no agent was started");
        let after = with_store(&stage, async |store| kept(&store).await);
        assert_eq!(after, before);

        // Other runs are none the worse for it.
        stage.task("", &["id: beta, mission: Beta"], &[]);
        stage.run().expect(0);
        assert_eq!(stage.status()["run"]["state"], "complete");
        stage.assert_no_process();
    }
}
