#!/bin/sh
# PowerDNS's recursor, which drops root when it has started and runs a Lua script
# in each of its threads, under ljprof record. Without root it keeps its user.
. "$(dirname "$0")/record_lib.sh"
need pdns-recursor python3

cat > "$tmp/dns.lua" << 'EOL'
local seen = {}
local function digest(name)
  local h = 0
  for _ = 1, 3000 do
    for c in name:gmatch(".") do h = (h * 31 + c:byte()) % 65521 end
  end
  seen[#seen + 1] = {name, h}
  if #seen > 500 then seen = {} end
  return h
end
function preresolve(dq)
  dq:addAnswer(pdns.A, "10.0." .. digest(dq.qname:toString()) % 251 .. ".1")
  return true
end
EOL
: > "$tmp/recursor.conf"
port=$((20011 + $$ % 12000)) drop=
[ "$(id -u)" -ne 0 ] || drop='--setuid=pdns --setgid=pdns'
# shellcheck disable=SC2086 # two options
record_start /usr/sbin/pdns_recursor --config-dir="$tmp" --daemon=no $drop \
  --local-address=127.0.0.1 --local-port=$port --socket-dir="$tmp" \
  --lua-dns-script="$tmp/dns.lua" --threads=2 --disable-syslog --hint-file=no \
  --security-poll-suffix=
answers() {
  [ "$(python3 "$(dirname "$0")/dns.py" $port 1)" = 1 ]
}
wait_for 20 answers || fail "the recursor does not answer"
maps_ours "$(record_host)"
[ -z "$drop" ] ||
  same user pdns "$(stat -c %U "/proc/$(record_host)")"
same answers 400 "$(python3 "$(dirname "$0")/dns.py" $port 400)"
rec_control --config-dir="$tmp" --socket-dir="$tmp" quit-nicely > /dev/null ||
  fail "it does not stop"
record_end
whole
names 'digest '
