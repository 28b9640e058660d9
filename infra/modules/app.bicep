import { AppOptions } from 'options.bicep'

param token string
param location string
param tags object
param identityId string
param identityClientId string
param deployerId string
param hostStorageName string
param hostBlobEndpoint string
param deploymentContainerUrl string
param tableEndpoint string
param queueEndpoint string
param blobEndpoint string
param serviceBusHostName string
param eventGridEndpoint string
param applicationInsightsConnectionString string
param applicationInsightsId string
param appSubnetId string
param options AppOptions
param frontDoorId string
param simulatedServices bool
@secure()
param serviceSettings object
@secure()
param channelSettings object
param alertRules array
param alertIntervalSeconds int
param alertOperationsPerSecond int
param retentionDays int
param operatorSignInClientId string

// The routes that need no key, so no sign-in either; but the console's page is where operators' browsers sign in.
var openPaths = [
  '/'
  '/shop'
  '/web/*'
  '/api/products'
  '/api/orders'
  '/api/orders/*'
  '/api/workflows/*'
  '/api/answers/*'
  '/api/health'
  '/api/openapi.json'
  '/simulator/*'
]
// The portal's own form of "copy link to query"; the app puts in the id of an order.
var logPage = '${environment().portal}/#view/Microsoft_OperationsManagementSuite_Workspace/Logs.ReactView'
var logQuery = 'query/${uriComponent('traces | where message has "')}{orderId}${uriComponent('" | order by timestamp asc')}'
var logLink = '${logPage}/resourceId/${uriComponent(applicationInsightsId)}/source/LogsBlade.AnalyticsShareLinkToQuery/${logQuery}'
var signsIn = !empty(operatorSignInClientId)
var signInSettings = !signsIn ? {} : { OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID: identityClientId }
// All Front Doors have the same addresses; the header, which Azure sets, says which one it is.
var frontDoorOnly = {
  name: 'front-door'
  action: 'Allow'
  priority: 100
  tag: 'ServiceTag'
  ipAddress: 'AzureFrontDoor.Backend'
  headers: {
    'x-azure-fdid': [
      frontDoorId
    ]
  }
}
var deployersOnly = {
  name: 'deploy'
  action: 'Allow'
  priority: 100
  ipAddress: contains(options.deployFrom, '/') ? options.deployFrom : '${options.deployFrom}/${contains(options.deployFrom, ':') ? 128 : 32}'
}
// What the application declares of its agents.
var declared = loadJsonContent('../agents.json')
// Agents without an address are not part of the app, unless they have no need of one.
var agents = map(
  filter(
    declared.agents,
    agent => simulatedServices || empty(agent.address) || !empty(serviceSettings[?agent.address] ?? '')
  ),
  agent => replace(agent.name, '-', '_')
)
// The functions that process orders. Response handlers are among them: their delay counts against the time of a step.
var alwaysReady = flatten([
  [
    'http'
    'function:submission_record'
    'function:scheduler_order_ready'
  ]
  map(agents, agent => 'function:agent_${agent}')
  map(agents, agent => 'function:scheduler_${agent}_responses')
])

resource plan 'Microsoft.Web/serverfarms@2024-11-01' = {
  name: 'plan-${token}'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
    zoneRedundant: options.zoneRedundant
  }
}

resource site 'Microsoft.Web/sites@2024-11-01' = {
  name: 'func-${token}'
  location: location
  tags: union(tags, { 'azd-service-name': 'app' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
      '${deployerId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: empty(appSubnetId) ? null : appSubnetId
    siteConfig: {
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
      ipSecurityRestrictionsDefaultAction: empty(frontDoorId) ? 'Allow' : 'Deny'
      ipSecurityRestrictions: empty(frontDoorId) ? [] : [frontDoorOnly]
      scmIpSecurityRestrictionsUseMain: false
      scmIpSecurityRestrictionsDefaultAction: empty(options.deployFrom) ? 'Allow' : 'Deny'
      scmIpSecurityRestrictions: empty(options.deployFrom) ? [] : [deployersOnly]
      // Without credentials: nothing here knows a caller by a cookie but the sign-in, and no other site's page may use that.
      cors: {
        allowedOrigins: options.corsOrigins
        supportCredentials: false
      }
    }
    functionAppConfig: {
      runtime: {
        name: 'python'
        version: options.pythonVersion
      }
      deployment: {
        storage: {
          type: 'blobContainer'
          value: deploymentContainerUrl
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: deployerId
          }
        }
      }
      // Azure takes it, but the compiler's types do not have it (learn.microsoft.com/azure/azure-functions/flex-consumption-site-updates).
      #disable-next-line BCP037
      siteUpdateStrategy: {
        type: options.updateStrategy
      }
      scaleAndConcurrency: {
        triggers: {
          http: {
            perInstanceConcurrency: options.httpConcurrency
          }
        }
        maximumInstanceCount: options.maximumInstances
        instanceMemoryMB: options.instanceMemoryMB
        alwaysReady: [
          for name in (options.alwaysReadyInstances == 0 ? [] : alwaysReady): {
            name: name
            instanceCount: options.alwaysReadyInstances
          }
        ]
      }
    }
  }
}

resource noPasswordsForFtp 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = {
  parent: site
  name: 'ftp'
  properties: {
    allow: false
  }
}

resource noPasswordsForScm 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = {
  parent: site
  name: 'scm'
  properties: {
    allow: false
  }
}

// The app plays the remote services at its own address.
var simulatedAddresses = toObject(
  filter(declared.agents, agent => !empty(agent.address)),
  agent => agent.address,
  agent => 'https://{host}/simulator/${agent.name}'
)
var simulatedSettings = json(replace(string(simulatedAddresses), '{host}', site.properties.defaultHostName))
var givenSettings = toObject(filter(items(serviceSettings), each => !empty(each.value)), each => each.key, each => each.value)

