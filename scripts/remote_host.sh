#!/usr/bin/env bash
# La mitad de scripts/remote.sh que se ejecuta en el servidor; viaja por la entrada de ssh y nadie la lanza a mano.
# $dir es la carpeta remota, que pone quien llama. Las órdenes empiezan por remote_.
set -euo pipefail
shopt -s inherit_errexit

# Lo único que viaja con sync: así nada personal que haya en la carpeta sale de casa.
repository=(enlace configs scripts tests docs bench .ci .github pyproject.toml constraints.txt LICENSE README.md
    README.en.md CHANGELOG.md CONTRIBUTING.md .env.example .gitignore)
see_status="mira qué corridas hay con: scripts/remote.sh status"

say() { printf '▸ %s\n' "$*" >&2; }

# die QUÉ POR-QUÉ PISTA CÓDIGO
die() {
    printf 'error: %s\ndónde: scripts/remote.sh\npor qué: %s\npista: %s\n' "$1" "$2" "$3" >&2
    exit "$4"
}

require_tool() {
    command -v "$1" >/dev/null ||
        die "falta $1 en el servidor" "no está en el PATH" "en Debian o Ubuntu, allí: sudo apt install $1" 3
}

absolute_dir() {
    case $dir in
    /*) ;;
    \~ | \~/*) dir=$HOME${dir#\~} ;;
    *) dir=$HOME/$dir ;;
    esac
}

go_to_dir() {
    cd -P -- "$dir"
    dir=$PWD
    # Un servidor de tmux por carpeta: ni hereda la configuración de nadie ni se mezcla con otras sesiones.
    socket=enlace-$(cksum <<<"$dir" | cut -d' ' -f1)
}

enter() {
    absolute_dir
    [ -f "$dir/.enlace-remoto" ] || die "no hay ENLACE en esa carpeta del servidor" "$dir" "scripts/remote.sh sync" 5
    go_to_dir
}

own_tmux() { tmux -L "$socket" -f /dev/null "$@"; }

sessions() { own_tmux list-sessions -F '#{session_name}' 2>/dev/null | sed -n 's/^enlace-//p'; }

is_open() { own_tmux has-session -t "=enlace-$1" 2>/dev/null; }

# El pid que tiene de verdad el cerrojo de una corrida. Se mira en /proc: probar a cogerlo estorbaría al que empieza.
holder() {
    local pid
    { read -r pid _ <"runs/$1/.lock"; } 2>/dev/null || return 1
    grep -qxF -- "$(realpath -- "runs/$1/.lock")" < <(readlink "/proc/${pid:-0}/fd"/*) && echo "$pid"
}

# Las corridas de esta carpeta que alguien está entrenando, desde aquí o a mano: nombre y pid.
running() {
    local lock name pid
    for lock in runs/*/.lock; do
        name=${lock#runs/} name=${name%/.lock}
        if pid=$(holder "$name"); then printf '%s %s\n' "$name" "$pid"; fi
    done
}

# El último valor de una clave en el registro de una corrida; una línea a medio escribir no cuenta.
last_value() {
    tail -n 2 -- "runs/$2/log.jsonl" 2>/dev/null | sed -n "s/.*\"$1\":\([^,}]*\)[,}].*/\1/p" | tail -n 1
}

# El nombre dado o, si no se da, el del único entrenamiento en marcha.
pick() {
    local names=$1
    [ -n "$names" ] || names=$({ sessions || true; running | cut -d' ' -f1; } | sort -u)
    [ -n "$names" ] || die "no hay ningún entrenamiento en marcha" "$dir" "$see_status" 5
    [ "$(wc -l <<<"$names")" = 1 ] ||
        die "di cuál" "hay varios en marcha: ${names//$'\n'/, }" "añade su nombre a la orden" 2
    printf '%s\n' "$names"
}

remote_prepare() {
    local name
    absolute_dir
    require_tool rsync
    mkdir -p -- "$dir"
    go_to_dir
    if [ ! -f .enlace-remoto ]; then
        for name in "${repository[@]}"; do
            [ ! -e "$name" ] || die "la carpeta del servidor ya tiene otras cosas" "sync borraría lo que hay en $dir/$name" \
                "pon en ENLACE_REMOTE_DIR una carpeta nueva" 9
        done
        touch .enlace-remoto
    fi
    read -r name _ < <(sessions || true; running) || name=""
    [ -z "$name" ] || die "no se cambia el código debajo de un entrenamiento" "«$name» está en marcha" \
        "espera, páralo con scripts/remote.sh stop $name, o usa otra ENLACE_REMOTE_DIR" 6
    printf '%s\n' "$dir"
}

remote_setup() {
    enter
    scripts/setup.sh
}

# --- Empezar ---

# Un entrenamiento lanzado a mano en esta carpeta no tiene la ranura, pero puede estar usando la misma GPU.
started_by_hand() {
    local name pid visible
    while read -r name pid; do
        visible=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^CUDA_VISIBLE_DEVICES=//p')
        case ,${visible:-$1}, in *,"$1",*) printf '%s, con el pid %s, en %s\n' "$name" "$pid" "$PWD" ;; esac
    done < <(running)
}

