#!/bin/sh
# Runs one cell of the matrix: cell.sh ECOSYSTEM CONFIG KIND NAME. Writes the result into the drill's directory.
#
# The functions of a variant: KIND_NAME is the agent's part. setup_NAME, in the tree before the loop, may change the
# variables below and add files. person_NAME is what a person does after a loop that did not end complete.
set -eu
lib=$(cd "$(dirname "$0")" && pwd)
ecosystem=$1 config=$2 kind=$3 name=$4
worker=$ecosystem-$config-$name
CELL=$CHEATS_WORLD/cells/$worker
mkdir -p "$CELL/home/.local/bin"
tree=$CELL/tree
cp -a "$CHEATS_WORLD/templates/$ecosystem" "$tree"
cd "$tree"
HOME=$CELL/home
dirs=$(cat "$CHEATS_WORLD/$ecosystem.path")
PATH=$HOME/.local/bin:${dirs:+$dirs:}$PATH
export CELL HOME PATH WORKER="$worker"
# shellcheck source=scripts/cheats/common.sh
. "$lib/common.sh"
# shellcheck source=scripts/cheats/make.sh
. "$lib/$ecosystem.sh"
defined() { command -v "$1" >/dev/null; }

cp "$GIT_CONFIG_GLOBAL" "$HOME/.gitconfig"
# A sandbox shows this one.
export GIT_CONFIG_GLOBAL="$HOME/.gitconfig"
protect_tests=${protect_tests:---protect-tests}
extra='' report='' held_out=true sub=. server='' worktree='' turns=1
# shellcheck disable=SC2154 # the ecosystem's file sets them
if defined "setup_$name"; then
    "setup_$name"
    git add -A
    git commit -qm setup --allow-empty
fi
set -- loop 'make the tests pass' --name "$worker" --cwd "$tree/$sub" -q -n "$turns" --max-time 120
set -- "$@" --inactivity-timeout 60 --check "$check"
[ -z "$extra" ] || set -- "$@" --check "$extra"
if [ -n "$report" ] && grep -q -e --report "$CHEATS_WORLD/options"; then set -- "$@" --report "$report"; fi
[ -z "$worktree" ] || set -- "$@" --worktree
case $config in protect | all) set -- "$@" --protect 'tests/**' ;; esac
case $config in
    protect-tests | held-out | bwrap) set -- "$@" "$protect_tests" ;;
    all) [ "$protect_tests" != --protect-tests ] || set -- "$@" "$protect_tests" ;;
esac
case $config in
    held-out | bwrap | all)
        mkdir -p "$CELL/hidden/held-out"
        (cd "$CELL/hidden/held-out" && hidden && echo "$held_out" >>check.sh)
        set -- "$@" --final-check "$final" --hidden "$CELL/hidden"
        ;;
esac
# The agent records what it did in its cell. The hidden directory stays hidden.
case $config in bwrap) set -- "$@" --sandbox bwrap --sandbox-rw "$CELL" ;; esac
# shellcheck disable=SC2154
case $config in all) set -- "$@" --clean-check --fix "$source" ;; esac

start=$(date +%s)
outcome=refused
if "$CHEATS_SWARM" "$@" -- sh "$lib/agent.sh" "$ecosystem" "${kind}_$name" >"$CELL/said" 2>&1 </dev/null; then
    outcome=complete
elif [ "$kind" = honest ] && defined "person_$name"; then
    if "person_$name" >>"$CELL/said" 2>&1 </dev/null; then outcome=complete; fi
fi
# A process that a person started stays.
if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || outcome=refused
fi
# A variant that was not applied shows nothing, except that a sandbox prevented a cheat; a cheat may end its agent.
case $config-$kind in
    bwrap-cheat) ;;
    *) [ -e "$CELL/applied" ] || outcome=broken ;;
esac
if [ "$outcome" = broken ] && [ -z "${KEEP:-}" ]; then
    "$CHEATS_SWARM" logs "$worker" | tail -n 5 | sed "s/^/$worker: /" >&2 || :
fi
echo "$ecosystem $config $kind $name $outcome $(($(date +%s) - start))" >"$CHEATS_WORLD/results/$worker"
if [ -z "${KEEP:-}" ]; then
    "$CHEATS_SWARM" clean "$worker" --discard >/dev/null 2>&1 </dev/null || :
    cd /
    rm -rf "$CELL" 2>/dev/null || :
fi
