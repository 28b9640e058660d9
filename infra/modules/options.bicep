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

  @description('Number of always-ready instances for HTTP, and the same number for each function that processes orders. They cost money when idle. With 0 there are cold starts.')
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

  @description('Further settings of the app by name (engine/azure/settings.py). They are texts, and replace those of the template.')
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

  @description('Daily cap of the log in GB; 0 means no cap. An alert fires at 80 %. Once the cap is reached, log alerts see no data and no-sweep fires.')
  @minValue(0)
  dailyLogGigabytes: int

  @description('Call /api/health from three places every 15 minutes. Switched off with FRONT_DOOR_ID, because only Front Door can call the app.')
  availabilityTest: bool

  @description('After how many minutes without a sweep of the supervisor the operators get an alert.')
  sweepMissingMinutes: 5 | 10 | 15 | 30 | 45

  @description('Let the app mail alerts to OPERATOR_EMAIL through Azure Communication Services, from a domain that Azure manages.')
  mail: bool

  @description('Geography in which Azure keeps the data of that mail, such as Europe or United States. It cannot be changed later.')
  mailDataLocation: string

  @description('Rules that say which alerts go to which channel. Without any, each alert that needs an action goes to every channel.')
  alertRules: AlertRule[]

  @description('Shortest time in seconds between two messages to a channel, after the first one.')
  @minValue(60)
  @maxValue(86400)
  alertIntervalSeconds: int

  @description('How many operations on tables the work on alerts takes at most per second, in each process.')
  @minValue(5)
  @maxValue(1000)
  alertOperationsPerSecond: int
}

@sealed()
@description('Sends to a channel the alerts that need an action, or with severity info every alert: of these types, workflows and codes of causes alone, if given.')
type AlertRule = {
  channel: 'mail' | 'teams' | 'slack' | 'smtp'
  severity: 'action' | 'info'?
  types: string[]?
  workflows: string[]?
  causes: string[]?
}
