# Login shells of consoles.
case $- in
  *i*)
    cat /etc/motd
    PS1='${USER}@console:\w\$ '
    ;;
esac
