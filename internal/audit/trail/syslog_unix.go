//go:build unix

package trail

import (
	"fmt"
	"log/syslog"
)

// OpenSyslog returns a Port that gives each record to the syslog daemon of this machine, with the facility authpriv.
func OpenSyslog() (Port, error) {
	to, err := syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "quorate-audit")
	if err != nil {
		return nil, fmt.Errorf("--audit-log syslog: %w", err)
	}
	return lineByLine(to.Notice), nil
}
