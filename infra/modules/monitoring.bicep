import { MonitoringOptions } from 'options.bicep'

param token string
param location string
param tags object
param appPrincipalId string
param options MonitoringOptions

var roles = loadJsonContent('../roles.json')

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: 'log-${token}'
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    // Of the tables that have no number of their own: the access log.
    retentionInDays: options.accessLogDays
    workspaceCapping: {
      dailyQuotaGb: options.dailyLogGigabytes == 0 ? -1 : options.dailyLogGigabytes
    }
    features: {
      disableLocalAuth: true
    }
  }
}

// Application Insights' tables keep 90 days, whatever the workspace says, unless each has a number of its own.
// One after another: two changes of a workspace at the same time are refused.
@batchSize(1)
resource tables 'Microsoft.OperationalInsights/workspaces/tables@2025-02-01' = [
  for table in [
    'AppTraces'
    'AppRequests'
    'AppDependencies'
    'AppExceptions'
    'AppMetrics'
    'AppPerformanceCounters'
    'AppAvailabilityResults'
  ]: {
    parent: workspace
    name: table
    properties: {
      retentionInDays: options.logDays
      totalRetentionInDays: options.logDays
    }
    // A workspace that was made a moment ago is not active yet, and refuses them (Azure/terraform-azurerm-avm-ptn-aks-production,
    // issue 187): so they come after what uses it.
    dependsOn: [
      publisher
    ]
  }
]

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: 'appi-${token}'
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
  }
}

resource publisher 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, appPrincipalId, roles.monitoringMetricsPublisher)
  scope: insights
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.monitoringMetricsPublisher)
  }
}

output workspaceId string = workspace.id
output id string = insights.id
output connectionString string = insights.properties.ConnectionString
