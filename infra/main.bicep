targetScope = 'subscription'

@description('Name of the environment: part of every resource name, and the value of the tag azd-env-name.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Azure region of all resources. It has to offer Flex Consumption and, for zone redundancy, availability zones.')
@minLength(1)
@metadata({ azd: { type: 'location' } })
param location string

@description('Where alerts are sent: the operators\' e-mail addresses, with commas between them.')
@minLength(6)
param operatorEmail string

@description('Addresses, https, to which alerts are posted in the common alert schema, with commas between them; they may hold a secret.')
@secure()
param operatorWebhooks string = ''

@description('Ask from three places every quarter of an hour whether the app is healthy; not behind Front Door, which alone may call it.')
param availabilityTest bool = true

@description('Whether the state of the orders is kept in several zones, in two regions, or both.')
@allowed([
  'zone'
  'geo'
  'geo-zone'
])
param redundancy string = 'zone'

@description('Refuse the deletion of the account that has the orders, until somebody deletes the lock; needs the right to make locks.')
param lockState bool = false

@description('Reach storage, Service Bus and Event Grid through private endpoints only; needs Service Bus Premium.')
param networkIsolation bool = false

@description('Instances that are always ready for each function on the way of an order, and for HTTP calls; 0 costs nothing while nothing happens.')
@minValue(0)
@maxValue(20)
param alwaysReadyInstances int = 0

@description('Instances at most, for HTTP calls together and for each other function by itself. What all may have is the quota of the region.')
@minValue(1)
@maxValue(1000)
param maximumInstances int = 100

@description('HTTP calls that an instance handles at the same time. Without it Azure starts an instance for each, since the app is in Python.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 32

@description('How a new version or a changed setting gets to the instances: Recreate ends what runs, RollingUpdate (in preview) lets it end.')
@allowed([
  'Recreate'
  'RollingUpdate'
])
param updateStrategy string = 'Recreate'

@description('Keep instances of the app in several zones, for which Azure bills two that are always ready for HTTP calls and for each function.')
param zoneRedundantApp bool = false

@description('Memory of one instance in MB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Version of Python on Azure.')
@allowed([
  '3.11'
  '3.12'
  '3.13'
])
param pythonVersion string = '3.13'

@description('Let the app also play the remote services, which fail on demand: for demonstrations, never in production.')
param simulatedServices bool = false

@description('What the agents need to call their services, by the names of the app\'s settings: addresses, scopes, secrets or where Key Vault has them.')
@secure()
param serviceSettings object = {}

@description('Make a Key Vault for what the services ask for, which the app may read.')
param keyVault bool = false

@description('Object id of a developer, or of a group, who may do what the app does; empty for nobody.')
param developerPrincipalId string = ''

@description('Further settings of the app by name, which take the place of those that the templates set.')
param appSettings object = {}

@description('After how many days finished orders, with customers\' names, and alerts are removed; 0 keeps them for ever.')
@minValue(0)
@maxValue(10000)
param retentionDays int = 365

@description('Log who reads and writes the tables, which hold customers\' names.')
param accessLog bool = true

@description('How many days the log is kept.')
@minValue(4)
@maxValue(730)
param logDays int = 30

@description('How many days the access log is kept.')
@minValue(30)
@maxValue(730)
param accessLogDays int = 90

@description('Gigabytes of log after which Azure takes no more on that day; 0: no limit. Alerts on the log are blind from there on.')
@minValue(0)
param dailyLogGigabytes int = 0

@description('Id of the Azure Front Door through which alone the app may be called; empty: anybody may call its address.')
param frontDoorId string = ''

@description('From where alone a new version may be deployed, as a range such as 203.0.113.7/32; empty: from anywhere.')
param deployFrom string = ''

@description('Origins of other sites\' pages that may call the app, such as https://shop.example.com, with commas between them.')
param corsOrigins string = ''

@description('Give the app its role for tables on the whole account, should Azure refuse transactions with a role on each table.')
param roleOnAccount bool = false

@description('Scale by the length of the Service Bus queues, for which the app must have the right to manage them.')
param scaleByLength bool = false

@description('Client id of an app registration with which operators sign in (Entra ID), besides needing the key; empty for the key alone.')
param operatorSignInClientId string = ''

@description('App role that whoever signs in must have to operate orders; empty for everybody who is assigned to the registration.')
param operatorRole string = ''

@description('How long, in minutes, the supervisor may stay away before the operators are alerted.')
@allowed([
  5
  10
  15
  30
  45
])
param sweepMissingMinutes int = 15

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = {
  'azd-env-name': environmentName
}

var operatorEmails = filter(split(replace(operatorEmail, ' ', ''), ','), address => !empty(address))
var alertQueue = 'operator-alerts'
var storageSuffix = environment().suffixes.storage
var blobZone = 'privatelink.blob.${storageSuffix}'

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

// As which the app calls everything.
module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    name: 'id-app-${token}'
    location: location
    tags: tags
  }
}

