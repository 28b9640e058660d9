"""azd runs this before it sends the package: it rejects one that was made from something else.

For example from the requirements.txt of another version, or for another Python than Azure has.
"""

from __future__ import annotations

from typing import Iterator, Mapping

from faults import HookError, HookFault, run
from package import FOLDER, STAMP, chosen_python, digest, read

SHOWN = 12
"""Digits of a digest that tell two apart."""


def main(environment: Mapping[str, str]) -> None:
    """Raise `HookError` unless the package is complete and fits."""
    faults = list(faults_of(environment))
    if faults:
        raise HookError(*faults)
    print("The package fits.")


def faults_of(environment: Mapping[str, str]) -> Iterator[HookFault]:
    """Yield what is wrong with the package."""
    try:
        stamp = read((FOLDER / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        yield HookFault("package-missing", FOLDER.name)
        return
    provisioned = environment.get("DEPLOYED_PYTHON_VERSION") or chosen_python()
    if stamp.python != provisioned:
        facts = {"packed": stamp.python, "provisioned": provisioned}
        yield HookFault("package-python-differs", FOLDER.name, facts)
    present = digest()
    if stamp.digest != present:
        facts = {"packed": stamp.digest[:SHOWN], "present": present[:SHOWN]}
        yield HookFault("package-outdated", FOLDER.name, facts)


if __name__ == "__main__":
    run("The package was not sent:", main)
