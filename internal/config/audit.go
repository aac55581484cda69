package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// leastAuditDeadline is the shortest time that a required output of the audit may take.
const leastAuditDeadline = 100 * time.Millisecond

// auditFaults refuses outputs of the audit that cannot be meant.
func (c *Config) auditFaults() (faults Faults) {
	for _, output := range c.Audit.Required {
		if slices.Contains(c.Audit.BestEffort, output) {
			faults = append(faults, fmt.Sprintf("--audit-log and --audit-log-required both name %s: name it once", output))
		}
	}
	for _, output := range slices.Concat(c.Audit.BestEffort, c.Audit.Required) {
		if slices.Contains(c.Monitoring.LogOutputs, output) {
			faults = append(faults, fmt.Sprintf("--audit-log and --log-outputs both name %s: records need a file of their own",
				output))
		}
	}
	faults = append(faults, c.collectorFaults()...)
	if c.Audit.Deadline < leastAuditDeadline {
		faults = append(faults, fmt.Sprintf("--audit-log-deadline %v is too short: %v at least", c.Audit.Deadline,
			leastAuditDeadline))
	}
	if _, err := c.AuditRotation(); err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}

// The schemes of collectors.
const (
	schemeOTLP  = "otlp://"
	schemeOTLPS = "otlps://"
)

// AuditCollector reads an output that is a collector of OpenTelemetry: its host and port, and whether it speaks TLS.
func AuditCollector(output string) (address string, secure, ok bool) {
	if address, ok = strings.CutPrefix(output, schemeOTLPS); ok {
		return address, true, true
	}
	address, ok = strings.CutPrefix(output, schemeOTLP)
	return address, false, ok
}

// collectorFaults refuses outputs that look like collectors and name none, and authorities of none.
func (c *Config) collectorFaults() (faults Faults) {
	trusts := false
	for _, output := range slices.Concat(c.Audit.BestEffort, c.Audit.Required) {
		address, secure, ok := AuditCollector(output)
		scheme, _, isURL := strings.Cut(output, "://")
		trusts = trusts || secure
		switch host, port, err := net.SplitHostPort(address); {
		case ok && (err != nil || host == "" || port == "" || strings.ContainsAny(address, "/ @")):
			faults = append(faults, fmt.Sprintf("--audit-log %s: write %s://HOST:PORT, of the port for OTLP over gRPC, mostly "+
				"4317", output, scheme))
		case !ok && isURL:
			faults = append(faults, fmt.Sprintf("--audit-log %s: %s is no output: write a path, journal, syslog, or "+
				"otlps://HOST:PORT", output, scheme))
		}
	}
	if c.Audit.CollectorCAFile != "" && !trusts {
		faults = append(faults, "--audit-otlp-trusted-ca-file is for outputs that begin with otlps://, and there is none")
	}
	return faults
}
