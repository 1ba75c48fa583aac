# shellcheck shell=sh
# ljprof top in a terminal of tmux; for tests that have read lib.sh. They end it
# by `$mux kill-server` in at_end.
# shellcheck disable=SC2034,SC2016 # the tests read these; $ of the shell there
command -v tmux > /dev/null || {
  echo "skipped: tmux is not installed"
  exit 77
}
ljprof=$BUILD_DIR/bin/ljprof
unset TMUX
export LC_ALL=C.UTF-8
mux="tmux -S $SCRATCH/tmux.sock -f /dev/null"

# terminal: 80x24, with a shell that has no line editor: $tty, $shell.
terminal() {
  $mux new-session -d -x 80 -y 24 'PS1="ready$ " exec sh' ||
    fail "tmux does not start"
  $mux set-option -g status off
  $mux resize-window -x 80 -y 24
  tty=$($mux display-message -p '#{pane_tty}')
  shell=$($mux display-message -p '#{pane_pid}')
  sees "a shell" 'ready\$'
  stty -a -F "$tty" > before.txt
}

screen() {
  $mux capture-pane -p
}
# until_ok WHAT COMMAND...: waits until the command succeeds.
until_ok() {
  what=$1
  shift
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "$what; the screen has:
$(screen)"
    sleep 0.1
  done
}
shows() { # TEXT (a basic regex)
  screen > screen.txt
  grep -q -e "$1" screen.txt
}
hides() {
  ! shows "$1"
}
sees() { # WHAT TEXT: waits for the text
  until_ok "$1: no '$2'" shows "$2"
  ok "$1"
}
type_line() {
  $mux send-keys -l "$1"
  $mux send-keys Enter
}
keys() {
  for key; do
    $mux send-keys "$key"
  done
}
same_terminal() {
  stty -a -F "$tty" > after.txt &&
    cmp -s before.txt after.txt &&
    [ "$($mux display-message -p '#{alternate_on} #{cursor_flag}')" = "0 1" ]
}

# is_right WHAT: the terminal is as it was before.
is_right() {
  until_ok "$1: the terminal is not as it was: $(cat after.txt 2> /dev/null)
alternate screen, cursor: $($mux display-message -p '#{alternate_on} #{cursor_flag}')" \
    same_terminal
  type_line "echo works-\$((6 * 7))"
  sees "$1: the terminal is right" 'works-42'
  $mux send-keys -R
  type_line clear
  until_ok "$1: not cleared" hides works-42
}

# guard, child NAME: the processes of the view.
guard() {
  pgrep -P "$shell" -x ljprof
}
child() {
  pgrep -P "${2:-$(guard)}" -x "$1"
}
