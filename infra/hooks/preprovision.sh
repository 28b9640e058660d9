#!/bin/sh
# azd runs this before it makes anything: what could be deployed, and then could not start, is refused here.
# preprovision.ps1 says the same to Windows.
set -eu
faults=""

fault() {
    faults="$faults
- $1"
}

if [ "${SIMULATED_SERVICES:-false}" = true ]; then
    [ -z "${FRONT_DOOR_ID:-}" ] ||
        fault "FRONT_DOOR_ID: the app calls its simulated services at its own address, which only Front Door could reach"
else
    for name in PAYMENT_URL INVENTORY_URL SHIPPING_URL; do
        eval "value=\${$name:-}"
        case "$value" in
        https://*) ;;
        *) fault "$name: expected the address of the service, https://; for a demonstration: azd env set SIMULATED_SERVICES true" ;;
        esac
    done
fi
if [ "${MONTHLY_BUDGET:-0}" != 0 ] && [ -z "${BUDGET_START:-}" ]; then
    fault "BUDGET_START: expected the first day of this month, such as 2026-12-01"
fi
if [ -n "$faults" ]; then
    echo "Not deployed, since the app could not work:$faults" >&2
    exit 1
fi
