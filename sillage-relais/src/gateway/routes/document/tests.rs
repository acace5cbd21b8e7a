use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

/// Every route is in the document, and the document names no other.
#[test]
fn the_document_names_every_route() {
    let document = openapi();
    let told: BTreeSet<&str> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let table = super::super::table();
    let served: BTreeSet<&str> = table.iter().map(|(path, _)| *path).collect();
    assert_eq!(told, served);
}

/// The names of paths, parameters, schemas and fields.
fn names(document: &Value, found: &mut BTreeSet<String>) {
    let Some(object) = document.as_object() else {
        if let Some(list) = document.as_array() {
            list.iter().for_each(|value| names(value, found));
        }
        return;
    };
    for (key, value) in object {
        if ["paths", "schemas", "properties"].contains(&key.as_str())
            && let Some(named) = value.as_object()
        {
            found.extend(named.keys().cloned());
        }
        if key == "name"
            && let Some(name) = value.as_str()
        {
            found.insert(name.to_owned());
        }
        if key == "operationId"
            && let Some(name) = value.as_str()
        {
            found.insert(name.to_owned());
        }
        names(value, found);
    }
}

/// Decision 07: the gateway has no notion of what its sessions are for.
#[test]
fn no_name_of_the_document_is_a_notion_of_an_application() {
    let mut found = BTreeSet::new();
    names(&openapi(), &mut found);
    assert!(
        found.contains("client_session_id") && found.contains("/api/sessions/{id}/events"),
        "{found:?}"
    );
    for word in ["task", "run", "step", "report", "recap", "sillage"] {
        let with: Vec<_> = found
            .iter()
            .filter(|name| name.to_lowercase().contains(word))
            .collect();
        assert_eq!(with, Vec::<&String>::new(), "`{word}` in a name");
    }
}

/// L10: every answer that is no success is a problem document, and every route tells of the token.
#[test]
fn every_refusal_is_a_problem() {
    let document = openapi();
    assert_eq!(document["security"][0], serde_json::json!({ TOKEN: [] }));
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, route) in methods.as_object().unwrap() {
            let answers = route["responses"].as_object().unwrap();
            for status in ["400", "401", "403"] {
                assert!(answers.contains_key(status), "{method} {path} {status}");
            }
            for (status, answer) in answers {
                let content = answer.get("content").and_then(Value::as_object);
                let is_problem =
                    content.is_some_and(|content| content.contains_key("application/problem+json"));
                assert_eq!(is_problem, status.as_str() >= "400", "{method} {path} {status}");
            }
        }
    }
}
