//! `report` without a name: the morning view, in every format, and the time up to which a person has looked.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::attach::Terminal;
use crate::world::{Ran, SWARM, World};

/// Runs a loop over a shell script to its end.
fn looped(w: &World, name: &str, flags: &[&str], script: &str) -> Ran {
    w.write("PROMPT.md", "# Count\n");
    let prompt = w.work().join("PROMPT.md").display().to_string();
    let head = ["spawn", "--name", name, "--ralph", "--prompt-file", &prompt, "--prompt-via", "stdin"];
    w.swarm(&[&head[..], flags, &["--", "sh", "-c", script]].concat())
}

/// A loop in a worktree that commits a file, and ends complete.
fn committed(w: &World, name: &str) -> PathBuf {
    let repo = w.repo("repo");
    let git = "git -c user.name=a -c user.email=a@example.com";
    let script = format!("echo 1 > {name}; {git} add {name}; {git} commit -qm {name}");
    let check = format!("test -e {name}");
    let flags = ["-n", "3", "--worktree", "--cwd", &repo.display().to_string(), "--check", &check];
    looped(w, name, &flags, &script).ok();
    repo
}

fn json(w: &World, args: &[&str]) -> Value {
    w.swarm(&[&["report", "--format", "json"], args].concat()).ok().json()
}

/// The names of the lines in order, with their groups.
fn lines(view: &Value) -> Vec<(String, String)> {
    let text = |worker: &Value, field: &str| worker[field].as_str().unwrap().to_owned();
    view["workers"].as_array().unwrap().iter().map(|one| (text(one, "name"), text(one, "group"))).collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted.iter().map(|(name, group)| ((*name).to_owned(), (*group).to_owned())).collect()
}

/// Runs a command in a terminal to its end. Returns the screen.
fn in_terminal(w: &World, number: usize, args: &[&str]) -> String {
    Terminal::run(w, number, &[&[SWARM], args].concat()).until_shows("code ")
}

/// Workers of all groups.
fn a_night(w: &World) -> PathBuf {
    let repo = committed(w, "fix");
    let script = "printf '<script>alert(1)</script> | no key\\n'; exit 3";
    looped(w, "bad", &["-n", "4", "--max-failures", "2", "--check", "false"], script).code(1);
    looped(
        w,
        "held",
        &["-n", "5", "--cwd", &repo.display().to_string(), "--check", "false", "--no-progress", "1"],
        "exit 0",
    )
    .code(1);
    let _ = w.spawn_sh("busy", &[], "exec sleep 600").ok();
    let _ = w.spawn_sh("end", &[], "exit 0").ok();
    w.until_status("end", "done");
    let agent = w.agent("later");
    w.spawn_loop("later", &agent, &[]);
    w.swarm(&["ralph", "pause", "later"]).ok();
    let mut agent = agent;
    agent.tell("exit 0");
    w.until_status("later", "paused");
    repo
}

