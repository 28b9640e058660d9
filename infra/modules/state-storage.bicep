param name string
param location string
param tags object
param redundancy string
param withTables bool
param appPrincipalId string
param privateSubnetId string

var roles = loadJsonContent('../roles.json')
var content = loadJsonContent('../storage.json')
var queueNames = map(loadJsonContent('../queues.json').storageQueues, queue => queue.name)
var tableNames = withTables ? content.tables : []
var isolated = !empty(privateSubnetId)
var skus = {
  zone: 'Standard_ZRS'
  geo: 'Standard_GRS'
  'geo-zone': 'Standard_GZRS'
}
var privateGroups = withTables ? ['blob', 'queue', 'table'] : ['blob', 'queue']

// The state of the orders, and the queues from which they come. Behind private endpoints Azure's own services may still
// pass: that is how Event Grid delivers to a queue.
resource account 'Microsoft.Storage/storageAccounts@2025-01-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: skus[redundancy]
  }
  properties: {
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      defaultAction: isolated ? 'Deny' : 'Allow'
      bypass: 'AzureServices'
    }
  }
}

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource tables 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-01-01' = [
  for table in tableNames: {
    parent: tableService
    name: table
  }
]

resource tableRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (table, i) in tableNames: {
    name: guid(tables[i].id, appPrincipalId, roles.storageTableDataContributor)
    scope: tables[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId(
        'Microsoft.Authorization/roleDefinitions',
        roles.storageTableDataContributor
      )
    }
  }
]

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource queues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-01-01' = [
  for queue in queueNames: {
    parent: queueService
    name: queue
  }
]

resource queueRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in queueNames: {
    name: guid(queues[i].id, appPrincipalId, roles.storageQueueDataContributor)
    scope: queues[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId(
        'Microsoft.Authorization/roleDefinitions',
        roles.storageQueueDataContributor
      )
    }
  }
]

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = [
  for container in content.containers: {
    parent: blobService
    name: container
  }
]

resource containerRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (container, i) in content.containers: {
    name: guid(containers[i].id, appPrincipalId, roles.storageBlobDataContributor)
    scope: containers[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
    }
  }
]

module endpoints 'private-endpoint.bicep' = [
  for group in (isolated ? privateGroups : []): {
    name: 'endpoint-${name}-${group}'
    params: {
      targetName: name
      targetId: account.id
      groupId: group
      zoneName: 'privatelink.${group}.${environment().suffixes.storage}'
      subnetId: privateSubnetId
      location: location
      tags: tags
    }
  }
]

output name string = account.name
output tableEndpoint string = account.properties.primaryEndpoints.table
output queueEndpoint string = account.properties.primaryEndpoints.queue
output blobEndpoint string = account.properties.primaryEndpoints.blob
