//! How each agent is told to keep to a folder of its own and to ask the model server.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

/// The variables of an agent, and what its settings files hold, are decided here; all are read by the agent alone.
type Environment = BTreeMap<String, String>;

fn variables<const N: usize>(pairs: [(&str, &str); N]) -> Environment {
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pairs.into_iter().collect()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(super) fn opencode(home: &Path, model_url: &str) -> io::Result<Environment> {
    let limit = json!({ "context": 128_000, "output": 8_192 });
    let model = json!({ "name": "Test", "tool_call": true, "reasoning": true, "limit": limit });
    let small = json!({ "name": "Small", "tool_call": true, "limit": limit });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Test",
        "options": { "baseURL": model_url, "apiKey": "none" },
        "models": { "test-model": model, "test-small": small },
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "model": "test/test-small", "small_model": "test/test-small",
        "permission": { "edit": "ask", "bash": "ask", "webfetch": "deny" },
        "enabled_providers": ["test"], "provider": { "test": provider },
    });
    let file = home.join("opencode.json");
    fs::write(&file, settings.to_string())?;
    Ok(variables([
        ("HOME", &text(home)),
        ("OPENCODE_CONFIG", &text(&file)),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ("OPENCODE_DISABLE_SHARE", "1"),
    ]))
}

pub(super) fn codex(home: &Path, model_url: &str) -> io::Result<Environment> {
    let folder = home.join("codex");
    fs::create_dir_all(&folder)?;
    let catalogue = folder.join("models.json");
    let models = json!({ "models": [codex_model("test-model", 1), codex_model("test-small", 2)] });
    fs::write(&catalogue, models.to_string())?;
    // A JSON string is a TOML string: these hold no control characters.
    let settings = format!(
        "model = \"test-small\"\nmodel_provider = \"test\"\nmodel_catalog_json = {catalogue}\n\
         check_for_update_on_startup = false\n\
         [model_providers.test]\nname = \"Test\"\nbase_url = {url}\nwire_api = \"responses\"\nenv_key = \"TEST_KEY\"\n\
         request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n\
         [analytics]\nenabled = false\n[features]\nplugins = false\napps = false\nremote_plugin = false\n",
        catalogue = json!(catalogue),
        url = json!(model_url),
    );
    fs::write(folder.join("config.toml"), settings)?;
    Ok(variables([
        ("HOME", &text(home)),
        ("CODEX_HOME", &text(&folder)),
        ("TEST_KEY", "none"),
        ("NO_BROWSER", "1"),
        // Asks before it writes.
        ("INITIAL_AGENT_MODE", "read-only"),
    ]))
}

/// An entry of codex's catalogue of models; its own models are told to write programs instead of calling tools.
fn codex_model(name: &str, priority: u32) -> Value {
    let efforts = ["low", "medium", "high"].map(|effort| json!({ "effort": effort, "description": effort }));
    json!({
        "slug": name, "display_name": name, "description": name, "priority": priority, "visibility": "list",
        "supported_in_api": true, "availability_nux": null, "upgrade": null, "base_instructions": "A test.",
        "model_messages": null, "supported_reasoning_levels": efforts, "default_reasoning_level": "medium",
        "default_reasoning_summary": "none", "support_verbosity": true, "default_verbosity": "low",
        "shell_type": "unified_exec", "apply_patch_tool_type": "freeform", "web_search_tool_type": "text",
        "truncation_policy": { "mode": "tokens", "limit": 10_000 }, "context_window": 272_000,
        "max_context_window": 272_000, "effective_context_window_percent": 95, "experimental_supported_tools": [],
        "input_modalities": ["text"], "supports_image_detail_original": false, "supports_search_tool": false,
        "use_responses_lite": false, "include_skills_usage_instructions": false,
        "include_plugin_usage_instructions": false, "include_apps_usage_instructions": false,
    })
}

pub(super) fn gemini(home: &Path, server_url: &str) -> io::Result<Environment> {
    let folder = home.join(".gemini");
    fs::create_dir_all(&folder)?;
    let settings = json!({
        // A folder that is not trusted gets no MCP servers, and nobody is told.
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
    });
    fs::write(folder.join("settings.json"), settings.to_string())?;
    Ok(variables([
        ("HOME", &text(home)),
        ("GEMINI_API_KEY", "none"),
        ("GOOGLE_GEMINI_BASE_URL", server_url),
        ("NO_BROWSER", "1"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ]))
}
