"""What waits in the outbox."""

from engine.domain.work_index import WorkItemKind, all_of
from engine.storage import outbox


async def outbox_rows(store, bucket, limit=10_000):
    """The rows of the outbox of a bucket, due or not."""
    return await store.work_items(bucket, *all_of(WorkItemKind.OUTBOX), limit)


async def pending_events(store, *buckets):
    """What operators are still to be told."""
    rows = [row for bucket in buckets for row in await outbox_rows(store, bucket)]
    return [outbox.content_of(row) for row in rows if not outbox.is_notice(row)]
