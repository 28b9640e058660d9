targetScope = 'subscription'

import { AppOptions, DataOptions, MonitoringOptions } from 'modules/options.bicep'

@description('Name of the environment: part of every resource name, and the value of the tag azd-env-name.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Azure region of all resources. It has to offer Flex Consumption and, for zone redundancy, availability zones.')
@minLength(1)
@metadata({ azd: { type: 'location' } })
param location string

@description('The operators\' e-mail addresses, separated by commas. The rules of Azure Monitor and the app send their mail there.')
@minLength(6)
param operatorEmail string

@description('The https addresses, separated by commas, to which the rules of Azure Monitor post alerts in the common alert schema. They may contain a secret.')
@secure()
param operatorWebhooks string = ''

@description('The https address of a Teams workflow that posts to a channel. It is a secret. Empty: no messages to Teams.')
@secure()
param teamsWebhookUrl string = ''

@description('The https address of an incoming webhook of Slack. It is a secret. Empty: no messages to Slack.')
@secure()
param slackWebhookUrl string = ''

@description('The address of your mail server: smtps://USER:PASSWORD@HOST:465, or smtp://USER:PASSWORD@HOST:587 for STARTTLS. It is a secret. Empty: no mail through it.')
@secure()
param smtpUrl string = ''

@description('Sender of the mail that goes through SMTP_URL. Required if SMTP_URL is set.')
param smtpSender string = ''

@description('Where Azure keeps copies of the orders: in several zones (zone), in two regions (geo), or both (geo-zone).')
@allowed([
  'zone'
  'geo'
  'geo-zone'
])
param redundancy string = 'zone'

@description('Reach storage, Service Bus, Event Grid and Key Vault through private endpoints only. This needs Service Bus Premium.')
param networkIsolation bool = false

@description('Let the app also play the remote services. You can make them fail on demand. For demonstrations, never in production.')
param simulatedServices bool = false

@description('Settings with which the agents call their services: URLs, token scopes, secrets or Key Vault references.')
@secure()
param serviceSettings object = {}

@description('Object id of a user or a group that gets the roles of the app on its data, to run the app locally or to store secrets in the Key Vault. Empty: nobody.')
param developerPrincipalId string = ''

@description('Client id of the app registration with which operators sign in (Entra ID). They need the key too. Empty: operators need only the key.')
param operatorSignInClientId string = ''

@description('Id of the only Azure Front Door that may call the app. Empty: everybody can call the app.')
param frontDoorId string = ''

// What most deployments leave alone. The compiler compares the files with these types.
var app AppOptions = loadJsonContent('options/app.json')
var data DataOptions = loadJsonContent('options/data.json')
var monitoring MonitoringOptions = loadJsonContent('options/monitoring.json')

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = {
  'azd-env-name': environmentName
}

var operatorEmails = filter(split(replace(operatorEmail, ' ', ''), ','), address => !empty(address))
var alertQueue = 'operator-alerts'
// The settings of the channels over which the app sends alerts to people: a channel is on if its settings are there.
var channelSettings = union(
  monitoring.mail ? { MAIL_ENDPOINT: channels!.outputs.endpoint, MAIL_SENDER: channels!.outputs.sender } : {},
  monitoring.mail || !empty(smtpUrl) ? { ALERT_RECIPIENTS: join(operatorEmails, ',') } : {},
  empty(teamsWebhookUrl) ? {} : { TEAMS_WEBHOOK_URL: teamsWebhookUrl },
  empty(slackWebhookUrl) ? {} : { SLACK_WEBHOOK_URL: slackWebhookUrl },
  empty(smtpUrl) ? {} : { SMTP_URL: smtpUrl, SMTP_SENDER: smtpSender }
)
var storageSuffix = environment().suffixes.storage
var blobZone = 'privatelink.blob.${storageSuffix}'

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

// The app authenticates as this identity.
module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    name: 'id-app-${token}'
    location: location
    tags: tags
  }
}

// The platform stores and fetches packages as this identity.
module deployer 'modules/identity.bicep' = {
  name: 'deployer'
  scope: group
  params: {
    name: 'id-deploy-${token}'
    location: location
    tags: tags
  }
}

module logs 'modules/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    appPrincipalId: identity.outputs.principalId
    options: monitoring
  }
}

module network 'modules/network.bicep' = if (networkIsolation) {
  name: 'network'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    withVault: data.keyVault
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
    locked: data.lock
    withSimulator: simulatedServices
    roleOnAccount: data.tableRoleOnAccount
    accessLog: monitoring.accessLog
    workspaceId: logs.outputs.workspaceId
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
    scaleByLength: app.scaleByQueueLength
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

module channels 'modules/channels.bicep' = if (monitoring.mail) {
  name: 'channels'
  scope: group
  params: {
    token: token
    tags: tags
    dataLocation: monitoring.mailDataLocation
    appPrincipalId: identity.outputs.principalId
  }
}

module vault 'modules/vault.bicep' = if (data.keyVault) {
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
    vaultName: data.keyVault ? vault!.outputs.name : ''
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
  id: data.keyVault ? vault!.outputs.id : ''
  group: 'vault'
  zone: 'privatelink.vaultcore.azure.net'
}

module privateEndpoints 'modules/private-endpoints.bicep' = if (networkIsolation) {
  name: 'private-endpoints'
  scope: group
  params: {
    targets: flatten([
      sharedTargets
      data.keyVault ? [vaultTarget] : []
    ])
    subnetId: network!.outputs.endpointsSubnetId
    location: location
    tags: tags
  }
}

module site 'modules/app.bicep' = {
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
    applicationInsightsConnectionString: logs.outputs.connectionString
    applicationInsightsId: logs.outputs.id
    appSubnetId: networkIsolation ? network!.outputs.appSubnetId : ''
    options: app
    frontDoorId: frontDoorId
    simulatedServices: simulatedServices
    serviceSettings: serviceSettings
    channelSettings: channelSettings
    alertRules: monitoring.alertRules
    alertIntervalSeconds: monitoring.alertIntervalSeconds
    alertOperationsPerSecond: monitoring.alertOperationsPerSecond
    retentionDays: data.retentionDays
    operatorSignInClientId: operatorSignInClientId
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
    options: monitoring
    maximumInstances: app.maximumInstances
    applicationInsightsId: logs.outputs.id
    workspaceId: logs.outputs.workspaceId
    stateAccountId: stateStorage.outputs.id
    appUrl: site.outputs.url
    askFromOutside: monitoring.availabilityTest && empty(frontDoorId)
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
    site
    alerts
  ]
}

module workbook 'modules/workbook.bicep' = {
  name: 'workbook'
  scope: group
  params: {
    location: location
    tags: tags
    applicationInsightsId: logs.outputs.id
    serviceBusId: serviceBus.outputs.id
  }
}

output AZURE_LOCATION string = location
output AZURE_TENANT_ID string = tenant().tenantId
output AZURE_RESOURCE_GROUP string = group.name
// azd stores prompted values outside the environment. As an output, the postprovision hook can read it.
output OPERATOR_EMAIL string = operatorEmail
// The preprovision hook rejects a change of redundancy or isolation, the predeploy hook a package for another Python.
output DEPLOYED_REDUNDANCY string = redundancy
output DEPLOYED_PYTHON_VERSION string = app.pythonVersion
output DEPLOYED_NETWORK_ISOLATION bool = networkIsolation
output KEY_VAULT_NAME string = data.keyVault ? vault!.outputs.name : ''
output APP_NAME string = site.outputs.name
output APP_URL string = site.outputs.url
