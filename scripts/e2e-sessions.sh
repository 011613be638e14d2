#!/bin/sh
# Runs session loops with real agent CLIs: loops that the Stop hooks of Claude Code and Codex continue, and loops with fresh
# contexts whose iterations the hooks end. A model on loopback gives the replies of each case (mock-model.pl). The script prints
# a table of expected and actual results and exits with 1 if a row differs.
#
#   scripts/e2e-sessions.sh [CLI...]     claude, claude-tui, codex, codex-tui [default: all]
#
# `claude` and `codex` run once (-p, exec), with hooks installed in the project as for a session of your own. The other two are
# interactive workers, which get their hooks from swarm for the run. Everything else is as in e2e-agents.sh. A result has, for
# each stop in the session's log, the promise that was found (missing, found, rejected, pause, error), then the last status, the
# number of requests that the model received, and whether the state file still exists.
# shellcheck disable=SC2034,SC2154 # what the common part uses and sets
set -eu
here=$(cd "$(dirname "$0")" && pwd)
all_clis='claude claude-tui codex codex-tui'
# shellcheck source=/dev/null
. "$here/e2e-common.sh"

# The hooks that a user's own sessions have in this project.
installed() { (cd "$dir" && "$SWARM" hooks install --agent "$1") >"$work/installed" 2>&1; } # AGENT

# Codex reads a project's hooks only where the project is trusted, and asks for that in its window.
trusted() { printf '[projects."%s"]\ntrust_level = "trusted"\n' "$dir" >>"$HOME/.codex/config.toml"; }

# Claude Code takes no command that it does not know; what the hook reads is the prompt as it was typed.
commands() {
    mkdir -p "$dir/.claude/commands"
    echo 'Work on what the loop says.' >"$dir/.claude/commands/ralph-loop.md"
}

