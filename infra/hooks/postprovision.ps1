# azd runs this after it has provisioned. postprovision.sh does the same on Linux and macOS.
$ErrorActionPreference = 'Stop'
& (Get-Command python).Source (Join-Path $PSScriptRoot 'budget.py')
