use super::*;

fn agent(name: &str, models: &[(&str, Option<&[&str]>)]) -> Arc<AgentCommand> {
    let models = models.iter().map(|(name, efforts)| {
        let efforts = efforts.map(|efforts| efforts.iter().map(|effort| (*effort).to_owned()).collect());
        (
            (*name).to_owned(),
            AgentModel {
                id: Some(format!("{name}-1")),
                efforts,
            },
        )
    });
    Arc::new(AgentCommand {
        name: name.to_owned(),
        models: models.collect(),
        ..AgentCommand::default()
    })
}

fn agents() -> Vec<Arc<AgentCommand>> {
    vec![
        agent("claude", &[("opus", Some(&["low", "high"])), ("shared", None)]),
        agent("other", &[("shared", None), ("plain", Some(&[]))]),
        agent("open", &[]),
    ]
}

fn words(result: Result<Choice, RuntimeError>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, RuntimeError::Permanent { .. }));
    error.to_string()
}

#[test]
fn a3_a_model_means_one_agent() {
    let found = |model: &str| {
        let choice = resolve(&agents(), model, "high").unwrap();
        (choice.agent.name.clone(), choice.model)
    };
    assert_eq!(found("opus"), ("claude".to_owned(), "opus-1".to_owned()));
    assert_eq!(found("claude/opus"), ("claude".to_owned(), "opus-1".to_owned()));
    assert_eq!(found("other/shared"), ("other".to_owned(), "shared-1".to_owned()));
    assert_eq!(
        found("open/anything/at-all"),
        ("open".to_owned(), "anything/at-all".to_owned())
    );
    assert_eq!(
        words(resolve(&agents(), "shared", "high")),
        "several agents offer the model `shared`: write `claude/shared` or `other/shared`"
    );
    assert!(words(resolve(&agents(), "opsu", "high")).ends_with("did you mean `opus`?"));
    assert_eq!(
        words(resolve(&agents(), "zzz", "high")),
        "no agent offers the model `zzz`"
    );
    assert!(resolve(&agents(), "open/", "high").is_err());
}

#[test]
fn a3_efforts_are_checked_against_the_settings() {
    let effort = |model: &str, effort: &str| resolve(&agents(), model, effort).map(|choice| choice.effort);
    assert_eq!(effort("opus", "low"), Ok(Some("low".to_owned())));
    assert_eq!(effort("opus", "default"), Ok(None));
    assert_eq!(
        effort("other/shared", "whatever"),
        Ok(Some("whatever".to_owned()))
    );
    assert_eq!(
        effort("plain", "high"),
        Ok(None),
        "a model without efforts is told none"
    );
    assert!(
        effort("opus", "huge")
            .unwrap_err()
            .to_string()
            .contains("it has low, high")
    );
}

fn choice(model: &str, effort: Option<&str>, args: &[&str]) -> Choice {
    let agent = AgentCommand {
        name: "a".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..AgentCommand::default()
    };
    Choice {
        agent: Arc::new(agent),
        model: model.to_owned(),
        effort: effort.map(str::to_owned),
    }
}

fn option(id: &str, category: &str, current: &str, values: &[&str]) -> ConfigOption {
    ConfigOption {
        id: id.to_owned(),
        category: category.to_owned(),
        current: current.to_owned(),
        values: values
            .iter()
            .map(|value| ((*value).to_owned(), format!("The {value}")))
            .collect(),
    }
}

#[test]
fn options_are_found_by_category_and_set_until_they_are_in_force() {
    let choice = choice("b", Some("HIGH"), &[]);
    let shown = |model: &str, effort: &str| Shown {
        options: vec![
            option("x", "thought_level", effort, &["low", "high"]),
            option("y", "model", model, &["a", "b"]),
        ],
        models: None,
    };
    let set = |id: &str, value: &str| NextStep::SetOption {
        id: id.to_owned(),
        value: value.to_owned(),
    };
    assert_eq!(next_step(&choice, &shown("a", "low"), &[]), Ok(set("y", "b")));
    assert_eq!(
        next_step(&choice, &shown("b", "low"), &[set("y", "b")]),
        Ok(set("x", "high"))
    );
    assert_eq!(next_step(&choice, &shown("b", "high"), &[]), Ok(NextStep::Done));
    let ignored = next_step(&choice, &shown("a", "low"), &[set("y", "b")]).unwrap_err();
    assert_eq!(
        ignored.to_string(),
        "agent `a` was told `b` for its option `y` and did not take it"
    );
}

#[test]
fn an_effort_that_goes_with_the_other_model_is_an_error() {
    let shown = Shown {
        options: vec![
            option("m", "model", "b", &["a", "b"]),
            option("e", "thought_level", "low", &["low"]),
        ],
        models: None,
    };
    let error = next_step(&choice("b", Some("high"), &[]), &shown, &[]).unwrap_err();
    assert_eq!(error.to_string(), "agent `a` has no effort `high`: it has low");
}

#[test]
fn the_older_list_of_models_is_the_second_way() {
    let shown = |current: &str| Shown {
        options: Vec::new(),
        models: Some(LegacyModels {
            current: current.to_owned(),
            available: ["a", "b", "c[high]"].map(str::to_owned).to_vec(),
        }),
    };
    assert_eq!(
        next_step(&choice("b", None, &[]), &shown("a"), &[]),
        Ok(NextStep::SetModel("b".to_owned()))
    );
    assert_eq!(
        next_step(&choice("b", None, &[]), &shown("b"), &[]),
        Ok(NextStep::Done)
    );
    let with_effort = choice("c", Some("high"), &[]);
    assert_eq!(
        next_step(&with_effort, &shown("a"), &[]),
        Ok(NextStep::SetModel("c[high]".to_owned()))
    );
    assert_eq!(
        next_step(&with_effort, &shown("c[high]"), &[]),
        Ok(NextStep::Done)
    );
    assert!(next_step(&choice("d", None, &[]), &shown("a"), &[]).is_err());
    assert!(
        next_step(&choice("b", Some("high"), &[]), &shown("b"), &[]).is_err(),
        "the effort cannot be told"
    );
}

#[test]
fn arguments_are_the_last_way_and_no_way_is_an_error() {
    let nothing = Shown::default();
    let told = choice("b", Some("high"), &["--model={model}", "--effort", "{effort}"]);
    assert_eq!(next_step(&told, &nothing, &[]), Ok(NextStep::Done));
    assert_eq!(
        next_step(&choice("default", None, &[]), &nothing, &[]),
        Ok(NextStep::Done)
    );
    let error = next_step(&choice("b", None, &[]), &nothing, &[]).unwrap_err();
    assert!(error.to_string().contains("put `{model}` into its arguments"));
    assert!(next_step(&choice("b", Some("high"), &["{model}"]), &nothing, &[]).is_err());
}