# Lo que corre dentro de tmux. La ranura (una por GPU) es un flock: se suelta sola cuando muere este proceso.
train_here() { # NOMBRE GPU RANURA RESULTADO ORDEN ARGUMENTO…
    local name=$1 gpu=$2 slot=$3 outcome=$4 again=$5 other code=0
    shift 5
    exec 9>>"$slot"
    if flock -n 9; then
        other=$(started_by_hand "$gpu")
    else
        sleep 0.5 # quien la acaba de coger puede no haber escrito aún su nombre
        other=$(cat -- "$slot") other=${other:-otro}
    fi
    if [ -n "$other" ]; then
        printf 'ocupada %s\n' "$other" >"$outcome"
        return
    fi
    printf '%s, en %s\n' "$name" "$PWD" >"$slot"
    mkdir -p -- "runs/$name"
    printf '%s\n' "$again" >"runs/$name/orden.txt"
    # Ctrl-C desde attach es para el entrenamiento: ni estos procesos ni tee deben morir antes que él.
    trap : INT
    {
        trap : INT
        printf '▸ %s · %s\n' "$(date '+%F %T')" "$again"
        CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$gpu PYTHONUNBUFFERED=1 .venv/bin/enlace train "$@" || code=$?
        printf '▸ %s · termina con código %s\n' "$(date '+%F %T')" "$code"
        exit "$code"
    } 9>&- 2>&1 </dev/null | tee -i -a -- "runs/$name/salida.log" 9>&-
    code=${PIPESTATUS[0]}
    # Quien espera el primer paso puede haberse ido, y su fichero con él.
    [ ! -e "$outcome" ] || printf 'código %s\n' "$code" >"$outcome"
}

# systemd-logind puede matar lo que alguien deja al salir; entonces tmux va con el gestor de usuario, que se queda.
start_session() {
    local launcher=()
    if busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager \
        KillUserProcesses 2>/dev/null | grep -q true; then
        [ "$(loginctl show-user "$(id -un)" --property=Linger --value 2>/dev/null)" = yes ] ||
            die "este servidor mata lo que dejas corriendo al salir" "systemd-logind tiene KillUserProcesses=yes" \
                "una sola vez, en el servidor: loginctl enable-linger" 3
        launcher=(env "XDG_RUNTIME_DIR=/run/user/$(id -u)" systemd-run --user --scope --quiet)
    fi
    "${launcher[@]}" tmux -L "$socket" -f /dev/null new-session -d -s "$@"
}

