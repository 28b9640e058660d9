param topicName string
param storageAccountId string
param alertQueue string
param undeliveredName string

resource topic 'Microsoft.EventGrid/topics@2025-02-15' existing = {
  name: topicName
}

// Event Grid asks whether the topic may deliver when this is made, and a role takes minutes to be known everywhere.
resource subscriptionToQueue 'Microsoft.EventGrid/topics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: alertQueue
  properties: {
    eventDeliverySchema: 'CloudEventSchemaV1_0'
    deliveryWithResourceIdentity: {
      identity: {
        type: 'SystemAssigned'
      }
      destination: {
        endpointType: 'StorageQueue'
        properties: {
          resourceId: storageAccountId
          queueName: alertQueue
          queueMessageTimeToLiveInSeconds: -1
        }
      }
    }
    retryPolicy: {
      maxDeliveryAttempts: 30
      eventTimeToLiveInMinutes: 1440
    }
    deadLetterWithResourceIdentity: {
      identity: {
        type: 'SystemAssigned'
      }
      deadLetterDestination: {
        endpointType: 'StorageBlob'
        properties: {
          resourceId: storageAccountId
          blobContainerName: undeliveredName
        }
      }
    }
  }
}
