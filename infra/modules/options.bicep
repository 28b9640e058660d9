// The options of a deployment. Their values stand in infra/options; the compiler compares them with these types, so a wrong
// value stops a deployment before it begins.

@export()
@sealed()
@description('infra/options/app.json: how the app runs.')
type AppOptions = {
  @description('Version of Python on Azure, for which the hook also packs.')
  pythonVersion: '3.11' | '3.12' | '3.13'

  @description('Memory of an instance in MB. The cost of computing is proportional to it.')
  instanceMemoryMB: 512 | 2048 | 4096

  @description('The most instances for HTTP calls together, and for each other function by itself. The quota of the region limits them all.')
  @minValue(1)
  @maxValue(1000)
  maximumInstances: int

  @description('Instances that are always ready for HTTP calls, and as many for each function that an order passes. They cost money while nothing happens; 0 has cold starts.')
  @minValue(0)
  @maxValue(20)
  alwaysReadyInstances: int

  @description('HTTP calls that an instance handles at the same time.')
  @minValue(1)
  @maxValue(1000)
  httpConcurrency: int

  @description('How a new version or setting reaches the instances: Recreate ends running work, RollingUpdate (in preview) lets it finish.')
  updateStrategy: 'Recreate' | 'RollingUpdate'

  @description('Keep instances of the app in several zones. Azure bills two always ready instances for HTTP calls and for each function.')
  zoneRedundant: bool

  @description('Scale by the length of the Service Bus queues. The app then gets the right to manage the namespace.')
  scaleByQueueLength: bool

  @description('Address, or range such as 203.0.113.0/24, from which alone a new version may be deployed. Empty: from anywhere.')
  deployFrom: string

  @description('Origins of other sites whose pages may call the app, such as https://shop.example.com.')
  corsOrigins: string[]

  @description('App role that operators need when they sign in. Empty: everybody who is assigned to the app registration.')
  operatorRole: string

  @description('Further settings of the app by name (adapters/settings.py). They replace those of the template.')
  settings: object
}

@export()
@sealed()
@description('infra/options/data.json: what is kept, and who may reach it.')
type DataOptions = {
  @description('After how many days finished orders, with customers\' names, alerts, poison messages and idempotency keys are removed. 0 keeps them for ever.')
  @minValue(0)
  @maxValue(10000)
  retentionDays: int

  @description('Refuse the deletion of the account with the orders until somebody deletes the lock. It needs the right to make locks, and azd down fails while it is there.')
  lock: bool

  @description('Give the app its role for tables on the whole account, if Azure refuses transactions with a role on each table.')
  tableRoleOnAccount: bool

  @description('Make a Key Vault for the secrets of the services, which the app may read.')
  keyVault: bool
}

@export()
@sealed()
@description('infra/options/monitoring.json: what is logged, and what alerts the operators.')
type MonitoringOptions = {
  @description('How many days the log is kept.')
  @minValue(4)
  @maxValue(730)
  logDays: int

  @description('Log who reads and writes the tables, which hold customers\' names.')
  accessLog: bool

  @description('How many days the access log is kept.')
  @minValue(30)
  @maxValue(730)
  accessLogDays: int

  @description('Gigabytes of log after which Azure takes no more on that day; 0: no limit. A rule alerts at four fifths. At the limit, log alerts see no data and no-sweep fires.')
  @minValue(0)
  dailyLogGigabytes: int

  @description('Ask from three places every quarter of an hour whether the app is healthy. Never behind Front Door, which alone may call it.')
  availabilityTest: bool

  @description('How many minutes without a sweep of the supervisor alert the operators.')
  sweepMissingMinutes: 5 | 10 | 15 | 30 | 45
}
