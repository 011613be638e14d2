#!/bin/sh
# A fake agent for tests. It executes the commands that it reads from a FIFO.
#
#   fake-agent.sh DIR [ARG...]
#
# DIR/ctl is the FIFO, which the test keeps open. Each run appends "start N PID" to DIR/runs and writes its arguments to
# DIR/args.N. If standard input is not a terminal, it writes that input to DIR/prompt.N. Then it executes one command per line:
#   print TEXT    exit CODE    signal NAME    ask (reads a line from the terminal into DIR/asked.N)
#   run COMMAND (in this shell: $dir and $n are DIR and N)
set -u
dir=$1
shift
n=1
[ ! -e "$dir/runs" ] || while read -r word _; do [ "$word" != start ] || n=$((n + 1)); done <"$dir/runs"
echo "start $n $$" >>"$dir/runs"
for arg in "$@"; do printf '%s\n' "$arg"; done >"$dir/args.$n"
[ -t 0 ] || cat >"$dir/prompt.$n"
echo "ready $n" >>"$dir/runs"
exec 3<>"$dir/ctl"
while read -r verb rest <&3; do
    case $verb in
        print) printf '%s\n' "$rest" ;;
        ask)
            read -r line </dev/tty
            printf '%s\n' "$line" >"$dir/asked.$n"
            ;;
        run) eval "$rest" ;;
        exit)
            echo "end $n $rest" >>"$dir/runs"
            exit "$rest"
            ;;
        signal)
            echo "end $n $rest" >>"$dir/runs"
            kill -s "$rest" $$
            ;;
        *) echo "fake-agent: what is '$verb'?" >&2 ;;
    esac
done