# The only loop that there was in a project: where its log is.
log_of() { # NAME
    for book in "$SWARM_DIR"/sessions/*/loop.json; do
        [ ! -f "$book" ] || [ "$(jq -r .project_dir "$book")" != "$work/$1" ] || echo "${book%loop.json}log.jsonl"
    done
}

# shellcheck disable=SC2317 # until_true calls it
has_ended() { [ -f "$work/mock/outage" ] || jq -se 'any(.[]; .status != null)' "$(log_of "$1")"; }

# How many there were to which the model replied.
requests() { if [ -f "$work/mock/requests" ]; then wc -c <"$work/mock/requests" | tr -d ' '; else echo 0; fi; }

told() { # NAME
    log=$(log_of "$1")
    [ -n "$log" ] || { echo 'no loop'; return; }
    kept=gone
    for file in "$work/$1"/.claude/*.local.md; do [ ! -f "$file" ] || kept=kept; done
    jq -rs --arg requests "$(requests)" --arg kept "$kept" '
        ([.[] | select(.why != "started") | .promise]
         | reduce .[] as $one ([]; if length > 0 and .[-1].word == $one then .[-1].n += 1 else . + [{word: $one, n: 1}] end)
         | map(.word + (if .n > 1 then " x\(.n)" else "" end)) | join("+"))
        + " " + ([.[] | .status // empty] | last // "no end") + ", \($requests) requests, file \($kept)"' "$log"
}

# One session: a prompt that starts a loop, until the loop or the agent is over. With --start, a shell starts it instead.
session() { # CLI NAME PROMPT [-- START-ARGS...]
    cli=$1 name=$2 prompt=$3
    shift 3
    [ "${1:-}" != -- ] || shift
    id=$(uuid)
    [ $# -eq 0 ] || "$SWARM" session start --cwd "$dir" --session-id "$id" "$@" >"$work/$name.start" 2>&1 || :
    case $cli in
    claude)
        installed claude
        commands
        (cd "$dir" && timeout -k 5 120 claude -p --session-id "$id" --dangerously-skip-permissions "$prompt") \
            </dev/null >"$work/$name.out" 2>&1 || :
        ;;
    codex)
        installed codex
        trusted
        (cd "$dir" && timeout -k 5 120 codex exec --dangerously-bypass-approvals-and-sandbox \
            --dangerously-bypass-hook-trust "$prompt") </dev/null >"$work/$name.out" 2>&1 || :
        ;;
    claude-tui)
        commands
        typed "$name" "$prompt" claude --session-id "$id" --dangerously-skip-permissions
        ;;
    claude-own) typed "$name" "$prompt" claude --session-id "$id" --dangerously-skip-permissions ;;
    # It takes no command that it does not know; behind a blank it is a prompt.
    codex-tui)
        trusted
        typed "$name" " $prompt" codex --dangerously-bypass-approvals-and-sandbox
        ;;
    esac
}

uuid() { cat /proc/sys/kernel/random/uuid; }

typed() { # NAME PROMPT COMMAND...
    name=$1 prompt=$2
    shift 2
    (cd "$dir" && timeout -k 5 60 "$SWARM" spawn --name "$name" -- "$@") </dev/null >"$work/$name.out" 2>&1 || :
    timeout -k 5 60 "$SWARM" wait "$name" --for ready </dev/null >>"$work/$name.out" 2>&1 || :
    timeout -k 5 60 "$SWARM" send "$name" -- "$prompt" </dev/null >>"$work/$name.out" 2>&1 || :
    until_true 90 has_ended "$name" || :
    # What there is to be told of its end is told by then.
    timeout -k 5 30 "$SWARM" wait "$name" --for idle --timeout 20 </dev/null >>"$work/$name.out" 2>&1 || :
    "$SWARM" logs "$name" </dev/null >"$work/$name.screen" 2>&1 || :
    "$SWARM" kill "$name" >/dev/null 2>&1 || :
}

# One session in which a person types something while the agent works, so that its CLI queues it.
queued() { # NAME TEXT
    name=$1 text=$2
    id=$(uuid)
    commands
    echo 'End the loop.' >"$dir/.claude/commands/cancel-ralph.md"
    echo 'Say where you are.' >"$dir/.claude/commands/later.md"
    (cd "$dir" && timeout -k 5 60 "$SWARM" spawn --name "$name" -- claude --session-id "$id" \
        --dangerously-skip-permissions) </dev/null >"$work/$name.out" 2>&1 || :
    timeout -k 5 60 "$SWARM" wait "$name" --for ready </dev/null >>"$work/$name.out" 2>&1 || :
    timeout -k 5 60 "$SWARM" send "$name" -- '/ralph-loop "mend it" --max-iterations 3' \
        </dev/null >>"$work/$name.out" 2>&1 || :
    until_true 60 test -e "$work/mock/working" || :
    # Typed as a person types it: swarm itself sends nothing to an agent that works.
    pane=$("$SWARM" status "$name" --format json | jq -r .tmux.pane)
    tmux -S "$SWARM_DIR/tmux.sock" send-keys -t "$pane" -l -- "$text"
    until_true 10 on_screen "$pane" "$text" || :
    tmux -S "$SWARM_DIR/tmux.sock" send-keys -t "$pane" Enter
    until_true 30 grep -q '"enqueue"' "$HOME/.claude/projects/"*"/$id.jsonl" || :
    : >"$work/mock/go-on"
    until_true 90 has_ended "$name" || :
    timeout -k 5 30 "$SWARM" wait "$name" --for idle --timeout 20 </dev/null >>"$work/$name.out" 2>&1 || :
    "$SWARM" logs "$name" </dev/null >"$work/$name.screen" 2>&1 || :
    "$SWARM" kill "$name" >/dev/null 2>&1 || :
    rm -f "$work/mock/working" "$work/mock/go-on"
}

# shellcheck disable=SC2317 # until_true calls it
on_screen() { tmux -S "$SWARM_DIR/tmux.sock" capture-pane -p -t "$1" | grep -qF -- "$2"; }

queue_cases() {
    works="touch $work/mock/working; until test -e $work/mock/go-on; do python3 -c 'import time; time.sleep(0.2)'; done"
    prepare claude-tui-queued-cancel <<END
{"text":"I work.","sh":"$works"}
$(texts 5)
END
    queued claude-tui-queued-cancel /cancel-ralph
    row 'claude (TUI)' 'a queued cancel' 'missing CANCELLED, 2 requests, file gone' "$(told claude-tui-queued-cancel)"

    # It has a turn of its own, and the loop has all of its turns.
    prepare claude-tui-queued <<END
{"text":"I work.","sh":"$works"}
$(texts 6)
END
    queued claude-tui-queued /later
    row 'claude (TUI)' 'another queued command' 'missing x4 MAX_ITERATIONS_REACHED, 5 requests, file gone' \
        "$(told claude-tui-queued)"
}

do_it_project() {
    mkdir -p "$dir/.do-it/specs"
    echo '{"project_name": "drill", "project_type": "generic"}' >"$dir/.do-it/specs/_meta.json"
    echo 'Mend it.' >"$dir/.do-it/specs/it.md"
}

texts() { # COUNT
    n=0
    while [ $((n += 1)) -le "$1" ]; do echo "{\"text\":\"Not yet, $n.\"}"; done
}

cases() { # CLI ROW
    cli=$1 row=$2

    prepare "$cli-promise" <<'END'
{"text":"I look.","sh":"ls"}
{"text":"Not yet."}
{"text":"I mend it.","sh":"touch fixed"}
{"text":"All of it.\n\n<promise>DONE</promise>"}
END
    session "$cli" "$cli-promise" '/ralph-loop "mend it" --max-iterations 5'
    row "$row" 'until its promise' 'missing+found PROMISE_ACCEPTED, 4 requests, file gone' "$(told "$cli-promise")"

    prepare "$cli-idle" <<'END'
{"text":"All was done before.\n\n<promise>DONE</promise>"}
{"text":"I mend it.","sh":"touch fixed"}
{"text":"<promise>DONE</promise>"}
END
    session "$cli" "$cli-idle" '/ralph-loop "mend it" --max-iterations 5'
    row "$row" 'a promise without work' 'rejected+found PROMISE_ACCEPTED, 3 requests, file gone' "$(told "$cli-idle")"

    prepare "$cli-ceiling" <<END
$(texts 5)
END
    session "$cli" "$cli-ceiling" '/ralph-loop "mend it" --max-iterations 3'
    row "$row" 'the ceiling' 'missing x3 MAX_ITERATIONS_REACHED, 3 requests, file gone' "$(told "$cli-ceiling")"

    prepare "$cli-cancel" <<END
{"text":"Not yet."}
{"text":"It is called off.","sh":"$SWARM session cancel"}
{"text":"The end."}
END
    session "$cli" "$cli-cancel" '/ralph-loop "mend it" --max-iterations 5'
    row "$row" 'cancelled in its midst' 'missing+unread CANCELLED, 3 requests, file gone' "$(told "$cli-cancel")"

    prepare "$cli-pause" <<'END'
{"text":"Not yet."}
{"text":"A person must say.\n\n<promise>PAUSE</promise>"}
END
    do_it_project
    case $cli in
    codex*) session "$cli" "$cli-pause" '/do-it:ralph 5' ;;
    *) session "$cli" "$cli-pause" 'Begin.' -- --do-it 5 ;;
    esac
    row "$row" 'the pause promise (do-it)' 'missing+pause PAUSED, 2 requests, file gone' "$(told "$cli-pause")"

    prepare "$cli-error" <<END
{"text":"I look.","sh":"ls"}
{"text":"Not yet."}
{"text":"It goes down.","sh":"printf '529\\\\nOverloaded\\\\n' >$work/mock/outage"}
END
    session "$cli" "$cli-error" '/ralph-loop "mend it" --max-iterations 5'
    case $cli in
    # It runs no hook when its API has failed it: the loop stays as it is.
    codex*) expected='missing no end, 3 requests, file kept' ;;
    *) expected='missing+error PAUSED, 3 requests, file kept' ;;
    esac
    row "$row" 'an error of the API' "$expected" "$(told "$cli-error")"

    prepare "$cli-many" <<END
$(texts 20)
END
    session "$cli" "$cli-many" '/ralph-loop "mend it" --max-iterations 12'
    case $cli in
    # Nobody has raised the host's own limit.
    claude) expected='missing x9 HOST_CAP, 9 requests, file kept' ;;
    *) expected='missing x12 MAX_ITERATIONS_REACHED, 12 requests, file gone' ;;
    esac
    row "$row" 'more than 8 turns' "$expected" "$(told "$cli-many")"
}

# A fresh-context loop of an interactive agent: no silence ends an iteration here, only its hooks can.
fresh() { # CLI ROW COMMAND...
    cli=$1 row=$2
    shift 2
    prepare "$cli-fresh" <<END
$(texts 3)
END
    trusted
    (cd "$dir" && timeout -k 5 120 "$SWARM" spawn --name "$cli-fresh" --ralph --prompt-file PROMPT.md -n 3 \
        --inactivity-timeout 900 -- "$@") </dev/null >"$work/$cli-fresh.out" 2>&1 || :
    row "$row" 'fresh-context: ended by its hooks' 'turn-over+turn-over+turn-over, 3 requests' "$(exits "$cli-fresh")"
    "$SWARM" kill "$cli-fresh" >/dev/null 2>&1 || :
}

# A loop whose context is limited: the alerts reach the model in its next request, and swarm ends the iteration above the limit.
# The commands take a second, since Claude Code may write a request to its transcript while a short command runs.
context() {
    prepare context <<'END'
{"text":"I look.","sh":"sleep 1","input":55000}
{"text":"I look again.","sh":"sleep 1","input":73000}
{"text":"And again.","sh":"sleep 1","input":90000}
{"text":"That was all.","input":20000}
END
    (cd "$dir" && CLAUDE_CONTEXT_WINDOW=100000 timeout -k 5 120 "$SWARM" spawn --name context --ralph \
        --prompt-file PROMPT.md -n 2 --max-context 70 --inactivity-timeout 900 -- \
        claude -p --dangerously-skip-permissions) </dev/null >"$work/context.out" 2>&1 || :
    ends=$(exits context)
    alerts=$(jq -r '.notes[]' "$work"/mock/prompts/*.json | grep -oE '(NOTICE|WARNING|LIMIT): [0-9]*%' | sort -u | paste -sd, -)
    row 'claude -p' 'fresh-context: --max-context 70' \
        'context-spent+0; LIMIT: 73%,NOTICE: 55%,WARNING: 73%' "${ends%%,*}; $alerts"
    "$SWARM" kill context >/dev/null 2>&1 || :
}

exits() { # NAME
    printf '%s, %s requests' "$(sed -n 's/.*\[END\] iteration [0-9]* exit=\([^ ]*\).*/\1/p' \
        "$SWARM_DIR/ralph/$1/iterations.log" | paste -sd+ -)" "$(requests)"
}

