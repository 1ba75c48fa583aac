#!/bin/sh
# Knot Resolver, whose configuration and policies are Lua with much FFI, under
# ljprof record.
. "$(dirname "$0")/record_lib.sh"
need knot-resolver python3

port=$((20011 + $$ % 12000))
mkdir -m 777 "$tmp/cache"
cat > "$tmp/kresd.conf" << EOL
net.listen('127.0.0.1', $port, {kind = 'dns'})
cache.size = 1 * MB
log_level('notice')
local function digest(name)
  local h = 0
  for _ = 1, 200 do
    for c in name:gmatch('.') do h = (h * 31 + c:byte()) % 65521 end
  end
  return h
end
policy.add(function(req, query)
  local h = digest(kres.dname2str(query:name()))
  return policy.ANSWER({
    [kres.type.A] = {rdata = kres.str2ip('10.0.0.' .. h % 251), ttl = 1}})
end)
EOL
record_start kresd -n -c "$tmp/kresd.conf" "$tmp/cache"
answers() {
  [ "$(python3 "$(dirname "$0")/dns.py" $port 1)" = 1 ]
}
wait_for 20 answers || fail "kresd does not answer"
maps_ours "$(record_host)"
same answers 400 "$(python3 "$(dirname "$0")/dns.py" $port 400)"
kill "$(record_host)"
record_end
whole
names 'digest '
