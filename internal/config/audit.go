package config

import (
	"fmt"
	"slices"
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
	if c.Audit.Deadline < leastAuditDeadline {
		faults = append(faults, fmt.Sprintf("--audit-log-deadline %v is too short: %v at least", c.Audit.Deadline,
			leastAuditDeadline))
	}
	if _, err := c.AuditRotation(); err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}
