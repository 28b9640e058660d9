param token string
param monthlyAmount int
param start string
param operatorEmails array

// Tells, and stops nothing.
resource budget 'Microsoft.Consumption/budgets@2024-08-01' = {
  name: 'budget-${token}'
  properties: {
    category: 'Cost'
    amount: monthlyAmount
    timeGrain: 'Monthly'
    timePeriod: {
      startDate: '${start}T00:00:00Z'
    }
    notifications: {
      forecast: {
        enabled: true
        operator: 'GreaterThan'
        threshold: 100
        thresholdType: 'Forecasted'
        contactEmails: operatorEmails
      }
      spent: {
        enabled: true
        operator: 'GreaterThan'
        threshold: 80
        thresholdType: 'Actual'
        contactEmails: operatorEmails
      }
    }
  }
}
