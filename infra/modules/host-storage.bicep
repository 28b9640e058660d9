param name string
param location string
param tags object
param appPrincipalId string
param isolated bool
param redundancy string

var roles = loadJsonContent('../roles.json')

// What the Functions host needs for itself: keys, timers' locks. No order is kept here, and no code.
resource account 'Microsoft.Storage/storageAccounts@2025-01-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: redundancy == 'geo' ? 'Standard_LRS' : 'Standard_ZRS' // `geo` is for regions without zones, too
  }
  properties: {
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
    networkAcls: {
      defaultAction: isolated ? 'Deny' : 'Allow'
      bypass: 'None'
    }
  }
}

// The host makes containers of its own (azure-webjobs-hosts, azure-webjobs-secrets), so this role is for the account.
resource owner 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account.id, appPrincipalId, roles.storageBlobDataOwner)
  scope: account
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataOwner)
  }
}

output name string = account.name
output blobEndpoint string = account.properties.primaryEndpoints.blob
output id string = account.id
