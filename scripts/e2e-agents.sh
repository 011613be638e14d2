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
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi
SWARM=$(realpath "$SWARM")
[ $# -gt 0 ] || set -- claude claude-tui codex opencode opencode-json

# Only what is named here reaches the agents: no key and no setting of the user's.
if [ -z "${DRILL_DIR:-}" ]; then
    work=$(mktemp -d /tmp/swarm-agents-XXXXXX)
    mkdir "$work/home" "$work/mock" "$work/tmux" "$work/tmp"
    exec env -i PATH="${AGENTS:+$AGENTS:}$PATH" HOME="$work/home" LANG=C.UTF-8 TERM=xterm-256color SWARM="$SWARM" \
        SWARM_DIR="$work/swarm" TMUX_TMPDIR="$work/tmux" TMPDIR="$work/tmp" DRILL_DIR="$work" KEEP="${KEEP:-}" \
        "$here/e2e-agents.sh" "$@"
fi
work=$DRILL_DIR

mock=
# shellcheck disable=SC2317 # a trap calls it
finish() {
    trap - EXIT INT TERM
    "$SWARM" kill --all >/dev/null 2>&1 || :
    "$SWARM" daemon stop >/dev/null 2>&1 || :
    [ ! -S "$SWARM_DIR/tmux.sock" ] || tmux -S "$SWARM_DIR/tmux.sock" kill-server 2>/dev/null || :
    [ -z "$mock" ] || kill "$mock" 2>/dev/null || :
    # A CLI may leave a service of its own behind: it is ours when our HOME is its own.
    for dir in /proc/[0-9]*; do
        pid=${dir#/proc/}
        [ "$pid" != $$ ] || continue
        if tr '\0' '\n' 2>/dev/null <"$dir/environ" | grep -qxF "HOME=$HOME" &&
            ! grep -qa 'e2e-agents' "$dir/cmdline" 2>/dev/null; then
            kill "$pid" 2>/dev/null || :
        fi
    done
    if [ -n "$KEEP" ]; then echo "kept: $work"; else rm -rf "$work" 2>/dev/null || { sleep 1; rm -rf "$work"; }; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

perl "$here/mock-model.pl" "$work/mock" &
mock=$!
# until_true SECONDS COMMAND...
until_true() {
    tries=$(($1 * 5))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.2
    done
}
until_true 10 test -s "$work/mock/port"
base=http://127.0.0.1:$(cat "$work/mock/port")

# The settings of each CLI.
key=sk-ant-fake-000000000000000000000000000000
export ANTHROPIC_BASE_URL="$base" ANTHROPIC_API_KEY=$key CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
export DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=1 CLAUDE_CODE_TMPDIR="$work/tmp" IS_SANDBOX=1 MOCK_KEY=x
export OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1
mkdir -p "$HOME/.claude" "$HOME/.codex" "$HOME/.config/opencode"
git config --global user.name drill
git config --global user.email drill@localhost
# Claude Code's first-run dialogs; a project is trusted where its case is made.
jq -n --arg key "$(printf %s $key | tail -c 20)" '{hasCompletedOnboarding: true, theme: "dark",
    hasSeenAutoDefaultNotice: true, officialMarketplaceAutoInstallAttempted: true,
    customApiKeyResponses: {approved: [$key], rejected: []}, projects: {}}' >"$HOME/.claude.json"
echo '{"skipDangerousModePermissionPrompt": true, "spinnerTipsEnabled": false, "promptSuggestionEnabled": false}' \
    >"$HOME/.claude/settings.json"
cat >"$HOME/.codex/config.toml" <<END
model = "mock-model"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "$base/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
END
jq -n --arg base "$base/v1" '{model: "mock/mock-model", provider: {mock: {npm: "@ai-sdk/openai-compatible",
    name: "mock", options: {baseURL: $base, apiKey: "x"}, models: {"mock-model": {name: "mock-model",
    limit: {context: 100000, output: 8000}, cost: {input: 1, output: 2}}}}}}' >"$HOME/.config/opencode/opencode.json"

differs=0
row() { # CLI CASE EXPECTED SEEN
    mark=ok
    [ "$3" = "$4" ] || { mark=DIFFERS differs=1; }
    printf '%-13s | %-33s | %-64s | %-64s | %s\n' "$1" "$2" "$3" "$4" "$mark"
}

# A repository of its own for the next case, with the model's next replies on standard input.
prepare() { # NAME
    rm -f "$work/mock/requests" "$work/mock/outage"
    cat >"$work/mock/replies"
    dir=$work/$1
    git init -q "$dir"
    echo 'fix it' >"$dir/PROMPT.md"
    git -C "$dir" add -A
    git -C "$dir" commit -qm start
    jq --arg dir "$dir" '.projects[$dir].hasTrustDialogAccepted = true' "$HOME/.claude.json" >"$work/claude.json"
    cat "$work/claude.json" >"$HOME/.claude.json"
}

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
exit $differs