// As which the platform keeps and fetches the package that runs.
module deployer 'modules/identity.bicep' = {
  name: 'deployer'
  scope: group
  params: {
    name: 'id-deploy-${token}'
    location: location
    tags: tags
  }
}

module monitoring 'modules/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    appPrincipalId: identity.outputs.principalId
    logDays: logDays
    accessLogDays: accessLogDays
    dailyLogGigabytes: dailyLogGigabytes
  }
}

module network 'modules/network.bicep' = if (networkIsolation) {
  name: 'network'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
  }
}

module hostStorage 'modules/host-storage.bicep' = {
  name: 'host-storage'
  scope: group
  params: {
    name: 'sthost${token}'
    location: location
    tags: tags
    redundancy: redundancy
    appPrincipalId: identity.outputs.principalId
    isolated: networkIsolation
  }
}

module packageStorage 'modules/package-storage.bicep' = {
  name: 'package-storage'
  scope: group
  params: {
    name: 'stpack${token}'
    location: location
    tags: tags
    redundancy: redundancy
    deployerPrincipalId: deployer.outputs.principalId
    isolated: networkIsolation
  }
}

module stateStorage 'modules/state-storage.bicep' = {
  name: 'state-storage'
  scope: group
  params: {
    name: 'ststate${token}'
    location: location
    tags: tags
    redundancy: redundancy
    locked: lockState
    withSimulator: simulatedServices
    roleOnAccount: roleOnAccount
    accessLogWorkspaceId: accessLog ? monitoring.outputs.workspaceId : ''
    appPrincipalId: identity.outputs.principalId
    isolated: networkIsolation
  }
}

module serviceBus 'modules/service-bus.bicep' = {
  name: 'service-bus'
  scope: group
  params: {
    name: 'sb-${token}'
    location: location
    tags: tags
    premium: networkIsolation
    scaleByLength: scaleByLength
    appPrincipalId: identity.outputs.principalId
    isolated: networkIsolation
  }
}

module eventGrid 'modules/event-grid.bicep' = {
  name: 'event-grid'
  scope: group
  params: {
    name: 'evgt-${token}'
    location: location
    tags: tags
    storageAccountName: stateStorage.outputs.name
    alertQueue: alertQueue
    appPrincipalId: identity.outputs.principalId
    isolated: networkIsolation
  }
}

module vault 'modules/vault.bicep' = if (keyVault) {
  name: 'vault'
  scope: group
  params: {
    name: 'kv-${token}'
    location: location
    tags: tags
    appPrincipalId: identity.outputs.principalId
    isolated: networkIsolation
  }
}

module developer 'modules/developer.bicep' = if (!empty(developerPrincipalId)) {
  name: 'developer'
  scope: group
  params: {
    principalId: developerPrincipalId
    stateAccountName: stateStorage.outputs.name
    serviceBusName: serviceBus.outputs.name
    topicName: eventGrid.outputs.name
    vaultName: keyVault ? vault!.outputs.name : ''
  }
}

var sharedTargets = [
  { name: 'sthost${token}', id: hostStorage.outputs.id, group: 'blob', zone: blobZone }
  { name: 'stpack${token}', id: packageStorage.outputs.id, group: 'blob', zone: blobZone }
  { name: 'ststate${token}', id: stateStorage.outputs.id, group: 'blob', zone: blobZone }
  { name: 'ststate${token}', id: stateStorage.outputs.id, group: 'queue', zone: 'privatelink.queue.${storageSuffix}' }
  { name: 'ststate${token}', id: stateStorage.outputs.id, group: 'table', zone: 'privatelink.table.${storageSuffix}' }
  { name: 'sb-${token}', id: serviceBus.outputs.id, group: 'namespace', zone: 'privatelink.servicebus.windows.net' }
  { name: 'evgt-${token}', id: eventGrid.outputs.id, group: 'topic', zone: 'privatelink.eventgrid.azure.net' }
]
var vaultTarget = {
  name: 'kv-${token}'
  id: keyVault ? vault!.outputs.id : ''
  group: 'vault'
  zone: 'privatelink.vaultcore.azure.net'
}

