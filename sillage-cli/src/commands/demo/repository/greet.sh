#!/bin/sh
# Greets someone: greet.sh NAME
set -eu
name=${1:?usage: greet.sh NAME}
greeting="Hello"
printf '%s, %s.\n' "$greeting" "$name"
