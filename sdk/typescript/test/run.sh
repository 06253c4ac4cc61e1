#!/bin/sh
# Compiles the SDK with its types and with what must not compile, and plays it.
set -eu
cd "$(dirname "$0")/.."
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
node_modules/.bin/tsc -p test
node_modules/.bin/tsc -p test/play.json --outDir "$build"
echo '{"type":"commonjs"}' > "$build/package.json"
SDK_BUILD=$build node --test test/
