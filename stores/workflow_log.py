"""What each version of a workflow was at first, in table `agents`: a row for each."""

from core.errors import ConflictError, UnavailableError
from stores.tables import Insert, Table, columns_of

PARTITION = "workflows"


class WorkflowLog:
    """What each version of a workflow was when this app first had it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def first(self, name: str, version: int, fingerprint: str) -> str:
        """Keep the fingerprint unless one is kept; return the one that is. Raises `UnavailableError`."""
        row = f"{name}|{version}"
        try:
            if (known := await self._table.get(PARTITION, row)) is None:
                await self._table.submit(PARTITION, [Insert(row, {"Fingerprint": fingerprint})])
                return fingerprint
        except ConflictError as error:
            raise UnavailableError(f"another instance keeps workflow {name} just now") from error
        text: str = columns_of(known)["Fingerprint"]
        return text
