param token string
param location string
param tags object
param withVault bool

var zones = concat(
  [
    'privatelink.blob.${environment().suffixes.storage}'
    'privatelink.queue.${environment().suffixes.storage}'
    'privatelink.table.${environment().suffixes.storage}'
    'privatelink.servicebus.windows.net'
    'privatelink.eventgrid.azure.net'
  ],
  withVault ? ['privatelink.vaultcore.azure.net'] : []
)

resource network 'Microsoft.Network/virtualNetworks@2024-07-01' = {
  name: 'vnet-${token}'
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        '10.0.0.0/16'
      ]
    }
  }
}

resource appSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-07-01' = {
  parent: network
  name: 'app'
  properties: {
    addressPrefix: '10.0.0.0/24'
    delegations: [
      {
        name: 'flex-consumption'
        properties: {
          serviceName: 'Microsoft.App/environments'
        }
      }
    ]
  }
}

resource endpointsSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-07-01' = {
  parent: network
  name: 'private-endpoints'
  properties: {
    addressPrefix: '10.0.1.0/24'
    privateEndpointNetworkPolicies: 'Disabled'
  }
  dependsOn: [
    appSubnet
  ]
}

resource dnsZones 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for zone in zones: {
    name: zone
    location: 'global'
    tags: tags
  }
]

resource dnsLinks 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (zone, i) in zones: {
    parent: dnsZones[i]
    name: 'link-${token}'
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      virtualNetwork: {
        id: network.id
      }
    }
  }
]

output appSubnetId string = appSubnet.id
output endpointsSubnetId string = endpointsSubnet.id
