package config

import "time"

const (
	noDiscovery = "this is etcd's v2 discovery; use --discovery-token with --discovery-endpoints, --discovery-srv, or " +
		"--initial-cluster"
)

var monitoringSettings = []setting{
	{name: "log-level", def: "info", arg: "LEVEL", help: "Least important lines to log: debug, info, warn, error.",
		value: choices(func(c *Config) *string { return &c.Monitoring.LogLevel },
			"debug", "info", "warn", "error", "dpanic", "panic", "fatal")},
	{name: "log-format", def: "json", arg: "FORMAT", help: "'json' or 'console'.",
		value: choices(func(c *Config) *string { return &c.Monitoring.LogFormat }, "json", "console")},
	{name: "log-outputs", def: "default", arg: "OUTPUTS",
		help: "Where to log to: 'stderr' (which 'default' means), 'stdout', 'systemd/journal' (stderr where there is " +
			"no journal), paths of files.",
		value: lists(func(c *Config) *[]string { return &c.Monitoring.LogOutputs })},
	{name: "listen-metrics-urls", arg: "URLS", shown: "as listen-client-urls",
		help:  "Where else to serve /metrics and /health.",
		value: urls(func(c *Config) *[]URL { return &c.Listen.MetricsURLs })},
	{name: "listen-console-urls", arg: "URLS", shown: "nowhere",
		help:  "Where to serve the console, for browsers; https but on loopback.",
		value: urls(func(c *Config) *[]URL { return &c.Listen.ConsoleURLs })},
	{name: "console", def: "read-only", arg: "MODE",
		help:  "What the console may do: 'read-only', or 'admin', which lets users change what their roles permit.",
		value: choices(func(c *Config) *ConsoleMode { return &c.Console }, ConsoleReadOnly, ConsoleAdmin)},
	{name: "metrics", def: "basic", arg: "LEVEL", help: "'extensive' adds histograms of every gRPC method to 'basic'.",
		value: choices(func(c *Config) *string { return &c.Monitoring.Metrics }, "basic", "extensive")},
	{name: "enable-pprof", def: "false", help: "Serve profiles under /debug/pprof/ of the client URLs.",
		value: switches(func(c *Config) *bool { return &c.Monitoring.EnablePprof })},
	{name: "warning-apply-duration", def: "100ms", arg: "DURATION",
		help:  "Log a warning when applying a command takes longer.",
		value: durations(func(c *Config) *time.Duration { return &c.Monitoring.WarningApplyDuration })},
	{name: "warning-unary-request-duration", def: "300ms", arg: "DURATION",
		help:  "Log a warning when a request takes longer.",
		value: durations(func(c *Config) *time.Duration { return &c.Monitoring.WarningRequestDuration })},
	{name: "enable-log-rotation", def: "false",
		help:  "Put files of log-outputs aside once they are large, as log-rotation-config-json says.",
		value: switches(func(c *Config) *bool { return &c.Monitoring.EnableLogRotation })},
	{name: "log-rotation-config-json", arg: "JSON",
		def: `{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}`,
		help: "How: maxsize in MB; of the old files those are removed that are older than maxage days, and more than " +
			"maxbackups; 0 keeps all.",
		value: texts(func(c *Config) *string { return &c.Monitoring.LogRotationJSON })},
}

var authSettings = []setting{
	{name: "auth-token", def: "simple", arg: "TYPE",
		help: "Type of the tokens of logged-in users: 'simple', or " +
			"'jwt,sign-method=METHOD,pub-key=FILE,priv-key=FILE,ttl=DURATION' (default of ttl: 5m), with methods such as " +
			"RS256, ES256, EdDSA and HS256. The files are read again when they have changed.",
		value: texts(func(c *Config) *string { return &c.Auth.Token })},
	{name: "auth-token-ttl", def: "300", arg: "SECONDS",
		help:  "How long after its last use at a member a simple token is good.",
		value: counted(func(c *Config) *time.Duration { return &c.Auth.TokenTTL }, time.Second)},
	{name: "bcrypt-cost", def: "10", arg: "N", help: "Cost of hashing passwords, 4 to 31; each step takes twice the time.",
		value: numbers(func(c *Config) *int { return &c.Auth.BcryptCost }, 4, 31)},
}

