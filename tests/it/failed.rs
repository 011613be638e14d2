//! Iterations that fail, and how swarm shows that: the reason in the follower, the log, `why` and `report`.

use serde_json::json;

use crate::world::World;

/// An agent that prints nothing has done nothing that swarm could see.
#[test]
fn loop_of_silent_hanging_agents_fails_with_the_reason() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2"];
    let all =
        [&flags[..], &["--inactivity-timeout", "2", "--", "sh", "-c", "cat >/dev/null; sleep 600"]].concat();
    let followed = w.swarm(&all).code(1);
    let told = followed.out.as_str();
    let failed =
        "iteration 1 failed (exit: inactivity): nothing on screen for 2 s, retrying in 1s (attempt 1/5)\n";
    assert!(told.contains(failed), "{told}");
    let end = "loop failed after 2 iterations: max iterations, and no iteration succeeded\n";
    assert!(told.contains(end), "{told}");
    let state = w.ralph_state("l");
    assert_eq!((&state["status"], &state["reason"]), (&json!("failed"), &json!("all_failed")), "{state}");
    let why = w.swarm(&["why", "l"]).ok().out;
    assert!(
        why.contains("iteration 2 failed after ") && why.contains(": nothing on screen for 2 s\n"),
        "{why}"
    );
    assert!(!why.contains("signal"), "{why}");
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    let last = &report["iterations"][1];
    assert_eq!((&last["end"], &last["reason"]), (&json!("silent"), &json!("nothing on screen for 2 s")));
}

#[test]
fn loop_of_only_failed_iterations_fails_and_why_shows_the_output() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "--"];
    let _ = w.swarm(&[&flags[..], &["sh", "-c", "echo cannot find the parser; exit 7"]].concat()).code(1);
    let why = w.swarm(&["why", "l"]).ok().out;
    assert!(
        why.starts_with(
            "l: failed (iteration 2/2): max iterations, and no iteration succeeded: exit status 7\n"
        ),
        "{why}"
    );
    assert!(
        why.contains("iteration 2 failed after ") && why.contains(": the agent ended with exit status 7\n"),
        "{why}"
    );
    assert!(why.contains("  | cannot find the parser\n"), "{why}");
    // One iteration that succeeds is enough.
    let once = "if [ -e failed ]; then exit 0; fi; touch failed; exit 1";
    let flags = ["spawn", "--name", "m", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "--"];
    let followed = w.swarm(&[&flags[..], &["sh", "-c", once]].concat()).ok();
    assert!(followed.out.contains("loop complete after 2 iterations"), "{}", followed.out);
}

/// No silence ends an agent that asks; a question that nobody answers in time fails the iteration and is its reason.
#[test]
fn unanswered_question_fails_the_iteration_after_its_timeout() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let ask = "echo x >>runs; printf 'Delete the build folder? [y/N] '; read -r answer </dev/tty; echo got $answer >>answers";
    let spawn = |name: &str, flags: &[&str]| {
        let head = [
            "spawn",
            "--name",
            name,
            "--ralph",
            "--prompt-file",
            "PROMPT.md",
            "-n",
            "1",
            "--max-failures",
            "1",
        ];
        w.follow(&[&head, flags, &["--", "sh", "-c", ask]].concat())
    };
    // The silence of this one is longer than its timeout allows, while the other's question waits.
    let mut answered = spawn("a", &["--inactivity-timeout", "1"]);
    w.until_status("a", "waiting");
    let mut unanswered = spawn("u", &["--question-timeout", "3", "--inactivity-timeout", "600"]);
    assert_eq!(unanswered.wait(&w), 1);
    let reason = "not answered within 3s: a question to be answered with yes or no";
    assert!(unanswered.output().contains(reason), "{}", unanswered.output());
    let _ = w.swarm(&["why", "u"]).ok().says(reason);
    assert!(w.lines("work/answers").is_empty(), "swarm answered it");
    let _ = w.swarm(&["send", "a", "y"]).ok();
    assert_eq!(answered.wait(&w), 0, "{}", answered.output());
    assert_eq!(w.lines("work/answers"), ["got y"]);
}

