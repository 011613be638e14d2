//! `swarm config show`: every setting, where it is set, and what it overrides.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;
use toml::Value;

use crate::cli::{PageFormat, PageFormatArg};
use crate::client::context::ClientContext;
use crate::client::spawn_params::load_settings;
use crate::out::{CommandResult, table};
use crate::settings::{self, Settings};

#[derive(Serialize)]
struct SettingRow {
    key: String,
    #[serde(flatten)]
    current: ValueOrigin,
    /// The nearest first.
    overrides: Vec<ValueOrigin>,
}

/// A value and its place. A default has no place; a key without a default also has no value.
#[derive(Default, Serialize)]
struct ValueOrigin {
    value: Option<Value>,
    file: Option<PathBuf>,
    line: Option<usize>,
}

pub(super) fn run(ctx: &ClientContext, args: &PageFormatArg) -> CommandResult {
    let settings = load_settings(ctx).map_err(|error| error.hint("for all errors: swarm config check"))?;
    let rows = rows(&settings);
    match args.format {
        PageFormat::Json => {
            ctx.out.json(&json!({ "files": settings.files, "settings": rows }))?;
        }
        PageFormat::Text => {
            let cells: Vec<Vec<String>> = rows.iter().map(SettingRow::cells).collect();
            ctx.out.lines(&table(&["KEY", "VALUE", "FROM"], &cells, &[(1, 20)], ctx.out.width))?;
        }
    }
    Ok(0)
}

fn rows(settings: &Settings) -> Vec<SettingRow> {
    let mut keys = settings::keys();
    for set in &settings.values {
        if !keys.iter().any(|(key, _)| *key == set.key) {
            keys.push((set.key.clone(), None));
        }
    }
    let row = |(key, default): (String, Option<Value>)| {
        let set = settings.values.iter().filter(|set| set.key == key).rev().map(|set| ValueOrigin {
            value: Some(set.value.clone()),
            file: Some(set.file.clone()),
            line: Some(set.line),
        });
        let default = default.map(|value| ValueOrigin { value: Some(value), ..ValueOrigin::default() });
        let mut origins = set.chain(default);
        let current = origins.next().unwrap_or_default();
        let overrides = origins.collect();
        SettingRow { key, current, overrides }
    };
    keys.into_iter().map(row).collect()
}

impl SettingRow {
    fn cells(&self) -> Vec<String> {
        let mut from = self.current.place();
        if !self.overrides.is_empty() {
            let values = self.overrides.iter().map(|old| format!("{} ({})", old.text(), old.place()));
            from += &format!(", overrides {}", values.collect::<Vec<_>>().join(", "));
        }
        vec![self.key.clone(), self.current.text(), from]
    }
}

impl ValueOrigin {
    fn text(&self) -> String {
        self.value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string)
    }

    fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file.display()),
            _ if self.value.is_some() => "default".to_owned(),
            _ => String::new(),
        }
    }
}
