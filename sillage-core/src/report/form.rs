//! The form that a report must take, as agents are told it (W13, W15).

use super::Expected;

const BEFORE_EXAMPLE: &str = "\
End your answer with your report: one JSON object in exactly one fenced `json` block, with nothing after it. \
Only the report is passed on; text before it is kept but nobody acts on it. For example:

```json
{
  \"outcome\": \"complete\",
  \"summary\": \"What you did and found, and what the agents after you must know.\",
  \"decisions\": [{ \"title\": \"What you decided\", \"why\": \"Why\" }],
  \"checks\": [{ \"kind\": \"unit_test\", \"status\": \"passed\", \"detail\": \"What you ran and what it said\" }],
  \"blockers\": [],
  \"references\": [{ \"kind\": \"file\", \"value\": \"path/to/file\" }],
";

const AFTER_EXAMPLE: &str = "  \"next_action\": \"What should be done next\"
}
```

- `outcome` (required): `complete` when all of the mission is done, `partial` when some of it is left, `blocked` \
when something stands in the way of it. `blocked` needs blockers, and `complete` must not have any.
- `summary` (required): at most 2,000 characters. The whole JSON text: at most 8,000 characters.
- `decisions` and `blockers`: a list of texts, or of objects with a `title` and, if it helps, `why` (decisions) or \
`needs` (blockers: what would lift it). A blocker stops the agents that come after you.
- `checks`: `kind` is `build`, `unit_test`, `runtime_test`, `lint`, `review` or `other`; `status` is `passed`, \
`failed` or `not_run`; `detail` is optional. Say `not_run` of what you did not run.
- `references`: `kind` is `file`, `commit`, `branch` or `url`.
";

const NO_OUTPUTS: &str = "- No other field is allowed. Leave out what does not apply.\n";

const OUTPUTS: &str = "\
- `outputs` (required unless you are blocked): a text for each of the names above, and no other name.
- No other field is allowed. Leave out what does not apply.
";

/// Writes the form that a report must take, with a JSON example.
pub fn write_form(text: &mut String, expected: &Expected<'_>) {
    text.push_str(BEFORE_EXAMPLE);
    if expected.outputs.is_empty() {
        text.push_str(AFTER_EXAMPLE);
        text.push_str(NO_OUTPUTS);
        return;
    }
    text.push_str("  \"outputs\": {");
    for (index, name) in expected.outputs.iter().enumerate() {
        text.push_str(if index == 0 { " \"" } else { ", \"" });
        text.push_str(name);
        text.push_str("\": \"…\"");
    }
    text.push_str(" },\n");
    text.push_str(AFTER_EXAMPLE);
    text.push_str(OUTPUTS);
}
