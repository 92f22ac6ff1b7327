#!/bin/sh
# See that the system packages that some parts need are there: install_system.sh PYTHON
# OpenAL is the sound of ViZDoom; bubblewrap isolates code that nobody trusts. Installs them where apt-get and the
# right to use it are at hand; where not, says what to install and ends well, because everything else works.
set -eu

python=$1

has_openal() {
    "$python" -c 'import sys; from ctypes.util import find_library; sys.exit(find_library("openal") is None)'
}

has_bubblewrap() {
    command -v bwrap >/dev/null 2>&1
}

# see_to NAME TEST PACKAGE PURPOSE HOW
see_to() {
    if "$2"; then return 0; fi
    if install_with_apt "$3" "$4" && "$2"; then return 0; fi
    echo "$4 needs $1, which is missing and could not be installed. Install it: $5." >&2
}

install_with_apt() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true >/dev/null 2>&1 || return 1
        as_root="sudo -n"
    fi
    echo "Installing the system package $1 ($2)"
    {
        $as_root apt-get update -qq &&
            $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"
    } >/dev/null
}

see_to OpenAL has_openal libopenal1 "The sound of ViZDoom" \
    "apt-get install libopenal1 (Debian, Ubuntu), dnf install openal-soft (Fedora), brew install openal-soft (macOS)"
see_to bubblewrap has_bubblewrap bubblewrap "Running untrusted code in a sandbox" \
    "apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)"
