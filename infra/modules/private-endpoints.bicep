param targets array
param subnetId string
param location string
param tags object

// One after another: Azure refuses two at the same time on one account or in one subnet.
@batchSize(1)
module endpoints 'private-endpoint.bicep' = [
  for target in targets: {
    name: 'endpoint-${target.name}-${target.group}'
    params: {
      targetName: target.name
      targetId: target.id
      groupId: target.group
      zoneName: target.zone
      subnetId: subnetId
      location: location
      tags: tags
    }
  }
]
