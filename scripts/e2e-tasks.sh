#!/bin/sh
# Runs loops with a task list on real agent CLIs: stories are implemented, reviewed, fixed and approved, and the Stop hook
# blocks an agent that breaks a rule. A model on loopback gives the replies of each case (mock-model.pl). The script prints
# a table of expected and actual results and exits with 1 if a row differs.
#
#   scripts/e2e-tasks.sh [CLI...]     claude, claude-tui, codex, codex-tui, reviewer, plan [default: all]
#
# `claude` and `codex` run once for each iteration (-p, exec), the other two are interactive. In `reviewer`, `claude -p`
# reviews the work of `codex exec`. The agents run in the default sandbox, if one can be built here. `plan` runs `swarm ralph plan` and the plugin's skill in Claude Code. Everything else is
# as in e2e-sessions.sh. No command has an option about permissions: swarm adds it.
#
# A result has the exit status, the state and the reviews of each story, the mode of each iteration (`undone` if swarm
# reverted edits), the number of requests that the model received, and whether .ralph-active still exists.
# shellcheck disable=SC2034,SC2154 # what the common part uses and sets
set -eu
here=$(cd "$(dirname "$0")" && pwd)
all_clis='claude claude-tui codex codex-tui reviewer plan'
# shellcheck source=/dev/null
. "$here/e2e-common.sh"

# Edits one story with a filter of jq, and commits everything if there is a subject.
cat >"$work/story" <<'END'
#!/bin/sh
set -e
jq --arg id "$1" "(.userStories[] | select(.id == \$id)) |= ($2)" ralph/tasks.json >"$(git rev-parse --git-dir)/new"
cat "$(git rev-parse --git-dir)/new" >ralph/tasks.json
echo "- $1: ${3:-$2}" >>ralph/progress.txt
# A review may not change the code.
case $2 in *reviewCount*) ;; *) echo "$2" >>"$1.txt" ;; esac
[ -z "${3:-}" ] || { git add -A && git commit -qm "$3"; }
END
chmod +x "$work/story"

# The model's replies.
edits() { # ID FILTER [SUBJECT]: the edit alone
    jq -cn --arg sh "$work/story $1 '$2' '${3:-}'" '{text: "I work.", sh: $sh}'
}
ends() { jq -cn --arg text "$1" '{text: $text}'; } # TEXT
implement() { edits "$1" '.reviewStatus = "needs_review" | .notes = "wrote it"' "feat: [$1]" && ends 'Implemented.'; } # ID
fix() { edits "$1" '.reviewStatus = "needs_review" | .reviewFeedback = ""' "fix: [$1]" && ends 'Fixed.'; }             # ID
approval='.reviewCount += 1 | .reviewStatus = "approved" | .passes = true'
approve() { edits "$1" "$approval" "review: [$1]" && ends "${2:-Approved.}"; } # ID [TEXT]
request_changes() { # ID
    edits "$1" '.reviewCount += 1 | .reviewStatus = "changes_requested" | .reviewFeedback = "handle errors"' "review: [$1]"
    ends 'Changes are needed.'
}

# A repository with a task list, with the model's replies on standard input.
project() { # NAME STORY-ID...
    rm -f "$work/mock/prompts/"*
    prepare "$1"
    shift
    (cd "$dir" && "$SWARM" ralph init --tasks --name drill) >"$work/init.out" 2>&1
    for id; do jq -n --arg id "$id" '{id: $id, title: "Title of \($id)", description: "", acceptanceCriteria: ["It works"],
        priority: 1, passes: false, reviewStatus: null, reviewCount: 0, reviewFeedback: "", notes: "", dependsOn: []}'; done |
        jq -s '{project: "drill", branchName: "ralph/drill", description: "A drill.", verifyCommands: [], userStories: .}' \
            >"$dir/ralph/tasks.json"
    git -C "$dir" add -A
    git -C "$dir" commit -qm plan
    # Codex reads a project's settings only if the project is trusted, and its window requires an answer about that.
    printf '[projects."%s"]\ntrust_level = "trusted"\n' "$dir" >>"$HOME/.codex/config.toml"
}

# A loop to its end.
stories() { # NAME [OPTIONS...] -- COMMAND...
    name=$1
    shift
    code=0
    (cd "$dir" && timeout -k 5 240 "$SWARM" spawn --name "$name" --ralph --ralph-dir ralph --sandbox-ro "$work/story" \
        --inactivity-timeout 200 "$@") \
        </dev/null >"$work/$name.out" 2>&1 || code=$?
    "$SWARM" report "$name" --format json >"$work/$name.json" 2>/dev/null || echo '{}' >"$work/$name.json"
    "$SWARM" logs "$name" --history </dev/null >"$work/$name.screen" 2>&1 || :
}

