# bare.sh ROOT PLACE... -- COMMAND...: run in a root without CUDA, without an ld.so.cache and with an empty environment.
# Of the machine there is /usr, read-only, and the places named. Wants a mount namespace of its own: unshare -m -n.
set -e
root=$1; shift
mount -t tmpfs none "$root"
mkdir -p "$root/usr" "$root/proc" "$root/tmp"
mount --rbind -o ro /usr "$root/usr"
for cuda in "$root"/usr/local/cuda*; do
    if [ -d "$cuda" ] && [ ! -L "$cuda" ]; then mount -t tmpfs none "$cuda"; fi
done
for link in bin lib lib64 sbin; do ln -s "usr/$link" "$root/$link"; done
while [ "$1" != -- ]; do
    case "$1" in
        /usr/*) ;;
        *) mkdir -p "$root$1"; mount --bind "$1" "$root$1" ;;
    esac
    shift
done
shift
mount -t proc none "$root/proc"
exec chroot "$root" /usr/bin/env -i "$@"
