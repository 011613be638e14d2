#!/bin/sh
# Measures what supervision costs: starts workers on a private tmux server and prints tables.
#
#   bench.sh [--quick] [N...]   numbers of workers to measure, ascending [default: 1 10 100 300]
#
# SWARM is the program to measure [default: target/release/swarm]. --quick takes a few samples of each measurement, to check
# that the script works; its numbers mean nothing. A full run takes about twelve minutes, most of it waiting.
#
# The CPU time is the kernel scheduler's count for all threads of swarm's daemon, its control client and the tmux server. All
# values that are compared come from the same run and the same panes. The baseline is measured before and after swarm, so that
# other work on the machine affects both. If panes print, the tmux server works even when nobody watches them. The script
# measures that work with swarm stopped, prints it in its own column, and subtracts it from both sides of the ratio.
set -eu
cd "$(dirname "$0")/.."
helper=$PWD/scripts/bench.pl
SWARM=${SWARM:-$PWD/target/release/swarm}

quick=
[ "${1-}" != --quick ] || { quick=1; shift; }
sizes=${*:-${quick:+2}}
sizes=${sizes:-1 10 100 300}
if [ -n "$quick" ]; then
    long=1 brief=1 short=1 rest=0.3 settle=0.5 still=0.5 polls=4 runs=3 iterations=3 kills=3 captures=400 idle=0.5
else
    # Each pane is captured once in five minutes whatever happens, each at its own moment. So of many panes any window
    # holds its share of that; of few it may hold none, where nobody looks for a microsecond.
    long=40 brief=24 short=16 rest=4 polls=300 runs=60 iterations=17 kills=100 captures=100000 still=12 settle=4 idle=12
fi

[ -x "$SWARM" ] || { echo "bench.sh: no program at $SWARM (cargo build --release, or set SWARM)" >&2; exit 1; }
world=$(mktemp -d /tmp/swarm-bench-XXXXXX)
daemon='' server='' printer=''

# Ends what was started here, each by its pid or its socket, and nothing else.
clean() {
    trap '' INT TERM
    stop_printing
    [ -z "$daemon" ] || kill -CONT "$daemon" 2>/dev/null || true
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    tmux -S "$world/swarm/tmux.sock" kill-server 2>/dev/null || true
    [ -z "$daemon" ] || while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
    rm -rf "$world"
}
stop_printing() {
    [ -z "$printer" ] || { kill "$printer" 2>/dev/null || true; wait "$printer" 2>/dev/null || true; }
    printer=''
}
trap clean EXIT
trap 'exit 130' INT TERM

mkdir "$world/home" "$world/work"
export HOME="$world/home" SWARM_DIR="$world/swarm" TMUX_TMPDIR="$world"
unset TMUX TMUX_PANE XDG_CONFIG_HOME
cd "$world/work"

swarm() { "$SWARM" "$@" </dev/null; }
ask() { perl "$helper" "$@"; }
note() { [ ! -t 2 ] || printf '%s\r' "$*" >&2; }
tmux_ours() { tmux -S "$SWARM_DIR/tmux.sock" "$@"; }
# awk 'expression of its arguments a, b, …', printed.
calc() {
    awk "BEGIN { split(\"$2\", x, \" \"); a=x[1]; b=x[2]; c=x[3]; d=x[4]; e=x[5]; f=x[6]; g=x[7]; $1 }"
}

# ---- what was used by whom ----

# The control client: the daemon's only child while nothing happens.
client_pid() { ask children "$daemon" | head -n 1; }

# Nanoseconds: wall, daemon, control client, server; and what the daemon's reaped children used, in faults.
used() {
    client=$(client_pid)
    echo "$(date +%s%N) $(ask cpu "$daemon") $(ask cpu ${client:+"$client"}) $(ask cpu "$server")" \
        "$(awk '{ sub(/.*\) /, ""); print $9 }' "/proc/$daemon/stat")"
}

# Microseconds per worker and 2 s tick: daemon, control client, server; and whether the daemon ran processes.
watched() {
    before=$(used)
    sleep "$2"
    calc 'ticks = (f - a) / 2e9 * '"$1"' * 1000
        printf "%.1f %.1f %.1f %s", (g-b)/ticks, (x[8]-c)/ticks, (x[9]-d)/ticks, x[10] == e ? "none" : "some"' \
        "$before $(used)"
}

