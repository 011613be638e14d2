#!/bin/sh
# The matrix of real agent CLIs: Claude Code, Codex, opencode, Gemini CLI, qwen-code and aider, interactive and one-shot, each in
# every case that can be tried, with a model on loopback whose replies each case scripts (mock-model.pl).
#
#   scripts/e2e-agents.sh [OPTIONS]
#
#   --cli LIST     only these: claude, codex, opencode, gemini, qwen, aider (a comma between two)
#   --mode LIST    only these: tui, oneshot, json (opencode's JSON output, for verified loops)
#   --case LIST    only these cases; --list names them
#   --ci           run only the cells that CI runs (e2e/Ci.pm), and count the others in the last line
#   --runs N       run each cell N times [default: 1]
#   --jobs N       run N cells side by side [default: 3]
#   --patience N   multiply all limits by N, on a slow machine [default: 1]
#   --busy         keep all cores at work during the run
#   --keep DIR     save the files of cells that differ in DIR [default: a new directory below /tmp, which is printed]
#   --list         print the cells, with the reason where one cannot be tried, and run nothing
#   --install      install the CLIs, and run nothing
#
# A row is a cell: CLI, mode, case, `ok` or `DIFFERS` with the number of runs that passed, the expected result, and
# below it the actual result where it differs. A cell that cannot be tried shows the reason. Exit status: 0 when all passed, 1
# when one differs, 2 for a wrong option, 3 when a CLI could not be installed (the others are tried nevertheless).
#
# Each cell has a HOME, a SWARM_DIR, a daemon, a tmux server, a repository and a model of its own. The settings of the CLIs
# make them connect to loopback only. A cell waits for states, and no longer than seven minutes (21 for opencode). When it
# ends, so does every process whose HOME is the cell's: Codex leaves an app server for each home. The folder of a cell that
# differs holds what was run (cell.log), what `status`, `peek`, `why`, `logs` and `events` printed, the daemon's log, and the
# prompts as the model got them (mock/prompts).
#
# The CLIs are pinned and installed by e2e/install.sh, whose head describes AGENTS and AGENTS_PATH; what cannot be installed
# is a row that says so. SWARM names the program under test; without it, it is built here. Needs tmux, git, perl, npm, and for
# aider python3 with venv.
#
# Where things are: e2e/Clis.pm has the CLIs, their commands and settings; e2e/Cases*.pm the cases; e2e/Cell.pm the private
# world of a cell; e2e/matrix.pl the driver.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

clis=
only=run
expects_clis=
for word; do
    if [ -n "$expects_clis" ]; then
        clis=$word expects_clis=
        continue
    fi
    case $word in
    -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --install) only=install ;;
    --list) only=list ;;
    --cli) expects_clis=1 ;;
    --cli=*) clis=${word#--cli=} ;;
    esac
done

missing=0
if [ $only != list ]; then
    # shellcheck disable=SC2046 # words
    agents=$("$here/e2e/install.sh" $(echo "$clis" | tr , ' ')) || missing=$?
    [ $missing != 2 ] || exit 2
    PATH=$agents:$PATH
fi
if [ $only = install ]; then
    [ $missing = 0 ] || exit 3
    exit 0
fi
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi
SWARM=$(realpath "$SWARM")
export PATH SWARM
code=0
perl "$here/e2e/matrix.pl" "$@" || code=$?
[ $code != 0 ] || [ $missing = 0 ] || code=3
exit $code
