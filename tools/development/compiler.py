"""Microsoft's Bicep compiler as a process that answers many requests.

It speaks JSON-RPC on its standard input and output. Its start takes four seconds of CPU, and each further request
about half a second. <https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-cli#jsonrpc>
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from development.faults import DevelopmentCode
from functions_alone.faults import StackFault
from functions_alone.ports import StackError

DEPLOYMENT = {
    "subscriptionId": "00000000-0000-0000-0000-000000000001",
    "tenantId": "00000000-0000-0000-0000-000000000002",
    "location": "westeurope",
    "deploymentName": "snapshot",
}
"""The target of a snapshot. Without it, every name in the snapshot stays a formula."""


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A message of the compiler about a place in a file. Lines count from 1."""

    level: str
    code: str
    message: str
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}({self.line}) : {self.level} {self.code}: {self.message}"


class Compiler:
    """Requests to the compiler.

    Each raises `StackError` with the diagnostics if the compiler refuses a file or ends.
    """

    def __init__(
        self, program: str, requests: IO[bytes], answers: IO[bytes], errors: IO[bytes]
    ) -> None:
        self._program, self._requests, self._answers, self._errors = (
            program,
            requests,
            answers,
            errors,
        )
        self._sent = 0

    def files_read(self, template: Path) -> list[Path]:
        """Return every file that the compiler reads for a template.

        These are the template, modules, loaded files, and configuration.
        """
        return [Path(path) for path in self._request("getFileReferences", template)["filePaths"]]

    def compile(self, template: Path) -> dict[str, Any]:
        """Return the template for Azure Resource Manager."""
        compiled = self._request("compile", template)
        self._succeeded(template, compiled)
        content: dict[str, Any] = json.loads(compiled["contents"])
        return content

    def diagnostics(self, parameters: Path) -> list[Diagnostic]:
        return _diagnostics(self._request("compileParams", parameters, parameterOverrides={}))

    def snapshot(self, parameters: Path) -> dict[str, Any]:
        """Return what the template of a parameters file would deploy."""
        try:
            taken = self._request("getSnapshot", parameters, metadata=DEPLOYMENT)
        except StackError:
            # It says no more than that it failed.
            checked = self._request("compileParams", parameters, parameterOverrides={})
            self._succeeded(parameters, checked)
            raise
        content: dict[str, Any] = json.loads(taken["snapshot"])
        if content.pop("diagnostics"):
            raise self._refused(parameters, taken["snapshot"])
        return content

    def _succeeded(self, file: Path, result: Mapping[str, Any]) -> None:
        if not result["success"]:
            raise self._refused(file, "\n".join(map(str, _diagnostics(result))))

    def _refused(self, file: Path, diagnostics: str) -> StackError:
        facts = {"diagnostics": diagnostics}
        return StackError(StackFault(DevelopmentCode.TEMPLATE_REFUSED, str(file), facts))

    def _request(self, method: str, path: Path, **more: Any) -> dict[str, Any]:
        self._sent += 1
        params = {"path": str(path), **more}
        request = {
            "jsonrpc": "2.0",
            "id": self._sent,
            "method": f"bicep/{method}",
            "params": params,
        }
        try:
            self._write(json.dumps(request).encode())
            answer = self._read()
        except (OSError, ValueError) as error:
            self._errors.seek(0)
            facts = {"output": self._errors.read().decode(errors="replace").strip()}
            raise StackError(
                StackFault(DevelopmentCode.BICEP_ENDED, self._program, facts)
            ) from error
        if "error" in answer:
            raise self._refused(path, answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    def _write(self, body: bytes) -> None:
        self._requests.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._requests.flush()

    def _read(self) -> dict[str, Any]:
        length = 0
        while line := self._answers.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        answer: dict[str, Any] = json.loads(self._answers.read(length))
        return answer


def _diagnostics(result: Mapping[str, Any]) -> list[Diagnostic]:
    return [
        Diagnostic(
            level=found["level"],
            code=found["code"],
            message=found["message"],
            file=Path(found["source"]),
            line=found["range"]["start"]["line"] + 1,
        )
        for found in result["diagnostics"]
    ]


@contextmanager
def running(program: str) -> Iterator[Compiler]:
    """Start a compiler, and stop it at the end."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - the compiler that was found
            [program, "jsonrpc", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        pipes = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        try:
            yield Compiler(program, *pipes, errors)
        finally:
            process.kill()
            process.communicate()
