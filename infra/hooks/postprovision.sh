#!/bin/sh
# azd runs this after it has provisioned. postprovision.ps1 does the same on Windows.
set -eu
"$(command -v python3 || command -v python)" "$(dirname "$0")/budget.py"