# Todo en un solo texto: si fueran argumentos sueltos, tmux tomaría por suyo un «;» al final de uno.
launch() { # NOMBRE ARGUMENTO-DE-train_here…
    local code error
    code=$(declare -f train_here started_by_hand running holder
        printf 'cd -- %q || exit\n' "$dir"
        printf '%q ' train_here "$@"
        printf '\nexit')
    if error=$(start_session "enlace-$1" bash -c "$code" 2>&1); then return; fi
    case $error in
    # Lo ha explicado ya start_session.
    error:*) printf '%s\n' "$error" >&2 && exit 3 ;;
    *duplicate*) die "«$1» ya está en marcha" "tmux ya tiene una sesión con su nombre" "$see_status" 6 ;;
    *) die "tmux no ha podido empezar" "$error" "entra en el servidor y prueba: tmux -L $socket new-session" 1 ;;
    esac
}

# Este arranque ha dado un paso: el registro va más allá de donde el primer suceso nuevo dice que empieza.
has_stepped() { # NOMBRE SUCESOS-DE-ANTES
    local from last
    from=$(tail -n +"$(($2 + 1))" "runs/$1/events.jsonl" 2>/dev/null | sed -n '1s/.*"step":\([0-9]*\)[,}].*/\1/p')
    last=$(last_value step "$1")
    [ -n "$from" ] && [ "${last:-0}" -gt "$from" ]
}

wait_first_step() { # NOMBRE RESULTADO SUCESOS-DE-ANTES BYTES-DE-ANTES
    local result
    until has_stepped "$1" "$3"; do
        if is_open "$1" && [ ! -s "$2" ]; then
            sleep 0.2
            continue
        fi
        ! has_stepped "$1" "$3" || return 0 # lo dio entre las dos preguntas
        result=$(cat -- "$2")
        case $result in
        ocupada*) die "el servidor ya está entrenando" "es ${result#ocupada }" \
            "espera, páralo con scripts/remote.sh stop, o elige otra con --gpu" 6 ;;
        esac
        tail -c +"$(($4 + 1))" "runs/$1/salida.log" 2>/dev/null | tail -n 20 >&2 || true
        result=${result#código }
        [ "$result" = 0 ] || say "no ha llegado a entrenar; lo último que ha escrito está justo encima"
        exit "${result:-1}"
    done
}

# Mide lo que ya hay antes de empezar, para no confundirlo con lo que escriba este arranque.
size_of() { if [ -f "$2" ]; then wc "$1" <"$2"; else echo 0; fi; }

check_ready() { # GPU
    require_tool tmux
    require_tool flock
    [ -x .venv/bin/enlace ] || die "ENLACE no está instalado en el servidor" "falta $dir/.venv" "scripts/remote.sh sync" 3
    [ -z "$1" ] || [ "$(nvidia-smi -i "$1" --query-gpu=index --format=csv,noheader 2>&1)" = "$1" ] ||
        die "el servidor no tiene la GPU $1" "nvidia-smi no la conoce" "mira cuáles hay con: scripts/remote.sh status" 3
}

# El nombre de la corrida ya compuesta. Lo que esté mal en la configuración sale aquí, antes de lanzar nada.
run_name() { # CORRIDA CAMBIO…
    local settings runs_dir name
    settings=$(.venv/bin/enlace config show --json "$@")
    { read -r runs_dir && read -r name; } < <(.venv/bin/python -c \
        'import json, sys; run = json.load(sys.stdin); print(run["runs_dir"], run["name"], sep="\n")' <<<"$settings")
    [ "$runs_dir" = runs ] || die "runs_dir tiene que ser runs" "es $runs_dir" \
        "para usar otro disco, haz que $dir/runs sea un enlace a él" 4
    printf '%s\n' "$name"
}

