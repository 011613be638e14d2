#!/bin/sh
# The drill on real agent CLIs: verified loops of Claude Code, Codex and opencode, with a model that says what each case
# needs (mock-model.pl). Prints a table: what was expected, what was seen; exits 1 when a row differs.
#
#   AGENTS=DIR scripts/e2e-agents.sh [CLI...]     claude, claude-tui, codex, opencode, opencode-json; default all
#
# AGENTS is a directory with their programs, put before PATH; a CLI that is not there is a row "not installed":
#   npm install --prefix /tmp/agents @anthropic-ai/claude-code @openai/codex opencode-ai
#   AGENTS=/tmp/agents/node_modules/.bin scripts/e2e-agents.sh
# SWARM names the program under test; without it, it is built here. Needs tmux, git, perl and jq. Everything
# lies in a directory of its own, which is kept when KEEP=1. Nothing but loopback is talked to, as far as the
# CLIs keep to their settings. Not a part of .ci/run: a version of a CLI may change what it does.
# shellcheck disable=SC2034,SC2154 # what the common part uses and sets
set -eu
here=$(cd "$(dirname "$0")" && pwd)
all_clis='claude claude-tui codex opencode opencode-json'
# shellcheck source=/dev/null
. "$here/e2e-common.sh"

looped() { # NAME ARGS...: a verified loop, followed; its result as JSON, its exit status in a file
    name=$1
    shift
    code=0
    (cd "$work/$name" && timeout -k 5 180 "$SWARM" loop 'fix it' --name "$name" --quiet --format json "$@") \
        </dev/null >"$work/$name.json" 2>"$work/$name.err" || code=$?
    echo $code >"$work/$name.code"
}

spawned() { # NAME ARGS...: the same by spawn --ralph
    name=$1
    shift
    code=0
    (cd "$work/$name" && timeout -k 5 180 "$SWARM" spawn --name "$name" --ralph --prompt-file PROMPT.md "$@") \
        </dev/null >"$work/$name.out" 2>"$work/$name.err" || code=$?
    echo $code >"$work/$name.code"
}

report() { "$SWARM" report "$1" --format json; }

# What a report says, in a few words: exit, end, iterations, the promises, the tool calls where they are told,
# whether tokens and a price were told.
told() { # NAME
    report "$1" | jq -r --arg code "$(cat "$work/$1.code")" '
        def list(f): [.iterations[] | f] | join("+");
        "exit \($code) \(.end), \(list(.verdict.promise)), steps \(list(.tool_calls // "?"))"
        + (if .tokens > 0 then ", tokens" else "" end) + (if .cost > 0 then ", cost" else "" end)' \
        2>/dev/null || echo "no report"
}

# shellcheck disable=SC2317 # until_true calls it
is() { [ "$(report "$1" | jq -r "$2")" = "$3" ]; }

fixes_in_the_second='{"text":"I look first.","sh":"ls"}
{"text":"Not yet."}
{"text":"I mend it.","sh":"touch fixed"}
{"text":"Done.\n\n<promise>COMPLETE</promise>"}'

