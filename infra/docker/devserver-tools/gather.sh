#!/bin/sh
# Puts sshd and everything it loads into one directory: gather.sh DIRECTORY
set -eu
into=$1
mkdir -p "$into/lib"
wrapper=$(find /usr/lib -name 'libnss_wrapper.so')
cp /usr/sbin/sshd "$into/sshd"
cp "$wrapper" "$into/lib/"
# Every library of both, and the loader itself.
for program in /usr/sbin/sshd "$wrapper"; do
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$into/lib/"; done
done
ln -s "$(cd "$into/lib" && ls ld-linux*.so*)" "$into/lib/ld.so"
