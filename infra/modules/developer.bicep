param principalId string
param stateAccountName string
param serviceBusName string
param topicName string
param vaultName string

var roles = loadJsonContent('../roles.json')
var onState = [
  roles.storageTableDataContributor
  roles.storageQueueDataContributor
  roles.storageBlobDataContributor
]
var onServiceBus = [
  roles.serviceBusDataSender
  roles.serviceBusDataReceiver
]

resource state 'Microsoft.Storage/storageAccounts@2025-01-01' existing = {
  name: stateAccountName
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: serviceBusName
}

resource topic 'Microsoft.EventGrid/topics@2025-02-15' existing = {
  name: topicName
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: empty(vaultName) ? 'none' : vaultName // names are checked of what is not made, too
}

// What the app may do, whoever runs it on a machine of their own may do too; and put secrets into the vault. Without
// their type, since it may be a group.
resource stateRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in onState: {
    name: guid(state.id, principalId, role)
    scope: state
    properties: {
      principalId: principalId
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource serviceBusRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in onServiceBus: {
    name: guid(serviceBus.id, principalId, role)
    scope: serviceBus
    properties: {
      principalId: principalId
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource sends 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(topic.id, principalId, roles.eventGridDataSender)
  scope: topic
  properties: {
    principalId: principalId
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.eventGridDataSender)
  }
}

resource keepsSecrets 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(vaultName)) {
  name: guid(vault.id, principalId, roles.keyVaultSecretsOfficer)
  scope: vault
  properties: {
    principalId: principalId
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.keyVaultSecretsOfficer)
  }
}