seen() {
    marker=gone
    [ ! -e "$dir/.ralph-active" ] || marker=kept
    list=$(jq -r '[.userStories[] | "\(.id) \(.reviewStatus) \(.reviewCount)"] | join(", ")' "$dir/ralph/tasks.json")
    modes=$(jq -r '[.iterations[]?.verdict.tasks | .mode + (if .undone == [] then "" else "(undone)" end)] | join("+")' \
        "$work/$name.json")
    printf '%s' "exit $code; $list; $modes; $(wc -c <"$work/mock/requests" | tr -d ' ') requests; file $marker"
}

# The numbers of the requests whose user messages contain a text.
received() { # TEXT
    for number in $(seq 1 "$(wc -c <"$work/mock/requests")"); do
        ! jq -r '.texts[]' "$work/mock/prompts/$number.json" | grep -qF -- "$1" || echo "$number"
    done | paste -sd' ' -
}

models() { jq -rs '[.[].model] | unique | join(" ")' "$work/mock/prompts/"*.json; }

unattended() { # CLI
    case $1 in
    claude*) echo --dangerously-skip-permissions ;;
    codex*) echo --dangerously-bypass-approvals-and-sandbox ;;
    esac
}

cases() { # CLI ROW COMMAND...
    cli=$1 row=$2
    shift 2

    project "$cli-cycle" US-001 US-002 <<END
$(implement US-001 && request_changes US-001 && fix US-001 && approve US-001)
$(implement US-002 && approve US-002 'Approved. <promise>COMPLETE</promise>')
END
    stories "$cli-cycle" -m drill-model -- "$@"
    row "$row" 'the option that swarm adds' "$(unattended "$cli")" "$(sed -n 's/.*\[unattended: \(.*\)\]$/\1/p' "$work/$name.out")"
    row "$row" 'the whole cycle' \
        'exit 0; US-001 approved 2, US-002 approved 1; implement+review+review-fix+review+implement+review; 12 requests; file gone' \
        "$(seen)"
    row "$row" 'the report' '| US-001 | approved | 2 | 4 | Title of US-001 | | US-002 | approved | 1 | 2 | Title of US-002 |' \
        "$("$SWARM" report "$name" | grep '^| US-' | paste -sd' ' -)"
    row "$row" '-m' drill-model "$(models)"

    project "$cli-approves" US-001 <<END
$(edits US-001 "$approval | .notes = \"done\"" 'feat: [US-001]' && ends 'Approved by myself.')
$(edits US-001 '.reviewCount = 0 | .reviewStatus = "needs_review" | .passes = false' 'feat: [US-001] again')
$(ends 'Repaired.' && approve US-001)
END
    stories "$cli-approves" -- "$@"
    row "$row" 'an implementation that approves' 'exit 0; US-001 approved 1; implement+review; 6 requests; file gone' "$(seen)"
    row "$row" '  the Stop hook blocks it' '3 4' "$(received 'Implement iterations cannot set passes=true or approve stories')"

    project "$cli-uncommitted" US-001 <<END
$(edits US-001 '.reviewStatus = "needs_review" | .notes = "wrote it"' && ends 'Implemented.')
{"text":"I commit it.","sh":"git add -A && git commit -qm feat"}
$(ends 'Committed.' && approve US-001)
END
    stories "$cli-uncommitted" -- "$@"
    row "$row" 'uncommitted files' 'exit 0; US-001 approved 1; implement+review; 6 requests; file gone' "$(seen)"
    row "$row" '  the Stop hook blocks it' '3 4' "$(received 'There are uncommitted changes. Before you stop:')"
}

# Two stories at the same time, each in its own worktree.
jobs_cases() { # ROW COMMAND...
    row=$1
    shift
    project jobs US-001 US-002 <<END
$(for id in US-001 US-002; do { implement $id && approve $id; } | jq -c --arg id $id '. + {for: "\($id): Title of"}'; done)
END
    stories jobs --jobs 2 -- "$@"
    git -C "$dir" checkout -q --detach swarm/jobs
    row "$row" '--jobs 2' 'exit 0; US-001 approved 1, US-002 approved 1; ; 8 requests; file gone; US-001.txt US-002.txt' \
        "$(seen); $(git -C "$dir" ls-files 'US-*' | paste -sd' ' -)"
}

