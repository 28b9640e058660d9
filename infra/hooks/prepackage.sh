#!/bin/sh
# azd runs this before it packs. It installs what the tests ran, for Azure's Python and Linux, whatever runs here: a
# build on Azure has taken another Python (Azure/azure-dev, issue 8538). prepackage.ps1 says the same to Windows.
set -eu
cd "$(dirname "$0")/../.."
python=$(command -v python3 || command -v python)
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
# Not as an option, which an older pip does not know, such as that of macOS's own Python.
PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check \
    --target "$tools" --require-hashes --no-deps -r infra/hooks/uv.txt
rm -rf .python_packages
# Not with pip: it would choose packages for the Python that runs it.
"$tools/bin/uv" pip install --quiet --target .python_packages/lib/site-packages \
    --python "$python" --python-version "${PYTHON_VERSION:-3.13}" --python-platform x86_64-manylinux_2_28 \
    --only-binary :all: --require-hashes -r requirements.txt
echo "${PYTHON_VERSION:-3.13} linux x86_64" >.python_packages/packed-for.txt
echo "Packed for Python ${PYTHON_VERSION:-3.13} on x86_64 Linux."
