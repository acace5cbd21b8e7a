//! Words and paths; boxes themselves are tried with a stand-in for their engine, in the pool's tests.

use super::*;

fn sandbox(workspace_path: Option<&str>) -> Sandbox {
    Sandbox {
        engine: Engine::Container,
        name: "box".to_owned(),
        workspace_path: workspace_path.map(PathBuf::from),
        create: None,
        stop: None,
        remove: None,
    }
}

#[test]
fn a8_an_agent_is_started_by_exec_and_values_stay_off_the_command_line() {
    let env = BTreeMap::from([
        ("API_KEY".to_owned(), "secret".to_owned()),
        ("HOME".to_owned(), "/home/agent".to_owned()),
        ("DOCKER_HOST".to_owned(), "tcp://within".to_owned()),
    ]);
    let words = ["agent".into(), "--acp".into()];
    let entry = Entry {
        mark: "m1",
        folder: Some(Path::new("/src")),
        env: &env,
        words: &words,
    };
    let inherited = [("HOME".into(), "/home/person".into())];
    let (words, passed) = sandbox(None).words(OsStr::new("/bin/docker"), &inherited, entry);
    let told: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
    let expected = "/bin/docker exec -i -w /src -e SILLAGE_SANDBOX=m1 -e API_KEY -e DOCKER_HOST=tcp://within \
                    -e HOME=/home/agent box agent --acp";
    assert_eq!(told.join(" "), expected);
    assert_eq!(passed, [("API_KEY".into(), "secret".into())]);
}

#[test]
fn a8_folders_are_told_as_the_box_has_them() {
    let within = |box_path, workspace: Option<&str>, folder| {
        let inside = sandbox(box_path).inside("claude", workspace.map(Path::new), Path::new(folder));
        inside.map(|path| path.display().to_string())
    };
    let own = Some("/none/project");
    assert_eq!(
        within(None, own, "/none/project/a/b").unwrap(),
        "/none/project/a/b"
    );
    assert_eq!(
        within(Some("/src"), own, "/none/project/a/b").unwrap(),
        "/src/a/b"
    );
    assert_eq!(within(Some("/src"), own, "/none/project").unwrap(), "/src");
    for outside in ["/none/projects", "/none", "/none/project/../other"] {
        let refused = within(Some("/src"), own, outside).unwrap_err().to_string();
        assert!(
            refused.contains("agent `claude` runs in container `box`") && refused.contains("--data-dir"),
            "{refused}"
        );
    }
    let refused = within(Some("/src"), None, "/none/project")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("set the agent's `workspace`"), "{refused}");
}

#[test]
#[cfg(unix)]
fn a8_a_folder_reached_through_a_link_is_still_within() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    std::fs::create_dir_all(real.join("a")).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let told = sandbox(Some("/src")).inside("claude", Some(&link), &real.join("a"));
    assert_eq!(told.unwrap(), Path::new("/src/a"));
    // A link that leads out is no way out.
    std::os::unix::fs::symlink("/", real.join("out")).unwrap();
    let told = sandbox(Some("/src")).inside("claude", Some(&real), &folder.path().join("link/../other"));
    assert!(told.is_err());
}

#[test]
fn a8_paths_that_the_agent_names_are_those_of_this_machine() {
    let outside = |box_path, path| {
        let outside = sandbox(box_path).outside(Some(Path::new("/home/me/p")), PathBuf::from(path));
        outside.display().to_string()
    };
    assert_eq!(outside(Some("/src"), "/src/a"), "/home/me/p/a");
    assert_eq!(outside(Some("/src"), "/src"), "/home/me/p");
    assert_eq!(outside(Some("/src"), "/etc/passwd"), "/etc/passwd");
    assert_eq!(outside(Some("/src"), "a"), "a");
    assert_eq!(outside(None, "/src/a"), "/src/a");
}
