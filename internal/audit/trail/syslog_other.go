//go:build !unix

package trail

import "errors"

// OpenSyslog refuses: there is no syslog.
func OpenSyslog() (Port, error) {
	return nil, errors.New("--audit-log syslog: there is no syslog on this system")
}
