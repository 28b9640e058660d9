#!/bin/sh
# azd runs this after it has deployed, which it calls a success even if no function was found (Azure/azure-dev, issue
# 4271). All functions come from one app, so one that answers has them all. postdeploy.ps1 says the same to Windows.
set -eu
seconds="${POSTDEPLOY_SECONDS:-600}"
keys="az functionapp keys list -g \"${AZURE_RESOURCE_GROUP:-}\" -n \"${APP_NAME:-}\" --query functionKeys.default -o tsv"

if [ -n "${FRONT_DOOR_ID:-}" ]; then
    echo "Not looked at: only Front Door may call the app. Ask there: curl -i https://YOUR-FRONT-DOOR/api/health"
    exit 0
fi
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
end=$(($(date +%s) + seconds))
while :; do
    status=$(curl --silent --max-time 60 --output "$answer" --write-out '%{http_code}' "$APP_URL/api/health") || status="no answer"
    [ "$status" != 200 ] || break
    if [ "$(date +%s)" -ge "$end" ]; then
        echo "Deployed, but the app is not healthy ($status): $(head -c 500 "$answer")" >&2
        echo "404 or no answer: it did not start. Its log stream says why: az webapp log tail -g \"${AZURE_RESOURCE_GROUP:-}\" -n \"${APP_NAME:-}\"" >&2
        echo "503: the answer names what is away or refuses the app; a role may take ten minutes to be known." >&2
        exit 1
    fi
    sleep 2
done
echo "The app is healthy."
echo "Pages:   $APP_URL/ and $APP_URL/console"
echo "Key:     $keys"
echo "Try it:  python -m operators --url $APP_URL --key KEY check"
[ "${MONTHLY_BUDGET:-0}" != 0 ] || echo "Nobody is told what it costs: azd env set MONTHLY_BUDGET 100 && azd provision"
