package config

// Backup says what a continuous backup may make this member do.
type Backup struct {
	Places []string // URLs of places that may be used, with all below; none: no backup is shipped
}

var backupSettings = []setting{
	{name: "backup-places", arg: "URLS", shown: "none",
		help: "Where a continuous backup may go, with all below: file:///DIRECTORY, " +
			"s3://BUCKET/PREFIX?endpoint=https://HOST. Files of credentials and authorities are those that are named here. " +
			"Other places are refused, and this member ships nothing to them (docs/backup.md).",
		value: lists(func(c *Config) *[]string { return &c.Backup.Places })},
}