var discoverySettings = []setting{
	refused("discovery", "", "URL", nil, noDiscovery),
	refused("discovery-proxy", "", "URL", nil, noDiscovery),
	{name: "discovery-srv", arg: "DOMAIN",
		help: "Domain whose SRV records, _etcd-server-ssl._tcp.DOMAIN and _etcd-server._tcp.DOMAIN, name all members by " +
			"their peer URLs, instead of initial-cluster. Read at the first start only.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.DNS.Domain })},
	{name: "discovery-srv-name", arg: "NAME",
		help:  "Look for _etcd-server-ssl-NAME._tcp.DOMAIN and _etcd-server-NAME._tcp.DOMAIN.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.DNS.Service })},
	{name: "discovery-token", arg: "TOKEN",
		help: "Found the cluster with those that register under this token at discovery-endpoints, not with initial-cluster. " +
			"Write how many they are to /_etcd/registry/TOKEN/_config/size there first. Read at the first start only.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.Token })},
	{name: "discovery-endpoints", arg: "ENDPOINTS", help: "Client endpoints of the running cluster that has the token.",
		value: lists(func(c *Config) *[]string { return &c.Bootstrap.Discovery.Endpoints })},
	{name: "discovery-dial-timeout", def: "2s", arg: "DURATION", help: "How long to wait for a connection.",
		value: durations(func(c *Config) *time.Duration { return &c.Bootstrap.Discovery.DialTimeout })},
	{name: "discovery-request-timeout", def: "5s", arg: "DURATION", help: "How long to wait for one answer.",
		value: durations(func(c *Config) *time.Duration { return &c.Bootstrap.Discovery.RequestTimeout })},
	{name: "discovery-keepalive-time", def: "2s", arg: "DURATION", help: "How often to look whether the connection is up.",
		value: durations(func(c *Config) *time.Duration { return &c.Bootstrap.Discovery.KeepAliveTime })},
	{name: "discovery-keepalive-timeout", def: "6s", arg: "DURATION", help: "After how long without an answer it is given up.",
		value: durations(func(c *Config) *time.Duration { return &c.Bootstrap.Discovery.KeepAliveTimeout })},
	{name: "discovery-insecure-transport", def: "true",
		help:  "Connect without TLS to endpoints that have no scheme and for which no file below is given.",
		value: switches(func(c *Config) *bool { return &c.Bootstrap.Discovery.InsecureTransport })},
	{name: "discovery-insecure-skip-tls-verify", def: "false", help: "Do not verify the endpoints' certificates; for tests.",
		value: switches(func(c *Config) *bool { return &c.Bootstrap.Discovery.SkipVerify })},
	{name: "discovery-cert", arg: "FILE", help: "Certificate to show to the endpoints.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.CertFile })},
	{name: "discovery-key", arg: "FILE", help: "Key of discovery-cert.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.KeyFile })},
	{name: "discovery-cacert", arg: "FILE", shown: "those of the system", help: "Authorities of the endpoints' certificates.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.TrustedCAFile })},
	{name: "discovery-user", arg: "USER[:PASSWORD]", secret: true, help: "User of the running cluster.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.User })},
	{name: "discovery-password", arg: "PASSWORD", secret: true, help: "Password of discovery-user.",
		value: texts(func(c *Config) *string { return &c.Bootstrap.Discovery.Password })},
}

var tracingSettings = []setting{
	{name: "enable-distributed-tracing", def: "false",
		help:  "Send a span of each call of a client that is recorded to a collector of OpenTelemetry, over OTLP and gRPC.",
		value: switches(func(c *Config) *bool { return &c.Tracing.Enabled })},
	{name: "distributed-tracing-address", def: "localhost:4317", arg: "ADDRESS",
		help:  "Host and port of the collector, which is spoken to without TLS.",
		value: texts(func(c *Config) *string { return &c.Tracing.Address })},
	{name: "distributed-tracing-service-name", def: "etcd", arg: "NAME",
		help:  "Name of the service in the spans; the same for all members.",
		value: texts(func(c *Config) *string { return &c.Tracing.Service })},
	{name: "distributed-tracing-instance-id", arg: "ID", shown: "none",
		help:  "Id of this member in the spans; unique in the service.",
		value: texts(func(c *Config) *string { return &c.Tracing.Instance })},
	{name: "distributed-tracing-sampling-rate", def: "0", arg: "N",
		help: "Calls of a million that are recorded if their clients do not say whether they are; 0 means only those whose " +
			"clients ask for it.",
		value: numbers(func(c *Config) *int { return &c.Tracing.PerMillion }, 0, 1_000_000)},
}

var auditSettings = []setting{
	{name: "audit-log", arg: "OUTPUTS", shown: "none", filled: true,
		help: "Where records of calls go, which the audit's policy selects: paths of files, 'journal', 'syslog', and " +
			"collectors of OpenTelemetry: otlps://HOST:PORT, or otlp://HOST:PORT in the clear. What they do not take is " +
			"dropped, and counted.",
		value: lists(func(c *Config) *[]string { return &c.Audit.BestEffort })},
	{name: "audit-log-required", arg: "OUTPUTS", shown: "none", filled: true,
		help: "The same, but a call that has to be recorded is refused while one of these has taken no record for " +
			"audit-log-deadline.",
		value: lists(func(c *Config) *[]string { return &c.Audit.Required })},
	{name: "audit-log-deadline", def: "5s", arg: "DURATION",
		help:  "For how long a required output may take no record before calls are refused; 100ms at least.",
		value: durations(func(c *Config) *time.Duration { return &c.Audit.Deadline })},
	{name: "audit-exempt-user", def: "root", arg: "NAME",
		help:  "The user whose calls are not refused then, so that somebody can repair it; empty: nobody is.",
		value: texts(func(c *Config) *string { return &c.Audit.Exempt })},
	{name: "audit-log-rotation-json", arg: "JSON",
		def:   `{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}`,
		help:  "When files of records are put aside, and which old ones are removed: as log-rotation-config-json.",
		value: texts(func(c *Config) *string { return &c.Audit.RotationJSON })},
	{name: "audit-otlp-trusted-ca-file", arg: "FILE", shown: "the authorities of the system",
		help:  "Certificates of the authorities that may sign those of otlps:// collectors; read at the start.",
		value: texts(func(c *Config) *string { return &c.Audit.CollectorCAFile })},
}

var unsafeSettings = []setting{
	{name: "force-new-cluster", def: "false",
		help: "Make this member the only one of a new cluster that keeps its contents. The others must never return. " +
			"Works once for a data directory.",
		value: switches(func(c *Config) *bool { return &c.Bootstrap.ForceNewCluster })},
	{name: "unsafe-no-fsync", def: "false", help: "Do not wait for the disk. Loses data when the machine stops.",
		value: switches(func(c *Config) *bool { return &c.Storage.UnsafeNoFsync })},
}

var idleSettings = []setting{
	ignored("snapshot-count", "10000", "N", counts(), "the log is cut by size and by what the store holds"),
	ignored("snapshot-catchup-entries", "5000", "N", counts(), "followers are kept in reach of the log by its size"),
	ignored("max-snapshots", "5", "N", counts(), "there are no snapshot files to keep"),
	ignored("max-wals", "5", "N", counts(), "log segments are recycled when the store has their entries"),
	ignored("memory-mlock", "false", "", switches(nil), "nothing is mapped into memory"),
	ignored("backend-bbolt-freelist-type", "map", "TYPE", choices[string](nil, "map", "array"), "there is no bbolt file"),
	ignored("backend-batch-interval", "0s", "DURATION", durations(nil), "the store batches by itself"),
	ignored("initial-election-tick-advance", "true", "", switches(nil), "a starting member campaigns soon"),
	ignored("downgrade-check-time", "5s", "DURATION", durations(nil), "leaders look all the time"),
	ignored("backend-batch-limit", "0", "N", counts(), "the store batches by itself"),
	ignored("raft-read-timeout", "5s", "DURATION", durations(nil), "peer connections watch themselves"),
	ignored("raft-write-timeout", "5s", "DURATION", durations(nil), "peer connections watch themselves"),
	ignored("logger", "zap", "NAME", choices[string](nil, "zap"), "log lines have this shape anyway"),
	ignored("v2-deprecation", "write-only", "PHASE", choices[string](nil, "write-only", "write-only-skip-check",
		"write-only-drop-data", "gone"), "there never was a v2 store"),
	ignored("discovery-fallback", "exit", "WORD", choices[string](nil, "exit", "proxy"), "a member that finds no cluster ends"),
}

// announced are settings that etcd deprecates, with its texts, which its test suites look for.
var announced = map[string]string{
	"max-snapshots": "--max-snapshots is deprecated in 3.6 and will be decommissioned in 3.8.",
	"v2-deprecation": "--v2-deprecation is deprecated and scheduled for removal in v3.8. " +
		"The default value is enforced, ignoring user input.",
}

func refused(name, def, arg string, sample value, reason string) setting {
	return setting{name: name, def: def, arg: arg, effect: refuse, reason: reason, value: named{name, sample}}
}

func ignored(name, def, arg string, sample value, reason string) setting {
	return setting{name: name, def: def, arg: arg, effect: idle, reason: reason, value: named{name, sample}}
}

func counts() value { return numbers[int64](nil, 0, 1<<62) }