/// A loop that cannot log in goes on with the key that its person passes, and no other reader sees the key.
#[test]
fn new_api_key_is_used_from_the_next_run() {
    let mut w = World::new();
    w.set("API_KEY", "wrong");
    let script = r#"[ "$API_KEY" = right ] && exit 0; echo 'Invalid API key · Please run /login'; exit 1"#;
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d", "--"];
    let _ = w.swarm(&[&flags[..], &["sh", "-c", script]].concat()).ok();
    let waiting = w.until_status("l", "waiting");
    assert_eq!((&waiting["outage"], &waiting["metadata"]["ralph_iteration"]), (&json!("login"), &json!(0)));
    let _ = w
        .swarm(&["ralph", "resume", "l", "--env", "NO_SUCH"])
        .code(1)
        .warns("it is not set in your environment");
    w.set("API_KEY", "right");
    let _ = w
        .swarm(&["ralph", "resume", "l", "--env", "API_KEY"])
        .ok()
        .warns("the agent's next run gets the new value of API_KEY");
    w.until_status("l", "done");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&json!(1), &json!(0)), "{state}");
    assert_eq!(w.status("l")["env"]["API_KEY"], "***");
}

/// A fake of Gemini CLI's screen: when its prompt was submitted it shows the rows of SHOWS above its input box, and
/// stays. Ended by a signal, it exits with 0 as the real one does.
const GEMINI: &str = r#"#!/usr/bin/perl
use strict;
use warnings;
system 'stty raw -echo';
$| = 1;
$SIG{TERM} = $SIG{HUP} = sub { exit 0 };
my ($box, $above, $in_paste) = ('', 'Tips for getting started:', 0);
sub draw {
    my $text = $box eq '' ? 'Type your message or @path/to/file' : $box;
    my @rows = ($above, '', "\xe2\x94\x80" x 40, ' YOLO Ctrl+Y', '', " *   $text", '', ' workspace', ' repo');
    print "\e[H\e[2J", join "\r\n", @rows;
}
print "\e[?2004h";
draw();
while (sysread STDIN, my $key, 1) {
    if ($key eq "\e") {
        my $sequence = '';
        while ($sequence !~ /[~A-Za-z]\z/) { sysread STDIN, $key, 1 or exit 0; $sequence .= $key }
        $in_paste = $sequence eq '[200~';
    }
    elsif ($key !~ /[\r\n]/) { $box .= $key }
    elsif ($in_paste)        { $box .= ' ' }
    else                     { ($above, $box) = (" > $box\r\n\r\n$ENV{SHOWS}", '') }
    draw();
}
"#;

fn gemini(w: &World) -> String {
    let path = w.path("bin/gemini");
    std::fs::create_dir_all(w.path("bin")).unwrap();
    std::fs::write(&path, GEMINI).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

const REFUSED: &str = r#"[API Error: {"error":{"code":401,"message":"Incorrect API key provided"}}]"#;

/// The agent has no hooks, goes back to its input box and exits with 0.
#[test]
fn a_refused_key_on_the_screen_of_an_idle_agent_is_an_outage() {
    let mut w = World::new();
    w.write("PROMPT.md", "go\n");
    let agent = gemini(&w);
    w.set("SHOWS", format!("✕ {REFUSED}\r\n\r\n\r\nℹ This request failed."));
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "1"];
    let all = [&flags[..], &["--inactivity-timeout", "2", "-d", "--", &agent, "-y"]].concat();
    let _ = w.swarm(&all).ok();
    let waiting = w.until_status("l", "waiting");
    assert_eq!((&waiting["outage"], &waiting["metadata"]["ralph_iteration"]), (&json!("login"), &json!(0)));
    let reason = waiting["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("needs you: {REFUSED} (swarm retries within ")), "{reason}");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&json!(0), &json!(0)), "{state}");
    assert!(w.iterations_log("l").contains("[END] iteration 1 exit=outage"), "{}", w.iterations_log("l"));
    let _ = w.swarm(&["why", "l"]).ok().says("Incorrect API key provided");
    // An answer that quotes such a row is an answer.
    w.set("SHOWS", format!("✦ It is fixed now. The log had:\r\n\r\n  ✕ {REFUSED}"));
    let _ = w.swarm(&["ralph", "resume", "l", "--env", "SHOWS"]).ok();
    w.until_status("l", "done");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&json!(1), &json!(0)), "{state}");
}

#[test]
fn permanent_api_error_on_the_screen_fails_the_iteration() {
    let mut w = World::new();
    w.write("PROMPT.md", "go\n");
    let agent = gemini(&w);
    w.set("SHOWS", "✕ [API Error: the prompt is too long]");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "1"];
    let all = [&flags[..], &["--inactivity-timeout", "2", "--", &agent, "-y"]].concat();
    let followed = w.swarm(&all).code(1);
    let failed = "iteration 1 failed (exit: api-error): [API Error: the prompt is too long]\n";
    assert!(followed.out.contains(failed), "{}", followed.out);
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    let last = &report["iterations"][0];
    let want = (&json!("api_error"), &json!("[API Error: the prompt is too long]"));
    assert_eq!((&last["end"], &last["reason"]), want, "{report}");
}
