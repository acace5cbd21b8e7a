//! The program as its users meet it: arguments in, text or JSON and an exit code out.
#![expect(clippy::expect_used, reason = "a test that cannot run the program must fail")]

mod agents;
mod check;
mod estimate;
mod init;
mod plan;
mod readme;
#[cfg(unix)]
mod real_agent;
#[cfg(unix)]
mod relais;
mod report;
#[cfg(unix)]
mod runs;
#[cfg(target_os = "linux")]
mod scenarios;
mod schema;
mod usage;
mod wait;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder of its own to run the program in, with no settings and no data but its own.
struct Sandbox {
    folder: tempfile::TempDir,
}

/// How the program ended.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// The JSON answer: exactly one value on standard output.
    #[track_caller]
    fn json(&self) -> Value {
        let answer = serde_json::from_str(&self.stdout);
        assert!(
            answer.is_ok(),
            "one JSON value, not {:?}, {:?}",
            self.stdout,
            self.stderr
        );
        answer.expect("just asserted")
    }
}

impl Sandbox {
    fn new() -> Self {
        Sandbox {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// A path within the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, with the folders that lead to it, and gives its path.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("within the folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    /// The program with these arguments, not started yet.
    fn command<I: IntoIterator<Item: AsRef<std::ffi::OsStr>>>(&self, arguments: I) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sillage"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program.
    fn run<I: IntoIterator<Item: AsRef<std::ffi::OsStr>>>(&self, arguments: I) -> Ended {
        ended(self.command(arguments).output().expect("the program runs"))
    }

    /// Runs the program with this on its standard input.
    fn run_with_input<I: IntoIterator<Item: AsRef<std::ffi::OsStr>>>(
        &self,
        arguments: I,
        input: &str,
    ) -> Ended {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdin = child.stdin.take().expect("piped");
        // The program may have ended without reading it all.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        ended(child.wait_with_output().expect("the program ends"))
    }
}

fn ended(output: std::process::Output) -> Ended {
    Ended {
        code: output.status.code().expect("it ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The cases of a file that the core's own tests share.
fn cases(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sillage-core/tests/cases")
        .join(name);
    let text = fs::read_to_string(path).expect("the cases");
    serde_json::from_str(&text).expect("a list of cases")
}

/// Holds an answer against what a case expects of it (the codes sorted, then place, suggestion and words of the first
/// fault, and the fields of a right one).
#[track_caller]
fn assert_expected(case: &Value, ended: &Ended) {
    let name = &case["name"];
    let expected = case["expect"].as_object().expect("an expectation");
    let answer = ended.json();
    let ok = expected["ok"] == true;
    assert_eq!(answer["ok"], ok, "{name}: {answer}");
    assert_eq!(ended.code, if ok { 0 } else { 2 }, "{name}");
    let faults = answer["faults"].as_array().cloned().unwrap_or_default();
    for (key, value) in expected {
        match key.as_str() {
            "ok" => {}
            "codes" => {
                let mut codes: Vec<&str> = faults.iter().filter_map(|fault| fault["code"].as_str()).collect();
                codes.sort_unstable();
                assert_eq!(Value::from(codes), *value, "{name}: {answer}");
            }
            "line" | "column" | "path" | "suggestion" => {
                assert_eq!(faults[0][key], *value, "{name}, {key}: {answer}");
            }
            "message_has" => {
                let message = faults[0]["message"].as_str().expect("a message");
                for word in value.as_array().expect("words") {
                    assert!(
                        message.contains(word.as_str().expect("a word")),
                        "{name}: {message}"
                    );
                }
            }
            field => assert_eq!(answer[field], *value, "{name}, {field}: {answer}"),
        }
    }
}