module privateEndpoints 'modules/private-endpoints.bicep' = if (networkIsolation) {
  name: 'private-endpoints'
  scope: group
  params: {
    targets: flatten([
      sharedTargets
      keyVault ? [vaultTarget] : []
    ])
    subnetId: network!.outputs.endpointsSubnetId
    location: location
    tags: tags
  }
}

module app 'modules/app.bicep' = {
  name: 'app'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    identityId: identity.outputs.id
    identityClientId: identity.outputs.clientId
    deployerId: deployer.outputs.id
    hostStorageName: hostStorage.outputs.name
    hostBlobEndpoint: hostStorage.outputs.blobEndpoint
    deploymentContainerUrl: packageStorage.outputs.containerUrl
    tableEndpoint: stateStorage.outputs.tableEndpoint
    queueEndpoint: stateStorage.outputs.queueEndpoint
    blobEndpoint: stateStorage.outputs.blobEndpoint
    serviceBusHostName: serviceBus.outputs.hostName
    eventGridEndpoint: eventGrid.outputs.endpoint
    applicationInsightsConnectionString: monitoring.outputs.connectionString
    applicationInsightsId: monitoring.outputs.id
    appSubnetId: networkIsolation ? network!.outputs.appSubnetId : ''
    alwaysReadyInstances: alwaysReadyInstances
    maximumInstances: maximumInstances
    httpConcurrency: httpConcurrency
    updateStrategy: updateStrategy
    zoneRedundant: zoneRedundantApp
    instanceMemoryMB: instanceMemoryMB
    pythonVersion: pythonVersion
    frontDoorId: frontDoorId
    deployFrom: deployFrom
    corsOrigins: corsOrigins
    simulatedServices: simulatedServices
    serviceSettings: serviceSettings
    appSettings: appSettings
    retentionDays: retentionDays
    operatorSignInClientId: operatorSignInClientId
    operatorRole: operatorRole
  }
  dependsOn: [
    privateEndpoints
  ]
}

module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    operatorEmails: operatorEmails
    operatorWebhooks: operatorWebhooks
    sweepMissingMinutes: sweepMissingMinutes
    maximumInstances: maximumInstances
    dailyLogGigabytes: dailyLogGigabytes
    applicationInsightsId: monitoring.outputs.id
    workspaceId: monitoring.outputs.workspaceId
    stateAccountId: stateStorage.outputs.id
    appUrl: availabilityTest && empty(frontDoorId) ? app.outputs.url : ''
    serviceBusId: serviceBus.outputs.id
    topicId: eventGrid.outputs.id
  }
}

// Last, so that the roles of the topic are known by then.
module eventSubscription 'modules/event-subscription.bicep' = {
  name: 'event-subscription'
  scope: group
  params: {
    topicName: eventGrid.outputs.name
    storageAccountId: stateStorage.outputs.id
    alertQueue: alertQueue
    undeliveredName: eventGrid.outputs.undeliveredName
  }
  dependsOn: [
    app
    alerts
  ]
}

module workbook 'modules/workbook.bicep' = {
  name: 'workbook'
  scope: group
  params: {
    location: location
    tags: tags
    applicationInsightsId: monitoring.outputs.id
    serviceBusId: serviceBus.outputs.id
  }
}

output AZURE_LOCATION string = location
output AZURE_TENANT_ID string = tenant().tenantId
output AZURE_RESOURCE_GROUP string = group.name
// azd keeps the answer to its own question elsewhere: as an output, the hook that makes the budget reads it too.
output OPERATOR_EMAIL string = operatorEmail
// What cannot be changed in place: the next preprovision hook compares it with what is asked for.
output DEPLOYED_REDUNDANCY string = redundancy
output DEPLOYED_PYTHON_VERSION string = pythonVersion
output DEPLOYED_NETWORK_ISOLATION bool = networkIsolation
output KEY_VAULT_NAME string = keyVault ? vault!.outputs.name : ''
output APP_NAME string = app.outputs.name
output APP_URL string = app.outputs.url
