#!/bin/sh
# Puts sshd, ssh and everything they load into one directory: gather.sh DIRECTORY
set -eu
into=$1
mkdir -p "$into/lib"
wrapper=$(find /usr/lib -name 'libnss_wrapper.so')
cp /usr/sbin/sshd /usr/bin/ssh "$into/"
cp "$wrapper" "$into/lib/"
# Every library of them, and the loader itself.
for program in /usr/sbin/sshd /usr/bin/ssh "$wrapper"; do
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$into/lib/"; done
done
ln -s "$(cd "$into/lib" && ls ld-linux*.so*)" "$into/lib/ld.so"