// What the app reads: engine/azure/settings.py says what each means. Times are for Azure, where a sweep costs money, and
// where a message may wait for two minutes until an instance is there to take it.
resource settings 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: site
  name: 'appsettings'
  properties: union(signInSettings, givenSettings, channelSettings, simulatedServices ? simulatedSettings : {}, {
    AzureWebJobsStorage__blobServiceUri: hostBlobEndpoint
    // Besides the address: without it the host was seen to fail at its start (Azure/azure-functions-host, issue 11787).
    AzureWebJobsStorage__accountName: hostStorageName
    AzureWebJobsStorage__credential: 'managedidentity'
    AzureWebJobsStorage__clientId: identityClientId
    AzureWebJobsDisableHomepage: 'true'
    FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '262144'
    AzureFunctionsJobHost__extensions__queues__maxPollingInterval: '00:00:01' // each look is paid for
    APPLICATIONINSIGHTS_CONNECTION_STRING: applicationInsightsConnectionString
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identityClientId};Authorization=AAD'
    StateStorage__tableServiceUri: tableEndpoint
    StateStorage__queueServiceUri: queueEndpoint
    StateStorage__blobServiceUri: blobEndpoint
    StateStorage__credential: 'managedidentity'
    StateStorage__clientId: identityClientId
    ServiceBus__fullyQualifiedNamespace: serviceBusHostName
    ServiceBus__credential: 'managedidentity'
    ServiceBus__clientId: identityClientId
    EVENT_GRID_ENDPOINT: eventGridEndpoint
    EVENT_GRID__clientId: identityClientId
    OPERATOR_SIGN_IN: signsIn ? 'true' : 'false' // only then the platform says who calls
    OPERATOR_ROLE: signsIn ? options.operatorRole : ''
    SIMULATOR_ENABLED: simulatedServices ? 'true' : 'false'
    STEP_TIMEOUT_SECONDS: '180'
    FAILURE_THRESHOLD: '3'
    CLOCK_TOLERANCE_SECONDS: '2'
    LEASE_SECONDS: '30'
    BUCKETS: '8'
    RETENTION_DAYS: string(retentionDays)
    REMOTE_CALL_TIMEOUT_SECONDS: '10'
    REPLY_MARGIN_SECONDS: '1'
    CALLS_IN_FLIGHT: '{}'
    MAX_CONCURRENT_CALLS: '100'
    CIRCUIT_ORDERS: '10'
    CIRCUIT_OPEN_SECONDS: '30'
    LONGEST_RETRY_AFTER_SECONDS: '600'
    COOLDOWN_SECONDS: '600'
    MAX_RETRY_PAUSE_SECONDS: '300'
    MAX_UNBEGUN_ATTEMPTS: '12'
    REPLY_TO_PREFIX: 'status-'
    UNKNOWN_NAME_MAX_DELIVERIES: '24'
    MIXED_VERSION_SECONDS: '86400'
    NOTICE_TRIES: '8'
    PUBLIC_URL: 'https://${site.properties.defaultHostName}'
    LOG_LINK: logLink
    RUNBOOK_URL: ''
    // Behind Front Door every call comes from an edge address; rules of Front Door limit callers.
    PUBLIC_CALLS_PER_MINUTE: empty(frontDoorId) ? '300' : '0'
    TRUSTED_PROXIES: ''
    APP_LANGUAGE: 'en'
    MAX_SILENCE_SECONDS: '3600'
    PENDING_ALERT_SECONDS: '900'
    SWEEP_ALERT_SECONDS: '300'
    SUPERVISOR_SCHEDULE: '*/15 * * * * *'
    SCHEDULER_POLL_SCHEDULE: '*/30 * * * * *'
    OUTBOX_SCHEDULE: '*/30 * * * * *'
    STALL_DETECTOR_SCHEDULE: '0 * * * * *'
    NOTIFY_SCHEDULE: '*/30 * * * * *'
    ALERT_RULES: string(alertRules)
    ALERT_INTERVAL_SECONDS: string(alertIntervalSeconds)
    ALERT_OPERATIONS_PER_SECOND: string(alertOperationsPerSecond)
  }, options.settings)
}

// Everything asks for a sign-in but what customers and the app itself call; the operators' key is needed besides.
// No secret: the app registration trusts the identity.
// It is deployed without a client id too: a resource that is left out would stay as it was, and go on asking.
resource signIn 'Microsoft.Web/sites/config@2024-11-01' = {
  parent: site
  name: 'authsettingsV2'
  properties: {
    platform: {
      enabled: signsIn
    }
    globalValidation: {
      requireAuthentication: signsIn
      unauthenticatedClientAction: signsIn ? 'RedirectToLoginPage' : 'AllowAnonymous'
      redirectToProvider: signsIn ? 'azureactivedirectory' : null
      excludedPaths: openPaths
    }
    httpSettings: {
      requireHttps: true
      // Behind Front Door, signing in has to lead back to its address: nobody reaches the app's own.
      forwardProxy: {
        convention: empty(frontDoorId) ? 'NoProxy' : 'Standard'
      }
    }
    identityProviders: signsIn
      ? {
          azureActiveDirectory: {
            enabled: true
            registration: {
              clientId: operatorSignInClientId
              clientSecretSettingName: 'OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID'
              openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
            }
            validation: {
              allowedAudiences: [
                'api://${operatorSignInClientId}'
              ]
            }
          }
        }
      : {}
    login: {
      tokenStore: {
        enabled: false
      }
    }
  }
}

output name string = site.name
output url string = 'https://${site.properties.defaultHostName}'
