//! What agents ask permission for (A5, A6, R21).

use sillage_core::ports::runtime::StopReason;

use super::*;

async fn text(theatre: &Theatre, request: SessionRequest) -> String {
    let scene = theatre.scene_of(request).await;
    let answer = scene.answer("go").await.expect("an answer");
    scene.close().await;
    theatre.check_frames();
    answer.text
}

#[tokio::test]
async fn r21_edits_stay_in_the_folders_and_out_of_read_only_sessions() {
    let inside = Theatre::playing(
        "      - write: { path: a.txt, content: x, ask: true }\n      - say: \"{{permission}}\"",
    );
    let request = inside.request(PermissionPolicy::AllowInFolders);
    assert_eq!(text(&inside, request).await, "allow");
    assert_eq!(written(inside.folder.path(), "a.txt").as_deref(), Some("x"));

    let outside = tempfile::tempdir().expect("a folder");
    let place = outside.path().join("b.txt");
    let steps = format!(
        "      - write: {{ path: {}, content: x, ask: true }}\n      - say: \"{{{{permission}}}}\"",
        place.display()
    );
    let theatre = Theatre::playing(&steps);
    let request = theatre.request(PermissionPolicy::AllowInFolders);
    assert_eq!(text(&theatre, request).await, "reject");
    assert!(!place.exists());

    let mut read_only = inside.request(PermissionPolicy::Ask);
    read_only.filesystem_scope = Folders {
        read: vec![read_only.workspace.clone()],
        write: Vec::new(),
    };
    assert_eq!(
        text(&inside, read_only).await,
        "reject",
        "a person is asked what is refused anyway"
    );
}

#[tokio::test]
async fn what_is_not_known_is_refused() {
    let cases = [
        "bare: true",
        "kind: edit",
        "kind: fetch, paths: [a.txt]",
        "kind: edit, paths: [a.txt], options: [{ id: always, kind: allow_always }, { id: reject, kind: reject_once }]",
    ];
    for (n, ask) in cases.into_iter().enumerate() {
        let theatre = Theatre::playing(&format!(
            "      - ask: {{ {ask} }}\n      - say: \"{{{{permission}}}}\""
        ));
        let request = theatre.request(PermissionPolicy::AllowInFolders);
        let expected = if n == 3 { "cancelled" } else { "reject" };
        let scene = theatre.scene_of(request).await;
        let answer = scene.answer("go").await.expect("an answer");
        scene.close().await;
        if expected == "reject" {
            assert_eq!(answer.text, "reject", "{ask}");
        } else {
            let told = "cancelled by the agent: its request was rejected by policy";
            assert_eq!(answer.stop, StopReason::Other(told.to_owned()), "{ask}");
        }
    }
}
