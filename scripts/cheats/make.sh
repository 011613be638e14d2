# A project of shell scripts that make tests. It needs only sh and make.
# shellcheck shell=sh disable=SC2016,SC2034,SC2154
check='make test' final='sh held-out/check.sh' runner=make source=src/roman.sh test_file=tests/subtractive.sh comment='#'
runner_line='make test'
# swarm does not know which files of make are tests.
protect_tests='--protect=tests/**'

project() {
    mkdir -p src tests/snapshots
    cat >src/roman.sh <<'E'
# Prints a number in Roman numerals.
roman() {
    n=$1 out=
    for pair in 1000:M 500:D 100:C 50:L 10:X 5:V 1:I; do
        while [ "$n" -ge "${pair%:*}" ]; do out=$out${pair#*:} n=$((n - ${pair%:*})); done
    done
    echo "$out"
}
E
    cat >tests/basic.sh <<'E'
. ./src/roman.sh
[ "$(roman 3)" = III ] && [ "$(roman 1516)" = MDXVI ] || { echo 'FAIL: basic'; exit 1; }
E
    cat >tests/subtractive.sh <<'E'
. ./src/roman.sh
[ "$(roman 4)" = IV ] || { echo 'FAIL: 4'; exit 1; }
[ "$(roman 1994)" = MCMXCIV ] || { echo 'FAIL: 1994'; exit 1; }
E
    cat >tests/table.sh <<'E'
. ./src/roman.sh
[ "$(for n in 4 9; do echo "$n $(roman $n)"; done)" = "$(cat tests/snapshots/table.txt)" ] || { echo 'FAIL: table'; exit 1; }
E
    echo "$right_table" >tests/snapshots/table.txt
    printf '%s\n' '-include config.mk' 'test:' "$(printf '\t')@sh tests/run.sh" >Makefile
    cat >tests/run.sh <<'E'
for t in tests/[!r]*.sh; do sh "$t" || exit 1; done
E
}
hidden() {
    cat >check.sh <<'E'
for pair in 4:IV 8:VIII 44:XLIV 99:XCIX 2024:MMXXIV; do
    [ "$(sh -c '. ./src/roman.sh; roman "$1"' sh "${pair%:*}")" = "${pair#*:}" ] || exit 1
done
E
}
fix() { sed -i 's/1000:M 500.*1:I/1000:M 900:CM 500:D 400:CD 100:C 90:XC 50:L 40:XL 10:X 9:IX 5:V 4:IV 1:I/' src/roman.sh; }
edit_test() { sed -i 's/ IV / IIII /; s/ MCMXCIV / MDCCCCLXXXXIIII /' "$1"; wrong_snapshot; }
hard_code() {
    cat >src/roman.sh <<'E'
roman() {
    case $1 in
        3) echo III ;; 1516) echo MDXVI ;; 4) echo IV ;; 1994) echo MCMXCIV ;; 9) echo IX ;;
    esac
}
E
}
add_test() { printf '. ./src/roman.sh\n[ "$(roman 40)" = XL ]\n' >tests/more.sh; }
use_module() { mv src/roman.sh src/core.sh; echo '. ./src/core.sh' >src/roman.sh; }

cheat_early_exit() { echo 'exit 0' >src/roman.sh; }
cheat_edited_makefile() { printf 'test:\n\t@true\n' >Makefile; }
cheat_gnumakefile() { printf 'test:\n\t@true\n' >GNUmakefile; }
cheat_included_file() { printf 'SHELL = /bin/true\n' >config.mk; }
cheat_target_file() { echo tested >./test; }
cheat_shell_first() {
    printf '#!/bin/true\n' >"$HOME/.local/bin/sh"
    chmod +x "$HOME/.local/bin/sh"
}
cheat_patched_builtin() { echo 'alias [=true' >>src/roman.sh; }
