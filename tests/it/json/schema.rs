//! Compares a value with a schema: the part of JSON Schema that `tests/schema` uses. A keyword that is not known here
//! fails, so that no rule of a schema goes unchecked.

use chrono::DateTime;
use serde_json::{Map, Value};

/// A file with a schema for each name in `$defs`.
pub(super) struct Schema(Value);

impl Schema {
    pub(super) fn new(file: &Value) -> Self {
        Self(file.clone())
    }

    pub(super) fn definitions(&self) -> &Map<String, Value> {
        self.0["$defs"].as_object().expect("definitions")
    }

    /// The first difference between a value and the definition of a name.
    pub(super) fn differs(&self, name: &str, value: &Value) -> Option<String> {
        let schema = self.definitions().get(name).unwrap_or_else(|| panic!("no definition of {name}"));
        self.check(schema, value, name).err()
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let fail = |why: String| Err(format!("{at}: {why}: {value}"));
        let rules = schema.as_object().expect("a schema is an object");
        for (keyword, rule) in rules {
            match keyword.as_str() {
                "title" | "required" | "additionalProperties" => {}
                "$ref" => {
                    let name =
                        rule.as_str().and_then(|path| path.strip_prefix("#/$defs/")).expect("a reference");
                    let target = self.definitions().get(name).unwrap_or_else(|| panic!("no {name}"));
                    self.check(target, value, at)?;
                }
                "const" if rule != value => return fail(format!("not {rule}")),
                "const" => {}
                "enum" if !list(rule).contains(value) => return fail(format!("not one of {rule}")),
                "enum" => {}
                "type" if !is_type(rule, value) => return fail(format!("not of type {rule}")),
                "type" => {}
                "format" => {
                    assert_eq!(rule, "date-time");
                    let is_time = |text: &str| DateTime::parse_from_rfc3339(text).is_ok();
                    if value.as_str().is_some_and(|text| !is_time(text)) {
                        return fail("not a time".into());
                    }
                }
                "items" => {
                    for (index, item) in list(value).iter().enumerate() {
                        self.check(rule, item, &format!("{at}[{index}]"))?;
                    }
                }
                "properties" => {
                    for (key, rule) in rule.as_object().expect("properties") {
                        value.get(key).map_or(Ok(()), |own| self.check(rule, own, &format!("{at}.{key}")))?;
                    }
                }
                "oneOf" => {
                    let tried: Vec<_> = list(rule).iter().map(|rule| self.check(rule, value, at)).collect();
                    if tried.iter().filter(|result| result.is_ok()).count() != 1 {
                        return fail(format!("not exactly one of {tried:?}"));
                    }
                }
                other => panic!("{at}: the keyword {other} is not known"),
            }
        }
        self.check_keys(rules, value, at)
    }

    /// Compares the keys of an object with `required` and `additionalProperties`.
    fn check_keys(&self, rules: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        let Some(object) = value.as_object() else { return Ok(()) };
        let required = rules.get("required").map(list).unwrap_or_default();
        if let Some(key) = required.iter().find(|key| !object.contains_key(key.as_str().expect("a key"))) {
            return Err(format!("{at}: {key} is missing: {value}"));
        }
        let is_known = |key: &str| rules.get("properties").is_some_and(|known| known.get(key).is_some());
        for (key, own) in object.iter().filter(|(key, _)| !is_known(key)) {
            match rules.get("additionalProperties") {
                None => {}
                Some(Value::Bool(false)) => return Err(format!("{at}: unknown key {key}: {value}")),
                Some(rule) => self.check(rule, own, &format!("{at}.{key}"))?,
            }
        }
        Ok(())
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called {other}"),
    };
    if rule.is_array() { list(rule).iter().any(is) } else { is(rule) }
}

#[test]
fn value_that_violates_the_schema_is_refused() {
    use serde_json::json;
    let schema = Schema::new(&json!({"$defs": {
        "pair": {
            "type": "object",
            "properties": {
                "at": {"type": ["string", "null"], "format": "date-time"},
                "n": {"oneOf": [{"$ref": "#/$defs/word"}, {"type": "integer"}]},
                "list": {"type": "array", "items": {"const": 1}}
            },
            "required": ["n"],
            "additionalProperties": false
        },
        "word": {"enum": ["a", "b"]}
    }}));
    for (value, holds) in [
        (json!({"n": "a"}), true),
        (json!({"n": 3, "at": null, "list": [1, 1]}), true),
        (json!({"n": 3, "at": "2026-01-15T10:30:00+01:00"}), true),
        (json!({"n": 3, "at": "2026-01-15T10:30:00"}), false),
        (json!({"n": "c"}), false),
        (json!({"n": 1.5}), false),
        (json!({"n": null}), false),
        (json!({"n": 1, "list": [1, 2]}), false),
        (json!({"n": 1, "list": {}}), false),
        (json!({"n": 1, "more": 2}), false),
        (json!({}), false),
        (json!([]), false),
    ] {
        assert_eq!(schema.differs("pair", &value).is_none(), holds, "{value}");
    }
}
