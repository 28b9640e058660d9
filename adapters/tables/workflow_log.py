"""What each version of a workflow was at first, in table `agents`: a row for each."""

from adapters.tables.operations import Insert, Table
from adapters.tables.rows import Columns, columns_of
from core.errors import ConflictError, UnavailableError

PARTITION = "workflows"


class TableWorkflowLog:
    """`WorkflowLog` on a table."""

    def __init__(self, table: Table[Columns]) -> None:
        self._table = table

    async def first(self, name: str, version: int, fingerprint: str) -> str:
        """See `WorkflowLog.first`."""
        row = f"{name}|{version}"
        try:
            if (known := await self._table.get(PARTITION, row)) is None:
                await self._table.submit(PARTITION, [Insert(row, {"Fingerprint": fingerprint})])
                return fingerprint
        except ConflictError as error:
            raise UnavailableError(f"another instance keeps workflow {name} just now") from error
        text: str = columns_of(known)["Fingerprint"]
        return text
