#!/bin/sh
# cmake/apt-sources derives the source archives from the machine's own apt
# configuration, in either format, and takes nothing but Debian main.
. "$(dirname "$0")/lib.sh"

mkdir -p etc/sources.list.d out
echo 'VERSION_CODENAME=bookworm' > os-release
cat > etc/sources.list << 'EOF'
# a comment
deb http://mirror.invalid/debian bookworm main contrib # trailing
deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian-security bookworm-security main
deb-src http://mirror.invalid/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb http://third.invalid/apt vendor main
deb http://third.invalid/apt bookworm stable
EOF
cat > etc/sources.list.d/more.list << 'EOF'
deb http://other.invalid/debian bookworm-updates main
EOF
cat > etc/sources.list.d/debian.sources << 'EOF'
# deb822
Types: deb
URIs: http://deb822.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Architectures: amd64
Signed-By:
 -----BEGIN-----
 .
 key
 -----END-----

Types: deb
URIs: http://disabled.invalid/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://vendor.invalid/x
Suites: nodistro
Components: main
EOF
LJPROF_OS_RELEASE=os-release "$SOURCE_DIR/cmake/apt-sources" out etc
cat > wanted.list << 'EOF'
deb-src [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian-security bookworm-security main
deb-src http://mirror.invalid/debian bookworm main
deb-src http://other.invalid/debian bookworm-updates main
EOF
same "one-line form" "$(sort wanted.list)" "$(sort out/ljprof.list)"
cat > wanted.sources << 'EOF'
Types: deb-src
Components: main
URIs: http://deb822.invalid/debian
Suites: bookworm bookworm-updates
Signed-By:
 -----BEGIN-----
 .
 key
 -----END-----
EOF
same "deb822 form" "$(cat wanted.sources)" "$(cat out/ljprof.sources)"

rm -rf etc/sources.list etc/sources.list.d out/*
LJPROF_OS_RELEASE=os-release "$SOURCE_DIR/cmake/apt-sources" out etc
same "nothing configured, nothing written" "" "$(ls out)"
