param name string
param location string
param tags object
param deployerPrincipalId string
param isolated bool
param redundancy string

var roles = loadJsonContent('../roles.json')

// The code that runs, in an account of its own: the identity as which the app calls everything cannot write here.
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

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobs
  name: 'packages'
}

// Whoever deploys sends the package to the site, which puts it here and starts from it, as this identity.
resource contributor 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(packages.id, deployerPrincipalId, roles.storageBlobDataContributor)
  scope: packages
  properties: {
    principalId: deployerPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

output id string = account.id
output containerUrl string = '${account.properties.primaryEndpoints.blob}${packages.name}'
