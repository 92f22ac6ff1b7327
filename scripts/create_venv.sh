#!/bin/sh
# Create a virtual environment: create_venv.sh FOLDER [PYTHON]
# Without PYTHON, the first of the usual names that runs Python 3.11 or newer is taken.
set -eu

folder=$1
python=${2:-}
is_new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

if [ -z "$python" ]; then
    for name in python3.11 python3.12 python3.13 python3 python; do
        if "$name" -c "$is_new_enough" >/dev/null 2>&1; then
            python=$name
            break
        fi
    done
fi
if [ -z "$python" ]; then
    echo "Sensorium needs Python 3.11 or newer, and none was found. Install one, or name it: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
if ! version=$("$python" -c 'import platform; print(platform.python_version())' 2>&1); then
    echo "PYTHON=$python does not run: $version" >&2
    exit 1
fi
if ! "$python" -c "$is_new_enough"; then
    echo "Sensorium needs Python 3.11 or newer; $python is $version. Name another: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "$python ($version) cannot create virtual environments: its venv or ensurepip module is missing. On Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi
echo "Creating $folder with $python ($version)"
trap 'rm -rf "$folder"; exit 1' INT TERM  # half an environment would be taken for a whole one
"$python" -m venv "$folder" || { rm -rf "$folder"; exit 1; }
