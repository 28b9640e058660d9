"""Runs before azd sends the package: rejects one that was made from something else.

Examples are the requirements.txt of another version, or another Python than Azure has.
"""

from __future__ import annotations

from typing import Iterator, Mapping

from faults import HookError, HookFault, run
from package import FOLDER, STAMP, chosen_python, digest, read

SHOWN = 12
"""The digits of a digest that are shown."""


def main(environment: Mapping[str, str]) -> None:
    """Raise `HookError` unless the package is complete and fits."""
    faults = list(faults_of(environment))
    if faults:
        raise HookError(*faults)
    print("The package fits.")


def faults_of(environment: Mapping[str, str]) -> Iterator[HookFault]:
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
