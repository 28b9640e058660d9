#!/bin/sh
# azd runs this before it makes anything: what could be deployed, and then could not start, is refused here.
# preprovision.ps1 says the same to Windows. services.txt, written from the business, says what the agents need.
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

# Who tries it for the first time is asked, where there is a terminal.
given=""
while read -r _ _ name; do
    eval "given=\$given\${$name:-}"
done <"$(dirname "$0")/services.txt"
if [ -t 0 ] && [ -z "${SIMULATED_SERVICES:-}$given" ]; then
    printf "No address of a service is set. Deploy a demonstration, in which the app plays the services? [y/N] "
    read -r said
    case "$said" in
    [yY]*)
        SIMULATED_SERVICES=true
        azd env set SIMULATED_SERVICES true
        ;;
    esac
fi
if [ "${SIMULATED_SERVICES:-false}" = true ]; then
    [ -z "${FRONT_DOOR_ID:-}" ] ||
        fault "FRONT_DOOR_ID: the app calls its simulated services at its own address, which only Front Door could reach"
else
    while read -r kind need name; do
        eval "value=\${$name:-}"
        if [ -z "$value" ]; then
            [ "$need" = optional ] ||
                fault "$name: expected the $kind that the service needs; for a demonstration: azd env set SIMULATED_SERVICES true"
        elif [ "$kind" = address ] && ! is_address "$value"; then
            fault "$name: expected the address of the service, https://"
        fi
    done <"$(dirname "$0")/services.txt"
fi
# azd keeps what the last deployment said of itself. Some of it cannot be changed in place.
[ "${DEPLOYED_NETWORK_ISOLATION:-${NETWORK_ISOLATION:-false}}" = "${NETWORK_ISOLATION:-false}" ] ||
    fault "NETWORK_ISOLATION: cannot be changed in place; docs/deploy.md#what-may-be-changed-later"
case "${DEPLOYED_REDUNDANCY:-}:${REDUNDANCY:-zone}" in
geo:geo | zone:zone | zone:geo-zone | geo-zone:zone | geo-zone:geo-zone | :*) ;;
*) fault "REDUNDANCY: cannot be changed in place; docs/deploy.md#what-may-be-changed-later" ;;
esac
case "${MONTHLY_BUDGET:-0}" in
*[!0-9]*) fault "MONTHLY_BUDGET: expected a whole number, or 0 for no budget" ;;
esac
if [ -n "$faults" ]; then
    echo "Not deployed, since the app could not work:$faults" >&2
    exit 1
fi