remote_run() { # GPU REANUDAR ORDEN CORRIDA CAMBIO…
    local gpu=$1 resume=$2 again=$3 name cache outcome events offset
    shift 3
    enter
    check_ready "$gpu"
    name=$(run_name "$@")
    events=$(size_of -l "runs/$name/events.jsonl")
    offset=$(size_of -c "runs/$name/salida.log")
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/enlace
    mkdir -p -- "$cache"
    outcome=$(mktemp "$cache/arranque.XXXXXX")
    # shellcheck disable=SC2064  # al salir ya no existe la variable
    trap "rm -f -- $(printf %q "$outcome")" EXIT
    # El nombre de la máquina, por si la carpeta personal es de red y la ven varias.
    launch "$name" "${gpu:-0}" "$cache/$(uname -n)-gpu${gpu:-0}.lock" "$outcome" "$again" "$@" ${resume:+--resume "$resume"}
    say "«$name» arranca en tmux; espera al primer paso (si cortas aquí, sigue)"
    wait_first_step "$name" "$outcome" "$events" "$offset"
    say "paso $(last_value step "$name"), pérdida $(last_value loss "$name"). Míralo con: scripts/remote.sh logs $name"
}

# --- Mirar, parar y traer ---

remote_logs() { # [NOMBRE]
    local name pid
    enter
    name=$(pick "$1")
    [ -f "runs/$name/salida.log" ] ||
        die "no hay salida de «$name»" "no existe $dir/runs/$name/salida.log" "$see_status" 5
    if pid=$(own_tmux list-panes -t "=enlace-$name:" -F '#{pane_pid}' 2>/dev/null); then
        exec tail -n 40 -F --pid="$pid" -- "runs/$name/salida.log"
    fi
    tail -n 40 -- "runs/$name/salida.log"
}

# El socket de tmux y el nombre de una sesión abierta, para attach.
remote_session() { # [NOMBRE]
    local name
    enter
    name=$(pick "$1")
    is_open "$name" || die "«$name» no está en marcha en tmux" "$dir" "$see_status" 5
    printf '%s %s\n' "$socket" "$name"
}

remote_status() {
    local folder name state pid
    enter
    echo '    paso  pérdida   estado                    corrida'
    for folder in runs/*/; do
        [ -d "$folder" ] || continue
        name=${folder#runs/} name=${name%/} state=parada
        [ ! -f "$folder/informe.md" ] || state=terminada
        ! is_open "$name" || state=arrancando
        ! pid=$(holder "$name") || state="entrenando (pid $pid)"
        printf '%8s  %-8.6s  %-24s  %s\n' "$(last_value step "$name")" "$(last_value loss "$name")" "$state" "$name"
    done
    ! command -v nvidia-smi >/dev/null ||
        nvidia-smi --query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu --format=csv || true
}

remote_stop() { # [NOMBRE]
    local name pid code
    enter
    name=$(pick "$1")
    until pid=$(holder "$name"); do
        is_open "$name" || die "«$name» no está en marcha" "$dir" "$see_status" 5
        sleep 0.2
    done
    # Una segunda señal pararía sin guardar. mkdir solo le sale a uno: si otro stop ya la mandó, este solo espera.
    if mkdir -- "runs/$name/.parada-$pid" 2>/dev/null; then kill -TERM "$pid"; fi
    say "«$name»: acaba el paso y guarda"
    while holder "$name" >/dev/null || is_open "$name"; do sleep 0.2; done
    rm -rf -- "runs/$name/.parada-$pid"
    [ -f "runs/$name/salida.log" ] || return 0 # lanzada a mano: lo suyo está en su terminal
    tail -n 3 -- "runs/$name/salida.log"
    say "para seguir: $(cat -- "runs/$name/orden.txt")"
    code=$(sed -n '$s/.* con código //p' "runs/$name/salida.log")
    return "${code:-1}"
}

# La carpeta de una corrida, para fetch.
remote_folder() { # NOMBRE
    enter
    require_tool rsync
    [ -d "runs/$1" ] || die "no existe la corrida «$1»" "$dir/runs/$1" "$see_status" 5
    ! holder "$1" >/dev/null || say "«$1» sigue entrenando: se trae lo que hay ahora"
    printf '%s\n' "$dir/runs/$1"
}
