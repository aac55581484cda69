package config_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

// Ensure that outputs of the audit that cannot be meant are refused, with what to do.
func TestConfig_Audit(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--audit-log=a.log,journal --audit-log-required=b.log", ""},
		{"--audit-log=a.log --audit-log-required=syslog,a.log", "both name a.log"},
		{"--audit-log=a.log --log-outputs=stderr,a.log", "need a file of their own"},
		{"--audit-log-required=a.log --audit-log-deadline=10ms", "--audit-log-deadline 10ms is too short"},
		{"--audit-log=otlp://127.0.0.1:4317 --audit-log-required=otlps://[::1]:4317 --audit-otlp-trusted-ca-file=ca", ""},
		{"--audit-log=otlp://collector", "write otlp://HOST:PORT"},
		{"--audit-log=otlps://collector:4317/v1/logs", "write otlps://HOST:PORT"},
		{"--audit-log=otlp://:4317", "write otlp://HOST:PORT"},
		{"--audit-log=https://collector:4318/v1/logs", "https is no output"},
		{"--audit-log=otlp://collector:4317 --audit-otlp-trusted-ca-file=ca", "for outputs that begin with otlps://"},
		{`--audit-log-rotation-json={"size":1}`, "--audit-log-rotation-json: json: unknown field"},
		{`--audit-log-rotation-json={"maxage":-1}`, "must not be negative"},
	} {
		cfg, err := config.Load(strings.Fields(row.args), nil)
		if err == nil {
			err = cfg.Validate()
		}
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: got %v, want %q", row.args, err, row.want)
		}
	}
}
