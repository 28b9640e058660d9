param name string
param location string
param tags object
param premium bool
param scaleByLength bool
param appPrincipalId string
param isolated bool

var roles = loadJsonContent('../roles.json')
var allQueues = concat(loadJsonContent('../queues.json').serviceBusQueues, loadJsonContent('../agents.json').queues)
var deadLetterName = 'dead-letters'
var queueList = filter(allQueues, queue => queue.name != deadLetterName)
var deadLetterRules = filter(allQueues, queue => queue.name == deadLetterName)[0]
// The app sends to the response queues of those who submit, and receives from all others.
var ownersPrefix = 'status-'
var receivedFrom = filter(queueList, queue => !startsWith(queue.name, ownersPrefix))
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

// All other queues except those for senders (status-…) forward their dead letters to this queue, so one function handles
// them. Its own dead letters, and those of the queues for senders, raise the alert dead-lettered.
resource deadLetters 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: namespace
  name: deadLetterName
  properties: {
    lockDuration: deadLetterRules.lockDuration
    maxDeliveryCount: deadLetterRules.maxDeliveryCount
    defaultMessageTimeToLive: deadLetterRules.defaultMessageTimeToLive
    deadLetteringOnMessageExpiration: deadLetterRules.deadLetteringOnMessageExpiration
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
      forwardDeadLetteredMessagesTo: startsWith(queue.name, ownersPrefix) ? null : deadLetters.name
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

resource ownQueues 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' existing = [
  for queue in receivedFrom: {
    parent: namespace
    name: queue.name
  }
]

resource receivers 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in receivedFrom: {
    name: guid(ownQueues[i].id, appPrincipalId, roles.serviceBusDataReceiver)
    scope: ownQueues[i]
    properties: {
      principalId: appPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataReceiver)
    }
    dependsOn: [
      queues
    ]
  }
]

resource receivesDeadLetters 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(deadLetters.id, appPrincipalId, roles.serviceBusDataReceiver)
  scope: deadLetters
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataReceiver)
  }
}

// To read how long a queue is, which Azure scales by, takes the right to manage it; on a queue alone it was seen not to
// be enough (Azure/azure-functions-host, issue 8261).
resource measures 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (scaleByLength) {
  name: guid(namespace.id, appPrincipalId, roles.serviceBusDataOwner)
  scope: namespace
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataOwner)
  }
}

output id string = namespace.id
output name string = namespace.name
output hostName string = '${namespace.name}.servicebus.windows.net'
