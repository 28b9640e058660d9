import { MonitoringOptions } from 'options.bicep'

param token string
param location string
param tags object
param operatorEmails array
@secure()
param operatorWebhooks string
param options MonitoringOptions
param maximumInstances int
param applicationInsightsId string
param serviceBusId string
param topicId string
param workspaceId string
param stateAccountId string
param appUrl string
param askFromOutside bool

var webhooks = filter(split(replace(operatorWebhooks, ' ', ''), ','), address => !empty(address))
var runbook = 'What to do: docs/operations/runbooks.md#alert-'

resource operators 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: 'ag-${token}'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'operators'
    enabled: true
    emailReceivers: [
      for address in union(operatorEmails, operatorEmails): { // without doubles, whose names would be equal
        name: address
        emailAddress: address
        useCommonAlertSchema: true
      }
    ]
    webhookReceivers: [
      for (address, i) in webhooks: {
        name: 'webhook-${i}'
        serviceUri: address
        useCommonAlertSchema: true
      }
    ]
  }
}

// What Azure counts by itself works also when the app does not.
var metricRules = [
  {
    name: 'order-events-undelivered'
    severity: 1
    description: 'Event Grid could not deliver an alert to the operators\' queue, and kept it in the container undelivered-alerts.'
    scope: topicId
    metricNamespace: 'Microsoft.EventGrid/topics'
    metric: 'DeadLetteredCount'
    aggregation: 'Total'
    dimensions: []
  }
  {
    name: 'order-events-dropped'
    severity: 1
    description: 'Event Grid dropped an alert and kept it nowhere. The order is in the operators\' list.'
    scope: topicId
    metricNamespace: 'Microsoft.EventGrid/topics'
    metric: 'DroppedEventCount'
    aggregation: 'Total'
    dimensions: []
  }
  {
    name: 'order-events-refused'
    severity: 2
    description: 'Event Grid refused an alert of the app, which sends it again.'
    scope: topicId
    metricNamespace: 'Microsoft.EventGrid/topics'
    metric: 'PublishFailCount'
    aggregation: 'Total'
    dimensions: []
  }
  {
    name: 'dead-lettered'
    severity: 1
    description: 'A message that Service Bus gave up could not be kept as poison either. The supervisor finds its order.'
    scope: serviceBusId
    metricNamespace: 'Microsoft.ServiceBus/namespaces'
    metric: 'DeadletteredMessages'
    aggregation: 'Maximum'
    dimensions: []
  }
  {
    name: 'bus-throttled'
    severity: 2
    description: 'Service Bus refuses calls because there are too many: orders take longer.'
    scope: serviceBusId
    metricNamespace: 'Microsoft.ServiceBus/namespaces'
    metric: 'ThrottledRequests'
    aggregation: 'Total'
    dimensions: []
  }
  {
    name: 'storage-throttled'
    severity: 2
    description: 'The account with the state of the orders refuses calls because there are too many, or is busy.'
    scope: stateAccountId
    metricNamespace: 'Microsoft.Storage/storageAccounts'
    metric: 'Transactions'
    aggregation: 'Total'
    dimensions: [
      {
        name: 'ResponseType'
        operator: 'Include'
        values: [
          'ServerBusyError'
          'ServerTimeoutError'
          'ClientThrottlingError'
          'ClientAccountRequestThrottlingError'
        ]
      }
    ]
  }
]

resource metricAlerts 'Microsoft.Insights/metricAlerts@2018-03-01' = [
  for rule in metricRules: {
    name: '${rule.name}-${token}'
    location: 'global'
    tags: tags
    properties: {
      description: '${rule.description} ${runbook}${rule.name}'
      severity: rule.severity
      enabled: true
      scopes: [
        rule.scope
      ]
      evaluationFrequency: 'PT1M'
      windowSize: 'PT5M'
      criteria: {
        'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
        allOf: [
          {
            name: rule.metric
            criterionType: 'StaticThresholdCriterion'
            metricNamespace: rule.metricNamespace
            metricName: rule.metric
            dimensions: rule.dimensions
            timeAggregation: rule.aggregation
            operator: 'GreaterThan'
            threshold: 0
          }
        ]
      }
      actions: [
        {
          actionGroupId: operators.id
        }
      ]
    }
  }
]

