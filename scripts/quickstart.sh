#!/usr/bin/env bash
# De un clon recién hecho a un modelo propio: instala, prepara texto en español, entrena, evalúa y escribe.
# Se puede repetir: cada parte aprovecha lo que ya está hecho, y un entrenamiento a medias sigue donde quedó.
#
#   scripts/quickstart.sh [CARPETA] [-- clave=valor…]
#
#   CARPETA        tus textos (.txt, .md o .jsonl); sin ella se descarga prosa en español
#   clave=valor    cambios a configs/runs/smoke-cpu.yaml, por ejemplo train.steps=2000
set -euo pipefail
launched_from=$PWD
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

run=configs/runs/smoke-cpu.yaml
enlace=.venv/bin/enlace
source_folder=()

say() { printf '\n▸ %s\n' "$*" >&2; }

# die QUÉ POR-QUÉ PISTA CÓDIGO
die() {
    printf 'error: %s\ndónde: scripts/quickstart.sh\npor qué: %s\npista: %s\n' "$1" "$2" "$3" >&2
    exit "$4"
}

while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    -h | --help | --ayuda)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/quickstart.sh
        exit 0
        ;;
    -*) die "no existe la opción $1" "solo hay --ayuda" "mírala con: scripts/quickstart.sh --ayuda" 2 ;;
    [a-z]*.*=* | name=*) die "sobra «$1»" "los cambios van detrás de --" "scripts/quickstart.sh -- $1" 2 ;;
    /*) source_folder+=("$1") ;;
    *) source_folder+=("$launched_from/$1") ;;
    esac
    shift
done
[ ${#source_folder[@]} -le 1 ] ||
    die "sobra «${source_folder[1]}»" "solo se admite una carpeta" "si su nombre lleva espacios, ponlo entre comillas" 2
[ -d "${source_folder[0]-.}" ] ||
    die "no existe la carpeta" "${source_folder[0]}" "da una carpeta con textos .txt, .md o .jsonl" 5
[ $# -eq 0 ] || shift
overrides=("$@")

# Nada de lo que sigue puede quedarse esperando a que alguien escriba.
exec </dev/null

say "1/4 Instalación"
scripts/setup.sh
run_json=$("$enlace" config show "$run" "${overrides[@]}" --json)
run_folder=$(.venv/bin/python -c 'import json, sys; run = json.load(sys.stdin); print(run["runs_dir"], run["name"], sep="/")' \
    <<<"$run_json")

say "2/4 Texto en español"
scripts/prepare_smoke_data.sh "${source_folder[@]}"

say "3/4 Entrenamiento: unos minutos en CPU. Con Ctrl-C para y guarda; repite la orden para seguir"
"$enlace" train "$run" "${overrides[@]}" --resume auto
if [ ! -f "$run_folder/informe.md" ]; then
    say "El entrenamiento se ha parado antes de terminar y está guardado; para seguir repite: scripts/quickstart.sh"
    exit 0
fi

say "4/4 Un texto escrito por tu modelo"
"$enlace" generate "$run_folder/model"

say "Hecho"
sed -n '/^## Resultado/,/^~~~/{/^| [^|]/p}' "$run_folder/informe.md"
printf '%s\n' "modelo: $run_folder/model" "informe: $run_folder/informe.html" \
    "más texto: $enlace generate $run_folder/model --prompt \"Había una vez\" --seed 2"
