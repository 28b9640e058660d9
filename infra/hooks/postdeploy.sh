#!/bin/sh
# azd runs this after it has deployed, which it calls a success even if no function was found (Azure/azure-dev, issue
# 4271): the app has to answer, and Azure to know what else it has to start. postdeploy.ps1 says the same to Windows.
set -eu
seconds="${POSTDEPLOY_SECONDS:-600}"
keys="az functionapp keys list -g \"${AZURE_RESOURCE_GROUP:-}\" -n \"${APP_NAME:-}\" --query functionKeys.default -o tsv"
app="${APP_NAME:-}"
log="az monitor app-insights query -g \"${AZURE_RESOURCE_GROUP:-}\" --apps \"appi-${app#func-}\" --analytics-query \"union traces, exceptions | order by timestamp desc | take 50\""

look_at_functions() {
    "$(command -v python3 || command -v python)" "$(dirname "$0")/functions.py"
}

if [ -n "${FRONT_DOOR_ID:-}" ]; then
    look_at_functions
    echo "Not called: only Front Door may call the app. Ask there: curl -i https://YOUR-FRONT-DOOR/api/health"
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
        echo "404 or no answer: it did not start. Its log says why, some minutes later: $log" >&2
        echo "503: the answer names what is away or refuses the app; a role may take ten minutes to be known." >&2
        exit 1
    fi
    sleep 2
done
echo "The app is healthy."
look_at_functions
echo "Pages:   $APP_URL/ and $APP_URL/console"
echo "Key:     $keys"
echo "Try it:  python -m operators --url $APP_URL --key KEY check"
