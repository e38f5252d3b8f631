# Checks what rayhelm needs from this computer and cannot install itself. Sourced by ci/set-up and ci/run-tests.
#
# It reports all missing packages together, for one run of the package manager.

min_disk_gib=12   # .venv with the CUDA build of torch takes 7, the package cache about as much on another disk
min_memory_gib=8  # Ray, a router, and three processes that each import vLLM
oldest_python=3.11 newest_python=3.14  # what the locked wheels are built for
oldest_glibc=2.31

missing=()

miss() { missing+=("$1"$'\n'"      $2"); }

at_least() { printf '%s\n' "$2" "$1" | sort --version-sort --check=silent; }

# Prints the first interpreter that the locked wheels support, or nothing.
find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.12 python3.11 python3.13 python3.14; do
        "$name" -I -c "import sys
old, new = (tuple(map(int, text.split('.'))) for text in ('$oldest_python', '$newest_python'))
sys.exit(not old <= sys.version_info[:2] <= new)" 2>/dev/null || continue
        command -v "$name"
        return
    done
}

# Prints the host's uv if it is at least as new as the one that wrote the locks.
find_uv() {
    local version
    version=$(uv --version 2>/dev/null) || return 0
    at_least "$(cut -d' ' -f2 <<<"$version")" "$(pinned_uv)" && command -v uv || true
}

pinned_uv() { sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/uv.in; }

# Prints the GiB that processes may still use: what the kernel has left, or less where a container is limited.
free_memory_gib() {
    local bounds
    mapfile -t bounds < <(ls /sys/fs/cgroup/memory.{max,current,stat} \
        /sys/fs/cgroup/memory/memory.{limit_in_bytes,usage_in_bytes,stat} 2>/dev/null)
    awk '
        /^MemAvailable:/ { free = $2 * 1024 }
        FILENAME ~ /(memory.max|limit_in_bytes)$/ { bound = $1 }
        FILENAME ~ /(memory.current|usage_in_bytes)$/ { used = $1 }
        $1 ~ /^(total_)?inactive_file$/ { cache = $2 }  # the kernel frees it on demand
        END {
            if (bound > 0 && bound - used + cache < free) free = bound - used + cache
            print int(free / 2^30)
        }' /proc/meminfo "${bounds[@]}"
}

# Prints the cores that processes may use: those of this process's affinity, or fewer where a container is limited.
available_cores() {
    local limit
    limit=$(awk '$1 != "max" && $2 > 0 { print int(($1 + $2 - 1) / $2) }' /sys/fs/cgroup/cpu.max 2>/dev/null) || true
    if [ -n "$limit" ] && [ "$limit" -lt "$(nproc)" ]; then echo "$limit"; else nproc; fi
}

free_disk_gib() { df -Pk . | awk 'NR == 2 { print int($4 / 2^20) }'; }

check_platform() {
    local glibc
    if [ "$(uname -s) $(uname -m)" != "Linux x86_64" ]; then
        miss "Linux on x86-64: this is $(uname -s) on $(uname -m)" "use a Linux virtual machine or server"
    elif ! glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || ! at_least "${glibc#* }" "$oldest_glibc"; then
        miss "glibc $oldest_glibc or newer: this is ${glibc:-another C library}" "use Debian 11, Ubuntu 20.04, RHEL 9 or newer"
    fi
}

check_python() {
    if [ -z "$python" ]; then
        miss "Python $oldest_python to $newest_python" "Debian, Ubuntu: apt-get install python3 python3-venv    Fedora, RHEL: dnf install python3.12"
    elif [ -z "$uv" ] && ! "$python" -I -c 'import ensurepip, venv' 2>/dev/null; then
        miss "the modules venv and ensurepip of $python" "Debian, Ubuntu: apt-get install python3-venv"
    fi
}

check_library() {
    has_libnuma ||
        miss "libnuma.so.1, which vLLM on a CPU loads" "Debian, Ubuntu: apt-get install libnuma1    Fedora, RHEL: dnf install numactl-libs"
}

has_libnuma() {
    if [ -n "$python" ]; then
        "$python" -I -c "import ctypes; ctypes.CDLL('libnuma.so.1')" 2>/dev/null
    else
        PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -F libnuma.so.1 >/dev/null
    fi
}

check_room() {
    if [ ! -e .venv/.locks/serve ] && [ "$(free_disk_gib)" -lt "$min_disk_gib" ]; then
        miss "$min_disk_gib GiB of disk in $PWD: $(free_disk_gib) are free" "Ray, vLLM and torch take 7 GiB; free disk space, or clone to a larger disk"
    fi
    [ "$(free_memory_gib)" -ge "$min_memory_gib" ] ||
        miss "$min_memory_gib GiB of free memory: $(free_memory_gib) are free" "Ray and vLLM use that much with one tiny model; stop other programs, or use a larger machine"
}

# Sets `python` and `uv`. Exits with 3 after reporting all that is missing.
check_host() {
    python=$(find_python)
    uv=$(find_uv)
    check_platform
    check_python
    check_library
    check_room
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "rayhelm needs from this computer:" >&2
    printf '  - %s\n' "${missing[@]}" >&2
    exit 3
}
