//! From what a script wants done to the tools that an agent declares.

use serde_json::{Map, Value, json};

use super::ToolUse;

/// A tool that an agent declares.
#[derive(Debug, Default)]
pub(super) struct DeclaredTool {
    /// Its name, after `namespace.` where it has one.
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// The JSON schema of its arguments.
    pub(super) schema: Value,
    /// Whether it takes a text rather than arguments by name.
    pub(super) takes_text: bool,
}

/// A call of a declared tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) input: Input,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Text(String),
    /// Arguments by name, as JSON text.
    Arguments(String),
}

const WRITERS: [&str; 4] = ["write", "write_file", "create_file", "apply_patch"];
const SHELLS: [&str; 5] = [
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "run_shell_command",
];

/// The call that does what the script wants; in words why there is none.
pub(super) fn translate(wanted: &ToolUse, declared: &[DeclaredTool]) -> Result<Call, String> {
    let named = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| declared.iter().find(|tool| tool.name == *name))
    };
    match wanted {
        ToolUse::Write { path, content } => {
            let tool = named(&WRITERS).ok_or("the agent declares no tool that writes files")?;
            Ok(write_call(tool, path, content))
        }
        ToolUse::Shell { command } => {
            let tool = named(&SHELLS).ok_or("the agent declares no shell")?;
            Ok(call(tool, [(&["command", "cmd"][..], command.as_str())]))
        }
        ToolUse::Named { name, arguments } => {
            // Agents put the server's name before that of an MCP tool, each in its own way.
            let suffix = format!("_{name}");
            let of_that_name = |tool: &&DeclaredTool| {
                tool.name == *name || bare_name(tool) == name || tool.name.ends_with(&suffix)
            };
            let tool = declared
                .iter()
                .find(of_that_name)
                .ok_or_else(|| format!("the agent declares no tool {name}"))?;
            Ok(with_input(tool, Input::Arguments(arguments.to_string())))
        }
    }
}

fn write_call(tool: &DeclaredTool, path: &str, content: &str) -> Call {
    if tool.name != "apply_patch" {
        let arguments = [
            (&["filePath", "file_path", "path"][..], path),
            (&["content", "contents"], content),
        ];
        return call(tool, arguments);
    }
    let mut patch = format!("*** Begin Patch\n*** Add File: {path}\n");
    for line in content.lines() {
        patch.extend(["+", line, "\n"]);
    }
    patch.push_str("*** End Patch");
    if tool.takes_text {
        with_input(tool, Input::Text(patch))
    } else {
        call(tool, [(&["input"][..], patch.as_str())])
    }
}

/// A call whose arguments go by the first of their names that the tool knows. Required ones that the script does not
/// care for get a value of their type.
fn call<'a>(tool: &DeclaredTool, wanted: impl IntoIterator<Item = (&'a [&'a str], &'a str)>) -> Call {
    let properties = &tool.schema["properties"];
    let mut arguments = Map::new();
    for (names, value) in wanted {
        let Some(name) = names
            .iter()
            .find(|name| properties.get(name).is_some())
            .or(names.first())
        else {
            continue;
        };
        let is_list = properties[name]["type"] == "array";
        let value = if is_list {
            json!(["sh", "-c", value])
        } else {
            json!(value)
        };
        arguments.insert((*name).to_owned(), value);
    }
    for name in tool.schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let is_text = properties[name]["type"].as_str().unwrap_or("string") == "string";
        let value = if is_text {
            json!("for a test")
        } else {
            json!(false)
        };
        arguments.entry(name).or_insert(value);
    }
    with_input(tool, Input::Arguments(Value::Object(arguments).to_string()))
}

fn with_input(tool: &DeclaredTool, input: Input) -> Call {
    Call {
        name: bare_name(tool).to_owned(),
        namespace: tool.namespace.clone(),
        input,
    }
}

fn bare_name(tool: &DeclaredTool) -> &str {
    let namespace = tool.namespace.as_deref().unwrap_or_default();
    let bare = tool
        .name
        .strip_prefix(namespace)
        .and_then(|rest| rest.strip_prefix('.'));
    bare.unwrap_or(&tool.name)
}
