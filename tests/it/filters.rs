//! Filters and hooks that git runs are the agent's to write: they approve nothing and hold nothing up.

use crate::verified::{DONE, Desk};
use crate::world::SWARM;

#[test]
fn git_filter_run_by_swarm_cannot_approve() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let filter = d.path("filter");
    let approve = format!("'{SWARM}' ralph approve a >>\"{0}/said\" 2>&1", d.path("").display());
    let turn = format!(
        "printf '%s\\ncat\\n' \"{}\" >'{1}'; chmod +x '{1}'; git config filter.x.clean '{1}'; \
         echo '* filter=x' >.gitattributes; echo \"$n\" >new; echo 'exit 0' >check.sh; {DONE}",
        approve.replace('"', "\\\""),
        filter.display()
    );
    let agent = d.agent(&[&turn]);
    let result = d.result(1, &["--check", "sh check.sh", "-n", "2"], &agent);
    let said = d.read("said");
    assert!(said.contains("swarm: error: worker 'a' may not approve its own changes\n"), "{said}");
    assert!(!said.contains("approved"), "{said}");
    assert_eq!(result["success"], false);
}

#[test]
fn hanging_git_filter_is_ended_at_its_time_limit() {
    let d = Desk::new();
    let turn = format!(
        "git config filter.x.clean 'echo $$ >\"{}\"; exec sleep 6000'; echo '* filter=x' >.gitattributes; echo new >new; {DONE}",
        d.path("filter.pid").display()
    );
    let agent = d.agent(&[&turn]);
    let result = d.result(1, &["--check", "false", "-n", "3", "--max-time", "12"], &agent);
    assert_eq!(result["stop_reason"], "timeout", "{result}");
    assert!(d.w.iterations_log("a").contains("git took longer than the loop's time"));
    let pid: u32 = d.read("filter.pid").trim().parse().unwrap();
    d.w.until("the filter is gone", || (!crate::world::is_alive(pid)).then_some(()));
}
