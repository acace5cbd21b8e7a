#!/usr/bin/env bash
# Installs the real agents that tests drive, at pinned versions, and prints the path of each program: today opencode,
# one executable that needs no Node when it runs. Does nothing when it is there already.
#
# Into $SILLAGE_TEST_AGENTS, by default the folder `agents` in Cargo's target folder. Needs npm; without it nothing is
# installed, which the last line on standard error says, and the tests that need an agent say that they are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

opencode_version=1.18.33

folder=${SILLAGE_TEST_AGENTS:-${CARGO_TARGET_DIR:-target}/agents}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
opencode=$folder/opencode-$opencode_version
program=$opencode/node_modules/opencode-ai/bin/opencode.exe

if [ ! -x "$program" ]; then
  if ! command -v npm >/dev/null; then
    echo "npm is not installed: no real agent can be had" >&2
    exit 0
  fi
  # Installed apart and moved at the end, so that a half-made installation is never taken for one.
  apart=$(mktemp -d "$folder/installing.XXXXXX")
  trap 'rm -rf "$apart"' EXIT
  npm install --prefix "$apart" --no-audit --no-fund --no-save "opencode-ai@$opencode_version" >&2
  # Where npm is set not to run the scripts of packages, the one that puts the program in its place has not run.
  [ -x "$apart/node_modules/opencode-ai/bin/opencode.exe" ] ||
    (cd "$apart/node_modules/opencode-ai" && node ./postinstall.mjs >&2)
  mv -T "$apart" "$opencode" 2>/dev/null || [ -x "$program" ]
fi
echo "$program"
