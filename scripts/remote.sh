#!/usr/bin/env bash
# Entrena en un servidor propio por SSH. Corre dentro de tmux: cortar la conexión no corta el entrenamiento.
#
#   scripts/remote.sh sync [--data]      envía el código y lo instala allí; con --data, también data/
#   scripts/remote.sh run CORRIDA [clave=valor…] [--resume auto|RUTA] [--gpu N]
#                                        empieza a entrenar y vuelve con el primer paso dado, o dice por qué no
#   scripts/remote.sh status             qué corridas hay, en qué paso van, y las GPU
#   scripts/remote.sh logs [NOMBRE]      sigue lo que escribe el entrenamiento; Ctrl-C solo deja de mirar
#   scripts/remote.sh attach [NOMBRE]    entra en su terminal; Ctrl-B y luego D sale sin pararlo
#   scripts/remote.sh stop [NOMBRE]      termina el paso, guarda y dice cómo seguir
#   scripts/remote.sh fetch NOMBRE [--checkpoints]
#                                        trae runs/NOMBRE; los puntos de control, solo si se piden
#
#   NOMBRE es el de la carpeta de la corrida; sobra si solo hay un entrenamiento en marcha.
#   El servidor y su carpeta se dicen en .env o en el entorno; el modelo es .env.example.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/remote_host.sh
. scripts/remote_host.sh

see_help="mírala con: scripts/remote.sh --ayuda"

# El valor de una variable: del entorno o, si no, de .env, que se lee sin ejecutarlo.
setting() {
    local line value=${!1:-}
    if [ -z "$value" ] && [ -f .env ]; then
        while IFS= read -r line || [ -n "$line" ]; do
            [[ ${line%$'\r'} =~ ^[[:space:]]*(export[[:space:]]+)?$1[[:space:]]*=[[:space:]]*(.*)$ ]] || continue
            value=${BASH_REMATCH[2]}
            case $value in
            \"*\"*) value=${value#\"} value=${value%%\"*} ;;
            \'*\'*) value=${value#\'} value=${value%%\'*} ;;
            *) value=${value%%[[:space:]]#*} value=${value%"${value##*[![:space:]]}"} ;;
            esac
        done <.env
    fi
    printf '%s\n' "$value"
}

# require_setting VARIABLE PATRÓN EJEMPLO
require_setting() {
    local value LC_ALL=C # en otros idiomas, a-z puede incluir más letras
    value=$(setting "$1")
    [ -n "$value" ] || die "falta $1" "no está ni en el entorno ni en el fichero .env" \
        "escribe $1=$3 en el fichero .env (el modelo es .env.example)" 4
    [[ $value =~ $2 ]] || die "$1 no vale" "es «$value»" "tiene que ser como $3" 4
    printf '%s\n' "$value"
}

require_name() {
    local LC_ALL=C
    [[ $1 =~ ^[a-z0-9][a-z0-9_-]*$ ]] ||
        die "«$1» no es el nombre de una corrida" "un nombre lleva minúsculas, cifras, - y _" "$see_status" 2
}

connection_failed() {
    die "no se ha podido hablar con $host" "ssh ha fallado; el motivo está justo encima" \
        "prueba a entrar a mano; puerto, clave y alias se ponen en la configuración de ssh" 1
}

# on_remote FUNCIÓN ARGUMENTO…: nada pasa por la línea de órdenes del servidor, así que da igual su shell y no hay
# comillas que escapar. Entre llaves, bash lo lee entero antes de empezar: un corte a medias no ejecuta la mitad.
on_remote() {
    local code=0
    {
        printf '{\n'
        cat scripts/remote_host.sh
        printf 'dir=%q\n' "$dir"
        printf '%q ' "$@"
        printf '</dev/null\nexit\n}\n'
    } | ssh "${ssh_options[@]}" -T -- "$host" "exec bash -s" || code=$?
    [ "$code" != 255 ] || connection_failed
    return "$code"
}

# rsync con el mismo ssh. Sus rutas van por el protocolo (-s): ni espacios ni tildes pasan por un shell.
transfer() {
    local rsh=ssh option code=0
    for option in "${ssh_options[@]}"; do rsh+=" '${option//\'/\'\'}'"; done
    # -8: los nombres con tildes se escriben tal cual.
    rsync -rlptO -s -8 -e "$rsh" --exclude='.tmp-*' --exclude='.del-*' "$@" || code=$?
    case $code in
    0) ;;
    24) say "aviso: algo ha cambiado en mitad de la copia; repite la orden para traerlo entero" ;;
    *) die "la copia no ha terminado" "rsync ha salido con $code; el motivo está justo encima" "repite la orden: sigue donde quedó" 1 ;;
    esac
}

shown() { sed -e '/\/$/d' -e 's/^send /  envía /' -e 's/^recv /  trae /' -e 's/^del\. /  borra /'; }

sync_code() {
    local target name with_data="" filters=()
    case $* in
    "") ;;
    --data) with_data=yes ;;
    *) die "sobra algo en «$*»" "sync solo admite --data" "$see_help" 2 ;;
    esac
    [ -z "$with_data" ] || [ -d data ] || die "no hay nada que enviar" "no existe la carpeta data" "scripts/prepare_smoke_data.sh" 5
    target=$(on_remote remote_prepare | tail -n 1)
    for name in "${repository[@]}"; do filters+=(--include="/$name"); done
    say "envía el código a $host:$target"
    # Lo excluido ni se envía ni se borra allí; «p» no impide borrar una carpeta que aquí ya no está.
    transfer --delete --out-format='%o %n' --include=/.env.example --exclude='.env*' --filter='-p __pycache__' \
        "${filters[@]}" --exclude='/*' ./ "$host:$target/" | shown
    if [ -n "$with_data" ]; then
        say "envía data/"
        transfer --partial --out-format='%o %n' --exclude='.env*' data/ "$host:$target/data/" | shown
    fi
    say "instala en el servidor"
    on_remote remote_setup
}

