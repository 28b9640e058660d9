"""What each version of a workflow was at first, in table `agents`: a row for each."""

from stores.tables import Table, first

PARTITION = "workflows"


class WorkflowLog:
    """What each version of a workflow was when this app first had it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def first(self, name: str, version: int, fingerprint: str) -> str:
        """Keep the fingerprint unless one is kept; return the one that is. Raises `UnavailableError`."""
        kept = await first(self._table, PARTITION, {f"{name}|{version}": {"Fingerprint": fingerprint}})
        text: str = kept["Fingerprint"]
        return text
