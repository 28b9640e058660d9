#!/bin/sh
# Makes the app registration with which operators sign in, without a secret: it trusts the app's identity.
# sign-in.ps1 does the same on Windows. Run it once, after `azd up`; whoever runs it may register applications.
set -eu

value() {
    azd env get-value "$1"
}

client=$(value OPERATOR_SIGN_IN_CLIENT_ID 2>/dev/null) || client=""
case "$client" in
????????-????-????-????-????????????)
    echo "There is one already: $client" >&2
    exit 1
    ;;
esac
url=$(value APP_URL)
identity=$(az identity list -g "$(value AZURE_RESOURCE_GROUP)" --query "[?starts_with(name, 'id-app-')] | [0].principalId" -o tsv)
tenant=$(value AZURE_TENANT_ID)
new_id() {
    "$(command -v python3 || command -v python)" -c 'import uuid; print(uuid.uuid4())'
}

client=$(az ad app create --display-name "operators-$(value AZURE_ENV_NAME)" --sign-in-audience AzureADMyOrg \
    --web-redirect-uris "$url/.auth/login/aad/callback" --enable-id-token-issuance --query appId -o tsv)
az ad app federated-credential create --id "$client" --parameters "{\"name\":\"app\",\"issuer\":\"https://login.microsoftonline.com/$tenant/v2.0\",\"subject\":\"$identity\",\"audiences\":[\"api://AzureADTokenExchange\"]}" --output none
az rest --method PATCH --url "https://graph.microsoft.com/v1.0/applications(appId='$client')" --body "{\"identifierUris\":[\"api://$client\"],\"api\":{\"requestedAccessTokenVersion\":2,\"oauth2PermissionScopes\":[{\"id\":\"$(new_id)\",\"value\":\"operate\",\"type\":\"User\",\"isEnabled\":true,\"adminConsentDisplayName\":\"Operate orders\",\"adminConsentDescription\":\"Operate orders\"}]},\"appRoles\":[{\"id\":\"$(new_id)\",\"value\":\"operator\",\"displayName\":\"Operator\",\"description\":\"Operates orders\",\"isEnabled\":true,\"allowedMemberTypes\":[\"User\",\"Application\"]}]}"
az ad sp create --id "$client" --output none
az ad sp update --id "$client" --set appRoleAssignmentRequired=true
azd env set OPERATOR_SIGN_IN_CLIENT_ID "$client"
azd env set OPERATOR_ROLE operator
echo "Made: $client. Now give the operators its role Operator, in the portal: Enterprise applications, Users and groups."
echo "Then: azd provision"