# The same for the server alone, while swarm stands still.
unwatched() {
    before="$(date +%s%N) $(ask cpu "$server")"
    sleep "$2"
    calc 'printf "%.1f", (d - b) / ((c - a) / 2e9 * '"$1"' * 1000)' "$before $(date +%s%N) $(ask cpu "$server")"
}

# One tmux process per worker and tick, $2 ticks one after the other. Microseconds per worker and tick: the
# processes, the server meanwhile; and the seconds that one round of captures took.
polled() {
    before="$(date +%s%N) $(ask cpu "$server")"
    (
        for _ in $(seq "$2"); do
            for pane in $panes; do tmux_ours capture-pane -p -t "$pane" >/dev/null; done
        done
        times >"$world/times"
    )
    # The second line, of the children: 0m1.230000s 0m0.450000s
    children=$(tail -n 1 "$world/times" | tr 'ms' '  ' | awk '{ print ($1 + $3) * 60 + $2 + $4 }')
    calc 'n = '"$1 * $2"'; printf "%.1f %.1f %.2f", e * 1e6 / n, (d - b) / 1e3 / n, (c - a) / 1e9 / '"$2" \
        "$before $(date +%s%N) $(ask cpu "$server") $children"
}

# ---- the table of CPU ----

# One row: N workers of which some print.
cpu_row() {
    workers=$1 word=$2 printing=$3 seconds=$4
    if [ "$printing" -gt 0 ]; then
        # Word splitting is wanted: a list of terminals.
        # shellcheck disable=SC2046
        perl "$helper" print $(tmux_ours list-panes -s -t =swarm: -F '#{pane_tty}' | head -n "$printing") &
        printer=$!
        sleep "$rest"
    fi
    rounds=$(calc 'n = int(a / b); print n < 1 ? 1 : n' "$polls $workers")
    kill -STOP "$daemon"
    alone_a=$(unwatched "$workers" "$rest") base_a=$(polled "$workers" "$rounds")
    kill -CONT "$daemon"
    sleep "$settle"
    ours=$(watched "$workers" "$seconds")
    kill -STOP "$daemon"
    base_b=$(polled "$workers" "$rounds") alone_b=$(unwatched "$workers" "$rest")
    kill -CONT "$daemon"
    stop_printing
    # While the base line is taken the panes print too: for as long as it takes, not for a tick.
    echo "$workers $word $ours $alone_a $alone_b $base_a $base_b" | awk '{
        alone = ($7 + $8) / 2
        base = ($9 + $10 + $12 + $13) / 2 - alone * ($11 + $14) / 4
        swarm = $3 + $4 + $5
        # Of an idle server there is nothing to take off but noise.
        net = $2 == "idle" ? swarm : swarm - alone
        printf "%7d  %-8s %9.0f %9.1f = %6.1f + %5.1f + %7.1f %9.1f %7.0fx  %s\n",
            $1, $2, base + ($2 == "idle" ? 0 : alone), swarm, $3, $4, $5, alone, base / net, $6
    }'
}

# ---- the rest, with N workers beside ----

quick_row() {
    workers=$1 file=$world/gaps-$1
    swarm spawn --name "loop$workers" --ralph --prompt-file "$world/PROMPT.md" -n "$iterations" -- \
        sh "$world/agent.sh" "$file" >"$world/follow" || { cat "$world/follow"; exit 1; }
    start=$(ask gaps "$file" | ask spread)
    status=$(ask time "$runs" "$SWARM" status w1 | ask spread)
    ls=$(ask time "$runs" "$SWARM" ls | ask spread)
    wrapper=$(tmux_ours list-panes -s -t =swarm: -F '#{pane_pid}' | head -n 1)
    echo "$workers $start $status $ls $(ask memory VmRSS "$daemon") $(ask memory VmHWM "$daemon")" \
        "$(ask memory RssAnon "$wrapper") $(ask memory VmRSS "$server")" | awk '{
        printf "%7d %9.1f %6.1f %9.1f %6.1f %9.1f %6.1f %10.1f %6.1f %12.2f %10.1f\n",
            $1, $2, $3, $4, $5, $6, $7, $8 / 1024, $9 / 1024, $10 / 1024, $11 / 1024
    }'
}

