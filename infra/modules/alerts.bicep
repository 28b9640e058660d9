param token string
param location string
param tags object
param operatorEmail string
param sweepMissingMinutes int
param applicationInsightsId string
param serviceBusId string
param topicId string

resource operators 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: 'ag-${token}'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'operators'
    enabled: true
    emailReceivers: [
      {
        name: 'operators'
        emailAddress: operatorEmail
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
  }
  {
    name: 'dead-lettered'
    severity: 1
    description: 'A message failed so often that Service Bus put it aside; its order is found by the supervisor.'
    scope: serviceBusId
    metricNamespace: 'Microsoft.ServiceBus/namespaces'
    metric: 'DeadletteredMessages'
    aggregation: 'Maximum'
  }
]

resource metricAlerts 'Microsoft.Insights/metricAlerts@2018-03-01' = [
  for rule in metricRules: {
    name: '${rule.name}-${token}'
    location: 'global'
    tags: tags
    properties: {
      description: rule.description
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

// A line may come late, and a single one decides: so a rule looks every five minutes at the last ten.
var queryRules = [
  {
    name: 'order-events'
    severity: 2
    description: 'Orders went to Error: the operators\' console lists them. Each cause tells again and again, and mutes no other.'
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
    description: 'Something that the app needs has been away for minutes, or refuses it; or a clock is off, an order cannot be recovered, retention falls behind. The line says what.'
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
    description: 'A message that nobody can read, or that failed too often, is kept in table poison: the operators\' API lists it.'
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
    description: 'The supervisor has not swept: orders that time out stay where they are.'
    query: loadTextContent('../queries/sweeps.kql')
    operator: 'LessThan'
    threshold: 1
    minutes: sweepMissingMinutes
    dimensions: []
    stateful: true
  }
  {
    name: 'circuit-open'
    severity: 2
    description: 'A remote service failed for many orders in a row; its agent leaves it alone for a while, and orders wait.'
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
    description: 'Orders wait for more than ten minutes to be claimed: no scheduler works, or too few.'
    query: loadTextContent('../queries/waiting.kql')
    operator: 'GreaterThan'
    threshold: 0
    minutes: 10
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
      description: rule.description
      severity: rule.severity
      enabled: true
      scopes: [
        applicationInsightsId
      ]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT${rule.minutes}M'
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
