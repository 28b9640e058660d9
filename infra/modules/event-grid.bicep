param name string
param location string
param tags object
param storageAccountName string
param alertQueue string
param appPrincipalId string
param isolated bool

var roles = loadJsonContent('../roles.json')

resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: storageAccountName
}

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-01-01' existing = {
  parent: storage
  name: 'default'
}

resource queue 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-01-01' existing = {
  parent: queueService
  name: alertQueue
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' existing = {
  parent: storage
  name: 'default'
}

resource undelivered 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-01-01' = {
  parent: blobService
  name: 'undelivered-alerts'
}

// With an identity of the system: behind the account's firewall, Azure trusts no other to deliver
// (MicrosoftDocs/azure-docs, issue 105746).
resource topic 'Microsoft.EventGrid/topics@2025-02-15' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    inputSchema: 'CloudEventSchemaV1_0'
    disableLocalAuth: true
    minimumTlsVersionAllowed: '1.2'
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
  }
}

resource appSends 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(topic.id, appPrincipalId, roles.eventGridDataSender)
  scope: topic
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.eventGridDataSender)
  }
}

resource topicDelivers 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(queue.id, topic.id, roles.storageQueueDataMessageSender)
  scope: queue
  properties: {
    principalId: topic.identity.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      roles.storageQueueDataMessageSender
    )
  }
}

resource topicKeepsUndelivered 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(undelivered.id, topic.id, roles.storageBlobDataContributor)
  scope: undelivered
  properties: {
    principalId: topic.identity.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataContributor)
  }
}

output id string = topic.id
output name string = topic.name
output undeliveredName string = undelivered.name
output endpoint string = topic.properties.endpoint
