//! Model and effort are in force when a session opens, or it does not open (A3).

use super::*;

fn theatre(script: &str, efforts: Option<&[&str]>) -> Theatre {
    let mut theatre = Theatre::new(script);
    let efforts = efforts.map(|efforts| efforts.iter().map(|effort| (*effort).to_owned()).collect());
    theatre.agent.models.insert(
        "fake".to_owned(),
        AgentModel {
            id: Some("fake-1".to_owned()),
            efforts,
        },
    );
    theatre
}

async fn open(theatre: &Theatre) -> Result<(), RuntimeError> {
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    within(runtime.open(&request)).await?;
    within(runtime.close(request.client_session_id)).await
}

async fn words(theatre: &Theatre) -> String {
    let error = open(theatre).await.expect_err("it opens");
    assert!(matches!(error, RuntimeError::Permanent { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a3_options_are_set_by_category() {
    let script = "options: [{ id: e, category: thought_level, values: [none], by_model: { fake-1: [high, low] } }, { id: m, category: model, values: [other, fake-1] }]\ndefault: [say: done]";
    let theatre = theatre(script, None);
    open(&theatre).await.expect("it opens");
    let set = theatre.received("session/set_config_option");
    let set: Vec<(&Value, &Value)> = set
        .iter()
        .map(|params| (&params["configId"], &params["value"]))
        .collect();
    assert_eq!(
        set,
        [
            (&Value::from("m"), &Value::from("fake-1")),
            (&Value::from("e"), &Value::from("low"))
        ]
    );
    theatre.check_frames();
}

#[tokio::test]
async fn a3_what_the_agent_does_not_take_is_an_error() {
    let refused = "options: [{ id: m, category: model, values: [other, fake-1], refused: [fake-1] }]";
    assert!(words(&theatre(refused, Some(&[]))).await.contains("-32602"));
    let ignored = "options: [{ id: m, category: model, values: [other, fake-1], ignored: [fake-1] }]";
    assert!(
        words(&theatre(ignored, Some(&[])))
            .await
            .contains("did not take it")
    );
    let missing = "options: [{ id: m, category: model, values: [other] }]";
    assert!(
        words(&theatre(missing, Some(&[])))
            .await
            .contains("has no model `fake-1`: it has other")
    );
    assert!(
        words(&theatre("{}", Some(&[])))
            .await
            .contains("offers no way to choose its model")
    );
    let no_effort = "options: [{ id: m, category: model, values: [fake-1] }]";
    assert!(
        words(&theatre(no_effort, None))
            .await
            .contains("offers no way to choose its effort")
    );
    assert!(
        words(&theatre(no_effort, Some(&["high"])))
            .await
            .contains("has no effort `low`")
    );
}

#[tokio::test]
async fn a3_arguments_and_environment_are_the_last_way() {
    let mut theatre = theatre("default: [say: done]", None);
    theatre.agent.env = [
        ("MODEL", "{model}"),
        ("EFFORT", "{effort}"),
        ("WINDOW", "{autocompact_tokens}"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    std::fs::write(
        theatre.path("script.yaml"),
        "default: [record_env: [MODEL, EFFORT, WINDOW], say: done]",
    )
    .expect("written");
    let mut request = theatre.request(PermissionPolicy::Deny);
    let scene = theatre.scene_of(request.clone()).await;
    scene.answer("go").await.expect("an answer");
    scene.close().await;
    request.client_session_id = ClientSessionId(Uuid::new_v4());
    request.autocompact_tokens = Some(300_000);
    let scene = theatre.scene_of(request).await;
    scene.answer("go").await.expect("an answer");
    scene.close().await;
    let seen = theatre.record().into_iter().filter_map(|entry| {
        let Event::Env { values } = entry.event else {
            return None;
        };
        Some(values.into_values().collect::<Vec<_>>())
    });
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        vec![text("low"), text("fake-1"), None],
        vec![text("low"), text("fake-1"), text("300000")],
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}
