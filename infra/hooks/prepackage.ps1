# azd runs this before it packs. It installs what the tests ran, for Azure's Python and Linux, whatever runs here: a
# build on Azure has taken another Python (Azure/azure-dev, issue 8538). prepackage.sh says the same to Linux and macOS.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true
Set-Location (Join-Path $PSScriptRoot '../..')
$version = if ($env:PYTHON_VERSION) { $env:PYTHON_VERSION } else { '3.13' }
$python = (Get-Command python).Source
$tools = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
$env:PIP_ROOT_USER_ACTION = 'ignore' # not as an option, which an older pip does not know
try {
    & $python -m pip install --quiet --disable-pip-version-check --target $tools --require-hashes --no-deps -r infra/hooks/uv.txt
    if (Test-Path .python_packages) { Remove-Item -Recurse -Force .python_packages }
    # Not with pip: it would choose packages for the Python that runs it.
    & (Join-Path $tools 'bin/uv') pip install --quiet --target .python_packages/lib/site-packages --python $python --python-version $version --python-platform x86_64-manylinux_2_28 --only-binary :all: --require-hashes -r requirements.txt
}
finally {
    if (Test-Path $tools) { Remove-Item -Recurse -Force $tools }
}
Set-Content .python_packages/packed-for.txt "$version linux x86_64"
Write-Output "Packed for Python $version on x86_64 Linux."
