#!/bin/sh
# Runs real agent CLIs in a matrix of modes and cases: Claude Code, Codex, opencode, Gemini CLI, qwen-code and aider, interactive
# and one-shot. A model on loopback gives the replies that each case scripts (mock-model.pl).
#
#   scripts/e2e-agents.sh [OPTIONS]
#
#   --cli LIST     run only these CLIs: claude, codex, opencode, gemini, qwen, aider (separated by commas)
#   --mode LIST    run only these modes: tui, oneshot, json (opencode's JSON output, for verified loops)
#   --case LIST    run only these cases; --list prints their names
#   --ci           run only the cells that CI runs (e2e/Ci.pm), and count the others in the last line
#   --runs N       run each cell N times [default: 1]
#   --jobs N       run N cells in parallel [default: 3]
#   --patience N   multiply all time limits by N, for a slow machine [default: 1]
#   --busy         keep all cores busy during the run
#   --keep DIR     save the files of cells that differ in DIR [default: a new directory in /tmp; its path is printed]
#   --list         print the cells, with the reason if one cannot run, and run nothing
#   --install      install the CLIs, and run nothing
#
# Each row is a cell: CLI, mode, case, `ok` or `DIFFERS` with the number of runs that passed, and the expected result. If the
# actual result differs, it is on the next line. A cell that cannot run shows the reason. Exit status: 0 if all cells passed, 1
# if one differs, 2 for an invalid option, 3 if a CLI could not be installed (the others still run).
#
# Each cell has its own HOME, SWARM_DIR, daemon, tmux server, repository and model. The settings of the CLIs make them connect
# only to loopback. A cell waits for states, for at most seven minutes (opencode: 21). At the end of a cell, the script ends
# every process with the cell's HOME, because Codex leaves an app server for each home. The directory of a cell that differs
# contains the commands (cell.log), the output of `status`, `peek`, `why`, `logs` and `events`, the daemon's log, and the prompts
# that the model received (mock/prompts).
#
# e2e/install.sh installs pinned versions of the CLIs; its head describes AGENTS and AGENTS_PATH. A CLI that cannot be installed
# is a row with the reason. SWARM is the program to test; if it is not set, the script builds swarm. Requires tmux, git, perl,
# npm, and for aider python3 with venv.
#
# Files: e2e/Clis.pm has the CLIs, their commands and settings; e2e/Cases*.pm the cases; e2e/Cell.pm the private environment of
# a cell; e2e/matrix.pl the driver.
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
