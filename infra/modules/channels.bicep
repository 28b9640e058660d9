param token string
param tags object
param dataLocation string
param appPrincipalId string

var roles = loadJsonContent('../roles.json')

resource emailService 'Microsoft.Communication/emailServices@2025-09-01' = {
  name: 'acs-mail-${token}'
  location: 'global'
  tags: tags
  properties: {
    dataLocation: dataLocation
  }
}

resource domain 'Microsoft.Communication/emailServices/domains@2025-09-01' = {
  parent: emailService
  name: 'AzureManagedDomain'
  location: 'global'
  tags: tags
  properties: {
    domainManagement: 'AzureManaged'
    userEngagementTracking: 'Disabled'
  }
}

resource communication 'Microsoft.Communication/communicationServices@2025-09-01' = {
  name: 'acs-${token}'
  location: 'global'
  tags: tags
  properties: {
    dataLocation: dataLocation
    linkedDomains: [
      domain.id
    ]
    disableLocalAuth: true
    publicNetworkAccess: 'Enabled'
  }
}

// No narrower built-in role may send mail. It also allows changes to this service, so its scope is this service alone;
// the keys that it may list are of no use without local authentication.
resource appSendsMail 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(communication.id, appPrincipalId, roles.communicationAndEmailServiceOwner)
  scope: communication
  properties: {
    principalId: appPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      roles.communicationAndEmailServiceOwner
    )
  }
}

output endpoint string = 'https://${communication.properties.hostName}'
// An Azure-managed domain has this sender, and takes no other.
output sender string = 'DoNotReply@${domain.properties.fromSenderDomain}'
