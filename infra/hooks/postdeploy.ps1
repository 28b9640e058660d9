# azd runs this after it has deployed, which it calls a success even if no function was found (Azure/azure-dev, issue
# 4271). All functions come from one app, so one that answers has them all. postdeploy.sh says the same to Linux and macOS.
$ErrorActionPreference = 'Stop'
$seconds = if ($env:POSTDEPLOY_SECONDS) { [int]$env:POSTDEPLOY_SECONDS } else { 600 }
$keys = "az functionapp keys list -g `"$($env:AZURE_RESOURCE_GROUP)`" -n `"$($env:APP_NAME)`" --query functionKeys.default -o tsv"

if ($env:FRONT_DOOR_ID) {
    Write-Output "Not looked at: only Front Door may call the app. Ask there: curl -i https://YOUR-FRONT-DOOR/api/health"
    exit 0
}
$end = (Get-Date).AddSeconds($seconds)
while ($true) {
    try {
        $answer = Invoke-WebRequest -Uri "$($env:APP_URL)/api/health" -TimeoutSec 60 -SkipHttpErrorCheck
        $status, $text = [string]$answer.StatusCode, [string]$answer.Content
    }
    catch {
        $status, $text = 'no answer', ''
    }
    if ($status -eq '200') { break }
    if ((Get-Date) -ge $end) {
        [Console]::Error.WriteLine("Deployed, but the app is not healthy ($status): " + $text.Substring(0, [Math]::Min(500, $text.Length)))
        [Console]::Error.WriteLine("404 or no answer: it did not start. Its log stream says why: az webapp log tail -g `"$($env:AZURE_RESOURCE_GROUP)`" -n `"$($env:APP_NAME)`"")
        [Console]::Error.WriteLine("503: the answer names what is away or refuses the app; a role may take ten minutes to be known.")
        exit 1
    }
    Start-Sleep -Seconds 2
}
Write-Output "The app is healthy."
Write-Output "Pages:   $($env:APP_URL)/ and $($env:APP_URL)/console"
Write-Output "Key:     $keys"
Write-Output "Try it:  python -m operators --url $($env:APP_URL) --key KEY check"
if (-not $env:MONTHLY_BUDGET -or $env:MONTHLY_BUDGET -eq '0') {
    Write-Output "Nobody is told what it costs: azd env set MONTHLY_BUDGET 100 && azd provision"
}