# shellcheck disable=SC2317 # until_true calls it
is_status() { [ "$("$SWARM" status "$1" --format json | jq -r .status)" = "$2" ]; }

# Its turn is over and a task of its own runs for more than a minute, after which the agent says that it idles.
background() {
    prepare background <<'END'
{"text":"I start it.","sh":"sleep 75","background":true}
{"text":"It runs."}
{"text":"It has ended."}
END
    (cd "$dir" && timeout -k 5 180 "$SWARM" spawn --name background --ralph --prompt-file PROMPT.md -n 1 \
        --inactivity-timeout 900 -- claude --dangerously-skip-permissions) </dev/null >"$work/background.out" 2>&1 || :
    row 'claude (TUI)' 'fresh-context: a background task' 'done, 3 requests' "$(exits background)"
    "$SWARM" kill background >/dev/null 2>&1 || :
}

# A usage limit is told by a hook in a screen that stays: the loop waits, and no iteration is used up.
limited() {
    prepare limited <<END
$(texts 1)
END
    printf '429\nYou have hit your usage limit\n' >"$work/mock/outage"
    (cd "$dir" && "$SWARM" spawn --name limited --ralph --prompt-file PROMPT.md -n 1 --inactivity-timeout 900 -d -- \
        claude --dangerously-skip-permissions) </dev/null >"$work/limited.out" 2>&1 || :
    seen='never waited'
    if until_true 120 is_status limited waiting; then
        seen="waiting, iteration $(jq .current_iteration "$SWARM_DIR/ralph/limited/state.json"), $(exits limited)"
    fi
    "$SWARM" kill limited >/dev/null 2>&1 || :
    row 'claude (TUI)' 'fresh-context: a usage limit' 'waiting, iteration 0, outage, 0 requests' "$seen"
}