// A log line can arrive late and one is enough to alert, so a rule runs every five minutes over the last ten.
var queryRules = [
  {
    name: 'order-events'
    severity: 2
    description: 'Orders went to Error. The operators\' console lists them. Each cause sends its own mail.'
    query: loadTextContent('../queries/failed.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: [
      {
        name: 'cause'
        operator: 'Include'
        values: [
          '*'
        ]
      }
    ]
    stateful: false
  }
  {
    name: 'outage'
    severity: 1
    description: 'A dependency has been unavailable for minutes or refuses the app, a clock is wrong, an order cannot be recovered, retention is behind, or a channel to people takes no message. The log line names the reason.'
    query: loadTextContent('../queries/outages.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: []
    stateful: true
  }
  {
    name: 'poison'
    severity: 1
    description: 'A message that cannot be read, or that failed too often, is kept as poison. The operators\' console lists it.'
    query: loadTextContent('../queries/poison.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: []
    stateful: true
  }
  {
    name: 'no-sweep'
    severity: 0
    description: 'No sweep of the supervisor has ended. Orders that time out are not recovered.'
    query: loadTextContent('../queries/sweeps.kql')
    operator: 'LessThan'
    threshold: 1
    minutes: options.sweepMissingMinutes
    dimensions: []
    stateful: true
  }
  {
    name: 'circuit-open'
    severity: 2
    description: 'A remote service failed for several orders. Its agent stops calling it for a while, and orders wait.'
    query: loadTextContent('../queries/circuit.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: []
    stateful: true
  }
  {
    name: 'waiting'
    severity: 1
    description: 'Orders wait for more than ten minutes to be claimed: no scheduler works, or too few, or no agent can take their steps.'
    query: loadTextContent('../queries/waiting.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: []
    stateful: true
  }
  {
    name: 'unrecorded'
    severity: 1
    description: 'An order was accepted more than five minutes ago and is not recorded. Its submission is invisible, or nobody takes it.'
    query: loadTextContent('../queries/unrecorded.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 30
    dimensions: []
    stateful: true
  }
  {
    name: 'server-errors'
    severity: 2
    description: 'The app answered more than five calls in ten minutes with an error of its own.'
    query: loadTextContent('../queries/server-errors.kql')
    operator: 'GreaterThan'
    threshold: 5
    minutes: 10
    dimensions: []
    stateful: true
  }
  {
    name: 'instances-at-limit'
    severity: 2
    description: 'A function has as many instances as maximumInstances allows. Further work waits.'
    query: replace(loadTextContent('../queries/instances.kql'), 'MAXIMUM_INSTANCES', string(maximumInstances))
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
    dimensions: []
    stateful: true
  }
  // At the limit the other rules see no data: so this one alerts before. Without a limit it is switched off.
  {
    name: 'log-nearly-full'
    severity: 1
    description: 'Four fifths of the daily cap of the log were used within 24 hours. Once the cap is reached, rules on the log see no data.'
    query: replace(loadTextContent('../queries/log-size.kql'), 'DAILY_LOG_GB', string(options.dailyLogGigabytes))
    operator: 'GreaterThan'
    threshold: 0
    minutes: 1440
    dimensions: []
    stateful: true
  }
]
resource queryAlerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [
  for rule in queryRules: {
    name: '${rule.name}-${token}'
    location: location
    tags: tags
    properties: {
      displayName: rule.name
      description: '${rule.description} ${runbook}${rule.name}'
      severity: rule.severity
      enabled: rule.name != 'log-nearly-full' || options.dailyLogGigabytes > 0
      scopes: [
        rule.name == 'log-nearly-full' ? workspaceId : applicationInsightsId
      ]
      evaluationFrequency: rule.name == 'log-nearly-full' ? 'PT1H' : 'PT5M'
      windowSize: rule.minutes == 1440 ? 'P1D' : 'PT${rule.minutes}M'
      criteria: {
        allOf: [
          {
            query: rule.query
            dimensions: rule.dimensions
            timeAggregation: 'Count'
            operator: rule.operator
            threshold: rule.threshold
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      autoMitigate: rule.stateful
      skipQueryValidation: true // what is queried was made a moment ago
      actions: {
        actionGroups: [
          operators.id
        ]
      }
    }
  }
]

// Asked from outside, also when the app does not even start. Both are deployed switched off too: a resource that is left
// out would stay, and the test would go on calling an app that only Front Door may call.
resource availability 'Microsoft.Insights/webtests@2022-06-15' = {
  name: 'health-${token}'
  location: location
  tags: union(tags, { 'hidden-link:${applicationInsightsId}': 'Resource' })
  kind: 'standard'
  properties: {
    SyntheticMonitorId: 'health-${token}'
    Name: 'health'
    Enabled: askFromOutside
    Kind: 'standard'
    Frequency: 900
    Timeout: 60
    RetryEnabled: true
    Locations: [
      for place in ['us-va-ash-azr', 'emea-nl-ams-azr', 'apac-sg-sin-azr']: {
        Id: place
      }
    ]
    Request: {
      RequestUrl: '${appUrl}/api/health'
      HttpVerb: 'GET'
    }
    ValidationRules: {
      ExpectedHttpStatusCode: 200
    }
  }
}

resource unavailable 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: 'unavailable-${token}'
  location: 'global'
  tags: tags
  properties: {
    description: 'The app did not report that it is healthy to at least two of three places. ${runbook}unavailable'
    severity: 1
    enabled: askFromOutside
    scopes: [
      availability.id
      applicationInsightsId
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT30M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.WebtestLocationAvailabilityCriteria'
      webTestId: availability.id
      componentId: applicationInsightsId
      failedLocationCount: 2
    }
    actions: [
      {
        actionGroupId: operators.id
      }
    ]
  }
}
