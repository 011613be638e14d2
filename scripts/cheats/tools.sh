#!/bin/sh
# Finds the tools of ecosystems: tools.sh CACHE ECOSYSTEM... Prints for each a line `ECOSYSTEM path DIRS`, with the entries of
# the PATH that come before the caller's, or `ECOSYSTEM REASON` if it is not available. Installs pytest into CACHE.
set -eu
cache=$1
shift
pytest=pytest==8.3.5

have() { command -v "$1" >/dev/null 2>&1; }
python_of() { python3 -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null; }
for ecosystem in "$@"; do
    found=''
    case $ecosystem in
        make) if have make; then found='path '; else found='no make on the PATH'; fi ;;
        node) if have node && have npm; then found='path '; else found='no node and npm on the PATH'; fi ;;
        cargo)
            # Without the proxies of rustup, which need the real HOME.
            if found=$(rustc --print sysroot 2>/dev/null); then found="path $found/bin"; else found='no rustc on the PATH'; fi
            ;;
        unittest) if found=$(python_of); then found="path $(dirname "$found")"; else found='no python3 on the PATH'; fi ;;
        pytest)
            venv=$cache/$pytest
            if ! python=$(python_of); then
                found='no python3 on the PATH'
            elif [ -e "$venv/complete" ] || {
                rm -rf "$venv"
                mkdir -p "$cache"
                "$python" -m venv "$venv" >&2 &&
                    "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 "$pytest" >&2 &&
                    "$venv/bin/pip" uninstall -qy --disable-pip-version-check pip setuptools >&2 &&
                    touch "$venv/complete"
            }; then
                found="path $venv/bin"
            else
                found="PyPI cannot be reached: pytest is not installed in $cache"
            fi
            ;;
    esac
    echo "$ecosystem $found"
done
