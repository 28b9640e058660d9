# azd runs this after it has deployed, which it calls a success even if no function was found (Azure/azure-dev, issue
# 4271): the app has to answer, and Azure to know what else it has to start. postdeploy.sh says the same to Linux, macOS.
$ErrorActionPreference = 'Stop'
$seconds = if ($env:POSTDEPLOY_SECONDS) { [int]$env:POSTDEPLOY_SECONDS } else { 600 }
$keys = "az functionapp keys list -g `"$($env:AZURE_RESOURCE_GROUP)`" -n `"$($env:APP_NAME)`" --query functionKeys.default -o tsv"
$log = "az monitor app-insights query -g `"$($env:AZURE_RESOURCE_GROUP)`" --apps `"$($env:APP_NAME -replace '^func-', 'appi-')`" --analytics-query `"union traces, exceptions | order by timestamp desc | take 50`""

function Test-Functions {
    & (Get-Command python).Source (Join-Path $PSScriptRoot 'functions.py')
    if ($LASTEXITCODE -ne 0) { exit 1 }
}

if ($env:FRONT_DOOR_ID) {
    Test-Functions
    Write-Output "Not called: only Front Door may call the app. Ask there: curl -i https://YOUR-FRONT-DOOR/api/health"
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
        [Console]::Error.WriteLine("404 or no answer: it did not start. Its log says why, some minutes later: $log")
        [Console]::Error.WriteLine("503: the answer names what is away or refuses the app; a role may take ten minutes to be known.")
        exit 1
    }
    Start-Sleep -Seconds 2
}
Write-Output "The app is healthy."
Test-Functions
Write-Output "Pages:   $($env:APP_URL)/ and $($env:APP_URL)/console"
Write-Output "Key:     $keys"
Write-Output "Try it:  python -m operators --url $($env:APP_URL) --key KEY check"
