//! Agents in containers and sandboxes (A8), with a stand-in for the engine that runs things on this machine: it keeps
//! a record of its calls, knows boxes that are missing, running or stopped, and does not take what runs in a box with
//! it when it is killed, as the real ones do not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::agents::{Cast, runs};
use super::eventually;

const ENGINE: &str = r#"#!/bin/sh
here=HERE
echo "$(basename "$0") $*" | head -1 >> "$here/calls"
what=$1; shift
case $what in
start) echo running > "$here/box.$1"; exit 0 ;;
exec) ;;
*) echo "unknown command $what" >&2; exit 64 ;;
esac
folder=
while :; do
  case $1 in
  -i) shift ;;
  -w) folder=$2; shift 2 ;;
  -e) case $2 in *=*) export "$2" ;; esac; shift 2 ;;
  *) break ;;
  esac
done
name=$1; shift
if [ ! -e "$here/box.$name" ]; then
  echo "Error response from daemon: No such container: $name" >&2; exit 1
fi
if [ "$(cat "$here/box.$name")" = stopped ]; then
  echo "Error response from daemon: container $name is not running" >&2; exit 1
fi
[ -z "$folder" ] || cd "$folder" || exit 126
case $1 in sh) exec "$@" ;; esac
# Within the box it is nobody's child.
within="$here/within.$$"
setsid -f sh -c 'echo $$ > "$0"; exec "$@"' "$within" "$@" <&0
while [ ! -s "$within" ]; do sleep 0.01; done
pid=$(cat "$within"); rm -f "$within"
exec <&- >&-
while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
"#;

