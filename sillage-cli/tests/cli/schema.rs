//! W11, A12: `sillage schema`.

use crate::Sandbox;

#[test]
fn w11_each_schema_is_json_and_names_its_dialect() {
    let sandbox = Sandbox::new();
    for name in ["settings", "report", "plan", "project"] {
        let ended = sandbox.run(["schema", name]);
        assert_eq!(ended.code, 0, "{name}");
        let schema = ended.json();
        assert!(
            schema["$schema"]
                .as_str()
                .is_some_and(|dialect| dialect.contains("json-schema.org")),
            "{name}"
        );
        assert_eq!(schema["type"], "object", "{name}");
    }
    assert_eq!(sandbox.run(["schema", "nothing"]).code, 2);
}
