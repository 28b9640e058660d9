#!/bin/sh
# azd runs this before it makes anything: what could be deployed, and then could not start, is refused here.
# preprovision.ps1 says the same to Windows.
set -eu
faults=""

fault() {
    faults="$faults
- $1"
}

# Whether it is the address of a service that the app would take: with a host, and no password in it.
is_address() {
    case "$1" in
    *@* | https:///*) return 1 ;;
    https://?*) return 0 ;;
    *) return 1 ;;
    esac
}

if [ "${SIMULATED_SERVICES:-false}" = true ]; then
    [ -z "${FRONT_DOOR_ID:-}" ] ||
        fault "FRONT_DOOR_ID: the app calls its simulated services at its own address, which only Front Door could reach"
else
    for name in PAYMENT_URL INVENTORY_URL SHIPPING_URL; do
        eval "value=\${$name:-}"
        is_address "$value" ||
            fault "$name: expected the address of the service, https://; for a demonstration: azd env set SIMULATED_SERVICES true"
    done
    [ -z "${PAYMENT_BACKUP_URL:-}" ] || is_address "$PAYMENT_BACKUP_URL" ||
        fault "PAYMENT_BACKUP_URL: expected the address of the service, https://, or nothing"
fi
if [ "${MONTHLY_BUDGET:-0}" != 0 ]; then
    case "${BUDGET_START:-}" in
    [0-9][0-9][0-9][0-9]-[01][0-9]-01) ;;
    *) fault "BUDGET_START: expected the first day of this month, such as 2026-12-01" ;;
    esac
fi
if [ -n "$faults" ]; then
    echo "Not deployed, since the app could not work:$faults" >&2
    exit 1
fi
