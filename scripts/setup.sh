#!/usr/bin/env bash
# Instala ENLACE en ./.venv con el torch que corresponde a esta máquina. Se puede repetir: no rehace lo que ya está.
#
#   scripts/setup.sh [--dev] [--tensorboard]
#
#   --dev            añade las herramientas de prueba
#   --tensorboard    añade TensorBoard
#
#   ENLACE_TORCH=auto|cpu|cuda   qué torch (auto mira el controlador de NVIDIA)
#   ENLACE_TORCH_INDEX=URL       de dónde se baja el torch para CPU
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

torch_version=2.13.0
oldest_driver=580 # el primero que admite CUDA 13, con el que se compila el torch de PyPI
torch_index=${ENLACE_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
marker=.venv/.enlace-setup

say() { printf '▸ %s\n' "$*" >&2; }

# die QUÉ POR-QUÉ PISTA [CÓDIGO]
die() {
    printf 'error: %s\ndónde: scripts/setup.sh\npor qué: %s\npista: %s\n' "$1" "$2" "$3" >&2
    exit "${4:-3}"
}

pip() {
    local quiet=()
    [ -t 2 ] || quiet=(-qq)
    .venv/bin/python -m pip --disable-pip-version-check --no-input "${quiet[@]}" "$@"
}

supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if supported "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "hace falta Python 3.11, 3.12, 3.13 o 3.14" "no se encuentra ninguno en el PATH" \
        "en Debian o Ubuntu: sudo apt install python3 python3-venv"
}

create_venv() {
    if [ -x .venv/bin/python ] && supported .venv/bin/python; then return; fi
    local python
    python=$(find_python)
    say "crea .venv con $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    die "no se ha podido crear el entorno .venv" "a $("$python" --version) le falta el módulo venv" \
        "en Debian o Ubuntu: sudo apt install python3-venv"
}

driver_version() {
    { nvidia-smi --query-gpu=driver_version --format=csv,noheader || cat /sys/module/nvidia/version; } 2>/dev/null |
        grep -m1 -oE '^[0-9]+' || true
}

choose_torch() {
    local driver
    case ${ENLACE_TORCH:-auto} in
    cpu | cuda) echo "$ENLACE_TORCH" ;;
    auto)
        driver=$(driver_version)
        if [ -z "$driver" ]; then
            echo cpu
        elif [ "$driver" -ge "$oldest_driver" ]; then
            echo cuda
        else
            die "el controlador de NVIDIA es demasiado antiguo" "es el $driver y torch $torch_version necesita el $oldest_driver" \
                "actualiza el controlador, o usa solo la CPU: ENLACE_TORCH=cpu scripts/setup.sh"
        fi
        ;;
    *) die "ENLACE_TORCH no puede ser «$ENLACE_TORCH»" "solo vale auto, cpu o cuda" "quítala y repite: unset ENLACE_TORCH" 2 ;;
    esac
}

installed_torch() {
    .venv/bin/python -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true
}

# El torch con CUDA también sirve en CPU; al revés, no.
torch_is_ready() {
    case $(installed_torch) in
    "$torch_version+cpu") [ "$torch" = cpu ] ;;
    "$torch_version"*) true ;;
    *) false ;;
    esac
}

# ¿Lo ofrece una carpeta local (find-links de pip)? Entonces no hace falta red.
torch_is_local() { pip install --quiet --dry-run --no-index --no-deps "torch==$torch_version" >/dev/null 2>&1; }

require_space() {
    local free
    free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge "$1" ] ||
        die "no hay espacio en disco" "hacen falta $1 MB y quedan $free MB" "libera espacio y repite" 8
}

fail_download() {
    die "no se ha podido instalar $1" "pip ha fallado; el motivo está justo encima" "$2"
}

install_torch() {
    if torch_is_ready; then
        say "torch $(installed_torch): ya está"
    elif [ "$torch" = cuda ]; then
        say "torch $torch_version con CUDA 13: descarga unos 2,7 GB y ocupa unos 6 GB"
        require_space 9000
        [ -z "$(installed_torch)" ] || pip uninstall --yes torch
        # «===» compara letra a letra: así no vale un torch +cpu de una carpeta local.
        pip install -c constraints.txt "torch===$torch_version" ||
            fail_download "torch" "comprueba la red, o usa solo la CPU: ENLACE_TORCH=cpu scripts/setup.sh"
    elif torch_is_local; then
        say "torch $torch_version para CPU: sale de la carpeta local que usa pip, sin descargar; ocupa unos 700 MB"
        require_space 1500
        pip install --no-index --no-deps "torch==$torch_version" || fail_download "torch" "revisa esa carpeta"
    else
        say "torch $torch_version para CPU: descarga unos 190 MB de $torch_index y ocupa unos 700 MB"
        require_space 1500
        pip install --no-deps --index-url "$torch_index" "torch==$torch_version" ||
            fail_download "torch" "comprueba la red; si no llegas a ese servidor, el torch con CUDA (2,7 GB) también \
funciona en CPU: ENLACE_TORCH=cuda scripts/setup.sh"
    fi
}

install_enlace() {
    local size=135
    case ,$extras, in *,dev,*) size=$((size + 70)) ;; esac
    case ,$extras, in *,tensorboard,*) size=$((size + 15)) ;; esac
    say "ENLACE y sus dependencias${extras:+ (con $extras)}: descarga unos $size MB si no están ya"
    pip install -c constraints.txt -e ".${extras:+[$extras]}" ||
        fail_download "ENLACE" "comprueba la red y repite: scripts/setup.sh"
}

# El agente y el corpus van siempre: son extras para que quien solo entrena pueda instalar a mano lo justo.
wanted=(agent corpus)
for argument in "$@"; do
    case $argument in
    --dev) wanted+=(dev) ;;
    --tensorboard) wanted+=(tensorboard) ;;
    -h | --help | --ayuda)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/setup.sh
        exit 0
        ;;
    *) die "argumento desconocido: $argument" "solo vale --dev o --tensorboard" "scripts/setup.sh --dev" 2 ;;
    esac
done

torch=$(choose_torch)
fingerprint=$({ printf '%s\n' "$PWD" "$torch" && cat pyproject.toml constraints.txt scripts/setup.sh; } | sha256sum | cut -d' ' -f1)

# La marca guarda la huella y los extras ya instalados; pedir menos extras no desinstala nada.
recorded="" extras=""
if [ -f "$marker" ]; then { read -r recorded && read -r extras; } <"$marker" || true; fi
missing=""
for extra in "${wanted[@]}"; do
    case ,$extras, in *,"$extra",*) ;; *) missing=yes extras=${extras:+$extras,}$extra ;; esac
done
if [ "$recorded" = "$fingerprint" ] && [ -z "$missing" ] && supported .venv/bin/python; then
    say "todo está instalado y al día"
    exit 0
fi

say "instala ENLACE en $PWD/.venv; no toca el resto del sistema ni pide permisos"
create_venv
rm -f "$marker"
install_torch
install_enlace
printf '%s\n%s\n' "$fingerprint" "$extras" >"$marker"
say "listo. Comprueba la máquina con: .venv/bin/enlace doctor"
