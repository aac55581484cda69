package dev

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portOwner names the process that listens on a TCP port, as far as this user may see it: the kernel's table gives
// the socket's inode, and the owner is whose descriptors lead there.
func portOwner(port int) string {
	inode := listenInode("/proc/net/tcp", port)
	if inode == "" {
		inode = listenInode("/proc/net/tcp6", port)
	}
	if inode == "" {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			return "process " + pid
		}
		return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
	}
	return ""
}

const stateListen = "0A"

func listenInode(table string, port int) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer f.Close()
	suffix := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == stateListen {
			if _, err := strconv.Atoi(fields[9]); err == nil {
				return fields[9]
			}
		}
	}
	return ""
}
