use std::sync::{Arc, Mutex};

use sillage::core::fault::FaultCode;

use super::*;

/// Keeps what is written, up to a bound after which it fails as told.
#[derive(Clone, Default)]
struct Sink {
    kept: Arc<Mutex<Vec<u8>>>,
    fails: Option<io::ErrorKind>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kind) = self.fails {
            return Err(kind.into());
        }
        self.kept.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(json: bool, color: bool, write: impl FnOnce(&mut Output) -> io::Result<()>) -> String {
    let sink = Sink::default();
    let terminal = Terminal {
        interactive: false,
        color,
        cursor: false,
    };
    write(&mut Output::new(Box::new(sink.clone()), json, terminal)).unwrap();
    let kept = sink.kept.lock().unwrap().clone();
    String::from_utf8(kept).unwrap()
}

fn fault(message: &str) -> Fault {
    Fault {
        code: FaultCode::UnknownModel,
        message: message.to_owned(),
        path: "/agents/0/model".to_owned(),
        line: Some(3),
        column: Some(12),
        suggestion: Some("sonnet".to_owned()),
    }
}

#[test]
fn lines_are_for_people_and_json_for_programs() {
    let write = |output: &mut Output| {
        output.line("a line")?;
        output.json(&serde_json::json!({ "ok": true }))
    };
    assert_eq!(written(false, false, write), "a line\n");
    assert_eq!(written(true, false, write), "{\"ok\":true}\n");
}

#[test]
fn w11_faults_have_place_and_suggestion() {
    let told = written(false, false, |output| {
        output.faults("task.yaml", &[fault("unknown model `sonet`")])
    });
    assert_eq!(
        told,
        "task.yaml:3:12: error: unknown model `sonet` (did you mean `sonnet`?)\n1 fault\n"
    );
    let json = written(true, false, |output| {
        output.faults("task.yaml", &[fault("unknown model `sonet`")])
    });
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["faults"][0]["code"], "unknown_model");
    assert_eq!(json["faults"][0]["line"], 3);
}

#[test]
fn a_faults_path_stands_in_for_an_unknown_place() {
    let placeless = Fault {
        line: None,
        column: None,
        suggestion: None,
        ..fault("is missing")
    };
    let told = written(false, false, |output| output.faults("answer", &[placeless]));
    assert!(
        told.starts_with("answer: error: /agents/0/model: is missing\n"),
        "{told}"
    );
}

#[test]
fn colours_surround_the_text_and_never_come_from_it() {
    let told = written(false, true, |output| {
        let text = output.paint(Tone::Bad, "x\u{1b}[0m");
        output.line(text)
    });
    assert_eq!(told, "\u{1b}[1m\u{1b}[31mx\\u{1b}[0m\u{1b}[0m\n");
}

#[test]
fn h14_a_reader_that_is_gone_is_no_failure() {
    let terminal = Terminal {
        interactive: false,
        color: false,
        cursor: false,
    };
    let sink = Sink {
        fails: Some(io::ErrorKind::BrokenPipe),
        ..Sink::default()
    };
    let mut output = Output::new(Box::new(sink), false, terminal);
    output.line("lost").unwrap();
    output.line("not even tried").unwrap();
    output.flush().unwrap();
}

#[test]
fn h14_a_full_disk_is_a_failure() {
    let terminal = Terminal {
        interactive: false,
        color: false,
        cursor: false,
    };
    let sink = Sink {
        fails: Some(io::ErrorKind::StorageFull),
        ..Sink::default()
    };
    let mut output = Output::new(Box::new(sink), false, terminal);
    let failure = Failure::from(output.line("lost").unwrap_err());
    assert_eq!(failure.exit(), crate::exit::Exit::Failed);
    let Failure::Error(trouble) = failure else {
        panic!("trouble, not faults")
    };
    assert!(
        trouble.message.starts_with("cannot write to standard output: "),
        "{}",
        trouble.message
    );
}
