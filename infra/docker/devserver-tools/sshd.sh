#!/bin/sh
# Runs sshd for as long as the server lives. Nothing of the image is used but its shell, and nothing of it is changed.
umask 077
tools=/opt/devserver/tools
keys=/opt/devserver/ssh
run=/opt/devserver/run

# Whoever the image runs as is called "dev" and lives in the home; sshd asks these files and not those of the image.
shell=/bin/sh
[ -x /bin/bash ] && shell=/bin/bash
cat >"$run/passwd" <<END
dev:x:$(id -u):$(id -g):dev:${HOME:-/home/dev}:$shell
sshd:x:74:74:sshd:/run/sshd:/bin/false
END
cat >"$run/group" <<END
dev:x:$(id -g):
tty:x:5:
sshd:x:74:
END
# sshd refuses a key that others may read, and a mounted Secret is readable to its group.
cp "$keys/host_key" "$run/host_key"
# Where the part of sshd that speaks with strangers is locked up; only root can do that.
if [ "$(id -u)" = 0 ]; then mkdir -p /run/sshd && chmod 755 /run/sshd; fi

# A session has the environment of the container, as one of `devctl exec` has.
environment() {
  env | while read -r line; do
    case $line in
      HOME=* | USER=* | LOGNAME=* | SHELL=* | PWD=* | OLDPWD=* | SHLVL=* | TERM=* | MAIL=* | _=*) continue ;;
      *[\"\\]*) continue ;;
      [A-Za-z_]*=*) printf ' "%s"' "$line" ;;
    esac
  done
}
cat >"$run/sshd_config" <<END
Port 2222
HostKey $run/host_key
AuthorizedKeysFile $keys/authorized_keys
# The keys belong to whoever mounted them.
StrictModes no
AllowUsers dev
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
X11Forwarding no
ClientAliveInterval 60
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
SetEnv$(environment)
END

export NSS_WRAPPER_PASSWD="$run/passwd" NSS_WRAPPER_GROUP="$run/group"
unset LD_PRELOAD LD_LIBRARY_PATH
while :; do
  # Not executed again for each connection (-r): that would go past our loader. Its complaints go to the log of the
  # container, and not to the terminals of its users (-E).
  "$tools/lib/ld.so" --inhibit-cache --library-path "$tools/lib" --preload "$tools/lib/libnss_wrapper.so" \
    "$tools/sshd" -D -E /proc/1/fd/2 -r -f "$run/sshd_config"
  echo "sshd ended with $?; it is started again" >&2
  sleep 5
done
