package distance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Where the line of a socket in /proc/net/tcp has its own address and its inode, from zero.
const (
	addressField = 1
	inodeField   = 9
)

var errUnknown = errors.New("no process of this machine has the other end")

// Owner returns the command line of the process on this machine that made a connection, by the address from which it came.
func Owner(from net.Addr) ([]string, error) {
	address, ok := from.(*net.TCPAddr)
	if !ok {
		return nil, errUnknown
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if inode := inodeOf(string(content), address.Port); inode != "" {
			return holder("socket:[" + inode + "]")
		}
	}
	return nil, errUnknown
}

// inodeOf looks for the socket with a local port.
func inodeOf(table string, port int) string {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > inodeField && strings.HasSuffix(fields[addressField], suffix) && fields[inodeField] != "0" {
			return fields[inodeField]
		}
	}
	return ""
}

// holder looks for the process that has a file open.
func holder(file string) ([]string, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, process := range processes {
		open, err := os.ReadDir(process + "/fd")
		if err != nil {
			continue // not ours to look at, or gone
		}
		for _, each := range open {
			if target, err := os.Readlink(process + "/fd/" + each.Name()); err == nil && target == file {
				line, err := os.ReadFile(process + "/cmdline")
				return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), err
			}
		}
	}
	return nil, errUnknown
}
