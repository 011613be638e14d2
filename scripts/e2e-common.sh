# Sets up tests with real agent CLIs: a private HOME, a model on loopback and settings for each CLI. Ends all processes that
# the tests started. e2e-sessions.sh and e2e-tasks.sh set `here` and `all_clis` and then source this file.
# shellcheck shell=sh disable=SC2034,SC2154
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi
SWARM=$(realpath "$SWARM")
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2086 # words
    set -- $all_clis
fi

# Only what is named here reaches the agents: no key and no setting of the user's.
if [ -z "${DRILL_DIR:-}" ]; then
    work=$(mktemp -d /tmp/swarm-agents-XXXXXX)
    mkdir "$work/home" "$work/mock" "$work/tmux" "$work/tmp"
    agents=$("$here/e2e/install.sh" claude codex)
    exec env -i PATH="$agents:$PATH" HOME="$work/home" LANG=C.UTF-8 TERM=xterm-256color SWARM="$SWARM" \
        SWARM_DIR="$work/swarm" TMUX_TMPDIR="$work/tmux" TMPDIR="$work/tmp" DRILL_DIR="$work" KEEP="${KEEP:-}" \
        "$0" "$@"
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
            ! grep -qa 'e2e-' "$dir/cmdline" 2>/dev/null; then
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
