#!/bin/sh
# Checks the greeter.
set -eu
cd "$(dirname "$0")/.."

# expect WANTED ARGUMENTS...
expect() {
  wanted=$1
  shift
  got=$(sh greet.sh "$@")
  if [ "$got" != "$wanted" ]; then
    echo "greet.sh $*: got '$got', wanted '$wanted'" >&2
    exit 1
  fi
}

expect "Hello, Ada." Ada
echo "the greeter greets"
