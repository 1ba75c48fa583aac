#!/bin/sh
# Both ends of the stream: what it costs to push, drain and write events, and
# how fast they are read back. BUILD_DIR names the build.
set -eu
"${BUILD_DIR:?}/bin/bench_stream"
"$BUILD_DIR/bin/bench_reader"
