#!/bin/sh
# Runs the browser for Playwright, which does not report why one exits: its messages and its exit code go to a file.
"$BROWSER_PROGRAM" "$@" 2>"$BROWSER_LOG"
code=$?
printf '\n%s\n' "exit code $code" >>"$BROWSER_LOG"
exit $code
