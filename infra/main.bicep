targetScope = 'subscription'

@description('Name of the environment: part of every resource name, and the value of the tag azd-env-name.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Azure region of all resources. It has to offer Flex Consumption and, for zone redundancy, availability zones.')
@minLength(1)
param location string

@description('Where alerts are sent: the operators\' e-mail address.')
@minLength(6)
param operatorEmail string

@description('Whether the state of the orders is kept in several zones, in two regions, or both. Orders in Cosmos DB are always in several zones of one region; of geo they have the backups.')
@allowed([
  'zone'
  'geo'
  'geo-zone'
])
param redundancy string = 'zone'

@description('Reach storage, Service Bus and Event Grid through private endpoints only; needs Service Bus Premium.')
param networkIsolation bool = false

@description('Keep orders in Azure Cosmos DB for Table instead of Table Storage, for those who outgrow one storage account.')
param cosmosForTables bool = false

@description('Instances that are always ready for HTTP calls, for new orders and for the scheduler; 0 costs nothing while nothing happens.')
@minValue(0)
@maxValue(20)
param alwaysReadyInstances int = 0

@description('Instances at most, for all functions together.')
@minValue(40)
@maxValue(1000)
param maximumInstances int = 100

@description('Memory of one instance in MB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int = 2048

@description('Let the app also play the remote services, which fail on demand: for demonstrations, never in production.')
param simulatedServices bool = false

@description('Address of the payment service; not used while the services are simulated.')
param paymentUrl string = ''

@description('Address of another way to the payment service, for when the first one fails; may be empty.')
param paymentBackupUrl string = ''

@description('Address of the inventory service; not used while the services are simulated.')
param inventoryUrl string = ''

@description('Address of the shipping service; not used while the services are simulated.')
param shippingUrl string = ''

@description('After how many days finished orders, with customers\' names, and alerts are removed; 0 keeps them for ever.')
@minValue(0)
@maxValue(10000)
param retentionDays int = 0

@description('Client id of an app registration with which operators sign in (Entra ID), besides needing the key; empty for the key alone.')
param operatorSignInClientId string = ''

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

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    name: 'id-${token}'
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
    privateSubnetId: networkIsolation ? network!.outputs.endpointsSubnetId : ''
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
    withTables: !cosmosForTables
    appPrincipalId: identity.outputs.principalId
    privateSubnetId: networkIsolation ? network!.outputs.endpointsSubnetId : ''
  }
}

module cosmos 'modules/cosmos.bicep' = if (cosmosForTables) {
  name: 'cosmos'
  scope: group
  params: {
    name: 'cosmos-${token}'
    location: location
    tags: tags
    redundancy: redundancy
    appPrincipalId: identity.outputs.principalId
    privateSubnetId: networkIsolation ? network!.outputs.endpointsSubnetId : ''
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
    appPrincipalId: identity.outputs.principalId
    privateSubnetId: networkIsolation ? network!.outputs.endpointsSubnetId : ''
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
    appPrincipalId: identity.outputs.principalId
    privateSubnetId: networkIsolation ? network!.outputs.endpointsSubnetId : ''
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
    hostBlobEndpoint: hostStorage.outputs.blobEndpoint
    deploymentContainerUrl: hostStorage.outputs.deploymentContainerUrl
    tableEndpoint: cosmosForTables ? cosmos!.outputs.tableEndpoint : stateStorage.outputs.tableEndpoint
    queueEndpoint: stateStorage.outputs.queueEndpoint
    blobEndpoint: stateStorage.outputs.blobEndpoint
    serviceBusHostName: serviceBus.outputs.hostName
    eventGridEndpoint: eventGrid.outputs.endpoint
    applicationInsightsConnectionString: monitoring.outputs.connectionString
    appSubnetId: networkIsolation ? network!.outputs.appSubnetId : ''
    alwaysReadyInstances: alwaysReadyInstances
    maximumInstances: maximumInstances
    instanceMemoryMB: instanceMemoryMB
    simulatedServices: simulatedServices
    paymentUrl: paymentUrl
    paymentBackupUrl: paymentBackupUrl
    inventoryUrl: inventoryUrl
    shippingUrl: shippingUrl
    retentionDays: retentionDays
    operatorSignInClientId: operatorSignInClientId
  }
}

module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    operatorEmail: operatorEmail
    sweepMissingMinutes: sweepMissingMinutes
    applicationInsightsId: monitoring.outputs.id
    serviceBusId: serviceBus.outputs.id
    topicId: eventGrid.outputs.id
  }
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
output APP_NAME string = app.outputs.name
output APP_URL string = app.outputs.url
