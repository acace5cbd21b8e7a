use super::*;

#[test]
fn updates_that_are_unknown_or_broken_become_notes() {
    let known = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "hi"}});
    assert_eq!(
        update(&known),
        Update::Said {
            text: "hi".to_owned(),
            message: Some("m".to_owned())
        }
    );
    let strange = [
        json!({"sessionUpdate": "brand_new_kind", "x": 1}),
        json!({"sessionUpdate": "tool_call", "title": "no id"}),
        json!({"sessionUpdate": "agent_message_chunk"}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}),
        Value::Null,
    ];
    for raw in strange {
        assert!(
            matches!(update(&raw), Update::Chatter(SessionEventKind::Note { .. })),
            "{raw}"
        );
    }
    assert_eq!(
        update(&json!({"sessionUpdate": "session_info_update", "title": "t"})),
        Update::Nothing
    );
}

#[test]
fn a_tool_call_is_read_as_far_as_it_goes() {
    let raw = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "brand_new", "status": 7,
        "locations": [{"path": "/a"}, {"line": 1}], "content": [{"type": "diff", "path": "/b", "newText": ""},
        {"type": "content", "path": "/c"}], "rawInput": null});
    let Update::Tool { id, status, facts } = update(&raw) else {
        panic!("no tool call")
    };
    assert_eq!(
        (id.as_str(), status, facts.kind.as_deref()),
        ("t", None, Some("brand_new"))
    );
    assert_eq!(facts.locations, [std::path::PathBuf::from("/a"), "/b".into()]);
    assert_eq!(facts.inputs, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a7_usage_comes_from_what_is_given_and_the_rest_is_unknown() {
    let raw = json!({"sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": {"amount": 0.0125, "currency": "USD"}});
    let expected = Usage {
        context_used: Some(120),
        cost_micros: Some(12_500),
        currency: Some(*b"USD"),
        ..Usage::default()
    };
    assert_eq!(update(&raw), Update::Used(expected));
    let credits = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": -1, "currency": "credits"}});
    assert_eq!(
        update(&credits),
        Update::Used(Usage {
            context_used: Some(1),
            ..Usage::default()
        })
    );

    let end = prompt_end(
        &json!({"stopReason": "end_turn", "usage": {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 0}}),
    );
    assert_eq!(
        (end.totals.input_tokens, end.totals.cache_read_tokens),
        (Some(20), Some(0))
    );
    assert!(end.turn.is_unknown());
    let end = prompt_end(&json!({"stopReason": "cancelled", "usage": {"inputTokens": 0, "outputTokens": 0}}));
    assert!(end.totals.is_unknown());
    let end = prompt_end(
        &json!({"stopReason": "end_turn", "usage": null, "_meta": {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 2}}}}),
    );
    assert_eq!((end.turn.input_tokens, end.totals.is_unknown()), (Some(5), true));
}

#[test]
fn stop_reasons_are_words() {
    assert_eq!(
        prompt_end(&json!({"stopReason": "budget"})).stop,
        StopReason::Other("budget".to_owned())
    );
    assert_eq!(prompt_end(&json!({})).stop, StopReason::Other(String::new()));
    assert_eq!(prompt_end(&Value::Null).stop, StopReason::Other(String::new()));
    assert_eq!(
        prompt_end(&json!({"stopReason": "refusal"})).stop,
        StopReason::Refusal
    );
}

#[test]
fn what_a_session_shows_of_its_model_is_read_from_both_ways() {
    let shown = shown(&json!({
        "sessionId": "s",
        "configOptions": [
            {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "a",
             "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]},
            {"id": "e", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "low",
             "options": [{"group": "g", "name": "G", "options": [{"value": "low", "name": "Low"}]}]},
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true},
            {"broken": true}
        ],
        "models": {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}]}
    }));
    let ids: Vec<&str> = shown.options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, ["m", "e"]);
    assert_eq!(shown.options[1].values, [("low".to_owned(), "Low".to_owned())]);
    assert_eq!(shown.models.unwrap().available, ["a"]);
}

#[test]
fn capabilities_are_read_from_the_raw_answer() {
    let (version, can) = capabilities(&json!({"protocolVersion": 1,
        "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}}}}));
    assert_eq!(
        (version, can),
        (
            json!(1),
            Capabilities {
                sign_ins: Vec::new(),
                load: true,
                resume: true
            }
        )
    );
    assert_eq!(capabilities(&json!({})).1, Capabilities::default());
}

#[test]
fn acp01_codex_tells_a_failed_turn_apart() {
    let told = |status: &str| {
        update(
            &json!({"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": status}}}}),
        )
    };
    assert_eq!(told("systemError"), Update::SystemError);
    assert_eq!(told("idle"), Update::Nothing);
}

#[test]
fn c11_what_is_kept_of_a_tool_call_and_a_request_has_bounds() {
    let long = "é".repeat(100_000);
    let raw = json!({"toolCallId": long, "title": long, "kind": long, "status": long});
    let Some(Update::Tool { id, status, facts }) = tool(&raw) else {
        panic!("no tool call")
    };
    for kept in [id, status.unwrap(), facts.kind.unwrap(), facts.title] {
        assert!(
            kept.chars().count() <= TITLE + 1,
            "{} characters",
            kept.chars().count()
        );
    }
    let option = |id: &str| json!({"optionId": id, "name": long, "kind": long});
    let many: Vec<Value> = (0..1000).map(|n| option(&n.to_string())).collect();
    let kept = permission_options(&Value::from(many));
    assert_eq!(kept.len(), OPTIONS);
    assert!(kept.iter().all(|option| option.name.chars().count() <= WORD + 1));
    // An identifier is told back as it is, or not at all.
    assert_eq!(permission_options(&json!([option(&long)])), []);
}

#[test]
fn acp24_a2_mcp_servers_are_written_as_each_request_wants_them() {
    let some = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    let servers = [
        McpServer {
            name: "files".to_owned(),
            transport: McpTransport::Stdio {
                command: "mcp-files".to_owned(),
                args: vec!["-v".to_owned()],
                env: some("KEY", "k"),
            },
        },
        McpServer {
            name: "tickets".to_owned(),
            transport: McpTransport::Http {
                url: "https://t".to_owned(),
                headers: some("X", "y"),
            },
        },
        McpServer {
            name: "old".to_owned(),
            transport: McpTransport::Sse {
                url: "https://o".to_owned(),
                headers: BTreeMap::new(),
            },
        },
    ];
    let written = json!([
        { "name": "files", "command": "mcp-files", "args": ["-v"], "env": [{ "name": "KEY", "value": "k" }] },
        { "type": "http", "name": "tickets", "url": "https://t", "headers": [{ "name": "X", "value": "y" }] },
        { "type": "sse", "name": "old", "url": "https://o", "headers": [] },
    ]);
    for params in [
        new_session("/w", &servers),
        load_session("s", "/w", &servers),
        resume_session("s", "/w", &servers),
    ] {
        assert_eq!(params["mcpServers"], written);
        // As the protocol's own types have it.
        let typed = serde_json::from_value::<Vec<agent_client_protocol_schema::v1::McpServer>>(
            params["mcpServers"].clone(),
        );
        assert_eq!(typed.expect("servers of the protocol").len(), 3);
    }
    assert_eq!(resume_session("s", "/w", &[])["mcpServers"], json!([]));
}
