# azd runs this before it makes anything: what could be deployed, and then could not start, is refused here.
# preprovision.sh says the same to Linux and macOS.
$ErrorActionPreference = 'Stop'
$faults = @()

if ($env:SIMULATED_SERVICES -eq 'true') {
    if ($env:FRONT_DOOR_ID) {
        $faults += "FRONT_DOOR_ID: the app calls its simulated services at its own address, which only Front Door could reach"
    }
}
else {
    foreach ($name in 'PAYMENT_URL', 'INVENTORY_URL', 'SHIPPING_URL') {
        if ("$([Environment]::GetEnvironmentVariable($name))" -notlike 'https://*') {
            $faults += "${name}: expected the address of the service, https://; for a demonstration: azd env set SIMULATED_SERVICES true"
        }
    }
}
if ($env:MONTHLY_BUDGET -and $env:MONTHLY_BUDGET -ne '0' -and -not $env:BUDGET_START) {
    $faults += "BUDGET_START: expected the first day of this month, such as 2026-12-01"
}
if ($faults) {
    [Console]::Error.WriteLine("Not deployed, since the app could not work:`n- " + ($faults -join "`n- "))
    exit 1
}
