#!/bin/sh
# rspamd with Debian's own configuration, which is mostly Lua: a master that
# keeps root, workers that drop it. It scans a mail ten times under ljprof record.
. "$(dirname "$0")/record_lib.sh"
need rspamd
[ "$(id -u)" -eq 0 ] || {
  echo "rspamd's master needs root to change its user"
  exit 77
}

port=$((20011 + $$ % 12000))
mkdir -p "$tmp/override.d" "$tmp/local.d" "$tmp/maps.d" "$tmp/var"
chmod -R 777 "$tmp/var"
cat > "$tmp/override.d/options.inc" << EOL
pidfile = "$tmp/var/pid";
disable_hyperscan = true;
dns { nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; }
EOL
echo "bind_socket = \"127.0.0.1:$port\"; count = 2;" \
  > "$tmp/override.d/worker-normal.inc"
echo "bind_socket = \"127.0.0.1:$((port + 1))\";" \
  > "$tmp/override.d/worker-controller.inc"
echo 'enabled = false;' > "$tmp/override.d/worker-proxy.inc"
echo 'type = "console"; level = "error";' > "$tmp/override.d/logging.inc"
cat > "$tmp/mail" << 'EOL'
From: a@example.org
To: b@example.net
Subject: cheap offer
Date: Sun, 22 Nov 2026 08:00:00 +0000
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: text/html; charset=utf-8

<html><body><p>Buy now: <a href="http://example.com/x">http://example.org/</a>
</p></body></html>
EOL
record_start rspamd -f -u _rspamd -g _rspamd -c /etc/rspamd/rspamd.conf \
  --var=DBDIR="$tmp/var" --var=RUNDIR="$tmp/var" --var=LOGDIR="$tmp/var" \
  --var=LOCAL_CONFDIR="$tmp"
answers() {
  timeout 10 rspamc -h "127.0.0.1:$port" symbols "$tmp/mail" \
    > "$tmp/scan.txt" 2>&1 && grep -q '^Symbol: PHISHING' "$tmp/scan.txt"
}
wait_for 60 answers || fail "rspamd does not answer: $(cat "$tmp/scan.txt")"
maps_ours "$(record_host)"
for scan in 1 2 3 4 5 6 7 8 9 10; do
  answers || fail "scan $scan fails: $(cat "$tmp/scan.txt")"
done
kill "$(record_host)"
record_end
whole
names 'rspamd_symcache.*\.lua:'
