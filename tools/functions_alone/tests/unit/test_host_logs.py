"""What a host writes into its log."""

import logging

from functions_alone.host.logs import HostFieldsFormatter


def test_no_text_makes_a_line_that_looks_like_another_record():
    """Neither a message, nor a field, nor an exception: what follows the first line is indented."""
    forged = "a\n2026-11-23 13:00:00,000 ERROR forged\r\u2028\x1b[2Jb"
    record = logging.makeLogRecord({"msg": forged, "field": forged, "name": "x"})
    record.exc_info = (ValueError, ValueError(forged), None)
    lines = HostFieldsFormatter("%(message)s").format(record).split("\n")
    assert lines[0] == "a"
    assert [line for line in lines[1:] if not line.startswith("    ")] == []
    assert "".join(lines).isprintable()
