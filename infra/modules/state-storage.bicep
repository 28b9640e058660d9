param name string
param location string
param tags object
param redundancy string
param withSimulator bool
param roleOnAccount bool
param locked bool
param accessLog bool
param workspaceId string
param appPrincipalId string
param isolated bool

var roles = loadJsonContent('../roles.json')
var content = loadJsonContent('../storage.json')
var queueNames = map(loadJsonContent('../queues.json').storageQueues, queue => queue.name)
var tableNames = filter(content.tables, table => withSimulator || table != 'simulator')
var skus = {
  zone: 'Standard_ZRS'
  geo: 'Standard_GRS'
  'geo-zone': 'Standard_GZRS'
}

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

// Against a deletion by mistake: of the account, not of what is in it.
resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  name: 'orders'
  scope: account
  properties: {
    level: 'CanNotDelete'
    notes: 'It has the orders. docs/operations/disaster-recovery.md says what cannot be brought back.'
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
  for (table, i) in (roleOnAccount ? [] : tableNames): {
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

// A table transaction is sent to the address of the account, so Azure may require a role on the account.
resource tableRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (roleOnAccount) {
  name: guid(account.id, appPrincipalId, roles.storageTableDataContributor)
  scope: account
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      roles.storageTableDataContributor
    )
  }
}

// Who read or wrote which rows: they hold customers' names. (There is no stable version of this type.)
// It is deployed without the log too: a setting that is left out would stay, and go on logging.
resource access 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'access'
  scope: tableService
  properties: {
    workspaceId: workspaceId
    logs: [
      for category in ['StorageRead', 'StorageWrite', 'StorageDelete']: {
        category: category
        enabled: accessLog
      }
    ]
  }
}

// One service after the other: two changes of an account at the same time may be refused (StorageAccountOperationInProgress).
resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-01-01' = {
  parent: account
  name: 'default'
  dependsOn: [
    tableService
  ]
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
  dependsOn: [
    queueService
  ]
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

output id string = account.id
output name string = account.name
output tableEndpoint string = account.properties.primaryEndpoints.table
output queueEndpoint string = account.properties.primaryEndpoints.queue
output blobEndpoint string = account.properties.primaryEndpoints.blob
