#!/bin/sh
# See that the system library OpenAL is there: install_openal.sh PYTHON
# ViZDoom needs it for sound. Installs it where apt-get and the right to use it are at hand; where not, says
# which package to install and ends well, because everything without sound works.
set -eu

python=$1

is_installed() {
    "$python" -c 'import sys; from ctypes.util import find_library; sys.exit(find_library("openal") is None)'
}

say_what_to_do() {
    echo "The sound of ViZDoom needs the system library OpenAL, $1. Install it: apt-get install libopenal1 (Debian, Ubuntu), dnf install openal-soft (Fedora), brew install openal-soft (macOS)." >&2
    exit 0
}

is_installed && exit 0
command -v apt-get >/dev/null 2>&1 || say_what_to_do "which is missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true >/dev/null 2>&1 || say_what_to_do "which is missing, and installing it needs root"
    as_root="sudo -n"
fi
echo "Installing the system library libopenal1 (the sound of ViZDoom)"
{
    $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libopenal1
} >/dev/null || say_what_to_do "which apt-get could not install"
is_installed || say_what_to_do "which is still not found"