# An interactive session to whom nothing is passed: its hooks are those of the project.
own_session() {
    printf '[agents.claude]\nhooks = "off"\n' >"$HOME/.config/swarm/config.toml"
    prepare claude-own <<END
$(texts 5)
END
    installed claude
    # The plugin brings hooks of its own: each stop is reported twice.
    (cd "$dir" && "$SWARM" plugin install) >"$work/plugin" 2>&1
    session claude-own claude-own '/ralph-loop "mend it" --max-iterations 3'
    rm -f "$HOME/.config/swarm/config.toml"
    row 'claude (TUI)' 'hooks installed, none passed' 'missing x3 MAX_ITERATIONS_REACHED, 3 requests, file gone' "$(told claude-own)"
    fed=$(grep -h '"isMeta":true' "$HOME/.claude/projects/"*"/$id.jsonl" | grep -c 'Stop hook feedback')
    row 'claude (TUI)' 'three hooks, one answer a stop' '2 answers' "$fed answers"
}

mkdir -p "$HOME/.config/swarm"
printf '%-13s | %-33s | %-64s | %-64s |\n' CLI case expected seen
for cli; do
    program=${cli%%-*}
    if ! version=$("$program" --version 2>/dev/null </dev/null); then
        printf '%-13s | not installed\n' "$cli"
        continue
    fi
    printf '%-13s | %s\n' "$cli" "$version"
    case $cli in
    claude)
        context
        cases claude 'claude -p'
        ;;
    claude-tui)
        cases claude-tui 'claude (TUI)'
        fresh claude-tui 'claude (TUI)' claude --dangerously-skip-permissions
        background
        limited
        queue_cases
        own_session
        ;;
    codex) cases codex 'codex exec' ;;
    codex-tui)
        cases codex-tui 'codex (TUI)'
        fresh codex-tui 'codex (TUI)' codex --dangerously-bypass-approvals-and-sandbox
        ;;
    *)
        echo "no such CLI here: $cli" >&2
        exit 2
        ;;
    esac
done
exit "$differs"
