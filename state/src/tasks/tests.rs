//! The tables of the source document (§5b and its verification plan), both ways.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::enforce::{Edited, Enforced, enforce};
use super::marker::RalphMarker;
use super::stop_check::{StopCheck, StopFacts, stop_check};
use super::*;

mod checked;
mod enforced;
mod exported;
mod graphs;
mod imported;
mod imported_plans;
mod schemas;
mod selected;
mod stops;
mod transition_table;

/// A story with its review fields.
fn story(id: &str, passes: bool, status: Option<&str>, count: u64) -> Value {
    json!({
        "id": id, "title": format!("Title of {id}"), "description": "", "acceptanceCriteria": ["It works"],
        "priority": 1, "passes": passes, "reviewStatus": status, "reviewCount": count, "reviewFeedback": "",
        "notes": "done", "dependsOn": [],
    })
}

/// The same with other fields.
fn with(mut story: Value, fields: Value) -> Value {
    if let (Some(story), Value::Object(fields)) = (story.as_object_mut(), fields) {
        story.extend(fields);
    }
    story
}

fn text(stories: &[Value]) -> String {
    json!({ "project": "shop", "branchName": "ralph/shop", "description": "A shop", "verifyCommands": [],
        "userStories": stories })
    .to_string()
}

fn list(stories: &[Value]) -> TaskList {
    TaskList::parse(&text(stories)).unwrap()
}
