#!/bin/sh
# Runs the fuzz targets in sequence and prints one line for each. Requires a nightly toolchain and cargo-fuzz
# (cargo install cargo-fuzz). Failing inputs are saved in target/fuzz/finds. For each of them, add a test with its bytes to
# src/fuzzing/tests.rs.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]     seconds for each target [default: 300], and targets [default: all]
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-300}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- protocol_line control_stream screen state_file session_stop

out=$PWD/target/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# Known inputs to start from: the golden lines one by one, the stored files, and screens behind what chooses
# profile, size, pattern, prompt and the screen before.
seed() {
    mkdir -p "$work/$1"
    case $1 in
    protocol_line)
        i=0
        cat tests/golden/*.jsonl | while IFS= read -r line; do
            i=$((i + 1))
            printf '%s' "$line" >"$work/$1/$i"
        done
        ;;
    control_stream)
        printf '\020%%begin 1 2 1\n%%7:4242:1700000000:0:::80:24:1:0\n%%end 1 2 1\n' >"$work/$1/list"
        printf '\003%%begin 1 2 1\n200:50:0:12:0:9:0\n%%end 1 2 1\n%%exit\n' >"$work/$1/about"
        printf '\001%%begin 1 2 0\n%%error 1 2 0\n%%begin 5 6 1\n\\303\\251 \\t\\\\\n%%end 5 6 1\n' >"$work/$1/escaped"
        ;;
    screen)
        find state/fixtures/screens -type f | while IFS= read -r file; do
            {
                printf '\001\310\062TASK_(DONE|OVER)\000do it, then print TASK_DONE\000\000'
                cat "$file"
            } >"$work/$1/$(echo "$file" | tr / _)"
        done
        ;;
    state_file)
        find state/fixtures/v0 state/fixtures/v1 -type f | while IFS= read -r file; do
            cp "$file" "$work/$1/$(echo "$file" | tr / _)"
        done
        ;;
    session_stop)
        cp state/fixtures/stops/* "$work/$1/"
        ;;
    *)
        echo "no seeds for $1" >&2
        exit 2
        ;;
    esac
}

# No sanitizer: nothing here is unsafe. What is looked for are panics, overflows, hangs and memory.
cargo +nightly fuzz build --sanitizer none --fuzz-dir tests/fuzz --target-dir "$out"
host=$(rustc -vV | sed -n 's/^host: //p')

status=0
summary=''
for target; do
    seed "$target"
    mkdir -p "$out/corpus/$target" "$out/finds"
    log=$work/$target.log
    echo "== $target, $seconds s"
    if "$out/$host/release/$target" "$out/corpus/$target" "$work/$target" -artifact_prefix="$out/finds/$target-" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 >"$log" 2>&1; then
        verdict=none
    else
        verdict=FOUND
        status=1
        grep -a -A 8 -e 'panicked at' -e 'ERROR:' "$log" | cut -c -2000
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    cover=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    summary="$summary$(printf '%-16s %6s s %12s runs   cover %-6s finds: %s' \
        "$target" "$seconds" "${runs:-?}" "${cover:-?}" "$verdict")
"
done
printf '%s' "$summary"
exit "$status"