# All cases of one command. ONE and NONE are the words for one tool call and for none, EXTRA what else is told.
cases() { # ROW PREFIX ONE NONE EXTRA OUTAGE COMMAND...
    cli=$1 id=$2 one=$3 none=$4 extra=$5 outage=$6
    shift 6
    check='test -f fixed'

    printf '%s\n' "$fixes_in_the_second" | prepare "$id-fix"
    looped "$id-fix" -n 5 --check "$check" -- "$@"
    row "$cli" 'loop: the second fixes' "exit 0 all_checks_passed, missing+given, steps $one+$one$extra" "$(told "$id-fix")"
    row "$cli" 'its JSON result' 'true 2 [1,2] [false,true]' "$(jq -r '"\(.success) \(.total_iterations)
        \([.iterations[].iteration]) \([.iterations[].all_checks_passed])"' "$work/$id-fix.json" | tr -s ' \n' ' ' | sed 's/ $//')"

    printf '%s\n' "$fixes_in_the_second" | prepare "$id-ralph"
    spawned "$id-ralph" -n 5 --promise COMPLETE --check "$check" -- "$@"
    row "$cli" 'spawn --ralph: the same' "exit 0 all_checks_passed, missing+given, steps $one+$one$extra" "$(told "$id-ralph")"

    prepare "$id-idle" <<'END'
{"text":"All was done before.\n\n<promise>COMPLETE</promise>"}
{"text":"I mend it.","sh":"touch fixed"}
{"text":"<promise>COMPLETE</promise>"}
END
    looped "$id-idle" -n 5 --check true -- "$@"
    row "$cli" 'a promise without work' "exit 0 all_checks_passed, rejected+given, steps $none+$one$extra" "$(told "$id-idle")"

    prepare "$id-echo" <<'END'
{"text":"I print it.","sh":"touch fixed; echo '<promise>COMPLETE</promise>'"}
{"text":"It was printed."}
END
    looped "$id-echo" -n 1 --check true -- "$@"
    if [ "$one" = '?' ]; then
        row "$cli" 'the tag in a tool result (weaker)' 'exit 0 all_checks_passed, given, steps ?' "$(told "$id-echo")"
        row "$cli" 'a warning of that' warned "$(grep -q 'counts too' "$work/$id-echo.err" && echo warned || echo silent)"
    else
        row "$cli" 'the tag in a tool result only' "exit 1 max_iterations, missing, steps $one$extra" "$(told "$id-echo")"
    fi

    prepare "$id-out" <<'END'
{"text":"I mend it.","sh":"touch fixed"}
{"text":"<promise>COMPLETE</promise>"}
END
    printf '%s\n' "$outage" >"$work/mock/outage"
    looped "$id-out" -n 1 --check "$check" --detach -- "$@"
    seen='never waited'
    if until_true 90 is "$id-out" .worker_status waiting; then
        seen=$(report "$id-out" | jq -r '"waiting, failures \(.consecutive_failures)"')
        rm -f "$work/mock/outage"
        until_true 150 is "$id-out" '.end != null' true || :
        seen="$seen; $(report "$id-out" | jq -r '"\(.end), \([.iterations[].iteration] | length) of \(.max_iterations)"')"
    fi
    row "$cli" "an outage ($(echo "$outage" | head -n 1))" 'waiting, failures 0; all_checks_passed, 1 of 1' "$seen"
}

in_a_worktree() {
    printf '%s\n' "$fixes_in_the_second" | prepare tree
    looped tree -n 5 --check 'test -f fixed' --worktree -- claude -p --dangerously-skip-permissions
    row claude 'the same in a worktree' 'exit 0 all_checks_passed, missing+given, steps 1+1, tokens, cost' "$(told tree)"
}

tui() {
    printf '%s\n' "$fixes_in_the_second" | prepare tui-fix
    spawned tui-fix -n 5 --promise COMPLETE --check 'test -f fixed' --inactivity-timeout 8 -- \
        claude --dangerously-skip-permissions
    row 'claude (TUI)' 'spawn --ralph: the second fixes' \
        'exit 0 all_checks_passed, missing+given, steps 1+1, tokens, cost' "$(told tui-fix)"
    prepare tui-echo <<'END'
{"text":"I print it.","sh":"touch fixed; echo '<promise>COMPLETE</promise>'"}
{"text":"It was printed."}
END
    spawned tui-echo -n 1 --promise COMPLETE --check true --inactivity-timeout 8 -- claude --dangerously-skip-permissions
    row 'claude (TUI)' 'the tag in a tool result only' 'exit 1 max_iterations, missing, steps 1, tokens, cost' \
        "$(told tui-echo)"
}

overload='529
Overloaded'
login='401
Incorrect API key provided'
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
        cases claude claude 1 0 ', tokens, cost' "$overload" claude -p --dangerously-skip-permissions
        in_a_worktree
        ;;
    claude-tui) tui ;;
    codex) cases codex codex 1 0 ', tokens' "$overload" codex exec --dangerously-bypass-approvals-and-sandbox ;;
    # Its plain mode tells neither tool calls nor tokens, and prints its words and its tools' output alike.
    opencode) cases opencode opencode '?' '?' '' "$login" opencode run ;;
    opencode-json) cases 'opencode json' ocjson 1 0 ', tokens, cost' "$login" opencode run --format json ;;
    *)
        echo "no such CLI here: $cli" >&2
        exit 2
        ;;
    esac
done
exit "$differs"
