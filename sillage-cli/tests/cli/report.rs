//! W15–W18: `sillage report check`.

use crate::{Sandbox, assert_expected, cases};

#[test]
fn reports_answer_as_the_cases_say() {
    let sandbox = Sandbox::new();
    let cases = cases("reports.json");
    assert!(cases.len() > 10);
    for case in &cases {
        let input = case["input"].as_str().expect("a text");
        let file = sandbox.write("answer.txt", input);
        assert_expected(
            case,
            &sandbox.run([
                "report".as_ref(),
                "check".as_ref(),
                "--json".as_ref(),
                file.as_os_str(),
            ]),
        );
        assert_expected(
            case,
            &sandbox.run_with_input(["report", "check", "--json", "-"], input),
        );
    }
}

#[test]
fn w17_a_person_is_told_the_place_and_the_fault() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("answer.txt", "{\"outcome\": \"complete\",\n \"sumary\": \"x\"}");
    let ended = sandbox.run(["report".as_ref(), "check".as_ref(), file.as_os_str()]);
    assert_eq!(ended.code, 2);
    assert!(ended.stdout.contains("answer.txt:2:"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("did you mean `summary`"),
        "{}",
        ended.stdout
    );
}
