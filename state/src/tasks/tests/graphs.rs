//! The graph of the dependencies.

use super::*;

fn needing(id: &str, needs: &[&str]) -> Value {
    with(story(id, false, None, 0), json!({ "dependsOn": needs }))
}

fn ids(levels: &[Vec<&Story>]) -> Vec<Vec<String>> {
    levels.iter().map(|level| level.iter().map(|story| story.id.clone()).collect()).collect()
}

#[test]
fn stories_that_can_be_worked_on_at_once_stand_in_one_level() {
    let list = list(&[
        needing("d", &["b", "c"]),
        needing("a", &[]),
        needing("b", &["a"]),
        needing("c", &["a", "a"]),
        needing("e", &[]),
    ]);
    let graph = list.graph();
    assert_eq!(ids(&graph.levels), [vec!["a", "e"], vec!["b", "c"], vec!["d"]]);
    assert!(graph.cyclic.is_empty() && graph.faults.is_empty());
}

#[test]
fn cycles_and_missing_ids_are_reported() {
    let list = list(&[
        needing("a", &["b"]),
        needing("b", &["a"]),
        needing("c", &["b"]),
        needing("d", &["x"]),
        needing("self", &["self"]),
    ]);
    let graph = list.graph();
    assert_eq!(ids(&graph.levels), [["d"]]);
    assert_eq!(ids(&[graph.cyclic]), [["a", "b", "c", "self"]]);
    assert_eq!(graph.faults[0].to_string(), "d depends on x, which does not exist");
    assert_eq!(graph.faults[1].to_string(), "stories depend on each other: a → b → a");
}

#[test]
fn chain_of_10000_stories_has_10000_levels() {
    let of_place = |place: usize| {
        let needs = place.checked_sub(1).map(|before| format!("s{before}"));
        needing(&format!("s{place}"), &needs.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let list = list(&(0..10_000).map(of_place).collect::<Vec<_>>());
    assert_eq!(list.graph().levels.len(), 10_000);
}

#[test]
fn dot_and_mermaid_output_is_escaped() {
    let odd = with(needing("b\"1", &["a"]), json!({ "title": "say \"hi\"\n<b> \\ #1" }));
    let list = list(&[with(needing("a", &[]), json!({ "passes": true })), odd]);
    assert_eq!(
        list.to_dot(),
        "digraph tasks {\n  rankdir=LR;\n  node [shape=box];\n  \"a\" [label=\"a\\nTitle of a\", style=filled];\n  \
         \"b\\\"1\" [label=\"b\\\"1\\nsay \\\"hi\\\" <b> \\\\ #1\"];\n  \"a\" -> \"b\\\"1\";\n}\n"
    );
    assert_eq!(
        list.to_mermaid(),
        "graph LR\n  s0[\"a: Title of a\"]\n  s1[\"b#34;1: say #34;hi#34; #60;b#62; \\ #35;1\"]\n  s0 --> s1\n"
    );
}
