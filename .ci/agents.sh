#!/usr/bin/env bash
# Installs what tests drive and are judged by, at pinned versions, and prints a line `NAME PATH` for each:
#
#   opencode    a real agent, one executable
#   codex       a real agent, a script for Node
#   gemini      a real agent, a script for Node
#   acpx        a client of the protocol that is not ours, a script for Node
#   node        the Node that runs them, whatever the machine has
#   python-sdk  the folder of the protocol's Python library as it was released, with its examples and golden frames
#   python      a Python that has this library
#
# With names as arguments only those; after `--there` nothing is installed, and only what is there is printed: so tests
# ask, which need no network. What is there already is not installed again. Everything goes into the folder
# $SILLAGE_TEST_AGENTS, by default the folder `agents` in Cargo's target folder. Needs npm, and Python with venv for the
# last two: what cannot be had for want of them is not printed, standard error says so, and the tests that need it say
# that they are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

opencode_version=1.18.33
codex_acp_version=2.6.0
codex_version=0.166.0
gemini_version=0.61.0
acpx_version=0.19.1
node_version=22.23.3
python_sdk_version=0.12.1

folder=${SILLAGE_TEST_AGENTS:-${CARGO_TARGET_DIR:-target}/agents}
there=
if [ "${1:-}" = --there ]; then
  there=yes
  shift
else
  mkdir -p "$folder"
fi
folder=$(realpath -m "$folder")
apart=
trap 'if [ -n "$apart" ]; then rm -rf "$apart"; fi' EXIT

# in_place FOLDER FILE: moves what was installed apart to its place, so that a half-made installation is never taken
# for one. Another script may have been faster: then its installation stays.
in_place() {
  mv -T "$apart" "$1" 2>/dev/null || rm -rf "$apart"
  apart=
  [ -e "$1/$2" ] || { echo "$1 does not hold $2" >&2; return 1; }
}

# absent NAME: says that it is not installed, where nothing is to be.
absent() {
  [ -n "$there" ] && echo "$1 is not installed; .ci/agents.sh installs it" >&2
}

# packages NAME FOLDER FILE PACKAGE...: the npm packages in FOLDER, of which FILE is what is started.
packages() {
  local name=$1 place=$folder/$2 file=node_modules/$3
  shift 3
  if [ ! -e "$place/$file" ]; then
    absent "$name" && return 0
    if ! command -v npm >/dev/null; then
      echo "npm is not installed: $name cannot be had" >&2
      return 0
    fi
    apart=$(mktemp -d "$folder/installing.XXXXXX")
    npm install --prefix "$apart" --no-audit --no-fund --no-save --loglevel=error "$@" >&2
    # Where npm is set not to run the scripts of packages, the one that puts the program in its place has not run.
    if [ "$name" = opencode ] && [ ! -x "$apart/$file" ]; then
      (cd "$apart/node_modules/opencode-ai" && node ./postinstall.mjs >&2)
    elif [ "$name" = node ] && [ ! -x "$apart/$file" ]; then
      (cd "$apart/node_modules/node" && node ./installArchSpecificPackage.js >&2)
    fi
    in_place "$place" "$file"
  fi
  echo "$name $place/$file"
}

# The library as it was released: what is built from it leaves its examples and golden frames out.
python_sdk() {
  local place=$folder/python-sdk-$python_sdk_version
  local released=agent_client_protocol-$python_sdk_version
  if [ ! -e "$place/$released/examples" ]; then
    absent "$1" && return 0
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
      echo "python3 with venv is not installed: the Python library cannot be had" >&2
      return 0
    fi
    apart=$(mktemp -d "$folder/installing.XXXXXX")
    python3 -m venv "$apart/venv" >&2
    local pip=("$apart/venv/bin/python" -m pip --quiet --disable-pip-version-check)
    "${pip[@]}" install "agent-client-protocol==$python_sdk_version" >&2
    "${pip[@]}" download --no-deps --no-binary :all: --dest "$apart" "agent-client-protocol==$python_sdk_version" >&2
    tar -xzf "$apart/$released.tar.gz" -C "$apart"
    in_place "$place" "$released/examples"
  fi
  case $1 in
    python) echo "python $place/venv/bin/python" ;;
    python-sdk) echo "python-sdk $place/$released" ;;
  esac
}

[ $# -gt 0 ] || set -- opencode codex gemini acpx node python-sdk python
for name in "$@"; do
  case $name in
    opencode) packages opencode "opencode-$opencode_version" opencode-ai/bin/opencode.exe "opencode-ai@$opencode_version" ;;
    codex)
      packages codex "codex-acp-$codex_acp_version+$codex_version" @agentclientprotocol/codex-acp/dist/index.js \
        "@agentclientprotocol/codex-acp@$codex_acp_version" "@openai/codex@$codex_version"
      ;;
    gemini)
      packages gemini "gemini-cli-$gemini_version" @google/gemini-cli/bundle/gemini.js "@google/gemini-cli@$gemini_version"
      ;;
    acpx) packages acpx "acpx-$acpx_version" acpx/dist/cli.js "acpx@$acpx_version" ;;
    node) packages node "node-$node_version" node/bin/node "node@$node_version" ;;
    python | python-sdk) python_sdk "$name" ;;
    *)
      echo "nothing is known of $name" >&2
      exit 2
      ;;
  esac
done
