param name string
param location string
param tags object
param premium bool
param appPrincipalId string
param privateSubnetId string

var roles = loadJsonContent('../roles.json')
var queueList = loadJsonContent('../queues.json').serviceBusQueues
var isolated = !empty(privateSubnetId)
var tier = premium ? 'Premium' : 'Standard'

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: tier
    tier: tier
    capacity: premium ? 1 : null
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
  }
}

resource queues 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = [
  for queue in queueList: {
    parent: namespace
    name: queue.name
    properties: {
      lockDuration: queue.lockDuration
      maxDeliveryCount: queue.maxDeliveryCount
      defaultMessageTimeToLive: queue.defaultMessageTimeToLive
      deadLetteringOnMessageExpiration: queue.?deadLetteringOnMessageExpiration ?? false
      requiresDuplicateDetection: queue.?requiresDuplicateDetection ?? false
      requiresSession: queue.?requiresSession ?? false
    }
  }
]

resource senders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in queueList: {
    name: guid(queues[i].id, appPrincipalId, roles.serviceBusDataSender)
    scope: queues[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataSender)
    }
  }
]

resource receivers 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in queueList: {
    name: guid(queues[i].id, appPrincipalId, roles.serviceBusDataReceiver)
    scope: queues[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataReceiver)
    }
  }
]

module endpoint 'private-endpoint.bicep' = if (isolated) {
  name: 'endpoint-${name}'
  params: {
    targetName: name
    targetId: namespace.id
    groupId: 'namespace'
    zoneName: 'privatelink.servicebus.windows.net'
    subnetId: privateSubnetId
    location: location
    tags: tags
  }
}

output id string = namespace.id
output hostName string = '${namespace.name}.servicebus.windows.net'
