param location string
param tags object
param applicationInsightsId string
param serviceBusId string

var content = replace(
  replace(loadTextContent('../workbook.json'), '{application-insights}', applicationInsightsId),
  '{service-bus}',
  serviceBusId
)

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(applicationInsightsId, 'orders')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'Orders'
    category: 'workbook'
    sourceId: applicationInsightsId
    serializedData: content
  }
}
