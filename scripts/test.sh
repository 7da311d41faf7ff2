#!/usr/bin/env bash
# Comprueba ENLACE entero: formato, tipos, pisos, configuraciones y pruebas. Lo instala todo si falta.
#
#   scripts/test.sh [--long] [argumentos de pytest]
#
#   --long    repite más veces las pruebas aleatorias (cortes, reanudaciones, formatos)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

case ${1:-} in
-h | --help | --ayuda)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/test.sh
    exit 0
    ;;
--long)
    export ENLACE_LONG=1
    shift
    ;;
esac
# Un hilo por proceso: las pruebas ya se reparten entre los núcleos.
export OMP_NUM_THREADS=1

step() {
    printf '▸ %s\n' "$1" >&2
    shift
    "$@"
}

# Con TensorBoard, para que su prueba no se salte.
scripts/setup.sh --dev --tensorboard
python=.venv/bin/python
step "estilo" "$python" -m ruff check --quiet .
step "formato" "$python" -m ruff format --quiet --check .
step "tipos" "$python" -m mypy
step "pisos" .venv/bin/lint-imports --no-logo
step "configuraciones" .venv/bin/enlace config check
step "pruebas" "$python" -m pytest -q -rs -n logical --dist worksteal "$@"