# Una orden que se puede copiar: solo lleva comillas lo que las necesita.
typed() {
    local word line=""
    for word in "$@"; do
        [[ $word =~ ^[A-Za-z0-9_./=:,+-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
        line+=" $word"
    done
    printf '%s\n' "${line# }"
}

start_run() {
    local gpu="" resume="" run=() again
    while [ $# -gt 0 ]; do
        case $1 in
        --resume) resume=${2:-} && shift ;;
        --gpu) gpu=${2:-} && shift ;;
        -*) die "no existe la opción $1" "run solo admite --resume y --gpu" "$see_help" 2 ;;
        *) run+=("$1") ;;
        esac
        shift || die "falta un valor al final" "--resume y --gpu llevan uno detrás" "$see_help" 2
    done
    [ ${#run[@]} -gt 0 ] || die "falta la corrida" "run necesita el nombre de una" "scripts/remote.sh run smoke-cpu" 2
    [[ $gpu =~ ^(0|[1-9][0-9]*)?$ ]] || die "«$gpu» no es una GPU" "es su número, desde 0" "$see_help" 2
    [[ $resume != -* ]] || die "«$resume» no es de dónde seguir" "es auto o la ruta de un punto de control" "$see_help" 2
    again=$(typed scripts/remote.sh run "${run[@]}" ${gpu:+--gpu "$gpu"} --resume auto)
    on_remote remote_run "$gpu" "$resume" "$again" "${run[@]}"
}

attach_session() {
    local found socket name
    found=$(on_remote remote_session "$1" | tail -n 1)
    read -r socket name <<<"$found"
    require_name "$name"
    exec ssh "${ssh_options[@]}" -t -- "$host" "exec tmux -u -L $socket attach-session -t '=enlace-$name'"
}

# Una carpeta local que no trajo fetch de ahí, o con ficheros más nuevos que los de allí, es trabajo que no se pisa.
refuse_local_work() {
    local newer
    [ -d "$1" ] || return 0
    [ "$(cat -- "$1/.traida" 2>/dev/null)" = "$host:$2" ] ||
        die "ya hay otra corrida en $1" "no la trajo fetch de ese servidor: la pisaría" "muévela y repite" 9
    newer=$(transfer --dry-run --existing --update --out-format='%n' --exclude=/.lock "$1/" "$host:$2/" | sed '/\/$/d')
    [ -z "$newer" ] || die "en $1 hay trabajo más nuevo que el del servidor" "${newer//$'\n'/, }" "muévelo y repite" 9
}

fetch_run() {
    local name=${1:-} target source filters=(--exclude=/.lock --exclude='/.parada-*')
    require_name "$name"
    case ${*:2} in
    "") filters+=(--exclude=/checkpoints) ;;
    --checkpoints) ;;
    *) die "sobra algo en «${*:2}»" "fetch solo admite un nombre y --checkpoints" "$see_help" 2 ;;
    esac
    target=runs/$name
    source=$(on_remote remote_folder "$name" | tail -n 1)
    refuse_local_work "$target" "$source"
    mkdir -p -- "$target"
    printf '%s:%s\n' "$host" "$source" >"$target/.traida"
    # Lo nuevo se pone en su sitio al final, todo seguido: un corte deja lo que había.
    transfer --partial --delay-updates --out-format='%o %n' "${filters[@]}" "$host:$source/" "$target/" | shown
    say "está en $target"
}

command=${1:-}
case $command in
-h | --help | --ayuda)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' scripts/remote.sh
    exit 0
    ;;
sync | run | fetch) ;;
logs | attach | stop) [ $# -le 2 ] || die "sobra «$3»" "$command solo admite un nombre" "$see_help" 2 ;;
status) [ $# -eq 1 ] || die "sobra «$2»" "status no lleva nada detrás" "$see_help" 2 ;;
"") die "falta la orden" "es sync, run, status, logs, attach, stop o fetch" "$see_help" 2 ;;
*) die "no existe la orden «$command»" "es sync, run, status, logs, attach, stop o fetch" "$see_help" 2 ;;
esac
shift
case $command in logs | attach | stop) [ $# -eq 0 ] || require_name "$1" ;; esac
for tool in ssh rsync; do
    command -v $tool >/dev/null || die "falta $tool" "no está en el PATH" "en Debian o Ubuntu: sudo apt install openssh-client rsync" 3
done

host=$(require_setting ENLACE_REMOTE_HOST '^([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*$' usuario@servidor)
dir=$(require_setting ENLACE_REMOTE_DIR '^(/|~$|~/|[^~/])[^[:cntrl:]]*$' \~/enlace)
ssh_config=$(setting ENLACE_REMOTE_SSH_CONFIG)
ssh_options=(-o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4)
[ -z "$ssh_config" ] || ssh_options+=(-F "${ssh_config/#\~\//$HOME/}")

case $command in
sync) sync_code "$@" ;;
run) start_run "$@" ;;
status) on_remote remote_status ;;
logs) on_remote remote_logs "${1:-}" ;;
attach) attach_session "${1:-}" ;;
stop) on_remote remote_stop "${1:-}" ;;
fetch) fetch_run "$@" ;;
esac