/// An agent in a box of this engine, with this runtime besides.
fn boxed(kind: &str, script: &str, runtime: Value) -> Cast {
    let mut cast = Cast::new(&[("alpha", script)], json!({}));
    let here = cast.stage.path("");
    let here = here.to_str().expect("UTF-8").trim_end_matches('/');
    for program in ["docker", "sbx"] {
        let path = cast
            .stage
            .write(&format!("bin/{program}"), ENGINE.replace("HERE", here));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    cast.change(0, |agent| {
        agent["runtime"] = runtime;
        agent["runtime"]["type"] = json!(kind);
        agent["runtime"]["name"] = json!("crate");
    });
    cast
}

fn calls(cast: &Cast) -> Vec<String> {
    let text = fs::read_to_string(cast.stage.path("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a8_an_agent_starts_in_its_box_which_is_made_stopped_and_removed_by_the_settings() {
    for (kind, program) in [("container", "docker"), ("sbx", "sbx")] {
        let mut cast = boxed(
            kind,
            "start: { stderr: \"within\\n\" }",
            json!({ "lifecycle": {
                "create": "pwd; echo \"token: $SECRET_TOKEN.\"; echo running > ../box.crate",
                "stop": "echo stopping; echo stopped > ../box.crate",
                "remove": "echo removing >&2; rm ../box.crate",
            } }),
        );
        cast.change(0, |agent| {
            agent["env"] = json!({ "API_KEY": "a secret", "HOME": "/root" })
        });
        let listed = cast.list();
        assert_eq!(
            (
                &listed[0]["runtime"],
                &listed[0]["can_stop_sandbox"],
                &listed[0]["can_remove_sandbox"]
            ),
            (&json!(kind), &json!(true), &json!(true))
        );
        let told = cast.order(&["start", "alpha"]).expect(0);
        assert_eq!(told.json()["agents"][0]["state"], "ready");
        let work = cast.stage.path("work").display().to_string();
        let expected = [
            format!("sandbox: {work}"),
            "sandbox: token: .".to_owned(),
            "within".to_owned(),
        ];
        eventually("its log", || cast.logs("alpha") == expected);
        let entered: Vec<_> = calls(&cast)
            .into_iter()
            .filter(|call| call.contains("exec -i"))
            .collect();
        let data = cast.stage.path("data").display().to_string();
        let start = format!(
            "{program} exec -i -w {work} -e SILLAGE_SANDBOX={data}/alpha -e API_KEY -e HOME=/root crate "
        );
        assert!(
            entered.len() == 1 && entered[0].starts_with(&start),
            "{entered:#?}\n{start}"
        );
        assert!(!calls(&cast).join("").contains("a secret"));
        let environment =
            fs::read(format!("/proc/{}/environ", cast.pids("alpha")[0])).expect("its environment");
        let environment = String::from_utf8_lossy(&environment);
        assert!(environment.contains("API_KEY=a secret") && environment.contains("HOME=/root"));
        // Stopping it leaves the box.
        cast.order(&["stop", "alpha"]).expect(0);
        assert!(cast.stage.path("box.crate").exists());
        cast.order(&["start", "alpha"]).expect(0);
        // The box is stopped after the agent, and taken up again by the next start.
        cast.order(&["stop-sandbox", "alpha"]).expect(0);
        assert_eq!(cast.states(), ["stopped"]);
        assert_eq!(
            fs::read_to_string(cast.stage.path("box.crate")).expect("a box"),
            "stopped\n"
        );
        assert!(cast.logs("alpha").contains(&"sandbox: stopping".to_owned()));
        if kind == "container" {
            cast.order(&["start", "alpha"]).expect(0);
            assert!(calls(&cast).contains(&"docker start crate".to_owned()));
        }
        cast.order(&["remove-sandbox", "alpha"]).expect(0);
        assert!(!cast.stage.path("box.crate").exists());
        assert!(cast.logs("alpha").contains(&"sandbox: removing".to_owned()));
        cast.assert_rest();
    }
}

#[test]
fn a8_stopping_reaches_what_runs_in_the_box() {
    let cast = boxed("container", "end: { ignore_eof: true }", json!({}));
    cast.stage.write("box.crate", "running");
    cast.order(&["start", "alpha"]).expect(0);
    let pid = cast.pids("alpha")[0];
    cast.order(&["stop", "alpha"]).expect(0);
    // Its end may not have been noticed by its parent there when the command has ended.
    eventually("the end of the agent in its box", || !runs(pid));
    let signals: Vec<_> = calls(&cast)
        .into_iter()
        .filter(|call| call.contains(" sh -c"))
        .collect();
    assert!(signals.len() > 2, "{signals:#?}");
    cast.assert_rest();
}

#[test]
fn a8_what_a_killed_holder_left_in_a_box_is_ended_by_the_next_start() {
    let cast = boxed(
        "container",
        "end: { ignore_eof: true, ignore_sigterm: true }",
        json!({}),
    );
    cast.stage.write("box.crate", "running");
    cast.order(&["start", "alpha"]).expect(0);
    let first = cast.pids("alpha")[0];
    for line in cast.stage.processes() {
        if line.contains("agents hold") {
            let pid = line.split(':').next().and_then(|pid| pid.parse().ok());
            let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
        }
    }
    cast.order(&["start", "alpha"]).expect(0);
    eventually("the end of the earlier agent", || !runs(first));
    assert_eq!(cast.pids("alpha").len(), 2);
    // It ignores SIGTERM: only SIGKILL within the box reaches it.
    cast.order(&["stop", "alpha"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a8_an_engine_that_does_not_answer_is_not_taken_for_a_box_that_is_missing() {
    let cast = boxed(
        "container",
        "",
        json!({ "lifecycle": { "create": "touch ../made" } }),
    );
    for words in [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "Error response from daemon: Container crate is paused, unpause the container before exec",
    ] {
        let engine = cast
            .stage
            .write("bin/docker", format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"));
        fs::set_permissions(engine, fs::Permissions::from_mode(0o755)).expect("our own file");
        let told = cast.order(&["start", "alpha"]).expect(5).json();
        let error = told["agents"][0]["error"].as_str().expect("words");
        assert!(
            error.contains("container `crate` cannot be used: ") && error.contains(words),
            "{error}"
        );
    }
    assert!(!cast.stage.path("made").exists(), "it was made again");
    cast.assert_rest();
}

#[test]
fn a8_a_box_that_cannot_be_used_is_told_with_what_to_do() {
    let failing = [
        (
            json!({}),
            "there is no container `crate` to run in (Error response from daemon: No such container: crate): make it, or let the settings say how (`runtime.lifecycle.create`)",
        ),
        (
            json!({ "lifecycle": { "create": "echo no image >&2; exit 4" } }),
            "`runtime.lifecycle.create` of container `crate` failed (exit status: 4): no image",
        ),
        (
            json!({ "lifecycle": { "create": "true" } }),
            "`lifecycle.create` ran, and nothing can be run in it: Error response from daemon: No such container: crate",
        ),
    ];
    for (runtime, expected) in failing {
        let cast = boxed("container", "", runtime);
        let told = cast.order(&["start", "alpha"]).expect(5).json();
        let words = told["agents"][0]["error"].as_str().expect("words");
        assert!(
            words.starts_with("agent `alpha`") && words.contains(expected),
            "{words}"
        );
        cast.assert_rest();
    }
    // No engine at all, and nothing to stop on this machine.
    let mut cast = boxed("sbx", "", json!({}));
    fs::remove_file(cast.stage.path("bin/sbx")).expect("our own file");
    let told = cast.order(&["start", "alpha"]).expect(5).json();
    let words = told["agents"][0]["error"].as_str().expect("words");
    assert!(
        words.contains("there is no program `sbx` on the PATH: install it"),
        "{words}"
    );
    let told = cast.order(&["stop-sandbox", "alpha"]).expect(5).json();
    assert!(
        told.to_string().contains("set `runtime.lifecycle.stop`"),
        "{told}"
    );
    cast.change(0, |agent| agent["runtime"] = json!({ "type": "local" }));
    let told = cast.order(&["remove-sandbox", "alpha"]).expect(2).json();
    assert!(
        told.to_string()
            .contains("agent `alpha` runs in no container or sandbox"),
        "{told}"
    );
    cast.assert_rest();
}

/// An agent in a box that has the project's folder under another path, and a task for it.
fn runs_in_a_box(folder: &str) -> Cast {
    // It has to be ended from within.
    let script = "end: { ignore_eof: true }\nprompts:\n  - steps:\n      - write: { path: made.txt, content: hello, ask: true }\n      - report: { summary: Done. }\n";
    let mut cast = boxed("container", script, json!({}));
    std::os::unix::fs::symlink(cast.stage.path("work"), cast.stage.path("within")).expect("our own folder");
    let within = cast.stage.path("within");
    let workspace = cast.stage.path(folder);
    cast.change(0, |agent| {
        agent["runtime"]["workspacePath"] = json!(within);
        agent["workspace"] = json!(workspace);
        agent["models"] = json!({ "scripted": { "id": "default" } });
    });
    cast.stage.write("box.crate", "running");
    cast.stage.write(
        "work/task.yaml",
        "task: T\nfolders: { write: [.] }\nagents: [{ id: one, mission: Work, model: scripted, effort: default }]\n",
    );
    cast
}

#[test]
fn a8_a_run_is_carried_out_in_a_box_with_its_folder_as_the_box_has_it() {
    let cast = runs_in_a_box("work");
    cast.stage.run().expect(0);
    let within = cast.stage.path("within").display().to_string();
    let record = fs::read_to_string(cast.stage.path("alpha.record")).expect("a record");
    assert!(record.contains(&format!("\"cwd\":\"{within}\"")), "{record}");
    // Its request for permission named the path in the box, and was judged by ours.
    assert_eq!(
        fs::read_to_string(cast.stage.path("work/made.txt")).expect("a file"),
        "hello"
    );
    assert!(
        calls(&cast)
            .iter()
            .any(|call| call.contains(&format!("exec -i -w {within} ")))
    );
    cast.assert_rest();
}

#[test]
fn a8_a_run_in_a_folder_that_the_box_does_not_have_is_refused_by_name() {
    let cast = runs_in_a_box("elsewhere");
    let refused = cast.stage.run().expect(2).json();
    let words = refused["error"]["message"].as_str().expect("words");
    assert!(
        words.starts_with("`one` cannot work: agent `alpha` runs in container `crate`, which has ")
            && words.contains("worktree: never"),
        "{words}"
    );
    assert!(
        !calls(&cast).iter().any(|call| call.contains("exec -i")),
        "it was launched"
    );
    cast.assert_rest();
}
