#!/usr/bin/env bash
# Deja en data/smoke unos megas de prosa en español para la primera corrida. Se puede repetir: no rehace lo que ya está.
#
#   scripts/prepare_smoke_data.sh [--rehacer] [CARPETA]
#
#   CARPETA      tus propios textos (.txt, .md o .jsonl): sustituyen a lo que hubiera y no se descarga nada
#   --rehacer    lo hace otra vez aunque ya esté
#
# Sin CARPETA prueba, en orden: títulos en español de Project Gutenberg, y paquetes de Debian con texto en español, que
# descarga y desempaqueta en una carpeta temporal sin instalarlos. No hace falta ser root. Nunca pregunta nada.
set -euo pipefail
launched_from=$PWD
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

target=data/smoke
# Comprobados en su catálogo: El Lazarillo, el Quijote, Doña Perfecta, Fortunata y Jacinta, La Regenta, Marianela,
# El sombrero de tres picos y Niebla. Si un número dejara de ser el que era, el libro se salta por su cabecera.
gutenberg_ids=(320 2000 15725 17013 17073 17340 29506 49836)
gutenberg_megabytes=9
reasons=()

say() { printf '▸ %s\n' "$*" >&2; }

# die QUÉ POR-QUÉ PISTA [CÓDIGO]
die() {
    printf 'error: %s\ndónde: scripts/prepare_smoke_data.sh\npor qué: %s\npista: %s\n' "$1" "$2" "$3" >&2
    exit "${4:-1}"
}

corpus() { .venv/bin/python -m enlace.corpus.smoke "$@"; }

# not_used ORIGEN MOTIVO: lo apunta para contarlo y deja paso al siguiente.
not_used() {
    reasons+=("$1: $2")
    say "no se usa $1: $2"
    return 1
}

last_line() { grep -v '^W:' -- "$1" | tail -n 1; }

read_arguments() {
    folder='' replace=''
    local argument
    for argument in "$@"; do
        case $argument in
        --rehacer) replace=--rehacer ;;
        -h | --help | --ayuda)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/prepare_smoke_data.sh
            exit 0
            ;;
        -*) die "no existe la opción $argument" "solo hay --rehacer y --ayuda" "mírala con: scripts/prepare_smoke_data.sh --ayuda" 2 ;;
        *)
            [ -z "$folder" ] || die "sobra «$argument»" "solo se admite una carpeta" "si su nombre lleva espacios, ponlo entre comillas" 2
            folder=$argument
            ;;
        esac
    done
    if [ -n "$folder" ] && [ "${folder#/}" = "$folder" ]; then folder=$launched_from/$folder; fi
}

already_there() {
    [ -e "$target" ] && [ -z "$replace" ] || return 1
    corpus comprobar "$target" || die "data/smoke está dañado" "lo dice el error de arriba" \
        "rehazlo con: scripts/prepare_smoke_data.sh --rehacer" 7
    say "ya está y es correcto: no se hace nada (para rehacerlo: --rehacer)"
}

# publish ORIGEN ENTRADA: convierte lo descargado en documentos. Solo un texto que no sirve (5, 7) deja probar otro
# origen: con el disco lleno, por ejemplo, no lo arregla ninguno.
publish() {
    local code=0
    corpus "$1" "$2" "$target" ${replace:+"$replace"} || code=$?
    case $code in
    0) ;;
    5 | 7) return 1 ;;
    *) exit "$code" ;;
    esac
}

from_folder() {
    [ -d "$folder" ] || die "no existe la carpeta" "$folder" "da una carpeta con textos .txt, .md o .jsonl" 5
    say "usa los textos de $folder, en vez de lo que hubiera en $target; no descarga nada"
    corpus carpeta "$folder" "$target" --rehacer
}

from_gutenberg() {
    say "prueba Project Gutenberg: ${#gutenberg_ids[@]} libros en español, unos $gutenberg_megabytes MB"
    mkdir -- "$work/gutenberg"
    download_books "$work/gutenberg" 2>"$work/log" || { not_used "Project Gutenberg" "$(last_line "$work/log")"; return 1; }
    publish gutenberg "$work/gutenberg" || not_used "Project Gutenberg" "lo descargado no sirve"
}

# Al primer fallo de conexión lo deja: sin red se sabe en segundos. Sirve con los libros que hayan llegado.
download_books() {
    .venv/bin/python - "$1" "${gutenberg_ids[@]}" <<'PYTHON'
import sys, time, urllib.error, urllib.request
from pathlib import Path

folder, numbers = Path(sys.argv[1]), sys.argv[2:]
deadline = time.monotonic() + 120
received, reason = 0, "ningún libro disponible"
for number in numbers:
    url = f"https://www.gutenberg.org/cache/epub/{number}/pg{number}.txt"
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            content = bytearray()
            while chunk := response.read(1 << 16):
                content += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError("va demasiado despacio")
        (folder / f"{number}.txt").write_bytes(content)
        received += 1
    except urllib.error.HTTPError as error:
        reason = f"{url}: {error.code}"
    except (OSError, ValueError) as error:
        reason = f"no se llega a www.gutenberg.org ({getattr(error, 'reason', error)})"
        break
if not received:
    sys.exit(reason)
PYTHON
}

# from_debian PAQUETE ORIGEN
from_debian() {
    local size
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        not_used "el paquete de Debian $1" "no hay apt-get y dpkg-deb"
        return 1
    fi
    size=$(package_size "$1")
    if [ -z "$size" ]; then
        not_used "el paquete de Debian $1" "apt no lo conoce (si sus listas están vacías: sudo apt-get update)"
        return 1
    fi
    say "prueba el paquete de Debian $1: descarga $size MB y lo desempaqueta sin instalarlo"
    mkdir -- "$work/$1"
    download_package "$1" >"$work/log" 2>&1 </dev/null || { not_used "el paquete de Debian $1" "$(last_line "$work/log")"; return 1; }
    publish "$2" "$work/$1" || not_used "el paquete de Debian $1" "lo descargado no sirve"
}

# Con las listas vacías (imágenes de contenedor) y siendo root, las actualiza antes.
package_size() {
    if [ "$(id -u)" -eq 0 ] && ! apt-cache show "$1" >/dev/null 2>&1; then
        say "actualiza las listas de apt para encontrar $1 (unos 10 MB)"
        apt-get "${apt_options[@]}" update >/dev/null 2>&1 </dev/null || true
    fi
    { LC_ALL=C apt-cache show --no-all-versions "$1" 2>/dev/null || true; } |
        awk '/^Size:/ { printf "%.1f", $2 / 1e6; exit }' | tr . ,
}

download_package() (
    cd -- "$work/$1" && apt-get "${apt_options[@]}" download "$1" && dpkg-deb -x ./*.deb .
)

apt_options=(-q -o Acquire::Retries=1 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10)

main() {
    read_arguments "$@"
    [ -x .venv/bin/python ] || die "ENLACE no está instalado" "falta .venv" "ejecuta antes: scripts/setup.sh" 3
    if [ -n "$folder" ]; then
        from_folder
        return
    fi
    if already_there; then return; fi
    work=$(mktemp -d)
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    from_gutenberg || from_debian sword-text-sparv sword || from_debian libreoffice-help-es ayuda ||
        die "no se ha podido conseguir texto en español" "$(printf '%s\n' "${reasons[@]}" | sed '2,$s/^/         /')" \
            "da una carpeta con tus textos: scripts/prepare_smoke_data.sh CARPETA" 5
}

main "$@"
