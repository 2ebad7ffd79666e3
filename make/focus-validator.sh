#!/bin/sh
# The FinOps Foundation's validator of FOCUS datasets, in a virtual environment in the clone. Prints
# the Python that has it, or nothing where there is no Python 3.12 or newer, or it cannot be
# fetched.
set -eu

folder=$PWD/target/focus-validator
if [ ! -e "$folder/ready" ]; then
    found=""
    # pyenv's are not in the PATH by their names unless somebody chose them.
    for python in python3.12 python3.13 python3.14 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
        "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue
        found=$python
        break
    done
    [ -n "$found" ] || exit 0
    rm -rf "$folder"
    # Its own bounds ask for a numpy that Python 3.13 has not, so what it needs is named here.
    { "$found" -m venv "$folder" &&
        "$folder/bin/python" -m pip install --quiet --no-compile --only-binary :all: \
            'pandas>=2,<3' tabulate 'pyarrow>=17' 'pydantic>=2.12,<3' pyyaml requests 'pandera>=0.26.1,<0.27' \
            'multimethod>=2.0,<2.1' 'sqlglot>=27.28.1,<28' 'jsonschema>=4.25.1' 'pytz>=2025.2' 'polars>=1.34,<2' \
            'ddt>=1.7.1' 'duckdb>=1.4.1,<2' 'graphviz>=0.21' sqlalchemy &&
        "$folder/bin/python" -m pip install --quiet --no-compile --no-deps pandasql==0.7.3 focus-validator==2.2.1; } >&2 ||
        { echo "focus-validator cannot be fetched: FOCUS datasets are not held against it" >&2; exit 0; }
    touch "$folder/ready"
fi
echo "$folder/bin/python"
