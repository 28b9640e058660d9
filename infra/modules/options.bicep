// The options of a deployment. Their values stand in infra/options; the compiler compares them with these types, so a wrong
// value stops a deployment before it begins.

@export()
@sealed()
@description('infra/options/app.json: how the app runs.')
type AppOptions = {
  @description('Python version of the app. After a change run azd up, which packs the app again.')
  pythonVersion: '3.11' | '3.12' | '3.13'

  @description('Memory of an instance in MB. The cost of computing is proportional to it.')
  instanceMemoryMB: 512 | 2048 | 4096

  @description('Maximum number of instances: for all HTTP functions together, and for each other function. The quota of the region applies as well.')
  @minValue(1)
  @maxValue(1000)
  maximumInstances: int

  @description('Number of always-ready instances for all HTTP functions together, and the same number for each function that processes orders. They cost money when idle. With 0, a call or message may wait until an instance starts.')
  @minValue(0)
  @maxValue(20)
  alwaysReadyInstances: int

  @description('Maximum number of HTTP calls that an instance handles at the same time.')
  @minValue(1)
  @maxValue(1000)
  httpConcurrency: int

  @description('How a new version or setting reaches the instances: Recreate ends running work, RollingUpdate (in preview) lets it finish.')
  updateStrategy: 'Recreate' | 'RollingUpdate'

  @description('Keep instances of the app in several zones. Azure bills two always-ready instances for all HTTP functions together, and two for each other function.')
  zoneRedundant: bool

  @description('Scale by the length of the Service Bus queues. The app then gets the right to manage the namespace.')
  scaleByQueueLength: bool

  @description('The only address, or range of addresses such as 203.0.113.0/24, from which you can deploy a new version. Empty: from anywhere.')
  deployFrom: string

  @description('Origins of other sites whose pages may call the app, such as https://shop.example.com.')
  corsOrigins: string[]

  @description('App role that operators need when they sign in. Empty: everybody who is assigned to the app registration.')
  operatorRole: string

  @description('Further settings of the app by name (engine/azure/settings.py). Each value is a text, and replaces the value of the template.')
  settings: {
    *: string
  }
}

@export()
@sealed()
@description('infra/options/data.json: retention, deletion lock, table role and Key Vault.')
type DataOptions = {
  @description('Days after which finished orders (with customers\' names), alerts, poison messages and idempotency keys are deleted. 0 keeps them.')
  @minValue(0)
  @maxValue(10000)
  retentionDays: int

  @description('Lock the storage account with the orders against deletion. You need Owner or User Access Administrator to create the lock, and azd down fails until you delete it.')
  lock: bool

  @description('Give the app its role for tables on the whole account instead of each table. Use this if Azure refuses transactions.')
  tableRoleOnAccount: bool

  @description('Create a Key Vault for the secrets with which the app calls the services. The app may read them.')
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

  @description('Daily cap of the log in GB; 0 means no cap. An alert fires at 80 %. Once the cap is reached, log alerts see no data and no-sweep fires.')
  @minValue(0)
  dailyLogGigabytes: int

  @description('Let Azure call /api/health from three places every 15 minutes. With FRONT_DOOR_ID this test is always off, because then only Front Door can call the app.')
  availabilityTest: bool

  @description('Number of minutes without a sweep of the supervisor after which the operators get an alert.')
  sweepMissingMinutes: 5 | 10 | 15 | 30 | 45

  @description('Let the app mail alerts to OPERATOR_EMAIL through Azure Communication Services, from a domain that Azure manages.')
  mail: bool

  @description('Geography, such as Europe or United States, in which Azure keeps the data of the mail that the option mail sends. It cannot be changed later.')
  mailDataLocation: string

  @description('Rules that say which alerts go to which channel. Without rules, each alert that needs an action goes to every channel.')
  alertRules: AlertRule[]

  @description('Shortest time in seconds between two messages to a channel, after the first one.')
  @minValue(60)
  @maxValue(86400)
  alertIntervalSeconds: int

  @description('Maximum number of table operations per second for the work on alerts, in each process.')
  @minValue(5)
  @maxValue(1000)
  alertOperationsPerSecond: int
}

@sealed()
@description('Sends alerts to a channel: those that need an action, or with severity info all alerts. If types, workflows or causes are given, only alerts with one of these types, workflows or codes of causes.')
type AlertRule = {
  channel: 'mail' | 'teams' | 'slack' | 'smtp'
  severity: 'action' | 'info'?
  types: string[]?
  workflows: string[]?
  causes: string[]?
}
