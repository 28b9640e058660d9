# azd runs this before it makes anything: what could be deployed, and then could not start, is refused here.
# preprovision.sh says the same to Linux and macOS. services.txt, written from the business, says what the agents need.
$ErrorActionPreference = 'Stop'
$faults = @()

# Whether it is the address of a service that the app would take: with a host, and no password in it.
function Test-Address($value) {
    "$value" -match '^https://[^/]' -and "$value" -notlike '*@*'
}

# Who tries it for the first time is asked, where there is a terminal.
$services = Get-Content (Join-Path $PSScriptRoot 'services.txt') | ForEach-Object { $_.Split(' ')[2] }
$given = -join ($services | ForEach-Object { [Environment]::GetEnvironmentVariable($_) })
if (-not [Console]::IsInputRedirected -and -not "$($env:SIMULATED_SERVICES)$given") {
    $said = Read-Host "No address of a service is set. Deploy a demonstration, in which the app plays the services? [y/N]"
    if ($said -match '^[yY]') {
        $env:SIMULATED_SERVICES = 'true'
        azd env set SIMULATED_SERVICES true
    }
}
if ($env:SIMULATED_SERVICES -eq 'true') {
    if ($env:FRONT_DOOR_ID) {
        $faults += "FRONT_DOOR_ID: the app calls its simulated services at its own address, which only Front Door could reach"
    }
}
else {
    foreach ($line in Get-Content (Join-Path $PSScriptRoot 'services.txt')) {
        $kind, $need, $name = $line.Split(' ')
        $value = [Environment]::GetEnvironmentVariable($name)
        if (-not $value) {
            if ($need -ne 'optional') {
                $faults += "${name}: expected the $kind that the service needs; for a demonstration: azd env set SIMULATED_SERVICES true"
            }
        }
        elseif ($kind -eq 'address' -and -not (Test-Address $value)) {
            $faults += "${name}: expected the address of the service, https://"
        }
    }
}
# azd keeps what the last deployment said of itself. Some of it cannot be changed in place.
$isolation = if ($env:NETWORK_ISOLATION) { $env:NETWORK_ISOLATION } else { 'false' }
if ($env:DEPLOYED_NETWORK_ISOLATION -and $env:DEPLOYED_NETWORK_ISOLATION -ne $isolation) {
    $faults += "NETWORK_ISOLATION: cannot be changed in place; docs/deploy.md#what-may-be-changed-later"
}
$redundancy = if ($env:REDUNDANCY) { $env:REDUNDANCY } else { 'zone' }
$change = "$($env:DEPLOYED_REDUNDANCY):$redundancy"
$inPlace = 'geo:geo', 'zone:zone', 'zone:geo-zone', 'geo-zone:zone', 'geo-zone:geo-zone'
if ($env:DEPLOYED_REDUNDANCY -and $change -notin $inPlace) {
    $faults += "REDUNDANCY: cannot be changed in place; docs/deploy.md#what-may-be-changed-later"
}
if ($env:MONTHLY_BUDGET -and $env:MONTHLY_BUDGET -notmatch '^[0-9]+$') {
    $faults += "MONTHLY_BUDGET: expected a whole number, or 0 for no budget"
}
if ($faults) {
    [Console]::Error.WriteLine("Not deployed, since the app could not work:`n- " + ($faults -join "`n- "))
    exit 1
}