# How often each of these processes woke up, a second, in one and the same while.
woken() {
    before=$(for pid in "$@"; do ask switches "$pid"; done)
    sleep "$still"
    for pid in "$@"; do ask switches "$pid"; done | awk -v before="$before" '
        BEGIN { split(before, was, "\n") }
        { printf("%s%.2f", (NR > 1 ? " " : ""), ($1 - was[NR]) / '"$still"') }'
}

# ---- the run ----

echo 'Do the task.' >"$world/PROMPT.md"
cat >"$world/agent.sh" <<'END'
echo "start $(date +%s%N)" >>"$1"
echo working
echo "end $(date +%s%N)" >>"$1"
END

echo "machine   $(nproc) x $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(uname -sr)"
echo "versions  $(swarm --version), $(tmux -V)"
echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg) at $(date '+%F %T')"
[ -z "$quick" ] || echo 'quick     a few samples only: the numbers say nothing'

swarm daemon start >/dev/null
daemon=$(head -n 1 "$SWARM_DIR/daemon.lock")
sleep "$settle"
nothing=$(woken "$daemon")

made=0
quick_rows=''
echo
echo 'CPU, microseconds per worker and tick of 2 s'
echo "capture: a tmux capture-pane process per worker and tick, with the server; unwatched: the server, swarm stopped"
echo '      N  printing   capture     swarm = daemon + client +  server unwatched    ratio  processes'
for workers in $sizes; do
    while [ "$made" -lt "$workers" ]; do
        made=$((made + 1))
        note "worker $made"
        swarm spawn --name "w$made" -- sleep 1000000 >/dev/null
    done
    server=$(tmux_ours display-message -p '#{pid}')
    panes=$(tmux_ours list-panes -s -t =swarm: -F '#{pane_id}')
    # Until none is looked at more often for being new.
    sleep "$rest"
    note "$workers workers"
    window=$long
    [ "$workers" -ge 100 ] || window=$brief
    cpu_row "$workers" idle 0 "$window"
    [ "$workers" -lt 10 ] || cpu_row "$workers" '10%' $((workers / 10)) "$window"
    cpu_row "$workers" all "$workers" "$short"
    quick_rows="$quick_rows$(quick_row "$workers")
"
done

echo
echo 'milliseconds (exit: from an agent'\''s last act to the next one'\''s first; status, ls: the whole process) and MB'
echo '      N  exit->start   p90    status    p90        ls    p90     daemon   peak      wrapper     server'
printf '%s' "$quick_rows"

echo
ask captures "$SWARM_DIR/swarm.sock" w1 $((captures / 20))
before=$(ask memory VmRSS "$server") cpu_before=$(ask cpu "$server")
ask captures "$SWARM_DIR/swarm.sock" w1 "$captures"
after=$(ask memory VmRSS "$server") cpu_after=$(ask cpu "$server")
echo "captures  $captures of one pane by the daemon: server $before -> $after kB," \
    "$(calc 'printf "%.0f", (b - a) / 1000 / c' "$cpu_before $cpu_after $captures") us of it each"

ask kills "$SWARM" "$SWARM_DIR/swarm.sock" "$kills" >"$world/kills"
echo "kills     $(grep -cv wrong "$world/kills") of $kills with the right code or signal," \
    "known after $(ask spread <"$world/kills" | sed 's/ / ms (median), /') ms (p90)," \
    "$(awk '$1 > 50 { late++ } END { print late + 0 }' "$world/kills") after more than 50 ms"
grep wrong "$world/kills" || true

# Word splitting is wanted: a list of names.
# shellcheck disable=SC2046
swarm kill $(swarm ls --format names) >/dev/null
# Threads that wait for work end after ten seconds, and take their counts with them.
sleep "$idle"
echo "wake-ups  $nothing a second before the first worker;" \
    "after the last: $(woken "$daemon" "$server" | sed 's/\(.*\) /daemon \1, tmux server /')"
echo "load      $(cut -d ' ' -f 1-3 /proc/loadavg) at $(date '+%F %T')"
