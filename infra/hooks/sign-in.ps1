# Makes the app registration with which operators sign in, without a secret: it trusts the app's identity.
# sign-in.sh does the same on Linux and macOS. Run it once, after `azd up`; whoever runs it may register applications.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true

$client = try { azd env get-value OPERATOR_SIGN_IN_CLIENT_ID 2>$null } catch { '' }
if ($client -match '^[0-9a-fA-F-]{36}$') {
    [Console]::Error.WriteLine("There is one already: $client")
    exit 1
}
$url = azd env get-value APP_URL
$group = azd env get-value AZURE_RESOURCE_GROUP
$identity = az identity list -g $group --query "[?starts_with(name, 'id-app-')] | [0].principalId" -o tsv
$tenant = azd env get-value AZURE_TENANT_ID
$name = azd env get-value AZURE_ENV_NAME

# az takes bodies from files, whose quotes no shell changes.
function New-Body($content) {
    $file = New-TemporaryFile
    $content | ConvertTo-Json -Depth 9 -Compress | Set-Content $file
    "@$file"
}

$client = az ad app create --display-name "operators-$name" --sign-in-audience AzureADMyOrg --web-redirect-uris "$url/.auth/login/aad/callback" --enable-id-token-issuance --query appId -o tsv
$credential = @{ name = 'app'; issuer = "https://login.microsoftonline.com/$tenant/v2.0"; subject = $identity; audiences = @('api://AzureADTokenExchange') }
az ad app federated-credential create --id $client --parameters (New-Body $credential) --output none
$scope = @{ id = [guid]::NewGuid(); value = 'operate'; type = 'User'; isEnabled = $true; adminConsentDisplayName = 'Operate orders'; adminConsentDescription = 'Operate orders' }
$role = @{ id = [guid]::NewGuid(); value = 'operator'; displayName = 'Operator'; description = 'Operates orders'; isEnabled = $true; allowedMemberTypes = @('User', 'Application') }
$api = @{ identifierUris = @("api://$client"); api = @{ requestedAccessTokenVersion = 2; oauth2PermissionScopes = @($scope) }; appRoles = @($role) }
az rest --method PATCH --url "https://graph.microsoft.com/v1.0/applications(appId='$client')" --body (New-Body $api)
az ad sp create --id $client --output none
az ad sp update --id $client --set appRoleAssignmentRequired=true
azd env set OPERATOR_SIGN_IN_CLIENT_ID $client
azd env set OPERATOR_ROLE operator
Write-Output "Made: $client. Now give the operators its role Operator, in the portal: Enterprise applications, Users and groups."
Write-Output "Then: azd provision"