#[test]
fn all_groups_have_their_lines_in_the_order_of_attention() {
    let w = World::new();
    let repo = a_night(&w);
    let view = json(&w, &[]);
    let wanted = [
        ("held", "needs_you"),
        ("bad", "failed_or_lost"),
        ("busy", "working"),
        ("later", "parked"),
        ("end", "finished_unseen"),
        ("fix", "finished_unseen"),
    ];
    assert_eq!(lines(&view), pairs(&wanted), "{view}");
    assert_eq!((&view["since"], &view["quiet"]), (&Value::Null, &serde_json::json!([])));
    let worker =
        |name: &str| view["workers"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    let merge = format!("git -C {} merge swarm/fix", repo.display());
    assert_eq!(
        (&worker("fix")["next"], &worker("fix")["unmerged_commits"]),
        (&merge.as_str().into(), &1.into())
    );
    let next = worker("held")["next"].as_str().unwrap();
    assert!(next.ends_with("; then swarm ralph resume held"), "{next}");
    assert_eq!(worker("end")["work"], Value::Null);
    let bad = &worker("bad")["work"];
    assert_eq!(
        (&bad["iterations"], &bad["failed"], &bad["checks_failed"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!(worker("bad")["history"][1]["iteration"], 2);
    assert_eq!(view["totals"]["workers"], 6);

    let text = w.swarm(&["report"]).ok().out;
    assert!(text.starts_with("everything so far: 6 workers, 5 iterations\n\n  NAME   STATUS"), "{text}");
    let parts = [
        "\nneeds you\n  held ",
        "      then swarm ralph resume held\nfailed or lost\n  bad ",
        "\nworking\n  busy   running  -     -",
        "\nparked\n  later  paused   1/",
        "\nfinished, unseen\n  end    done ",
        "; 1 commit to merge\n",
        &format!("\n      {merge}\n"),
    ];
    let mut rest = text.as_str();
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} in {text}"));
        rest = &rest[at + part.len() - 1..];
    }
    let run = |command: &str| {
        let mut shell = w.command("sh");
        shell.args(["-c", command]);
        w.run(shell).ok();
    };
    run(&merge);
    assert!(repo.join("fix").exists());
    let merged = json(&w, &[]);
    assert_eq!(merged["workers"][5]["unmerged_commits"], 0);
    assert_eq!(merged["workers"][5]["next"], Value::Null);
}

#[test]
fn markdown_and_html_show_the_same_workers_with_escaped_markup() {
    let w = World::new();
    a_night(&w);
    let markdown = w.swarm(&["report", "--format", "markdown"]).ok().out;
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| ")).count(), 7, "{markdown}");
    assert!(markdown.contains("| failed or lost | bad | failed | 2/4 |"), "{markdown}");
    assert_eq!(w.swarm(&["report", "--format", "md"]).ok().out.lines().count(), markdown.lines().count());
    let html = w.swarm(&["report", "--format", "html"]).ok().out;
    let bad = w.swarm(&["report", "bad", "--format", "html"]).ok().out;
    for page in [&html, &bad] {
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
        for part in ["<script", "http:", "https:", "src=", "href=", "url("] {
            assert!(!page.contains(part), "{part}");
        }
    }
    assert_eq!(html.matches("<article").count(), 6);
    assert!(html.matches("<svg").count() >= 6, "{html}");
    assert!(bad.contains("&lt;script&gt;alert(1)&lt;/script&gt; | no key") && bad.contains("<svg"), "{bad}");
    let [text, markdown] =
        ["text", "md"].map(|format| w.swarm(&["report", "bad", "--format", format]).ok().out);
    assert!(text.contains("<script>"), "{text}");
    assert_eq!(markdown, text.replace("<script>", "&lt;script>").replace("</script>", "&lt;/script>"));
}

#[test]
fn overview_starts_at_the_time_of_the_last_look() {
    let w = World::new();
    looped(&w, "a", &["-n", "1", "--check", "true"], "exit 0").ok();
    let _ = w.spawn_sh("bad", &[], "exit 4").ok();
    w.until_status("bad", "failed");
    // Programs: no terminal, or JSON on one.
    w.swarm(&["report"]).ok().says("everything so far: 2 workers, 1 iteration\n");
    in_terminal(&w, 0, &["report", "--format", "json"]);
    assert_eq!(json(&w, &[])["since"], Value::Null);
    assert_eq!(w.status("a")["seen"], false);
    // A person who chose the period has seen the workers, and the next period starts as before.
    let screen = in_terminal(&w, 1, &["report", "--since", "1h"]);
    assert!(screen.contains("2 workers, 1 iteration") && screen.contains("swarm why bad"), "{screen}");
    assert_eq!(json(&w, &[])["since"], Value::Null);
    assert_eq!((&w.status("a")["seen"], &w.status("bad")["seen"]), (&true.into(), &true.into()));

    let screen = in_terminal(&w, 2, &["report"]);
    assert!(screen.contains("everything so far: 2 workers"), "{screen}");
    let view = json(&w, &[]);
    assert!(view["since"].is_string(), "{view}");
    assert_eq!(lines(&view), [], "{view}");
    let quiet: Vec<&Value> = view["quiet"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(quiet, ["a", "bad"]);
    w.swarm(&["report"]).ok().says(": 0 workers, 0 iterations\n\n2 workers without news: 2 finished\n");
    assert_eq!(json(&w, &["--since", "1h"])["workers"].as_array().unwrap().len(), 2);

    // Another daemon has the same time; a file in the way of HTML does not hide who looks.
    w.swarm(&["daemon", "restart"]).ok();
    assert_eq!(json(&w, &[])["since"], view["since"]);
    looped(&w, "b", &["-n", "1", "--check", "true"], "exit 0").ok();
    w.swarm(&["kill", "a"]).ok();
    w.swarm(&["clean", "a"]).ok();
    let view = json(&w, &[]);
    assert_eq!(lines(&view), pairs(&[("b", "finished_unseen")]));
    assert_eq!(view["removed"], serde_json::json!(["a"]));
    w.swarm(&["report"]).ok().says("\ndeleted: a\n");
    let page = w.path("page.html").display().to_string();
    let script = format!("{SWARM} report --format html > {page}; echo code $?");
    let _ = Terminal::run(&w, 3, &["sh", "-c", &script]).until_shows("code 0");
    assert!(fs::read_to_string(page).unwrap().contains(">b <span"));
    let later = json(&w, &[]);
    assert!(later["since"].as_str() > view["since"].as_str(), "{later}");
    assert_eq!(lines(&later), pairs(&[("b", "finished_unseen")]), "nobody saw its name");
}

#[test]
fn latest_look_counts_and_a_future_one_counts_as_now() {
    let w = World::new();
    w.start_daemon();
    let since = |view: &Value| chrono::DateTime::parse_from_rfc3339(view["since"].as_str().unwrap()).unwrap();
    let look = |until: &str| {
        let mut wire = w.connect().hello();
        let params = format!("{{\"until\":{until:?},\"names\":[\"nobody\"]}}");
        let call = format!("{{\"id\":1,\"method\":\"morning.looked\",\"params\":{params}}}\n");
        wire.send(call.as_bytes());
        wire.line()
    };
    for (until, wanted) in [
        ("2026-01-15T08:00:00+01:00", "2026-01-15T07:00:00Z"),
        ("2026-01-15T06:59:00Z", "2026-01-15T07:00:00Z"),
        ("2026-01-15T07:01:00Z", "2026-01-15T07:01:00Z"),
    ] {
        assert!(look(until).contains("\"ok\":{}"));
        assert_eq!(since(&json(&w, &[])), chrono::DateTime::parse_from_rfc3339(wanted).unwrap());
    }
    assert!(look("today").contains("invalid time 'today'"));
    look("2999-01-01T00:00:00Z");
    let view = json(&w, &[]);
    let until = chrono::DateTime::parse_from_rfc3339(view["until"].as_str().unwrap()).unwrap();
    assert!(since(&view) <= until, "{view}");
}

#[test]
fn overview_read_by_an_agent_is_not_a_look() {
    let w = World::new();
    let script = format!("{SWARM} report; echo $? > end; exec sleep 600");
    let _ = w.spawn_sh("done", &[], "exit 0").ok();
    w.until_status("done", "done");
    let _ = w.spawn_sh("reader", &[], &script).ok();
    w.until("the agent has read", || w.work().join("end").exists().then_some(()));
    assert_eq!(w.lines("work/end"), ["0"]);
    assert_eq!(json(&w, &[])["since"], Value::Null);
    assert_eq!(w.status("done")["seen"], false);
    assert!(!w.swarm_dir().join("looked.json").exists());
}

#[test]
fn empty_overview_and_an_invalid_time_are_reported() {
    let w = World::new();
    w.swarm(&["report"]).ok().warns("no workers\n");
    assert!(w.daemon_pid().is_some(), "the first command starts the daemon");
    let empty = json(&w, &[]);
    assert_eq!((&empty["workers"], &empty["totals"]["cost_usd"]), (&serde_json::json!([]), &Value::Null));
    w.swarm(&["report", "--format", "html"]).ok().says("everything so far: 0 workers, 0 iterations");
    w.swarm(&["report", "--since", "yesterday"]).code(2).warns("invalid time 'yesterday': use 22:00, 8h");
    w.swarm(&["report", "--since", "2999-01-01"]).code(2).warns("is in the future");
    w.swarm(&["report", "--format", "pdf"]).code(2).warns("[possible values: text, markdown, html, json]");
    w.swarm(&["report", "nobody", "--format", "html"]).code(2).warns("no worker named 'nobody'");
}

#[test]
fn overview_covers_everything_if_the_last_look_is_unreadable() {
    let w = World::new();
    let _ = w.spawn_sh("a", &[], "exit 0").ok();
    w.until_status("a", "done");
    in_terminal(&w, 0, &["report"]);
    assert!(json(&w, &[])["since"].is_string());
    w.swarm(&["daemon", "stop"]).ok();
    let other_format = "{\"format\":99,\"until\":\"2026-01-15T07:53:10+01:00\"}";
    // The clock was wrong at that look.
    let future = "{\"format\":1,\"until\":\"2999-01-15T07:53:10+01:00\"}";
    for text in ["", "{", other_format, future] {
        fs::write(w.swarm_dir().join("looked.json"), text).unwrap();
        assert_eq!(json(&w, &[])["since"], Value::Null, "{text:?}");
        w.swarm(&["daemon", "stop"]).ok();
    }
    in_terminal(&w, 1, &["report"]);
    assert!(json(&w, &[])["since"].is_string());
}

#[test]
fn more_workers_than_an_answer_holds_are_all_shown_once() {
    const COUNT: usize = 53;
    let w = World::new();
    let name = |number: usize| format!("w{number:02}");
    let mut spawns: Vec<_> = (0..COUNT)
        .map(|number| w.follow(&["spawn", "--name", &name(number), "--", "sh", "-c", "exit 0"]))
        .collect();
    spawns.iter_mut().for_each(|spawn| assert_eq!(spawn.wait(&w), 0, "{}", spawn.output()));
    looped(&w, "x", &["-n", "2", "--check", "false"], "exit 0").code(1);
    w.until("all have ended", || w.swarm(&["wait", "--all"]).code.filter(|code| *code == 0));
    let view = json(&w, &[]);
    let mut names: Vec<String> = lines(&view).into_iter().map(|(name, _)| name).collect();
    names.sort();
    let wanted: Vec<String> = (0..COUNT).map(name).chain(["x".to_owned()]).collect();
    assert_eq!(names, wanted);
    let last = view["workers"].as_array().unwrap().iter().find(|worker| worker["name"] == "x").unwrap();
    assert_eq!(last["work"]["iterations"], 2, "the second page has its work");
}
