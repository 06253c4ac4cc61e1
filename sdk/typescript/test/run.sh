#!/bin/sh
# Installs the SDK as a person does, from the package in a fresh folder: its types under both ways of Node and of
# bundlers, then what it does in Node.
set -eu
cd "$(dirname "$0")/.."
sdk=$PWD
tools=$sdk/node_modules/.bin
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
rm -rf dist
package=$(npm pack --silent --pack-destination "$fresh" | tail -n 1)
if grep -rlE "(from|import\()\s*['\"]([^.'\"]|node:)" dist --include='*.js'; then
  echo "these files import something that a browser does not have"
  exit 1
fi
echo '{"private":true,"type":"module"}' > "$fresh/package.json"
npm install --silent --offline --no-audit --no-fund --prefix "$fresh" "$fresh/$package"
cp -R test/*.ts test/*.mjs ../testdata/*.json "$fresh"
cd "$fresh"
# The README's quick start is TypeScript as it stands.
{
  echo 'declare const process: {env: Record<string, string | undefined>};'
  sed -n '/^```js quickstart$/,/^```$/{/^```/!p;}' "$sdk/README.md"
} > quickstart.ts
grep -q listUsers quickstart.ts
for way in nodenext bundler; do
  module=$way
  [ $way = nodenext ] || module=esnext
  "$tools/tsc" --strict --noEmit --module $module --moduleResolution $way --target es2022 \
    --lib es2022,dom,dom.iterable,dom.asynciterable types.ts quickstart.ts
done
node --test .