# swarm refuses a command that Claude Code would refuse.
root_cases() {
    project root US-001 </dev/null
    stderr=$(cd "$dir" && env -u IS_SANDBOX claude -p --dangerously-skip-permissions hi </dev/null 2>&1) && code=0 || code=$?
    row 'claude -p' 'root without IS_SANDBOX: the CLI' 'exit 1, refused' \
        "exit $code$(printf %s "$stderr" | grep -q 'cannot be used with root' && echo ', refused')"
    stderr=$(cd "$dir" && env -u IS_SANDBOX "$SWARM" spawn --name root --ralph --ralph-dir ralph --sandbox none -- claude -p 2>&1) && code=0 ||
        code=$?
    row 'claude -p' 'root without IS_SANDBOX: swarm' 'exit 1, hint' \
        "exit $code$(printf %s "$stderr" | grep -q 'hint: .*set IS_SANDBOX=1' && echo ', hint')"
}

reviewer_cases() {
    project reviewer US-001 <<END
$(implement US-001 && request_changes US-001 && fix US-001 && approve US-001)
END
    stories reviewer --reviewer 'claude -p' -- codex exec
    row 'codex, claude' 'a reviewer of another CLI' \
        'exit 0; US-001 approved 2; implement+review+review-fix+review; 8 requests; file gone' "$(seen)"
    row 'codex, claude' '  the paths of the requests' '/v1/responses x2, /v1/messages x2, /v1/responses x2, /v1/messages x2' \
        "$(for number in 1 2 3 4 5 6 7 8; do jq -r .path "$work/mock/prompts/$number.json"; done | uniq -c |
            sed 's/^ *\([0-9]*\) \(.*\)/\2 x\1/' | paste -sd, - | sed 's/,/, /g')"
}

# shellcheck disable=SC2317 # until_true calls it
screen_has() { tmux -S "$work/tmux/plan" capture-pane -p | grep -qF -- "$1"; }

in_pane() { tmux -S "$work/tmux/plan" -f /dev/null new-session -d -x 120 -y 40 -c "$dir" "$@"; }

plan_cases() {
    question='{"text":"Which problem does it solve?"}'
    skill='You write the two files from which a ralph loop works'
    project plan US-001 <<END
$question
END
    in_pane "$SWARM" ralph plan
    seen='no answer'
    ! until_true 60 screen_has 'Which problem does it solve?' || seen="request $(received "$skill"), $(received 'Use mode 1:')"
    row 'claude (TUI)' 'swarm ralph plan' 'request 1, 1' "$seen"
    tmux -S "$work/tmux/plan" kill-server

    printed=$(cd "$dir" && "$SWARM" ralph plan --print)
    row 'claude (TUI)' 'the same as plan --print' same \
        "$([ "$(jq -r '.texts[]' "$work/mock/prompts/1.json" | grep -cF -- "$(printf %s "$printed" | tail -1)")" = 1 ] && echo same)"

    for command in /ralph-plan /swarm:ralph-plan; do
        project "skill$(echo $command | tr /: --)" US-001 <<END
$question
END
        (cd "$dir" && "$SWARM" plugin install) >"$work/plugin.out" 2>&1
        (cd "$dir" && timeout -k 5 120 claude -p "$command") </dev/null >"$work/skill.out" 2>&1 || :
        row 'claude -p' "$command" 'request 1' "request $(received "$skill")"
    done

    # The menu of an interactive session.
    in_pane claude
    until_true 30 screen_has '❯' || :
    tmux -S "$work/tmux/plan" send-keys -l /ralph-plan
    seen='not listed'
    ! until_true 30 screen_has 'Plan a feature for a ralph loop' || seen=listed
    row 'claude (TUI)' 'the menu lists /ralph-plan' listed "$seen"
    tmux -S "$work/tmux/plan" kill-server
}

printf '%-13s | %-33s | %-64s | %-64s |\n' CLI case expected seen
for cli; do
    case $cli in
    reviewer) program=codex ;;
    plan) program=claude ;;
    *) program=${cli%%-*} ;;
    esac
    if ! version=$("$program" --version 2>/dev/null </dev/null); then
        printf '%-13s | not installed\n' "$cli"
        continue
    fi
    printf '%-13s | %s\n' "$cli" "$version"
    case $cli in
    claude)
        cases claude 'claude -p' claude -p --output-format json
        jobs_cases 'claude -p' claude -p
        [ "$(id -u)" != 0 ] || root_cases
        ;;
    claude-tui) cases claude-tui 'claude (TUI)' claude ;;
    codex) cases codex 'codex exec' codex exec ;;
    codex-tui) cases codex-tui 'codex (TUI)' codex ;;
    reviewer) reviewer_cases ;;
    plan) plan_cases ;;
    *)
        echo "no such CLI here: $cli" >&2
        exit 2
        ;;
    esac
done
exit "$differs"
