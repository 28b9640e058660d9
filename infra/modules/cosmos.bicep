param name string
param location string
param tags object
param redundancy string
param withSimulator bool
param accessLogWorkspaceId string
param appPrincipalId string
param isolated bool
param locked bool

var tableNames = filter(loadJsonContent('../storage.json').tables, table => withSimulator || table != 'simulator')
// Whoever has the account restores it to any second, without a support request; but not from another region.
var continuousBackup = {
  type: 'Continuous'
  continuousModeProperties: {
    tier: 'Continuous7Days'
  }
}
var backupElsewhere = {
  type: 'Periodic'
  periodicModeProperties: {
    backupIntervalInMinutes: 240
    backupRetentionIntervalInHours: 168
    backupStorageRedundancy: 'Geo'
  }
}
// Cosmos DB has roles of its own; this one reads and writes entities, and cannot change the account.
var dataContributor = '00000000-0000-0000-0000-000000000002'

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-04-15' = {
  name: name
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    capabilities: [
      {
        name: 'EnableTable'
      }
    ]
    consistencyPolicy: {
      defaultConsistencyLevel: 'Strong'
    }
    // One region whatever the redundancy: of a second one, only backups are kept there.
    locations: [
      {
        locationName: location
        failoverPriority: 0
        isZoneRedundant: true
      }
    ]
    backupPolicy: redundancy == 'zone' ? continuousBackup : backupElsewhere
    disableLocalAuth: true
    disableKeyBasedMetadataWriteAccess: true
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
  }
}

// Against a deletion by mistake: of the account, not of what is in it.
resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  name: 'orders'
  scope: account
  properties: {
    level: 'CanNotDelete'
    notes: 'It has the orders. docs/disaster.md says what cannot be brought back.'
  }
}

resource tables 'Microsoft.DocumentDB/databaseAccounts/tables@2025-04-15' = [
  for table in tableNames: {
    parent: account
    name: table
    properties: {
      resource: {
        id: table
      }
      options: {
        autoscaleSettings: {
          maxThroughput: 1000
        }
      }
    }
  }
]

resource tableRoles 'Microsoft.DocumentDB/databaseAccounts/tableRoleAssignments@2026-03-15' = {
  parent: account
  name: guid(account.id, appPrincipalId, dataContributor)
  properties: {
    principalId: appPrincipalId
    roleDefinitionId: '${account.id}/tableRoleDefinitions/${dataContributor}'
    scope: account.id
  }
}

// Who read or wrote which rows: they hold customers' names. (There is no stable version of this type.)
resource accessLog 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(accessLogWorkspaceId)) {
  name: 'access'
  scope: account
  properties: {
    workspaceId: accessLogWorkspaceId
    logs: [
      {
        category: 'TableApiRequests'
        enabled: true
      }
    ]
  }
}

output id string = account.id
output tableEndpoint string = 'https://${name}.table.cosmos.azure.com:443/'
